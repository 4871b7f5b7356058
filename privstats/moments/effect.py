"""Influence values of a treatment effect, and how records become them: read, put on a grid, mapped, added up.

The same bits in any batch, order and BLAS: products are of whole numbers below 2**53, and every other operation is a
single IEEE one per record. A record that is refused is refused at any published values: no answer depends on a record
and the published values together.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.arms import arm_rows, real_outcomes
from privstats.moments.base import Moments, RealMoments, place_of
from privstats.moments.code_rows import levels_of
from privstats.moments.counts import cells_in, require_cells
from privstats.moments.exact_sum import ExactSum, require_known
from privstats.moments.gradient_map import exponentials
from privstats.moments.gradients import pieces
from privstats.moments.left_out import NO_CELL, LeftOut
from privstats.moments.readable import of_readable
from privstats.schema import Bins, EffectSchema, Variable
from privstats.schema.public_values import Values
from privstats.schema.statistic import INFLUENCES
from privstats.transforms.reading import Readings, read

__all__ = [
    "EffectMoments",
    "Mapped",
    "RealEffectMoments",
    "blocks_of",
    "effects_of_readable",
    "mapped_records",
    "measured_effects",
]

_ONE = float(1 << 20)  # of a propensity

Whole = NDArray[np.float64]
"""Whole numbers in float64."""


@dataclass(frozen=True, eq=False)
class RealEffectMoments(RealMoments):
    """The sums in real units, with noise or without: N, e ``(2,)`` of t and 1 - t^2, and W where it is sent.

    f, g and so on are those of further outcomes. With subgroups all have one block of each, first.
    """

    N: Any
    e: NDArray[np.float64]
    W: Any = None
    f: NDArray[np.float64] | None = None
    g: NDArray[np.float64] | None = None
    h: NDArray[np.float64] | None = None
    i: NDArray[np.float64] | None = None
    j: NDArray[np.float64] | None = None
    k: NDArray[np.float64] | None = None
    l: NDArray[np.float64] | None = None  # noqa: E741  the letter of the eighth outcome
    b: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EffectMoments(Moments):
    """The sums on the grid, exact: N, e int64 ``(2,)``, and W where it is sent.

    f, g and so on are those of further outcomes. With subgroups all have one block of each, first. With groups of sites
    they lie in group 0 as measured; a session moves them to the group of the site's place (:meth:`for_client`).

    Attributes:
        records: number of records measured; None where unknown. Private, and never sent.
        published: digest of the values used; empty where unknown.
        variants: where places of the roster differ in their probability, the sums at each that there is, smallest
            first; a session takes those of its place (:meth:`for_client`).

    Raises:
        DataError: another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("estimand", "features")

    schema: EffectSchema
    N: Any
    e: NDArray[np.int64]
    W: Any = None
    f: NDArray[np.int64] | None = None
    g: NDArray[np.int64] | None = None
    h: NDArray[np.int64] | None = None
    i: NDArray[np.int64] | None = None
    j: NDArray[np.int64] | None = None
    k: NDArray[np.int64] | None = None
    l: NDArray[np.int64] | None = None  # noqa: E741  the letter of the eighth outcome
    b: NDArray[np.int64] | None = None
    records: int | None = field(default=None, compare=False)
    published: str = ""
    variants: tuple[EffectMoments, ...] = field(default=(), compare=False)

    def __add__(self, other: EffectMoments) -> EffectMoments:
        """The moments of both sets of records together, at each chance of treatment where places differ in it.

        Raises:
            DataError: as for all moments, or one of both is of a place already.
        """
        total = super().__add__(other)
        if total is NotImplemented or not (self.variants or other.variants):
            return total
        if len(self.variants) != len(other.variants):
            raise DataError("these moments are of one place already and cannot be added; give what measure returned")
        return replace(total, variants=tuple(map(operator.add, self.variants, other.variants)))

    def for_client(self, index: int | None) -> EffectMoments:
        """The same at the chance of treatment of a site's place in the roster, and in its group.

        Raises:
            DataError: places differ and none is given, or these sums are of one place already.
        """
        chances = self.schema.probability
        if not isinstance(chances, tuple):
            return self._in_group(index)
        place = place_of(index)
        if len(self.variants) != len(self.schema.probabilities):
            raise DataError("these sums are of one place already; give what measure returned")
        if place >= len(chances):
            raise DataError(f"the schema has {len(chances)} probabilities, and there is no place {place} among them")
        return self.variants[self.schema.probabilities.index(chances[place])]._in_group(place)

    def _in_group(self, index: int | None) -> EffectMoments:
        groups = self.schema.groups
        if groups is None:
            return self
        place = place_of(index)
        own = {row.letter: self.sums(row) for row in self.schema.sent}
        if any(each[1:].any() for each in own.values()):
            raise DataError("these sums are in a group already; give what measure returned")
        moved = {letter: np.roll(each, place % groups, axis=0) for letter, each in own.items()}
        return EffectMoments.of_sums(self.schema, moved, records=self.records, published=self.published)

    def real(self) -> RealEffectMoments:
        """The same in real units, float64."""
        return RealEffectMoments.of_sums(self.schema, self.wire())


