"""Read records and sum their influence values on a treatment effect.

The bits are equal in any batch, order and BLAS. A record is refused at all published values or at none.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import DataError
from privstats.intake.columns import Readings, read
from privstats.kinds.effect.checks import EXCLUSIONS
from privstats.kinds.effect.influences import in_steps, influence_of, population_of, ratio_in_steps, weighted_rows
from privstats.moments.base import Moments, checked_index, in_real_units
from privstats.records.cells import cells_in, require_cells
from privstats.records.reasons import NO_CELL
from privstats.records.variables import Bins, Variable
from privstats.schema.base import INFLUENCES
from privstats.schema.public_values import Values
from privstats.transforms import ByArm

if TYPE_CHECKING:
    from privstats.kinds.effect.schema import EffectSchema
    from privstats.moments.record_sums import Product, RecordTerms
    from privstats.records.opened import Excluded, Opened
    from privstats.records.readable import Noted


RealEffectMoments = in_real_units("Effect", __name__, "Ne", f"W{INFLUENCES[1:]}bO")
"""Sums in real units, blocks first.

- N, and W where it is sent.
- e ``(2,)``: t and 1 - t^2. Further outcomes have f, g and so on.
- b: the difference of the arms' weighted rows, with ``balance``.
- O ``(6,)``: excluded records by arm (untreated, treated, unknown), then by reason (outcome, column).
"""


@dataclass(frozen=True, eq=False, repr=False)
class EffectMoments(Moments):
    """The exact sums on the grid: N, e int64 ``(2,)``, and W where it is sent.

    Further outcomes have f, g and so on; with subgroups each array has one block per subgroup, first. With site groups,
    sums are in group 0 until :meth:`for_client`.

    Attributes:
        records: number of measured records; None: unknown. Private, never sent.
        published: digest of the published values; empty: unknown.
        variants: the sums at each roster probability, smallest first; :meth:`for_client` selects one.
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
    O: NDArray[np.int64] | None = None  # noqa: E741  the letter of records left out
    records: int | None = field(default=None, compare=False)
    published: str = ""
    variants: tuple[EffectMoments, ...] = field(default=(), compare=False)

    def __add__(self, other: EffectMoments) -> EffectMoments:
        total = super().__add__(other)
        if total is NotImplemented or not (self.variants or other.variants):
            return total
        if len(self.variants) != len(other.variants):
            raise DataError("moments after for_client cannot be added to moments before it: pass what measure returned")
        return replace(total, variants=tuple(map(operator.add, self.variants, other.variants)))

    @property
    def counted(self) -> int | None:
        """Number of summed and excluded records, which count towards one limit."""
        return self.records if self.records is None or self.O is None else self.records + int(self.O.sum())

    def for_client(self, index: int | None) -> EffectMoments:
        """Return the sums at a roster index's probability of treatment, in its site group.

        Raises:
            DataError: the index is missing but needed, too large, or was applied already.
        """
        chances = self.schema.probability
        if not isinstance(chances, tuple):
            return self._in_group(index)
        place = checked_index(index)
        if len(self.variants) != len(self.schema.probabilities):
            raise DataError("for_client selected a roster index before: pass the moments that measure returned")
        if place >= len(chances):
            raise DataError(f"the schema has probabilities of roster indices 0 to {len(chances) - 1}, got {place}")
        return self.variants[self.schema.probabilities.index(chances[place])]._in_group(place)

    def _in_group(self, index: int | None) -> EffectMoments:
        groups = self.schema.groups
        if groups is None:
            return self
        place = checked_index(index)
        own = {row.letter: self.sums(row) for row in self.schema.sent}
        if any(each[1:].any() for each in own.values()):
            raise DataError("these sums are in a group already; pass what measure returned")
        moved = {letter: np.roll(each, place % groups, axis=0) for letter, each in own.items()}
        return EffectMoments.of_sums(self.schema, moved, records=self.records, published=self.published)

    def real(self) -> Any:
        """Return the sums in real units."""
        return RealEffectMoments.of_sums(self.schema, self.wire())


@dataclass(frozen=True, eq=False)
class Mapped:
    """Records' contributions in steps, with their blocks ``(n,)``.

    A weight is one number, or a ratio's two; ``(t, s)`` are by outcome letter; weighted rows exist for balance.
    """

    blocks: NDArray[np.intp]
    weights: moments.grid.Ints
    influences: Mapping[str, moments.grid.Ints]
    weighted: moments.grid.Ints | None = None

    def by_letter(self) -> dict[str, moments.grid.Ints]:
        """Return contributions by letter, ``(n,)`` or ``(n, entries)``."""
        balance = {} if self.weighted is None else {"b": self.weighted}
        return {"N": np.ones(len(self.blocks)), "W": self.weights, **self.influences, **balance}


