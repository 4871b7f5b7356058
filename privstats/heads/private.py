"""Fit heads privately, and read public records' class means."""

from __future__ import annotations

import hashlib
import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from privstats import domains
from privstats.dp import Privacy
from privstats.dp.privacy import Adjacency
from privstats.errors import AssumedPublicWarning, DataError, HeadError, RecordError
from privstats.estimates.denoise import public_means
from privstats.heads.evidence import Array
from privstats.heads.provenance import Assumed
from privstats.heads.rules import Preprocessing, as_numpy, local
from privstats.intake.frames import Batches, batches_of, named_target, opened_file, require_here
from privstats.intake.meaning import check_distinct
from privstats.intake.sources import columns_named
from privstats.intake.tables import is_list, names_of_columns, rectangle
from privstats.kinds import ClassSchema
from privstats.records.containers import as_rows, pairs
from privstats.records.labels import places_of
from privstats.release import Release
from privstats.schema import Schema
from privstats.transforms import Cells, Column, ConstantFeature, Transform, maps_of, of_unit_norm, output_features

if TYPE_CHECKING:
    from privstats.course import Releases
    from privstats.course.paid import Paid


@dataclass(frozen=True)
class OwnRecords:
    """One party's records, as ``measure`` accepts them; ``first`` is all of them or the first batch."""

    X: Any
    y: Any
    first: tuple[Any, Any]

    @classmethod
    def of(cls, X: Any, y: Any, transform: Sequence[Transform] = ()) -> Self:
        """Wrap arrays, tables, files, or an iterable of batches where ``y`` is None."""
        cells = _declared(transform)
        X, y = opened_file(X, y, columns_named(cells, y))
        require_here(X, y)
        if y is not None:
            if (batches := batches_of(X, y, cells)) is not None:
                return cls(batches, None, batches.first)
            X, y = named_target(X, y)
            return cls(X, y, (X, y))
        several = pairs(X)
        first = next(several)
        return cls(chain([first], several), None, first)

    def features(self, transform: Sequence[Transform]) -> int:
        """Return the number of columns behind the transform."""
        if transform and transform[0].reads_cells:
            return output_features(transform) or 0
        shape = as_rows(self.first[0], "X").shape
        if len(shape) != 2:
            raise DataError(f"X must have shape (records, features), got {len(shape)} dimensions; reshape it")
        return output_features(transform, shape[1]) or shape[1]

    @property
    def count(self) -> int:
        """Number of records in arrays, tables or files."""
        if isinstance(self.X, Batches):
            return sum(len(X) for X, _ in self.X)
        if isinstance(X := self.first[0], Mapping):
            return len(next(iter(X.values()), ()))
        return int(as_rows(self.first[0], "X").shape[0])

    @property
    def targets(self) -> int:
        """Number of columns of y."""
        shape = as_rows(self.first[1], "y").shape
        return shape[1] if len(shape) == 2 else 1

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of a DataFrame's columns; None unless all are texts."""
        names = names_of_columns(self.first[0])
        return tuple(names) if names and all(isinstance(name, str) for name in names) else None

    def labelled(self, number: Callable[[Any], NDArray[np.intp]]) -> Self:
        """Map the labels by ``number``."""
        if self.y is not None:
            return type(self)(self.X, number(self.y), self.first)
        if isinstance(self.X, Batches):
            return type(self)(self.X.changed(number), None, self.first)

        def numbered() -> Iterator[tuple[Any, Any]]:
            return ((X, number(y)) for X, y in self.X)

        return type(self)(numbered(), None, self.first)


def _declared(transform: Sequence[Transform]) -> Any:
    """Return the declared columns that a transform begins with; None for others."""
    return transform[0] if transform and transform[0].reads_cells else None


def arrays(X: Any, y: Any, transform: Sequence[Transform] = ()) -> OwnRecords:
    """Wrap records that every round can read again; refuse batches."""
    X, y = opened_file(X, y, columns_named(_declared(transform), y))
    require_here(X, y)
    if y is None:
        raise DataError("every round reads the records again, so batches cannot be given here; give X and y as arrays")
    return OwnRecords.of(X, y, transform)


