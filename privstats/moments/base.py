"""Define the base containers of moments: exact integers, and real units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from privstats.errors import DataError, SchemaError
from privstats.schema import Schema
from privstats.schema.base import Statistic, letters_of
from privstats.schema.narrowing import is_known

if TYPE_CHECKING:
    from privstats.moments.adders import Adder
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened
    from privstats.schema.public_values import Values


def require_room(records: int, bound: int) -> None:
    """Refuse a sum of ``records`` terms, each at most ``bound``, that could reach 2**63."""
    if records * bound >= 1 << 63:
        limit = ((1 << 63) - 1) // bound
        raise DataError(f"at most {limit} records fit 64-bit totals on this grid; lower grid_bits or measure fewer")


def readonly_array(array: Any, dtype: DTypeLike) -> Any:
    """Return a read-only view of ``array`` as ``dtype``; a Python number if it has no axes, None for None."""
    if array is None:
        return None
    view = np.asarray(array, dtype).view()
    view.flags.writeable = False
    return view if view.ndim else view.item()


def checked_index(index: object) -> int:
    """Return a client's roster index; refuse a missing one."""
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise DataError("the plan assigns values to clients by roster index; give index=, 0 for the first")
    return index


class RealMoments:
    """Sums in real units, float64, with or without noise."""

    def __post_init__(self) -> None:
        for name in _names(self):
            object.__setattr__(self, name, readonly_array(getattr(self, name), np.float64))

    @classmethod
    def of_sums(cls, schema: Schema, sums: Mapping[str, NDArray[Any]]) -> Self:
        """Build from sums by letter in wire steps, blocks first. Each sum is divided by its letter's scale."""
        build: Any = cls
        real: Self = build(**{letter: array / schema.scale_of(letter) for letter, array in sums.items()})
        return real

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(_equal(getattr(self, name), getattr(other, name)) for name in _names(self))