@dataclass(frozen=True, eq=False)
class Mapped:
    """What records add: their blocks ``(n,)``, weights in steps ``(n,)``, of a ratio ``(n, 2)``, by letter ``(t, s)``
    in steps ``(n, 2)``, and weighted rows ``(n, d)`` where balance is asked for."""

    blocks: NDArray[np.intp]
    weights: Whole
    influences: Mapping[str, Whole]
    weighted: Whole | None = None


def measured_effects(
    schema: EffectSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> EffectMoments:
    """The exact sums over records.

    Guarantee:
        Every record adds 1 to N, a whole number from 0 to 2**f to W, and for each outcome whole numbers (t, s) with
        ``t^2 + s^2 <= 4**f``, s formed from t itself, for all admitted values and any record; all of them in the one
        block that its own values give. A record outside the published population is dropped: W 0, t 0 and s 2**f.

    Raises:
        DataError: arrays that are no records of this schema.
        RecordError: one with NaN or infinite entries, or whose arm is neither 0 nor 1, or that is in no subgroup,
            whatever was published.
    """
    chances = schema.probabilities or (None,)
    several = [_empty(schema) for _ in chances]
    records = 0
    for rows, targets in pieces(schema.rows, X, y, progress):
        for chance, sums in zip(chances, several, strict=True):
            mapped = mapped_records(schema, rows, targets, values, chance)
            added = {"N": np.ones(len(rows)), "W": mapped.weights, **mapped.influences}
            if mapped.weighted is not None:
                added["b"] = mapped.weighted
            for letter, total in sums.items():
                total.admit(len(rows))
                total.partial += _in_blocks(schema, mapped.blocks, added[letter])
        records += len(rows)
    found = [
        EffectMoments.of_sums(schema, {letter: total.result() for letter, total in sums.items()}, records=records)
        for sums in several
    ]
    return found[0] if len(found) == 1 else replace(found[0], variants=tuple(found))


def _empty(schema: EffectSchema) -> dict[str, ExactSum]:
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.steps)) for row in schema.sent}
    require_known(sums, f"NWb{INFLUENCES}")
    return sums


