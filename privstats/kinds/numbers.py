"""Sum bounded numbers next to count tables.

A number is z integer steps from mid-range, truncated to -4096..4096; a record adds z and z^2 in its group. Proof:
docs/proofs/records.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.intake.declared.categories import MISSING_CELL, require_switch
from privstats.intake.meaning import checked_names
from privstats.kinds.worst import Record
from privstats.moments.record_sums import Term
from privstats.records.variables import is_finite
from privstats.schema.base import Adjacency

if TYPE_CHECKING:
    from privstats.kinds.counts import CountSchema

STEPS = 1 << 12
"""Half the range of a number in whole steps."""

_Cells = Sequence[NDArray[np.intp]]
_Numbers = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Number:
    """A bounded number; its sum and sum of squares are released, for all records or by group.

    The value counts as ``z = (value - middle) / half`` in -1..1, rounded to 1/4096. A value beyond the bounds has no
    cell, or counts as missing.

    Args:
        low, high: public bounds in the column's unit.
        by: variables; each of their crossed cells has separate sums.
        missing: whether a missing value adds nothing and its record counts in a separate cell; otherwise it has no
            cell.

    Example:
        >>> hours = ps.Number("hours", 0, 80)
        >>> hours.middle, hours.half, hours.cells
        (40.0, 40.0, ('given',))
    """

    name: str
    low: float
    high: float
    by: tuple[str, ...] = ()
    missing: bool = False
    open: ClassVar[str] = "none"
    closed: ClassVar[str] = "left"

    def __post_init__(self) -> None:
        (name,) = checked_names("a number's name", (self.name,)) or ("",)
        ends = (self.low, self.high)
        size = max(map(abs, ends)) if all(map(is_finite, ends)) and not any(type(end) is bool for end in ends) else 0
        if not 1e-15 <= size <= 1e15 or self.high - self.low < 1e-9 * size:
            raise SchemaError(f"low and high of {name} must be numbers up to 1e15, the first clearly below the second")
        require_switch(name, "missing", self.missing)
        by = checked_names(f"by of {name}", self.by) or ()
        for field, value in (("low", float(self.low)), ("high", float(self.high)), ("by", by)):
            object.__setattr__(self, field, value)

    @property
    def edges(self) -> tuple[float, float]:
        """The bounds."""
        return self.low, self.high

    @property
    def middle(self) -> float:
        """The value that counts 0."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Distance from the middle that counts 1."""
        return (self.high - self.low) / 2

    def value_at(self, z: int) -> float:
        """Return the value that counts ``z`` steps from the middle."""
        return self.middle + z / STEPS * self.half

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the number's own table."""
        return ("given", *((MISSING_CELL,) * self.missing))


def numbers_of(schema: CountSchema) -> tuple[Number, ...]:
    """Check and return a schema's numbers."""
    entries = schema.numbers
    if not isinstance(entries, tuple | list) or not entries:
        raise SchemaError("numbers must be a tuple with at least one entry")
    numbers = tuple(number_of(each) for each in entries)
    names = [getattr(each, "name", None) for each in schema.variables]
    checked_names("numbers and variables", (*(each.name for each in numbers), *filter(None, names)))
    for number in numbers:
        unknown = [name for name in number.by if name not in names]
        if unknown:
            raise SchemaError(f"by of {number.name} names {unknown[0]!r}, which is no variable; declare it as one")
    if schema.transform:
        raise SchemaError("numbers are read untransformed: omit transform, or count the column in Bins")
    return numbers


def number_of(value: object) -> Number:
    """Return a number, also from a plan file's table."""
    if type(value) is Number:
        return value
    known = {field.name for field in fields(Number)}
    if not isinstance(value, Mapping) or not {"name", "low", "high"} <= set(value) <= known:
        raise SchemaError("a number has name, low and high, and may have by and missing; write [[schema.numbers]]")
    return Number(**value)