@dataclass(frozen=True)
class RowCount:
    """The number of records in a course's plans; ``assumed`` is ``("rows",)`` where it is treated as public."""

    n: int
    assumed: tuple[Assumed, ...] = ()

    @classmethod
    def of(cls, records: OwnRecords, expected: int | None, max_records: int | None, adjacency: Adjacency) -> Self:
        """Return ``expected``, else ``max_records``, else the nearest power of two to the number of rows.

        The power of two has no DP guarantee: at the geometric mean of two powers, one record changes it. Under
        ``"add-remove"`` it is treated as public, with a warning; under ``"replace-one"`` all data sets have one number.
        """
        if (stated := max_records if expected is None else expected) is not None:
            return cls(stated)
        n = 1 << ((2 * records.count**2).bit_length() - 1) // 2 if records.count else 1
        if adjacency != "add-remove":
            return cls(n)
        warnings.warn(
            "the number of rows was read off X and stands in the plan of every round, to a power of two, so it is taken"
            " for public; give expected_records=..., a number that does not depend on the records, where it is not",
            AssumedPublicWarning,
            stacklevel=6,
        )
        return cls(n, ("rows",))


@dataclass(frozen=True)
class Labels:
    """Sorted distinct classes ``(C,)``; ``assumed`` is ``("classes",)`` where they were read from the labels."""

    names: NDArray[Any]
    assumed: tuple[Assumed, ...] = ()

    @classmethod
    def of(cls, records: OwnRecords, classes: Sequence[Any] | None) -> Self:
        """Return the caller's classes, else those in the labels, with a warning."""
        if classes is not None:
            names = np.unique(np.asarray(classes))
            if np.asarray(classes).ndim != 1 or len(names) != len(classes):
                raise DataError("classes must be a list that names each class once, for example [0, 1, 2]")
            check_distinct("classes", list(names))
        elif records.y is None:
            raise DataError("records in batches do not show which classes there are: give classes=[...]")
        else:
            names = np.unique(_plain(records.y))
            warnings.warn(
                "the classes were read off y, so which classes occur is taken for public; give classes=[...], a list "
                "that does not depend on the records, where it is not",
                AssumedPublicWarning,
                stacklevel=5,
            )
        if len(names) < 2:
            raise DataError(f"there must be at least 2 classes, got {len(names)}; give classes=[...] or more records")
        return cls(names, () if classes is not None else ("classes",))

    def schema(
        self, records: OwnRecords, statistics: str, transform: Sequence[Transform], clip_norm: float, grid_bits: int
    ) -> ClassSchema:
        """Return the schema behind the transform."""
        maps = maps_of(transform)
        columns = None if maps and maps[0].reads_cells else records.columns
        features = records.features(maps)
        return ClassSchema(
            len(self.names), features, statistics, clip_norm, grid_bits, transform=maps, feature_names=columns
        )

    def numbers(self, y: Any) -> NDArray[np.intp]:
        """Return each label's class index, ``(n,)``.

        Raises:
            RecordError: a label of no class; the message states its position, never its value.
        """
        if self.assumed:  # the classes are y's own values
            return np.searchsorted(self.names, _plain(y)).astype(np.intp)
        places = places_of(list(self.names), _flat(y))
        if places.size and places.min() < 0:
            raise RecordError(
                f"y holds a label at position {int(np.argmin(places))} that is not among classes; correct it, name "
                "its class in classes, or leave its record out"
            )
        return places

    def places(self, y: Any) -> NDArray[np.intp]:
        """Return :meth:`numbers`, with -1 for a label of no class."""
        if self.assumed:
            return self.numbers(y)
        masked = isinstance(y, np.ma.MaskedArray)
        labels = rectangle(y, 1)[:, 0] if is_list(y) else y if masked else _flat(y)
        if labels.ndim != 1:
            raise DataError(f"y must have shape (records,), got {labels.ndim} dimensions; give one class per record")
        return places_of(list(self.names), labels)


