"""Score and information of a round of proportional hazards: persons over all their periods, each as one row.

The same bits in any batch, order and BLAS. A person is counted, or counts as zero: no answer depends on a person and
the published weights together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, RecordError
from privstats.moments.arrays import listed
from privstats.moments.base import Moments, RealMoments
from privstats.moments.code_rows import levels_of
from privstats.moments.counts import cells_in, readings_of, require_cells
from privstats.moments.exact_sum import ExactSum, require_known
from privstats.moments.gradient_map import SHY, exponentials
from privstats.moments.gradients import grid_rows
from privstats.moments.readable import GAP, NO_CELL, TEXT, WORD, LeftOut
from privstats.progress import progress_bar
from privstats.schema import HazardSchema
from privstats.schema.public_values import Values
from privstats.transforms.reading import Readings

__all__ = ["HazardMoments", "RealHazardMoments", "hazards_of_readable", "measured_hazards"]

_BITS = 32
"""Bits of a hazard: its product with an entry of a grid row is exact in float64."""
_ONE = float(1 << _BITS)
_EXPONENTIAL_BITS = 40  # of gradient_map.exponentials
_ROWS = 4096

# B_2k / (2k)!, k = 8 .. 1: x / (e^x - 1) = 1 - x / 2 + sum_k B_2k x^2k / (2k)!, to 1e-13 on [0, 1]
_BERNOULLI = (
    -3.3896802963225827e-13,
    1.3382536530684679e-11,
    -5.284190138687493e-10,
    2.08767569878681e-08,
    -8.267195767195768e-07,
    3.306878306878307e-05,
    -0.001388888888888889,
    0.08333333333333333,
)

Whole = NDArray[np.float64]
"""Whole numbers in float64."""


@dataclass(frozen=True, eq=False)
class RealHazardMoments(RealMoments):
    """A round's sums in real units, with noise or without: g ``(d,)`` and H ``(d, d)``, the columns before the bins."""

    g: NDArray[np.float64]
    H: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class HazardMoments(Moments):
    """A round's sums on the grid, exact: g int64 ``(d,)``, H int64 ``(d, d)``.

    Attributes:
        records: number of persons measured; None where unknown. Private, and never sent.
        published: digest of the weights used; empty where unknown.

    Raises:
        DataError: another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("features", "periods")

    schema: HazardSchema
    g: NDArray[np.int64]
    H: NDArray[np.int64]
    records: int | None = field(default=None, compare=False)
    published: str = ""

    def real(self) -> RealHazardMoments:
        """The same in real units, float64."""
        return RealHazardMoments.of_sums(self.schema, self.wire())


@dataclass(frozen=True)
class _Persons:
    """Columns as they come in ``(n, columns)``, the bin of each time, and whether the event happened in it ``(n,)``."""

    rows: NDArray[np.float64]
    bins: NDArray[np.intp]
    events: NDArray[np.bool_]

    def part(self, where: slice | NDArray[np.bool_]) -> _Persons:
        """Some of them."""
        return _Persons(self.rows[where], self.bins[where], self.events[where])


class _Periods(NamedTuple):
    """Numbers of persons and periods in steps of 2**-32, ``(n, K)``, and which persons keep their bounds, ``(n,)``.

    Attributes:
        residuals: r, whole.
        variances: v, whole.
        fine: bool.
    """

    residuals: Whole
    variances: Whole
    fine: NDArray[np.bool_]


def measured_hazards(
    schema: HazardSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> HazardMoments:
    """The exact sums of a round over persons: X is a table, with the columns, the time and the event by name.

    Guarantee:
        Every person adds sum r_j u_j and sum a_j a_j' with |u_j| <= 2**f, sum of the hazards before the event at most
        M, r at the event in 0..1, and |a_j|^2 <= 4**f v_j with v_j at most the hazard, in whole numbers, for all
        admitted weights and any person; one with NaN or infinite entries behind the transform adds nothing.

    Raises:
        DataError: y is given, a column is missing, or columns have different lengths.
        RecordError: a value is no number, or a time or an event has no cell.
    """
    persons, _ = _read(schema, X, y, refuse=True)
    return _summed(schema, persons, values["w"], progress)


def hazards_of_readable(
    schema: HazardSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> tuple[HazardMoments, LeftOut]:
    """The sums of the persons of whom every value can be read, and which others were left out.

    Raises:
        DataError: as for :func:`measured_hazards`.
    """
    persons, why = _read(schema, X, y, refuse=False)
    fine = ~np.logical_or.reduce(list(why.values()))
    return _summed(schema, persons.part(fine), values["w"], progress), LeftOut.of(fine, why)


def _read(
    schema: HazardSchema, X: Any, y: Any, *, refuse: bool
) -> tuple[_Persons, dict[tuple[str, str], NDArray[np.bool_]]]:
    """Persons, and by column and what it holds which of them cannot be read."""
    if y is not None:
        raise DataError("hazards have no y; put the time and the event into X, beside the columns")
    clock, event = schema.clock.variables
    columns = readings_of(X, [*schema.feature_names, clock.name, event.name])
    cells = {each.name: cells_in(each, columns[each.name]) for each in (clock, event)}
    rows = np.column_stack([_numbers(schema, name, columns[name]) for name in schema.feature_names])
    gone = np.isnan(rows)
    if refuse:
        for each in (clock, event):
            require_cells(each, columns[each.name], cells[each.name])
        if gone.any():
            wrong = [name for name, column in zip(schema.feature_names, gone.T, strict=True) if column.any()]
            raise RecordError(f"X has gaps, or values that are no numbers, in {listed(wrong)}; correct or impute them")
    why = {(repr(name), NO_CELL): found < 0 for name, found in cells.items()}
    for name, column in zip(schema.feature_names, gone.T, strict=True):
        empty = columns[name].missing
        why |= {(repr(name), GAP): empty, (repr(name), _unread(schema, name)): column & ~empty}
    bins = cells[clock.name]
    died = (cells[event.name] == 1) & (bins < schema.periods)  # who is seen beyond the last edge is censored at it
    return _Persons(rows, np.minimum(bins, schema.periods - 1), died), why


def _numbers(schema: HazardSchema, name: str, column: Readings) -> NDArray[np.float64]:
    """A column's numbers, or 0 and 1 of its two declared texts; NaN where it is neither."""
    levels = levels_of(schema)
    told = None if levels is None else levels.of(name)
    return column.numbers if told is None else told.codes(column)[0]


