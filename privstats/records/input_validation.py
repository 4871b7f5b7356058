"""Turn containers into tiles of numeric rows and checked labels or targets.

Each label is read by itself, as an integer or a class name, and never appears in a message.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, sparray, spmatrix

from privstats.errors import DataError, RecordError, SchemaError
from privstats.intake.accepted import ColumnLike, RecordsLike, TargetsLike
from privstats.intake.arrays import (
    FileRows,
    GuardedRows,
    densified,
    file_rows,
    host_rows,
    is_bfloat16,
    is_mapped,
    is_tensor,
    mapped_rows,
    on_device,
    require_plain,
    require_single,
    sparse_rows,
)
from privstats.intake.columns import TRUTHS, Listed, array_of, read
from privstats.intake.meaning import listed
from privstats.intake.tables import ReadRows, is_list, names_of_columns, of_list, ordered_columns
from privstats.records.code_rows import CodeRows
from privstats.records.emptied import ListedColumn
from privstats.records.reading import Goal, Labels, Reading, Targets, Unread

if TYPE_CHECKING:
    from torch import Tensor

Rows: TypeAlias = "NDArray[Any] | csr_array | FileRows | GuardedRows | CodeRows | Tensor"
"""Rows ``(n, inputs)`` of an opened container, with a dtype and slices."""
Loaded: TypeAlias = "NDArray[Any] | csr_array | Tensor"
"""Rows in memory, of the host or of a device."""
Goals: TypeAlias = "Rows | ReadLabels | NamedLabels"
"""Labels or targets of an opened container."""
AnyTargets: TypeAlias = "TargetsLike | Goals"
"""Labels or targets in a user's container, or opened before."""
AnyRecords: TypeAlias = "RecordsLike | Rows | ReadRows | Iterable[tuple[AnyRecords, AnyTargets]]"
"""Records in a user's container, or opened before, or batches of them."""

_Rows = TypeVar("_Rows", bound="Rows | ReadRows")

_TILE_BYTES = 1 << 21  # float64 rows: enough that numpy's calls cost little in comparison
_TRANSFORMED_TILE_BYTES = 1 << 20  # stays in the second-level cache throughout
_DEVICE_TILE_BYTES = 1 << 28
_TABLE_RECORDS, _TABLE_ENTRIES = 1 << 14, 1 << 22
# A sparse X is read as dense rows if at least one entry in this many is nonzero.
_DENSE_FROM = 16
# Labels are checked, or sorted by class, this many at a time.
_WINDOW_RECORDS = 1 << 17


class Tile(NamedTuple):
    """Records that a sum reads at once.

    Attributes:
        rows: ``(n, columns)``: a numpy array, sparse rows, or a tensor on an accelerator.
        targets: labels ``(n,)`` or targets, on the host or the same accelerator.
        gone: rows of records without a target, on the host; None: every record has one.
        seen: which records have their target, those of ``gone`` included; None: all.
    """

    rows: Loaded
    targets: Loaded
    gone: NDArray[Any] | None = None
    seen: NDArray[np.bool_] | None = None

    def observed(self) -> Tile:
        """Return the records with a target, apart from the others."""
        with np.errstate(over="ignore"):
            seen = np.isfinite(dense(self.targets).astype(np.float64).reshape(-1))
        if seen.all():
            return self
        there, gone = np.flatnonzero(seen), np.flatnonzero(~seen)
        rows, targets = self.rows[_places(self.rows, there)], self.targets[_places(self.targets, there)]
        return Tile(rows, targets, np.asarray(dense(self.rows[_places(self.rows, gone)])), seen)