def effects_of_readable(
    schema: EffectSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> tuple[EffectMoments, LeftOut]:
    """The sums over the records that can be read and are in a subgroup, and which others were left out."""
    outside: list[LeftOut] = []

    def measured(schema: EffectSchema, batches: Any, _: None, *rest: Any) -> EffectMoments:
        return measured_effects(schema, _placed(schema, batches, outside), None, *rest)

    moments, left_out = of_readable(measured)(schema, X, y, values, progress)
    return moments, sum(outside, left_out)


def _placed(schema: EffectSchema, batches: Iterable[Any], outside: list[LeftOut]) -> Iterator[tuple[Any, Any]]:
    """Batches without the records that are in no subgroup; appends how many there were."""
    for rows, targets in batches:
        cells = {variable.name: cells_in(variable, column) for variable, column in _columns(schema, rows)}
        within = [each >= 0 for each in cells.values()]
        inside = np.logical_and.reduce(within) if within else np.ones(len(rows), np.bool_)
        outside.append(LeftOut.of(inside, {(repr(name), NO_CELL): each < 0 for name, each in cells.items()}))
        yield (rows, targets) if inside.all() else (rows[inside], targets[inside])


def _columns(schema: EffectSchema, rows: NDArray[Any]) -> Iterator[tuple[Variable, Readings]]:
    """The columns that divide the records, as they came in."""
    names, levels = schema.feature_names or (), levels_of(schema)
    for variable in schema.subgroups or ():
        codes = rows[:, names.index(variable.name)].astype(np.float64)
        texts = None if levels is None or isinstance(variable, Bins) else levels.of(variable.name)
        yield variable, read(codes if texts is None else np.array(texts.values)[codes.astype(np.intp)])


def blocks_of(schema: EffectSchema, rows: NDArray[Any]) -> NDArray[np.intp]:
    """The block of every record, ``(n,)``: that of its subgroup, from its own values alone.

    Raises:
        RecordError: one is in no subgroup.
    """
    cells = []
    for variable, column in _columns(schema, rows):
        cells.append(cells_in(variable, column))
        require_cells(variable, column, cells[-1])
    return np.ravel_multi_index(cells, schema.crossed) if cells else np.zeros(len(rows), np.intp)


def _in_blocks(schema: EffectSchema, blocks: NDArray[np.intp], added: Whole) -> Whole:
    """The sum over the records of each block, blocks first; of all records where there is one block."""
    if schema.blocks == 1:
        return np.asarray(added.sum(axis=0))
    out = np.zeros((schema.blocks, *added.shape[1:]))
    np.add.at(out, blocks, added)
    return out


def mapped_records(
    schema: EffectSchema,
    rows: NDArray[Any],
    targets: NDArray[Any],
    values: Mapping[str, Values],
    chance: float | None = None,
) -> Mapped:
    """What every record adds, in steps; a weight of 0 and (0, 2**f) where it is dropped.

    ``chance`` is that of treatment in a trial; None: the smallest.
    """
    arm, x = arm_rows(schema, rows)
    blocks = blocks_of(schema, rows)
    outcomes = np.clip((real_outcomes(targets, schema.outcomes) - schema.middle) / schema.half, -1.0, 1.0)
    population = _population(schema, arm, x, values, chance)
    weighted = _weighted_rows(schema, population, arm, x) if schema.balance else None
    if schema.measure:
        ratio = _ratio_in_steps(schema, arm, x, outcomes[:, 0], values["line"], population.p)
        return Mapped(blocks, *ratio, weighted)
    fine = np.ones(len(x), np.bool_)
    influences = {}
    for letter, name, y in zip(INFLUENCES, schema.lines, outcomes.T, strict=False):
        influence = _influence(schema, population, arm, x, y, values[name])
        influences[letter], told = _in_steps(schema, population, influence, values[name])
        fine &= told
    weight = np.where(population.kept & fine, population.weight / schema.largest_weight, 0.0)
    return Mapped(blocks, np.floor(np.clip(weight, 0.0, 1.0) * float(schema.steps)), influences, weighted)


def _in_steps(
    schema: EffectSchema, population: _Population, influence: NDArray[np.float64], line: Values
) -> tuple[Whole, NDArray[np.bool_]]:
    """(t, s) in whole steps ``(n, 2)``, and which records keep the bound; the others count as dropped."""
    most = schema.unit(line) / schema.half
    steps, square = float(schema.steps), float(schema.steps) ** 2
    share = (influence - schema.guess(line) * population.weight) / most
    t, s = _steps(np.where(population.kept & np.isfinite(share), share, 0.0), steps)
    fine = t * t + s * s <= square
    return np.where(fine[:, None], np.stack([t, s], axis=1), (0.0, steps)), fine


def _steps(share: NDArray[np.float64], steps: float) -> tuple[Whole, Whole]:
    """t in whole steps, and 1 - t^2 from that whole t: from the share itself both could pass the bound together."""
    t = np.rint(np.clip(share, -1.0, 1.0) * steps)
    return t, np.trunc((steps * steps - t * t) / steps)


@dataclass(frozen=True, eq=False)
class _Population:
    """Whom the effect is of, ``(n,)`` each: the probability of treatment, the weight, and who is kept."""

    p: NDArray[np.float64]
    weight: NDArray[np.float64]
    kept: NDArray[np.bool_]


def _population(
    schema: EffectSchema, arm: NDArray[np.bool_], x: Whole, values: Mapping[str, Values], chance: float | None = None
) -> _Population:
    """From the published propensity; a record beyond the trim is not cut but left out, because a cut propensity is a
    wrong one."""
    if schema.probability is not None:
        one = np.ones(len(x))
        return _Population((chance or schema.probabilities[0]) * one, one, one > 0)
    p = _propensity(x, values["w"], schema.clip_norm / float(schema.steps))
    low = schema.trim or 0.0
    kept = 1 - p >= low
    if schema.estimand == "att":
        return _Population(p, arm.astype(np.float64), kept)
    kept &= p >= low
    weight = p * (1 - p) if schema.estimand == "overlap" else np.ones(len(x))
    return _Population(p, weight, kept)


def _influence(
    schema: EffectSchema,
    population: _Population,
    arm: NDArray[np.bool_],
    x: Whole,
    y: NDArray[np.float64],
    line: Values,
) -> NDArray[np.float64]:
    """Influence values in units of B, ``(n,)``.

    Outcome lines are cut to the range of outcomes, so that no published line moves an influence beyond its cap.
    """
    p, kept = population.p, population.kept
    m1, m0 = _fitted(schema, x, line)
    match schema.estimand:
        case "att":
            return np.where(arm, y - m0, -(p / np.where(kept, 1 - p, 1.0)) * (y - m0))
        case "overlap":
            q = 1 - p
            return p * q * (m1 - m0) + np.where(arm, q * (y - m1), -p * (y - m0))
    return _augmented(arm, y, m1, m0, np.where(kept, p, 0.5))


def _weighted_rows(schema: EffectSchema, population: _Population, arm: NDArray[np.bool_], x: Whole) -> Whole:
    """Rows times what a record weighs for its arm, less where it is in the other, ``(n, d)``; 0 where it is dropped.

    The weight is at most 1 in whole steps and entries are cut toward zero, so no row becomes longer than it was.
    """
    p, kept, steps = population.p, population.kept, float(schema.steps)
    safe = np.where(kept, p, 0.5)
    match schema.estimand:
        case "att":
            weight = np.where(arm, 1.0, -safe / (1 - safe))
        case "overlap":
            weight = np.where(arm, 1 - safe, -safe)
        case _:
            weight = np.where(arm, 1 / safe, -1 / (1 - safe))
    whole = np.trunc(np.where(kept, np.clip(weight / schema.arm_weight, -1.0, 1.0), 0.0) * steps)
    return np.asarray(np.trunc(whole[:, None] * x / steps))


def _fitted(schema: EffectSchema, x: Whole, line: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both lines at every record, cut to the range of outcomes, in units of B about its middle."""
    d, step = schema.width, schema.clip_norm / float(schema.steps)
    b, unit = line.integers.astype(np.float64), math.ldexp(step / schema.half, -line.exponent)
    return _cut((x @ b[:d]) * unit), _cut((x @ b[d:-1]) * unit)


def _ratio_in_steps(
    schema: EffectSchema,
    arm: NDArray[np.bool_],
    x: Whole,
    y: NDArray[np.float64],
    line: Values,
    p: NDArray[np.float64],
) -> tuple[Whole, dict[str, Whole]]:
    """Of a ratio what every record adds to W and e: ``(w, 1 - w^2)`` and ``(t, 1 - t^2)`` in whole steps ``(n, 2)``."""
    goal, (m1, m0) = (y + 1) / 2, ((each + 1) / 2 for each in _fitted(schema, x, line))
    above = m1 + np.where(arm, (goal - m1) / p, 0.0)
    below = m0 + np.where(arm, 0.0, (goal - m0) / (1 - p))
    steps = float(schema.steps)
    t, s = _steps((above - schema.guess(line) * below) / schema.unit(line), steps)
    w = np.clip(np.rint(below / schema.largest_weight * steps), -float(schema.deepest), steps)
    return np.stack([w, np.trunc((steps * steps - w * w) / steps)], axis=1), {"e": np.stack([t, s], axis=1)}


def _cut(fitted: NDArray[np.float64]) -> NDArray[np.float64]:
    """A line inside the range of outcomes."""
    return np.clip(fitted, -1.0, 1.0)


def _augmented(arm: NDArray[np.bool_], y: Any, m1: Any, m0: Any, p: Any) -> NDArray[np.float64]:
    return np.asarray(m1 - m0 + np.where(arm, (y - m1) / p, -(y - m0) / (1 - p)))


def _propensity(x: Whole, w: Values, step: float) -> NDArray[np.float64]:
    """1 / (1 + exp(-w'u)), cut to multiples of 2**-20, the same on every machine."""
    fitted = (x @ w.integers.astype(np.float64)) * math.ldexp(step, -w.exponent)
    numerators = exponentials(np.stack([np.zeros_like(fitted), fitted], axis=1), 0)
    return np.asarray(np.floor(numerators[:, 1] * _ONE / numerators.sum(axis=1)) / _ONE)