def _unread(schema: HazardSchema, name: str) -> str:
    levels = levels_of(schema)
    return TEXT if levels is None or levels.of(name) is None else WORD


def _summed(schema: HazardSchema, persons: _Persons, w: Values, progress: bool) -> HazardMoments:
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.steps)) for row in schema.sent}
    require_known(sums, "gH")
    with progress_bar("records", len(persons.rows), at_once=progress) as advance:
        for part in _pieces(persons):
            for total in sums.values():
                total.admit(len(part.rows))
            unit, residuals, roots = _mapped(schema, part, w)
            _add_score(schema, unit, residuals, sums["g"].partial)
            _add_information(schema, unit, roots, sums["H"].partial)
            advance(len(part.rows))
    return HazardMoments(schema, sums["g"].result(), sums["H"].result(), len(persons.rows))


def _pieces(persons: _Persons) -> Iterator[_Persons]:
    for start in range(0, len(persons.rows), _ROWS):
        yield persons.part(slice(start, start + _ROWS))


def _mapped(schema: HazardSchema, persons: _Persons, w: Values) -> tuple[Whole, Whole, Whole]:
    """(x, a) ``(n, p + 1)``, r and the root of v ``(n, K)`` in steps of 2**-32, zero where a bound does not hold."""
    unit, fine = grid_rows(schema, persons.rows)
    periods = _periods(schema, _hazards(schema, unit, w), persons)
    most = float(schema.steps) ** 2
    fine &= periods.fine & (np.vecdot(unit, unit) <= most) & (2 * np.square(unit[:, -1]) <= most)
    return unit, periods.residuals * fine[:, None], periods.variances * fine[:, None]