def with_intercept(transform: Sequence[Transform], clip_norm: float) -> tuple[tuple[Transform, ...], float]:
    """Return a transform that appends a constant of half the clip norm, and the new maximum norm."""
    constant = clip_norm / 2
    return (*transform, ConstantFeature(constant)), math.hypot(clip_norm, constant)


def _flat(y: Any) -> NDArray[Any]:
    rows = as_rows(as_numpy(y), "y")
    labels = np.asarray(rows[0 : rows.shape[0]]) if rows.shape else np.asarray(rows)
    if labels.ndim != 1:
        raise DataError(f"y must have shape (records,), got {labels.ndim} dimensions; give one class per record")
    return labels


def _plain(y: Any) -> NDArray[Any]:
    labels = _flat(y)
    if labels.dtype.kind == "O":
        labels = np.asarray(labels.tolist())
    if labels.size:
        check_classification_targets(labels)
    return labels


@dataclass(frozen=True)
class PublicRecords:
    """Public records' class means behind the public map, ``(C, d)``, NaN without records, and a digest."""

    means: Array
    digest: str

    @classmethod
    def of(cls, public: Any, preprocessing: Preprocessing, classes: NDArray[Any]) -> Self:
        """Build class means from raw rows and labels ``(X, y)``; raise DataError where they do not fit."""
        X, index = _public_rows(public, preprocessing, classes)
        rows = preprocessing.apply(X)
        if not np.isfinite(rows).all():
            raise DataError("public holds values that are not finite; drop or impute them")
        digest = hashlib.sha256(domains.PUBLIC_ROWS + rows.tobytes() + index.tobytes()).hexdigest()
        return cls(public_means(rows, index, len(classes)), digest)


def require_public(public: Any, schema: ClassSchema, classes: NDArray[Any]) -> None:
    """Refuse unusable public records before any spending."""
    if public is None:
        return
    preprocessing = Preprocessing.of_schema(schema)
    if (
        preprocessing.cells is not None and preprocessing.cells.open
    ):  # a table, every value of which has a cell behind whatever cuts are found
        _public_rows(public, preprocessing, classes)
    else:
        PublicRecords.of(public, preprocessing, classes)


def _public_rows(public: Any, preprocessing: Preprocessing, classes: NDArray[Any]) -> tuple[Any, NDArray[np.intp]]:
    if not isinstance(public, tuple | list) or len(public) != 2:
        raise DataError(f"public must be a pair (X, y) of public records, got {type(public).__name__}")
    X, labels = local(*public)
    y = np.asarray(named_numbers(classes, labels))
    try:
        rows = np.asarray(preprocessing.ordered(X), np.float64)
    except (TypeError, ValueError):
        raise DataError("public holds values that are no numbers; give its rows as the parties have theirs") from None
    if y.ndim != 1 or not 0 < len(y) == len(rows):
        raise DataError(f"public has {len(rows)} rows and labels of shape {y.shape}; give a label for each row")
    names = {name: place for place, name in enumerate(classes.tolist())}
    if unknown := [label for label in y.tolist() if label not in names]:
        raise DataError(f"public holds the label {unknown[0]!r:.40}, which is no class of the head; leave it out")
    return rows, np.array([names[label] for label in y.tolist()], np.intp)


