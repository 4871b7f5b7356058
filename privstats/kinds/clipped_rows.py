"""Sum one clipped vector per record: the base for a statistic of another package, whose bound is proved here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from inspect import get_annotations, getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import RecordError, SchemaError
from privstats.kinds.base import Kind
from privstats.kinds.registry import KINDS
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.records.reading import Unread
from privstats.records.reasons import VECTOR
from privstats.schema.base import Adjacency, Statistic, letters_of
from privstats.schema.checks import REQUIRED, as_int, check_coarseness, checked_vectors, settle
from privstats.schema.public_values import Values
from privstats.transforms import Transform
from privstats.transforms.base import attempted

if TYPE_CHECKING:
    from privstats.moments.clip_report import ClipTally
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened

_TABLE: tuple[Statistic, ...] = (
    Statistic("x", "pooled", ("feature",), (1, 0), meaning="the sum of one clipped vector per record"),
)


@dataclass(frozen=True)
class ClippedRows(Kind):
    """The sum x of one vector per record, clipped to the norm R: a base for kinds of other packages.

    A subclass states ``task``, ``purpose``, ``outputs`` (m, the entries of a vector) and ``vector``; further fields
    are settings of the plan, and ``check`` refuses their values. ``vector`` receives a copy of one record's mapped row,
    float64 ``(features,)``, and returns m finite numbers. No other attribute of this class may be defined again.

    Guarantee:
        Unit one record. A record adds v, the vector clipped to R and rounded to the grid, with ``|v| <= R`` in
        integers. It adds nothing where ``vector`` raises, or returns another shape or a number that is not finite. So
        x moves by at most R under add-remove, and by at most ``|v - v'| <= 2 R`` under replace-one: mu^2 is w R^2 and
        4 w R^2 for noise of variance 1 / w. Per person, a person's rows add their own vectors alone, so the person's
        clip or average bounds them. Per client, n records add n vectors of norm R at most, whatever ``vector`` does.
        Condition, per record and per person: ``vector`` follows from its argument and the schema alone, alike every
        time. It always returns, in little memory: a record at which it ends the process is missing with its party.
        Each claim states the condition with the package's name. Source: the triangle inequality
        (docs/proofs/records.md, A mean).

    Args:
        features: entries of a record's row after ``transform``.
        clip_norm: R, the norm to which a vector is clipped.
        grid_bits, transform, feature_names: as in :class:`ClassSchema`.

    Raises:
        SchemaError: at the class definition, a subclass that defines what the bound rests on again.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import ClassVar
        >>> @dataclass(frozen=True)
        ... class SignSchema(ps.kinds.ClippedRows):
        ...     task: ClassVar[str] = "signs"
        ...     purpose: ClassVar[str] = "how often each column is above 0"
        ...     @property
        ...     def outputs(self):
        ...         return self.features
        ...     def vector(self, record):
        ...         return np.sign(record)
        >>> SignSchema(3, clip_norm=2.0).move({"x": 1.0}, "add-remove")  # the bound is this library's
        4.0
        >>> ps.measure(SignSchema(3, clip_norm=2.0), np.ones((2, 3)))
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: SignSchema is no registered kind of schema; a package announces it under the
        entry points privstats.kinds as 'signs'
    """

    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    proved: ClassVar[str] = "x"
    no_persons: ClassVar[str] = ""
    nonnegative: ClassVar[bool] = False

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    grid_bits: int = 12
    _: KW_ONLY
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        written = (vars(cls).keys() | get_annotations(cls).keys()) & sealed()
        require_open(cls, {*overridden(cls), *written})

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))
        check_coarseness("outputs", self._outputs, self.grid_bits)
        checked = {name: vars(self)[name] for name in ("_outputs", *(each.name for each in fields(ClippedRows)))}
        self.check()
        settle(self, **checked)  # the bound was checked with these values, whatever check stores
        for name in vars(self).keys() - {"_outputs", *(each.name for each in fields(self))}:
            del vars(self)[name]  # stored by check, it would stand before a method of that name

    @cached_property
    def _outputs(self) -> int:
        return as_int("outputs", self.outputs, 1, "a vector has entries")

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of entries of a vector, m."""

    @abstractmethod
    def vector(self, record: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one record's vector, ``(outputs,)``, from its row ``(features,)`` alone."""

    def check(self) -> None:
        """Refuse values of further fields by a SchemaError."""

    @property
    def goal(self) -> Unread:
        """What y holds."""
        return Unread()

    @property
    def sizes(self) -> dict[str, int]:
        """Axis length."""
        return {"feature": self._outputs}

    @property
    def clipping(self) -> str:
        """Explanation of a record's bounded weight."""
        by = KINDS.origin(self.task) or "privstats"
        return (
            f"Then {by} computes a vector of {self.sizes['feature']} numbers, and states that it reads that record "
            f"alone. The vector is shortened to the length {self.clip_norm:g} if longer, so that no record weighs "
            f"more, and rounded to steps of {1 / self.scale:.2g}."
        )

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record (docs/proofs/records.md, "A mean")."""
        return weights.get("x", 0.0) * self.clip_norm**2 * (1 if adjacency == "add-remove" else 4)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(3, 1.0)

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return ClippedMoments, RealClippedMoments

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> Moments:
        """Return the exact sum."""
        total, tally, count = moments.grid.sums_of(self, "x")["x"], self._tally, 0
        for rows, fine in self._vectors(records, tally):
            total.admit(len(rows))
            total.partial += rows.sum(axis=0)
            count += int(fine.sum())
        return ClippedMoments(self, total.result(), count, tally.report())

    def terms_of(self, records: Opened, _: Mapping[str, Values]) -> RecordTerms:
        """Return each record's vector."""
        tally, none = self._tally, (np.empty((0, self.sizes["feature"])), np.empty(0, np.bool_))
        rows, fine = zip(none, *self._vectors(records, tally), strict=True)
        terms = (moments.record_sums.Term({"x": (np.concatenate(rows), None)}),)
        return moments.record_sums.RecordTerms(np.concatenate(fine), terms, {"clip_report": tally.report()})

    @property
    def _tally(self) -> ClipTally:
        return moments.clip_report.ClipTally(self.sizes["feature"], self.grid_steps)

    def _vectors(self, records: Opened, tally: ClipTally) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
        """Yield grid vectors ``(k, m)``, and which of the records read have one, ``(n,)``."""
        columns = moments.grid.feature_grid(self)
        grid = moments.grid.Grid("vector", self.sizes["feature"], self.grid_steps, self.scale)
        for rows, _ in records.pieces():
            mapped = moments.grid.through_maps(self.reading, rows, columns)
            several = [self._vector(row) for row in mapped]
            fine = np.array([each is not None for each in several], np.bool_)
            if not fine.all():
                self._exclude(records, fine)
            out = np.empty((int(fine.sum()), grid.columns))
            vectors = np.array([each for each in several if each is not None]).reshape(out.shape)
            done = grid.quantize(vectors, out)
            tally.add(done.norms, clipped=done.clipped, energy=done.energy)
            yield out, fine

    def _vector(self, row: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return one record's vector; None where it has none, which is that record's matter alone."""
        if not np.isfinite(row).all():
            return None
        vector = attempted(self._copied, row)
        fine = vector is not None and vector.shape == (self.sizes["feature"],) and np.isfinite(vector).all()
        return vector if fine else None

    def _copied(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        # Copies: one record's vector reaches neither the other rows nor an array that is used again.
        raw = self.vector(row.copy())
        plain = not (np.iscomplexobj(raw) or isinstance(raw, np.ma.MaskedArray))
        return np.array(raw if plain else np.nan, np.float64)

    def _exclude(self, records: Opened, fine: NDArray[np.bool_]) -> None:
        if records.excluded is None:
            raise RecordError(
                f"{type(self).__name__}.vector returns {self.sizes['feature']} finite numbers for each record, and "
                "failed for one; correct or remove that record"
            )
        records.excluded.add(fine, {(f"the vector of {self.task!r}", VECTOR): ~fine}, seen=True)


_SCHEMA: Any = ClippedRows
ClippedMoments, RealClippedMoments = containers("Clipped", _SCHEMA, _TABLE, ("features",), "records", "clip_report")

_OPEN = ("task", "purpose", "outputs", "vector", "check", "example")
"""What a subclass defines."""

_OF_CLASSES = {"_", "__module__", "__qualname__", "__doc__", "__annotations__", "__annotate__", "__annotate_func__",
    "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__dict__", "__weakref__",
    "__abstractmethods__", "_abc_impl", "__dataclass_fields__", "__dataclass_params__"}  # fmt: skip
"""What each class has of its own."""

OF_DATACLASSES = {"__init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__", "__replace__",
    "__match_args__"}  # fmt: skip
"""What ``dataclass`` writes into a class after its definition."""


_ORDER = {"__lt__", "__le__", "__gt__", "__ge__"}


def sealed() -> set[str]:
    """Return the names of this base that no subclass defines again."""
    names = {name for each in ClippedRows.__mro__ for name in (*vars(each), *get_annotations(each))}
    return names - {*_OPEN, *_OF_CLASSES}


def overridden(cls: type) -> list[str]:
    """Return the names under which a subclass of :class:`ClippedRows` has something else, although the bound rests on
    them; nothing for other classes.

    Example:
        >>> from privstats.kinds.clipped_rows import overridden
        >>> overridden(ps.kinds.ClippedRows), overridden(ps.MeanSchema)
        ([], [])
    """
    if cls is ClippedRows or not is_clipped(cls):
        return []
    # Static: a metaclass may answer something else than instances find.
    changed = {name for name in sealed() - OF_DATACLASSES if _found(cls, name) is not _found(ClippedRows, name)}
    if changed & _ORDER:
        changed = changed - _ORDER | {"an order (dataclass(order=True))"}
    return sorted(changed | ({"its metaclass"} if type(cls) is not type(ClippedRows) else set()))


def require_open(cls: type, taken: Collection[str]) -> None:
    """Refuse a subclass of :class:`ClippedRows` that has these, on which the bound rests.

    Raises:
        SchemaError: ``taken`` is not empty.

    Example:
        >>> from privstats.kinds.clipped_rows import require_open
        >>> require_open(ps.kinds.ClippedRows, [])
    """
    if taken:
        raise SchemaError(
            f"{cls.__name__} defines {', '.join(sorted(taken))}, on which the bound of ClippedRows rests; define "
            f"{', '.join(_OPEN)} and further fields alone, or derive from Kind and state a bound"
        )


def is_clipped(cls: type) -> bool:
    """Return whether a class derives from :class:`ClippedRows`: an abstract class may count others among its own."""
    return any(each is ClippedRows for each in cls.__mro__)


def _found(cls: type, name: str) -> object:
    return getattr_static(cls, name, None)
