"""Sums of influence values of a treatment effect, and how records become them: read, put on a grid, mapped, added up.

The same bits in any batch, order and BLAS; ``influences`` has the map. A record that is refused is refused at any
published values: no answer depends on a record and the published values together.
"""

from __future__ import annotations

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
from privstats.moments.gradients import pieces
from privstats.moments.influences import Whole, in_steps, influence_of, population_of, ratio_in_steps, weighted_rows
from privstats.moments.readable import NO_CELL, LeftOut, of_readable, terms_of_readable
from privstats.moments.record_terms import Product, RecordTerms, Term
from privstats.schema import Bins, EffectSchema, Variable
from privstats.schema.public_values import Values
from privstats.schema.statistic import INFLUENCES
from privstats.transforms.reading import Readings, read

__all__ = [
    "EffectMoments",
    "Mapped",
    "RealEffectMoments",
    "blocks_of",
    "effect_terms",
    "effect_terms_of_readable",
    "effects_of_readable",
    "mapped_records",
    "measured_effects",
]


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

    def by_letter(self) -> dict[str, Whole]:
        """What each record adds to every sum, ``(n,)`` or ``(n, entries)``."""
        balance = {} if self.weighted is None else {"b": self.weighted}
        return {"N": np.ones(len(self.blocks)), "W": self.weights, **self.influences, **balance}


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
            added = mapped.by_letter()
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


def effect_terms(schema: EffectSchema, X: Any, y: Any, values: Mapping[str, Values], *_: Any) -> RecordTerms:
    """What each record adds, where places differ in their chance of treatment at the smallest.

    Raises:
        DataError, RecordError: as :func:`measured_effects`.
    """
    return RecordTerms.joined(_added(schema, *each, values) for each in pieces(schema.rows, X, y, progress=False))


def _added(
    schema: EffectSchema, rows: NDArray[Any], targets: NDArray[Any], values: Mapping[str, Values]
) -> RecordTerms:
    mapped = mapped_records(schema, rows, targets, values)
    added, sent = mapped.by_letter(), {row.letter for row in schema.sent}
    products: dict[str, Product] = {s: (each.reshape(len(rows), -1), None) for s, each in added.items() if s in sent}
    return RecordTerms.of(len(rows), Term(products, mapped.blocks if schema.blocks > 1 else None))


def effect_terms_of_readable(
    schema: EffectSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> tuple[RecordTerms, LeftOut]:
    """What each record adds that can be read and is in a subgroup, and which others were left out."""
    outside: list[LeftOut] = []

    def terms(schema: EffectSchema, batches: Any, _: None, *rest: Any) -> RecordTerms:
        inside: list[NDArray[np.bool_]] = []
        found = effect_terms(schema, _placed(schema, batches, outside, inside), None, *rest)
        return found.among(np.concatenate(inside))

    added, left_out = terms_of_readable(terms)(schema, X, y, values, progress)
    return added, sum(outside, left_out)


def effects_of_readable(
    schema: EffectSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> tuple[EffectMoments, LeftOut]:
    """The sums over the records that can be read and are in a subgroup, and which others were left out."""
    outside: list[LeftOut] = []

    def measured(schema: EffectSchema, batches: Any, _: None, *rest: Any) -> EffectMoments:
        return measured_effects(schema, _placed(schema, batches, outside), None, *rest)

    moments, left_out = of_readable(measured)(schema, X, y, values, progress)
    return moments, sum(outside, left_out)


def _placed(
    schema: EffectSchema, batches: Iterable[Any], outside: list[LeftOut], places: list[NDArray[np.bool_]] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Batches without the records that are in no subgroup; appends how many there were, and which records are in
    one."""
    for rows, targets in batches:
        cells = {variable.name: cells_in(variable, column) for variable, column in _columns(schema, rows)}
        within = [each >= 0 for each in cells.values()]
        inside = np.logical_and.reduce(within) if within else np.ones(len(rows), np.bool_)
        if places is not None:
            places.append(inside)
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
    """What every record adds, in steps; a weight of 0 and (0, 2**f) where it is dropped, and the difference of both
    lines where its outcome is missing.

    ``chance`` is that of treatment in a trial; None: the smallest.
    """
    arm, x = arm_rows(schema, rows)
    blocks = blocks_of(schema, rows)
    real = real_outcomes(targets, schema.outcomes, missing=schema.missing is not None)
    outcomes = np.clip((real - schema.middle) / schema.half, -1.0, 1.0)
    population = population_of(schema, arm, x, values, chance)
    weighted = weighted_rows(schema, population, arm, x) if schema.balance else None
    if schema.measure:
        ratio = ratio_in_steps(schema, arm, x, outcomes[:, 0], values["line"], population.p)
        return Mapped(blocks, *ratio, weighted)
    fine = np.ones(len(x), np.bool_)
    influences = {}
    for letter, name, y in zip(INFLUENCES, schema.lines, outcomes.T, strict=False):
        influence = influence_of(schema, population, arm, x, y, values[name])
        influences[letter], told = in_steps(schema, population, influence, values[name])
        fine &= told
    weight = np.where(population.kept & fine, population.weight / schema.largest_weight, 0.0)
    return Mapped(blocks, np.floor(np.clip(weight, 0.0, 1.0) * float(schema.steps)), influences, weighted)