_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def owners_terms(method: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Wrap a fit so that one HeadError names all missing terms that only the data owner can choose."""
    terms = inspect.signature(method).parameters.values()
    needed = [each.name for each in terms if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    with_clip = [each.name for each in terms if each.name in needed or (each.name, each.default) == ("clip_norm", None)]

    @wraps(method)
    def checked(*args: _Params.args, **given: _Params.kwargs) -> _Result:
        lacking = [name for name in needed if name not in given]
        clipped = given.get("columns") is None and not getattr(args[0], "unit_rows", False)
        if clipped and (lacking or method.__name__ == "fit_private"):  # an estimator may lack it
            lacking = [name for name in with_clip if name not in given]
        if lacking:
            shown = ", ".join(f"{name}=..." for name in lacking)
            raise HeadError(f"a private fit needs {shown}: only the owner of the records can choose; give each by name")
        return method(*args, **given)

    return checked


def central(epsilon: float, delta: float, adjacency: Adjacency) -> Privacy:
    """Return a central-model promise for one record."""
    return Privacy(model="central", unit="record", adjacency=adjacency, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class FitPromise:
    """The terms of one private fit, as in ``fit_private``."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    clip_norm: float | None
    columns: Sequence[Column] | None
    transform: Sequence[Transform]
    grid_bits: int
    max_records: int | None
    expected_records: int | None
    ledger: Paid
    dataset: str | None

    @property
    def declared(self) -> bool:
        """Whether columns are declared."""
        return self.columns is not None

    @property
    def privacy(self) -> Privacy:
        """The promise for one record; PlanError if out of its bounds."""
        return central(self.epsilon, self.delta, self.adjacency)

    def rows(self, *, unit: bool) -> tuple[tuple[Transform, ...], Any]:
        """Return the maps in front of the sums and the mapped rows' norm."""
        if self.columns is None:
            return of_unit_norm(self.transform) if unit else maps_of(self.transform), self.clip_norm
        if self.clip_norm not in (None, 1.0) or len(self.transform):
            raise HeadError(
                "rows of declared columns have norm 1 and take no other map: leave clip_norm and transform out"
            )
        if self.expected_records is None:
            raise HeadError(
                "declared columns need expected_records=..., the number of records as their owner states it: it is "
                "never counted"
            )
        return (Cells(tuple(self.columns)),), 1.0

    def counted(self, records: OwnRecords) -> RowCount:
        """Return the row count of a course's plans."""
        _ = self.privacy  # refused before anything is read off the records
        return RowCount.of(records, self.expected_records, self.max_records, self.adjacency)

    def release(self, schema: Schema, records: OwnRecords) -> Release:
        """Release the records' sums through ``privstats.private_release``."""
        from privstats.course.alone import private_release

        charged: dict[str, Any] = {"ledger": self.ledger, "dataset": self.dataset, "max_records": self.max_records}
        return private_release(schema, self.privacy, records.X, records.y, **charged)

    def releases(
        self, kind: str | None, schema: Schema, rows: int, records: OwnRecords, **options: Any
    ) -> tuple[Releases, str]:
        """Run a course; return its releases, which satisfy the promise in total, and its digest.

        ``kind`` None runs the plan itself behind cut points, so some columns must be open; ``rows`` is the plans'
        number of records.
        """
        from privstats.course import Binned
        from privstats.course.alone import private_releases, single_party_plan
        from privstats.course.kinds import COURSE_KINDS

        plan = single_party_plan(schema, self.privacy, max_records=self.max_records)
        course: Any
        if kind is None or opened_by(schema.transform):
            course = Binned.within(plan, kind, expected_records=rows, **options)
        else:
            course = COURSE_KINDS[kind].within(plan, expected_records=rows, **options)
        releases = private_releases(course, records.X, records.y, ledger=self.ledger, dataset=self.dataset)
        return releases, course.digest


def opened_by(transform: Sequence[Transform]) -> bool:
    """Return whether cut points of declared columns are still missing."""
    return any(getattr(map_, "open", ()) for map_ in transform)


def named_numbers(classes: NDArray[Any], labels: Any) -> Any:
    """Map numeric labels to text ``classes`` that are read alike."""
    given = np.asarray(labels)
    if classes.dtype.kind != "U" or given.dtype.kind == "U":
        return labels
    result = places_of(classes.tolist(), given)
    return labels if (result < 0).all() else np.where(result < 0, given.astype(str), classes[result])