def tiles(
    reading: Reading,
    X: AnyRecords,
    y: AnyTargets | None,
    *,
    grouped: bool = False,
    thin_rows: int | None = None,
    device_labels: bool = False,
) -> Iterator[Tile]:
    """Yield tiles of records; tiles may share memory, so use each before requesting the next.

    Args:
        X, y: records; without ``y``, an iterable of ``(X, y)`` batches, which are read in order.
        grouped: yield records class by class within windows where ``X`` is in memory; else in order.
        thin_rows: maximum rows of a sparse tile; None: all rows are dense. Only rows with few entries and no map stay
            sparse.
        device_labels: yield integer labels on an accelerator unchecked, because the check would wait for it; the
            caller then refuses those outside the classes.
    """
    if y is not None:
        yield from _tiles(reading, X, y, grouped=grouped, thin_rows=thin_rows, device_labels=device_labels)
        return
    for pair in pairs(X):
        yield from _tiles(reading, *pair, device_labels=device_labels)


def _tiles(
    reading: Reading,
    X: AnyRecords,
    y: AnyTargets,
    *,
    grouped: bool = False,
    thin_rows: int | None = None,
    device_labels: bool = False,
) -> Iterator[Tile]:
    rows = check_features(reading, X)
    device = on_device(rows)
    targets = check_goal(reading.goal, as_goals(y), device_labels=device_labels and device)
    if rows.shape[0] != targets.shape[0]:
        raise DataError(f"X has {rows.shape[0]} rows but y has {targets.shape[0]}; give one label or target per row")
    if thin_rows is not None and isinstance(rows, csr_array) and not reading.maps and _is_thin(rows):
        for window in windows(rows, thin_rows):
            thin = rows[window]
            require_single(thin)
            yield Tile(thin, dense(targets[window]))
        return
    size = _DEVICE_TILE_BYTES if device else _TRANSFORMED_TILE_BYTES if reading.maps else _TILE_BYTES
    step = max(16, size // (8 * max(rows.shape[1], reading.features)))
    if isinstance(rows, CodeRows):  # each window costs a call per column
        step = max(step, min(_TABLE_RECORDS, _TABLE_ENTRIES // reading.features))
    if (
        grouped
        and not device
        and not isinstance(rows, FileRows | GuardedRows | CodeRows)
        and isinstance(targets, np.ndarray)
    ):
        take = _taker(rows, step)
        yield from (Tile(take(where), targets[where]) for where in _by_class(targets, step))
        return
    for where in _in_order(rows.shape[0], step):
        tile = Tile(rows[where], targets[where])
        yield tile if device else Tile(dense(tile.rows), dense(tile.targets))


def device_checks(reading: Reading, rows: object, goals: Goals) -> bool:
    """Return whether records on an accelerator can be checked there, with their tile, instead of at once."""
    if not (is_tensor(rows) and on_device(rows)) or rows.is_complex():
        return False
    if reading.declaration is not None or reading.levels is not None:
        return False
    match reading.goal:
        case Labels(classes):
            there = is_tensor(goals) and on_device(goals) and _are_integers(goals)
            return there and isinstance(classes, range) and len(goals.shape) == 1
        case Targets(gaps=gaps):
            return is_tensor(goals) and not gaps and not goals.is_complex()
        case Unread():
            return True


def pairs(batches: object) -> Iterator[tuple[Any, Any]]:
    """Yield the ``(X, y)`` pairs of batches."""
    if hasattr(batches, "ndim") or isinstance(batches, str | bytes | os.PathLike) or not isinstance(batches, Iterable):
        raise DataError("y is missing; give labels or targets next to X, or an iterable of (X, y) batches as X")
    empty = True
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise DataError("a batch iterable must yield (X, y) pairs; wrap other batches in a generator that does")
        empty = False
        yield batch[0], batch[1]
    if empty:
        raise DataError("the batch iterable yielded nothing; give at least one (X, y) batch, possibly of no rows")


def check_features(reading: Reading, X: AnyRecords) -> Rows:
    """Return ``X`` as rows of real numbers that fit the reading."""
    if type(X) is not np.ndarray:  # an array has no names, and in small batches each question costs
        if is_list(X) and not len(X):  # an empty list does not show its width
            X = np.empty((0, reading.inputs))
        X = ordered_columns(X, reading.names)
    return real("X", check_shape(reading, as_rows(X, "X")))


def check_shape(reading: Reading, rows: _Rows) -> _Rows:
    """Require the number of columns that is read."""
    if len(rows.shape) != 2:
        how = "reshape it" if rows.shape else "if X has one row per record, pass y too"
        raise DataError(f"X must have shape (records, features), got {len(rows.shape)} dimensions; {how}")
    try:
        outputs = reading.outputs(rows.shape[1])
    except SchemaError as error:
        raise DataError(f"X does not fit the transform: {error}") from None
    if outputs != reading.features:
        raise DataError(_about_features(reading, rows.shape[1], outputs))
    return rows


def _about_features(reading: Reading, inputs: int, outputs: int | None) -> str:
    if reading.appended:
        return (
            f"X has {inputs} columns, {outputs} after the transform, and the schema's "
            f"features={reading.features + reading.appended} count the target too; measure the schema's columns, and "
            "give the target as y"
        )
    if reading.maps:
        return (
            f"the transform turns the {inputs} columns of X into {outputs} features but the schema has "
            f"{reading.features}; set features={outputs}"
        )
    return f"X has {inputs} features but the schema has {reading.features}; measure the same features"


def count_of(X: object) -> int | None:
    """Return the number of records, if a shape or header shows it."""
    if isinstance(X, str | os.PathLike):
        return file_rows(X, "X").shape[0]
    shape = getattr(X, "shape", None)
    return shape[0] if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[0], int) else None


def dense(tile: Loaded | ReadRows) -> NDArray[np.generic]:
    """Return a tile as a numpy array in host memory."""
    if is_tensor(tile):
        return host_rows(tile.cpu())
    if isinstance(tile, csr_array):
        return densified(tile)
    return tile if isinstance(tile, np.ma.MaskedArray) else np.asarray(tile)


def as_goals(y: AnyTargets) -> Goals:
    """Return the caller's labels or targets as an object with a shape, a dtype and slices."""
    return y if isinstance(y, ReadLabels | NamedLabels) else as_rows(y, "y")


def as_rows(array: AnyRecords, field: str) -> Rows:
    """Return the caller's container as an object with a shape, a dtype and slices."""
    if isinstance(array, CodeRows) or (type(array) is np.ndarray and array.dtype.kind in "fiub"):
        return array
    if isinstance(array, str | os.PathLike):
        return file_rows(array, field)
    if is_mapped(array):
        return mapped_rows(array, field)
    if is_tensor(array):
        require_plain(array, field)
        return array if on_device(array) or is_bfloat16(array) else host_rows(array)
    if isinstance(array, sparray | spmatrix):
        return sparse_rows(array, field)
    if isinstance(array, Mapping):
        raise DataError(
            f"{field} is a mapping of columns, which only declared columns and counts accept; this schema needs rows: "
            f"give pandas.DataFrame({field}), or numpy.column_stack of its columns in the order of the plan"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise RecordError(f"{field} is a masked array, whose masked entries have no meaning here; fill it first")
    if names_of_columns(array) is not None:  # several targets: each column has its own type
        array = ordered_columns(array, None, gaps=True)
    try:
        rows = of_list(array) if is_list(array) else array_of(array)
    except ValueError:
        raise RecordError(f"{field} has rows of different lengths; give a rectangular array") from None
    if field == "X" and rows.dtype.kind in "US":
        warnings.warn(
            "X is an array of texts: numpy converts a float32 to a text with fewer digits, so a text in one "
            "record changes the numbers of others; give lists, an array of objects, or a table",
            stacklevel=2,
        )
    return rows


def real(field: str, array: Rows) -> Rows:
    """Return real numbers: unchanged where the array's type is real, else read one by one."""
    if not array.is_complex() if is_tensor(array) else array.dtype.kind in "fiub":
        return array
    numbers, numeric = numbers_in(array[0 : array.shape[0]])
    if not numeric:
        raise RecordError(f"{field} must hold real numbers, got dtype {array.dtype}; convert it to float32 or float64")
    return numbers


def numbers_in(array: Loaded | ReadRows) -> tuple[NDArray[np.float64], bool]:
    """Return entries as float64, NaN where missing or no number; and whether all are numbers or missing."""
    plain = dense(array)
    column = read(plain.reshape(-1))
    return column.numbers.reshape(plain.shape), not column.texts


def check_goal(goal: Goal, y: Goals, *, device_labels: bool = False) -> Rows | NamedLabels:
    """Return labels as classes ``(n,)``, targets, or zeros ``(n,)`` where no entry of y is read.

    Args:
        device_labels: return integer labels on an accelerator unchecked.
    """
    if isinstance(y, ReadLabels):
        return y.classes
    if isinstance(y, NamedLabels):
        return y
    match goal:
        case Labels():
            return check_labels(goal, y, device_labels=device_labels)
        case Targets():
            return check_targets(y, goal.width)
        case Unread():
            if not y.shape:
                raise DataError(
                    "y must have one entry per record, got a single value; give one label or target per row"
                )
            return np.zeros(y.shape[0], np.intp)


def check_targets(targets: Rows, width: int) -> Rows:
    """Return real targets ``(n, width)``, or ``(n,)`` for one target."""
    columns = 1 if len(targets.shape) == 1 else targets.shape[1] if len(targets.shape) == 2 else 0
    if columns != width and targets.shape != (0,):
        raise DataError(f"y must have shape (records, {width}) under this schema; reshape it")
    return real("y", targets) if targets.shape[0] else targets


_SPARSE_ENTRIES = 1 << 21


def windows(rows: csr_array, max_rows: int) -> Iterator[slice]:
    """Yield windows of at most ``max_rows`` sparse rows, in order."""
    entries = _window_entries(rows.shape[1])
    start = 0
    while start < rows.shape[0]:
        last = min(int(rows.indptr[start]) + entries, int(rows.indptr[-1]))  # within the range of indptr's own integers
        full = int(np.searchsorted(rows.indptr, rows.indptr.dtype.type(last), side="right")) - 1
        stop = min(max(full, start + 1), start + max_rows, rows.shape[0])
        yield slice(start, stop)
        start = stop


def _window_entries(columns: int) -> int:
    """Return a window's maximum number of entries, large enough that products dominate its cost."""
    return max(_SPARSE_ENTRIES, columns**2 // 4)


def _is_thin(rows: csr_array) -> bool:
    return bool(rows.nnz * _DENSE_FROM < rows.shape[0] * rows.shape[1])


def _places(array: object, places: NDArray[np.intp]) -> NDArray[np.intp] | Tensor:
    if not is_tensor(array):
        return places
    import torch

    return torch.as_tensor(places, device=array.device)


def _in_order(count: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


# Return a function that copies rows. Rows of a C-ordered array go into one buffer, because an allocation takes as long
# as the copy.
def _taker(rows: Loaded, max_rows: int) -> Callable[[NDArray[np.intp]], NDArray[np.generic]]:
    if not (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and rows.flags.aligned):
        return lambda where: dense(rows[where])  # numpy would copy all rows for each tile
    memory = np.empty((max_rows, rows.shape[1]), rows.dtype)
    # The default mode="raise" would copy the rows once more.
    return lambda where: rows.take(where, axis=0, out=memory[: len(where)], mode="clip")


def _by_class(labels: NDArray[np.generic], step: int) -> Iterator[NDArray[np.intp]]:
    """Yield indices class by class within windows, so that S needs one product per class."""
    for window in _in_order(len(labels), _WINDOW_RECORDS):
        order = np.argsort(labels[window], kind="stable") + window.start
        for where in _in_order(len(order), step):
            yield order[where]


_NAMES = "class_names to the plan's schema, one list for all parties"
_MORE = "raise its classes"


def check_labels(
    goal: Labels, labels: Rows, *, device_labels: bool = False
) -> NDArray[Any] | FileRows | GuardedRows | Tensor | NamedLabels:
    """Return labels ``(n,)`` as integers in 0..C-1; refuse others.

    Args:
        device_labels: return integer labels on an accelerator unchecked.
    """
    if isinstance(labels, csr_array | CodeRows) or len(labels.shape) != 1:
        raise DataError(f"y must have shape (records,), got {len(labels.shape)} dimensions; give one class per record")
    classes = goal.classes
    if isinstance(classes, range) and _are_integers(labels):
        labels = labels.long() if is_tensor(labels) else labels
        if device_labels and on_device(labels):
            return labels
        for window in _windows(labels):
            if window.min() < 0 or window.max() >= len(classes):
                raise outside_classes(len(classes))
        return labels
    if not isinstance(labels, FileRows | GuardedRows):
        return indices_of(classes, labels)
    result = NamedLabels(classes, labels)
    for _ in _windows(result):  # checks every label before any record is measured
        pass
    return result


@dataclass(frozen=True, eq=False, repr=False)
class ReadLabels:
    """Labels that were read before, as classes 0..C-1, ``(n,)``: nothing reads them again."""

    classes: NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels, ``(n,)``."""
        return self.classes.shape

    def __getitem__(self, where: slice) -> NDArray[np.intp]:
        return self.classes[where]


def places_of(classes: Sequence[object], labels: ColumnLike) -> NDArray[np.intp]:
    """Return each label's index among the classes, ``(n,)``; -1 for others."""
    return listed_classes(tuple(classes)).places_of(read(labels))


@dataclass(frozen=True)
class NamedLabels:
    """Labels in a file, mapped to classes when read."""

    names: tuple[str, ...] | range
    labels: FileRows | GuardedRows

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the labels, ``(n,)``."""
        return self.labels.shape

    def __getitem__(self, where: slice) -> NDArray[np.intp]:
        return indices_of(self.names, self.labels[where], where.start)


def listed_labels(classes: tuple[str, ...] | range, labels: ColumnLike) -> ListedColumn:
    """Return labels as a column of the classes, of which each record holds one or none."""
    return ListedColumn.of(tuple(classes), listed_classes(tuple(classes)), read(labels))


def indices_of(classes: tuple[str, ...] | range, labels: ColumnLike, first: int = 0) -> NDArray[np.intp]:
    """Return each label's index among the classes, ``(n,)``; refuse others."""
    column = read(labels)
    result = listed_classes(tuple(classes)).places_of(column)
    if not result.size or result.min() >= 0:
        return result
    if isinstance(classes, range):
        if (column.numbers % 1 == 0).all():
            raise outside_classes(len(classes))
        raise RecordError(
            f"y must hold integers 0..{len(classes) - 1}, and an entry is no integer; {_remedy(len(classes))}"
        )
    raise RecordError(
        f"y holds a label at position {first + int((result < 0).argmax())} that is not among class_names; "
        f"the classes are {listed(classes)}: correct it if it is misspelt or missing, or exclude its record"
    )


def outside_classes(classes: int) -> RecordError:
    """Return the error about integer labels outside 0..C-1."""
    return RecordError(f"y has labels outside 0..{classes - 1}; {_remedy(classes)}, or {_MORE}")


def _remedy(classes: int) -> str:
    outcomes = "map the outcomes to 0 and 1 by one rule for all parties or, under a schema of classes, "
    return f"{outcomes if classes == 2 else ''}give {_NAMES}"


@lru_cache(maxsize=8)
def listed_classes(classes: tuple[object, ...]) -> Listed:
    """Return the classes in comparable form; two numbered ones also read yes and no."""
    return TRUTHS if classes == (0, 1) else Listed.of(classes)


def _are_integers(labels: NDArray[Any] | FileRows | GuardedRows | Tensor) -> bool:
    if is_tensor(labels):
        return not (labels.is_floating_point() or labels.is_complex())
    return labels.dtype.kind in "iub"


def _windows(
    labels: NDArray[Any] | FileRows | GuardedRows | Tensor | NamedLabels,
) -> Iterator[NDArray[Any] | Tensor]:
    return (labels[window] for window in _in_order(labels.shape[0], _WINDOW_RECORDS))