def measured_effects(schema: EffectSchema, records: Opened, values: Mapping[str, Values]) -> EffectMoments:
    """Compute the exact sums over records.

    Guarantee:
        For all admitted values, every record adds 1 to N and an integer from 0 to 2**f to W (for a ratio a pair like
        (t, s)). For each outcome it adds integers (t, s) with ``t^2 + s^2 <= 4**f``, s computed from t. All
        enter one block, determined by the record's own values. A record outside the published population has W 0, t 0
        and s 2**f.

    Raises:
        RecordError: a record has NaN or infinite entries, an arm other than 0 and 1, or no subgroup, whatever was
            published.
    """
    gone = np.zeros(EXCLUSIONS, np.int64)
    last = schema.transform[-1] if schema.transform else None

    def note(fine: NDArray[np.bool_], rows: Any, has_outcome: NDArray[np.bool_]) -> None:
        arm = rows[~fine, last.column] if isinstance(last, ByArm) else np.full(int((~fine).sum()), np.nan)
        np.add.at(gone, 2 * np.select([arm == 0, arm == 1], [0, 1], 2) + has_outcome[~fine], 1)

    chances = schema.probabilities or (None,)
    several = [moments.grid.sums_of(schema, f"NWbO{INFLUENCES}") for _ in chances]
    count = 0
    for rows, targets in _placed(schema, records, note, note).pieces():
        for chance, sums in zip(chances, several, strict=True):
            mapped = mapped_records(schema, rows, targets, values, chance)
            for letter, each in mapped.by_letter().items():
                if total := sums.get(letter):
                    total.admit(len(rows))
                    total.partial += _in_blocks(schema, mapped.blocks, each)
        count += len(rows)
    excluded = {"O": gone} if schema.left_out else {}
    totals = [{letter: total.result() for letter, total in sums.items()} | excluded for sums in several]
    result = [EffectMoments.of_sums(schema, each, records=count) for each in totals]
    return result[0] if len(result) == 1 else replace(result[0], variants=tuple(result))


def effect_terms(schema: EffectSchema, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
    """Return each record's contribution; of several probabilities, at the smallest."""
    inside: list[NDArray[np.bool_]] = []
    several = _placed(schema, records, lambda *_: None, lambda fine, *_: inside.append(fine)).pieces()
    added = moments.record_sums.RecordTerms.joined(_added(schema, rows, y_part, values) for rows, y_part in several)
    return added.among(np.concatenate(inside)) if inside else added


def _added(
    schema: EffectSchema, rows: NDArray[Any], targets: NDArray[Any], values: Mapping[str, Values]
) -> RecordTerms:
    mapped = mapped_records(schema, rows, targets, values)
    added, sent = mapped.by_letter(), {row.letter for row in schema.sent}
    products: dict[str, Product] = {s: (each.reshape(len(rows), -1), None) for s, each in added.items() if s in sent}
    return moments.record_sums.RecordTerms.of(
        len(rows), moments.record_sums.Term(products, mapped.blocks if schema.blocks > 1 else None)
    )


def _placed(schema: EffectSchema, records: Opened, unreadable: Noted, outside: Noted) -> Opened:
    """Return the records that are in a subgroup; where none may be excluded, ``blocks_of`` refuses others."""
    if records.excluded is None:
        return records
    return records.over(_inside(schema, records.pairs(unreadable), records.excluded, outside))


def _inside(
    schema: EffectSchema, batches: Iterable[Any], excluded: Excluded, noted: Noted
) -> Iterator[tuple[Any, Any]]:
    for rows, targets in batches:
        cells = {variable.name: cells_in(variable, column) for variable, column in _columns(schema, rows)}
        every = np.ones(len(rows), np.bool_)
        inside = np.logical_and.reduce([each >= 0 for each in cells.values()] or [every])
        noted(inside, rows, every)
        why = {(repr(name), NO_CELL): each < 0 for name, each in cells.items()}
        excluded.add(inside, why, seen=True)
        yield (rows, targets) if inside.all() else (rows[inside], targets[inside])


def _columns(schema: EffectSchema, rows: NDArray[Any]) -> Iterator[tuple[Variable, Readings]]:
    names, levels = schema.feature_names or (), schema.reading.levels
    for variable in schema.subgroups or ():
        codes = rows[:, names.index(variable.name)].astype(np.float64)
        texts = None if levels is None or isinstance(variable, Bins) else levels.of(variable.name)
        yield variable, read(codes if texts is None else np.array(texts.values)[codes.astype(np.intp)])


def blocks_of(schema: EffectSchema, rows: NDArray[Any]) -> NDArray[np.intp]:
    """Return every record's block, ``(n,)``, from its own values alone."""
    cells = []
    for variable, column in _columns(schema, rows):
        cells.append(cells_in(variable, column))
        require_cells(variable, column, cells[-1])
    return np.ravel_multi_index(cells, schema.crossed) if cells else np.zeros(len(rows), np.intp)


def _in_blocks(schema: EffectSchema, blocks: NDArray[np.intp], added: moments.grid.Ints) -> moments.grid.Ints:
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
    """Return every record's contribution in steps, at the trial's probability ``chance`` or the smallest."""
    arm, x = moments.rounds.arm_rows(schema, rows)
    blocks = blocks_of(schema, rows)
    real = moments.rounds.real_outcomes(targets, schema.outcomes, missing=schema.missing is not None)
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
        influences[letter], finite = in_steps(schema, population, influence, values[name])
        fine &= finite
    weight = np.where(population.included & fine, population.weight / schema.largest_weight, 0.0)
    return Mapped(blocks, np.floor(np.clip(weight, 0.0, 1.0) * float(schema.grid_steps)), influences, weighted)
