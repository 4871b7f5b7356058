"""Divide opened records into tiles of numeric rows with checked labels or targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError
from privstats.intake.arrays import FileRows, GuardedRows, is_tensor, on_device, require_single
from privstats.records.code_rows import CodeRows
from privstats.records.containers import CheckedRows, Loaded, dense, fitting
from privstats.records.labels import WINDOW_RECORDS, Goals, are_integers, check_goal, in_order
from privstats.records.reading import Labels, Reading, Targets, Unread

if TYPE_CHECKING:
    from torch import Tensor

_TILE_BYTES = 1 << 21  # float64 rows: enough that numpy's calls cost little in comparison
_TRANSFORMED_TILE_BYTES = 1 << 20  # stays in the second-level cache throughout
_DEVICE_TILE_BYTES = 1 << 28
_TABLE_RECORDS, _TABLE_ENTRIES = 1 << 14, 1 << 22
# A sparse X is read as dense rows if at least one entry in this many is nonzero.
_DENSE_FROM = 16


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
    containers: Iterable[tuple[CheckedRows, Goals]],
    *,
    grouped: bool = False,
    thin_rows: int | None = None,
    device_labels: bool = False,
) -> Iterator[Tile]:
    """Yield tiles of records; tiles may share memory, so use each before requesting the next.

    Args:
        containers: opened rows, and labels or targets, which are read in order.
        grouped: yield records class by class within windows where rows are in memory; else in order.
        thin_rows: maximum rows of a sparse tile; None: all rows are dense. Only rows with few entries and no map stay
            sparse.
        device_labels: yield integer labels on an accelerator unchecked, because the check would wait for it; the
            caller then refuses those outside the classes.
    """
    for rows, goals in containers:
        yield from _tiles(reading, rows, goals, grouped=grouped, thin_rows=thin_rows, device_labels=device_labels)


def _tiles(
    reading: Reading,
    X: CheckedRows,
    y: Goals,
    *,
    grouped: bool,
    thin_rows: int | None,
    device_labels: bool,
) -> Iterator[Tile]:
    rows = fitting(reading, X)
    device = on_device(rows)
    targets = check_goal(reading.goal, y, device_labels=device_labels and device)
    if rows.shape[0] != targets.shape[0]:
        raise DataError(f"X has {rows.shape[0]} rows but y has {targets.shape[0]}; give one label or target per row")
    if thin_rows is not None and isinstance(rows, csr_array) and not reading.maps and _is_thin(rows):
        for window in windows(rows, thin_rows):
            thin = rows[window]
            require_single(thin)
            yield Tile(thin, dense(targets[window]))
        return
    size = _DEVICE_TILE_BYTES if device else _TRANSFORMED_TILE_BYTES if reading.maps else _TILE_BYTES
    at_once = max(16, size // (8 * max(rows.shape[1], reading.features)))
    if isinstance(rows, CodeRows):  # each window costs a call per column
        at_once = max(at_once, min(_TABLE_RECORDS, _TABLE_ENTRIES // reading.features))
    if (
        grouped
        and not device
        and not isinstance(rows, FileRows | GuardedRows | CodeRows)
        and isinstance(targets, np.ndarray)
    ):
        take = _taker(rows, at_once)
        yield from (Tile(take(where), targets[where]) for where in _by_class(targets, at_once))
        return
    for where in in_order(rows.shape[0], at_once):
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
            there = is_tensor(goals) and on_device(goals) and are_integers(goals)
            return there and isinstance(classes, range) and len(goals.shape) == 1
        case Targets(gaps=gaps):
            return is_tensor(goals) and not gaps and not goals.is_complex()
        case Unread():
            return True


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


# Return a function that copies rows. Rows of a C-ordered array go into one buffer, because an allocation takes as long
# as the copy.
def _taker(rows: Loaded, max_rows: int) -> Callable[[NDArray[np.intp]], NDArray[np.generic]]:
    if not (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and rows.flags.aligned):
        return lambda where: dense(rows[where])  # numpy would copy all rows for each tile
    memory = np.empty((max_rows, rows.shape[1]), rows.dtype)
    # The default mode="raise" would copy the rows once more.
    return lambda where: rows.take(where, axis=0, out=memory[: len(where)], mode="clip")


def _by_class(labels: NDArray[np.generic], at_once: int) -> Iterator[NDArray[np.intp]]:
    """Yield indices class by class within windows, so that S needs one product per class."""
    for window in in_order(len(labels), WINDOW_RECORDS):
        order = np.argsort(labels[window], kind="stable") + window.start
        for where in in_order(len(order), at_once):
            yield order[where]