def _hazards(schema: HazardSchema, unit: Whole, w: Values) -> Whole:
    """mu of every person and bin, ``(n, K)``, in steps of 2**-32; 2 where it is above 1, which passes the cap."""
    columns = unit.shape[1] - 1
    weights = w.integers.astype(np.float64)
    whole = (unit[:, :columns] @ weights[:columns])[:, None] + unit[:, -1:] * weights[columns:]
    fitted = whole * math.ldexp(schema.clip_norm / float(schema.steps), -w.exponent)
    pairs = np.stack([np.zeros(fitted.size), fitted.reshape(-1)], axis=1)
    mu = np.floor(np.ldexp(exponentials(pairs, 0)[:, 1], _BITS - _EXPONENTIAL_BITS)).reshape(fitted.shape)
    return np.where(fitted > 0, 2 * _ONE, mu)


def _periods(schema: HazardSchema, mu: Whole, persons: _Persons) -> _Periods:
    """r and v in steps of 2**-32 of who is at risk: up to the bin of the time, and before the cap would be passed."""
    places = np.arange(mu.shape[1])
    at_risk = (places <= persons.bins[:, None]) & (np.cumsum(mu, axis=1) <= schema.cap * _ONE)
    died = at_risk & (places == persons.bins[:, None]) & persons.events[:, None]
    mu = mu * at_risk
    ratio = np.floor(_decay(mu / _ONE) * _ONE)
    residuals = np.where(died, ratio, -mu)
    variances = np.floor(mu * (ratio / _ONE))
    fine = (mu * ~died).sum(axis=1) <= schema.cap * _ONE
    fine &= ((ratio >= 0) & (ratio <= _ONE) & (variances >= 0) & (variances <= mu)).all(axis=1)
    return _Periods(residuals, variances, fine)


def _decay(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """mu / (exp(mu) - 1) on [0, 1], by single sums and products; at most 1."""
    square, value = mu * mu, np.full_like(mu, _BERNOULLI[0])
    for coefficient in _BERNOULLI[1:]:
        value *= square
        value += coefficient
    value *= square
    value -= mu * 0.5
    return np.minimum(value + 1.0, 1.0)


def _add_score(schema: HazardSchema, unit: Whole, residuals: Whole, into: Whole) -> None:
    """Add sum_j r_j u_j of every person, each entry cut toward zero to a whole number of wire steps."""
    columns, down = unit.shape[1] - 1, schema.grid_bits - _BITS
    together = residuals.sum(axis=1)[:, None]
    into[:columns] += np.trunc(np.ldexp(together * unit[:, :columns], down)).sum(axis=0)
    into[columns:] += np.trunc(np.ldexp(residuals * unit[:, -1:], down)).sum(axis=0)


def _add_information(schema: HazardSchema, unit: Whole, variances: Whole, into: Whole) -> None:
    """Add a_j a_j' of every person and bin, a_j the root of v_j times u_j cut toward zero."""
    columns, most = unit.shape[1] - 1, float(schema.steps) ** 2
    for place, variance in enumerate(variances.T):
        roots = np.trunc(unit * (np.sqrt(variance / _ONE) * SHY)[:, None])
        roots *= (np.vecdot(roots, roots) * _ONE <= most * variance)[:, None]
        block, own = roots.T @ roots, columns + place
        into[:columns, :columns] += block[:columns, :columns]
        into[:columns, own] += block[:columns, -1]
        into[own, :columns] += block[-1, :columns]
        into[own, own] += block[-1, -1]