@dataclass(frozen=True, eq=False, repr=False)
class Moments(ABC):
    """Exact integer sums of one party's records, frozen, int64.

    Moments of two sets of records add up, bit for bit, to the moments of both sets. Exceptions are kinds whose sums
    depend on all records of a party.

    Raises:
        DataError: a sum is missing or has another shape, or a count is negative.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, [[0.5, 0.0], [0.0, 0.25]], [0, 1])
        >>> isinstance(moments, ps.moments.Moments), moments.records
        (True, 2)
    """

    prefix: ClassVar[str] = ""
    """Prefix of a statistic's letter in the name of its field."""

    in_wire_steps: ClassVar[bool] = False
    """Whether counts are stored as they are sent, in ``COUNT_SCALE`` steps, because they may be fractions."""

    shown: ClassVar[tuple[str, ...]]
    """Public fields of the schema that a repr shows."""

    schema: Schema

    def __post_init__(self) -> None:
        sizes = self.schema.sizes
        for row in self.schema.sent:
            name, shape = self.prefix + row.letter, row.shape(sizes)
            array = getattr(self, name)
            if array is None or np.shape(array) != shape:
                raise DataError(f"{name} must have shape {shape} under this schema; build moments with measure()")
            object.__setattr__(self, name, readonly_array(array, np.int64))
        counts = getattr(self, "N", 0)
        if np.min(counts) < 0:
            single = "be a count of at least 0, got a negative number"
            several = "hold counts of at least 0, and some are negative"
            raise DataError(f"N must {several if np.ndim(counts) else single}; build moments with measure()")

    @classmethod
    def of_sums(cls, schema: Schema, sums: Mapping[str, NDArray[Any]], **extra: Any) -> Self:
        """Build moments from exact sums by letter, with blocks as the first axis."""
        build: Any = cls
        moments: Self = build(schema, **{cls.prefix + letter: array for letter, array in sums.items()}, **extra)
        return moments

    @property
    @abstractmethod
    def records(self) -> int | None:
        """Number of records measured, None where unknown. Private, and never sent."""

    @property
    def counted(self) -> int | None:
        """Number of records that count toward a plan's limits."""
        return self.records

    @abstractmethod
    def real(self) -> Any:
        """Return these sums in real units, float64."""

    # index is unused here: kinds that override this method read it.
    def for_client(self, index: int | None) -> Moments:  # noqa: ARG002
        """Return the moments that the client at this roster index sends."""
        return self

    def sums(self, row: Statistic) -> NDArray[np.int64]:
        """Return one statistic's exact sums, blocks first."""
        return np.asarray(getattr(self, self.prefix + row.letter), np.int64)

    def wire(self) -> dict[str, NDArray[Any]]:
        """Return the sums by letter in wire steps."""
        result = {row: self.sums(row) for row in self.schema.sent}
        steps = self.in_wire_steps
        return {r.letter: array if steps or r.factor == 1 else array * float(r.factor) for r, array in result.items()}

    def __add__(self, other: Self) -> Self:
        """Add moments of two sets of records.

        Raises:
            DataError: schemas or published values differ, or totals could reach 2**63.
        """
        if type(other) is not type(self):
            return NotImplemented
        if other.schema != self.schema:
            raise DataError("moments of different schemas cannot be added; measure both with one schema")
        self._require_room(other)
        names = _names(self) & {"clip_report", "edge_report", "records", "published"}
        extra = {name: _both(name, getattr(self, name), getattr(other, name)) for name in names}
        sums = {row.letter: self.sums(row) + other.sums(row) for row in self.schema.sent}
        return self.of_sums(self.schema, sums, **extra)

    def require_room(self, records: int) -> None:
        """Refuse sums of this number of records, if they could reach 2**63."""
        require_room(records, self.schema.bound)

    def checked_arrays(self, arrays: Mapping[str, Any], refusal: str) -> dict[str, NDArray[np.int64]]:
        """Return sums by letter, blocks first, as read-only int64.

        Args:
            refusal: the error for other shapes than the schema's; ``{}`` stands for these.

        Raises:
            DataError: other letters or shapes.
        """
        shapes = {row.letter: row.shape(self.schema.sizes) for row in self.schema.sent}
        if {letter: np.shape(array) for letter, array in arrays.items()} != shapes:
            raise DataError(refusal.format(shapes))
        views = {letter: np.asarray(array, np.int64).view() for letter, array in arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def _require_room(self, other: Moments) -> None:
        if self.counted is not None and other.counted is not None:
            self.require_room(self.counted + other.counted)
        elif self._reach() + other._reach() >= 1 << 63:
            raise DataError("the totals could pass 64 bits; lower grid_bits or add fewer moments together")

    def _reach(self) -> int:
        sizes = self.schema.sizes
        arrays = (self.sums(row).reshape(row.blocks(sizes), -1) for row in self.schema.sent)
        return max(sum(max(int(block.max()), -int(block.min())) for block in array) for array in arrays)

    def __radd__(self, other: int) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        same = self.schema == other.schema
        return same and all(_equal(self.sums(row), other.sums(row)) for row in self.schema.sent)

    def __repr__(self) -> str:
        """Show no sum, because a repr ends up in logs."""
        shown = ", ".join(f"{name}={getattr(self.schema, name)!r}" for name in self.shown)
        return f"{type(self).__name__}({shown})"


class Summed(Schema):
    """A schema whose sums are over records' own terms, as its adder forms them."""

    @abstractmethod
    def adder(self) -> Adder:
        """Return the adder of records' own terms."""

    @abstractmethod
    def exact(self, sums: Mapping[str, NDArray[Any]], **extra: Any) -> Moments:
        """Build exact moments from sums by letter, blocks first."""


class ExactClass(Protocol):
    """A class of exact sums, with a field for each statistic."""

    # Each kind has its own fields.
    def __call__(self, *values: Any, **fields: Any) -> Moments:
        """Build moments from a schema and the values of all fields."""

    def of_sums(self, schema: Schema, sums: Mapping[str, NDArray[Any]], **extra: Any) -> Moments:
        """Build moments from exact sums by letter, with blocks as the first axis."""


_Sums = TypeVar("_Sums", bound=Moments, covariant=True)


class Forms(Protocol[_Sums]):
    """A kind of schema, which forms the sums of records."""

    def moments_of(self, records: Opened, values: Mapping[str, Values], /) -> _Sums:
        """Return the exact sums of records, with the published values."""

    def terms_of(self, records: Opened, values: Mapping[str, Values], /) -> RecordTerms:
        """Return what each record adds alone."""

    def real(self, sums: Mapping[str, NDArray[Any]]) -> Any:
        """Build moments in real units from sums by letter in wire steps."""


def forming(schema: Schema) -> Forms[Moments]:
    """Return a schema as the kind that forms its sums.

    Raises:
        SchemaError: no kind of schema, or a subclass of one.
    """
    if not is_known(schema):
        raise unformed(schema)
    kind: Any = schema
    forms: Forms[Moments] = kind
    return forms


def unformed(schema: Schema) -> SchemaError:
    """Return the error about a schema that is of no kind."""
    return SchemaError(f"no code forms the sums of a {type(schema).__name__}; measure a schema of another kind")


_EXTRA_FIELDS: Mapping[str, tuple[str, Any]] = {
    "records": ("int | None", field(default=None, compare=False)),
    "clip_report": ("ClipReport | None", field(default=None, compare=False)),
    "published": ("str", ""),
}


def containers(
    kind: str,
    schema: type[Schema],
    table: tuple[Statistic, ...],
    shown: tuple[str, ...],
    *extra: str,
    optional: tuple[Statistic, ...] = (),
) -> tuple[ExactClass, type[RealMoments]]:
    """Return ``<kind>Moments`` and ``Real<kind>Moments`` for a kind that defines neither class itself.

    Args:
        table: the kind's statistics, each of which becomes a field.
        shown: public fields of the schema that a repr shows.
        extra: any of ``records``, ``clip_report`` and ``published``.
        optional: statistics that only some schemas of the kind send; None under others.

    Example:
        >>> from privstats.moments.base import containers
        >>> Moments, RealMoments = containers("Mean", ps.MeanSchema, ps.MeanSchema.table, ("features",), "records")
        >>> Moments(ps.MeanSchema(2, 1.0), np.array([1, 2]), records=3)
        MeanMoments(features=2)
    """
    lines = "\n".join(f"{row.letter}: {row.meaning}" for row in (*table, *optional))
    letters: list[Any] = [(row.letter, Any) for row in table]
    more: list[Any] = [(row.letter, Any, None) for row in optional]
    real = in_real_units(kind, schema.__module__, letters_of(table), letters_of(optional))
    members = {
        "__module__": schema.__module__,
        "__doc__": f"Exact sums on the grid, int64.\n\n{lines}",
        "shown": shown,
        "real": lambda self: real.of_sums(self.schema, self.wire()),
    }
    facts: list[Any] = [(name, *_EXTRA_FIELDS[name]) for name in extra]
    fields: list[Any] = [("schema", schema), *letters, *facts, *more]
    exact: Any = make_dataclass(
        f"{kind}Moments", fields, bases=(Moments,), namespace=members, frozen=True, eq=False, repr=False
    )
    return exact, real


def in_real_units(kind: str, module: str, letters: str, optional: str = "") -> type[RealMoments]:
    """Return the container ``Real<kind>Moments`` of this module; optional letters may be None."""
    rows: list[Any] = [*((s, Any) for s in letters), *((s, Any, None) for s in optional)]
    members = {"__module__": module, "__doc__": "Sums in real units, float64, with noise or without."}
    return make_dataclass(f"Real{kind}Moments", rows, bases=(RealMoments,), namespace=members, frozen=True, eq=False)


def _names(value: Any) -> set[str]:
    return {field.name for field in fields(value)}


def _equal(left: Any, right: Any) -> bool:
    return left is right if left is None or right is None else np.array_equal(left, right)


def _both(name: str, left: Any, right: Any) -> Any:
    if name != "published":
        return None if left is None or right is None else left + right
    values = {left, right} - {""}
    if len(values) > 1:
        raise DataError("moments with different published values cannot be added; measure both with one plan's values")
    return "".join(values)