def steps_of(number: Number, values: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return integer steps from mid-range, ``(n,)``, rounded half to even and truncated; 0 for missing.

    Example:
        >>> from privstats.kinds.numbers import steps_of
        >>> steps_of(ps.Number("hours", 0, 80), np.array([80.0, 39.0, 1e9]), np.array([True] * 3)).tolist()
        [4096, -102, 4096]
    """
    from_middle = np.where(present, values, number.middle) - number.middle
    return np.clip(np.rint(from_middle * (STEPS / number.half)), -STEPS, STEPS).astype(np.int64)


def groups_of(schema: CountSchema, number: Number) -> slice:
    """Return the slice of a number's groups in x and q."""
    numbers = schema.numbers or ()
    sizes, place = [math.prod(schema.shape(each.by)) for each in numbers], numbers.index(number)
    return slice(sum(sizes[:place]), sum(sizes[: place + 1]))


def number_sums(schema: CountSchema, cells: _Cells, numbers: _Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return x and q in steps, ``(groups,)`` of all numbers in order."""
    x, q = np.zeros((2, schema.sizes["block"]), np.int64)
    for groups, z in _in_groups(schema, cells, numbers):
        np.add.at(x, groups, z)
        np.add.at(q, groups, z * z)
    return x, q


def number_terms(schema: CountSchema, cells: _Cells, numbers: _Numbers) -> Iterator[Term]:
    """Yield each record's contribution to x and q."""
    for groups, z in _in_groups(schema, cells, numbers):
        column = z[:, None].astype(np.float64)
        yield Term({"x": (column, None), "q": (column * column, None)}, groups)


def _in_groups(
    schema: CountSchema, cells: _Cells, numbers: _Numbers
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64]]]:
    declared = schema.numbers or ()
    for number, own in zip(declared, cells[-len(declared) :], strict=True):
        group, missing = np.divmod(own, len(number.cells))
        yield groups_of(schema, number).start + group, steps_of(number, numbers[number.name], missing == 0)


def square_with_numbers(schema: CountSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return mu^2 of one record, at weights in real units, as :class:`~privstats.CountSchema` guarantees."""
    numbers = schema.numbers or ()
    T, x, q = (weights.get(letter, 0.0) for letter in "Txq")
    alone = T * len(schema.tables) + (x + q) * len(numbers)  # also for an exchange with an excluded record
    if adjacency == "add-remove":
        return alone
    return max(
        alone, 2 * T * (len(schema.tables) - len(numbers)) + math.fsum(_distance(each, T, x, q) for each in numbers)
    )


def _distance(number: Number, T: float, x: float, q: float) -> float:
    """Return the largest squared distance of two values of a number.

    In one group: ``d^2 (x + q s^2)`` with d = z - z', s = z + z', \\|d| + \\|s| <= 2 (docs/proofs/records.md, Numbers).
    """
    d = _local_maximum(x, q)
    other = 2 * (T + x + q) if number.by else 2 * T + x + q if number.missing else 0.0
    return max(other, 4 * x, d**2 * (x + q * (2 - d) ** 2))


def _local_maximum(x: float, q: float) -> float:
    """Return the d below 2 at a local maximum of ``d^2 (x + q (2 - d)^2)``; 1 if it has none."""
    return (3 - math.sqrt(1 - 2 * x / q)) / 2 if 2 * x < q else 1.0


def pairs_with_numbers(
    schema: CountSchema, weights: Mapping[str, float], one: Record, other: Record
) -> list[tuple[Record, Record]]:
    """Return candidates for the worst exchange, at weights per squared wire step."""
    numbers = schema.numbers or ()
    alike = {**other, "values": {**other["values"], **{name: 0 for n in numbers for name in n.by}}}  # groups stay
    turn = STEPS - round(STEPS * _local_maximum(weights.get("x", 0.0), weights.get("q", 0.0) * STEPS**2))
    first = _with(one, {number.name: STEPS for number in numbers})
    pairs = []
    for second, near, gap in product((other, alike, one), (-STEPS, turn), (-STEPS, turn, None)):
        ends = {n.name: -STEPS if n.by else gap if n.missing else near for n in numbers}
        pairs.append((first, _with(second, ends)))
    return pairs


def _with(record: Record, steps: Mapping[str, int | None]) -> Record:
    cells = {name: int(each is None) for name, each in steps.items()}
    return {
        **record,
        "values": {**record["values"], **cells},
        "steps": {name: each or 0 for name, each in steps.items()},
    }
