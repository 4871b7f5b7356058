"""Sum the score and information of grouped-time proportional hazards over persons: what each person adds.

The bits are equal in any batch, order and BLAS. A person counts fully or as zero: no error depends on a person and the
published weights together. The bound on what a person adds is ``move`` of the schema (:mod:`privstats.kinds.hazard`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import RecordError
from privstats.intake.columns import Readings
from privstats.intake.meaning import listed
from privstats.kinds.score_sums import within_length
from privstats.kinds.subdistribution import cells_of, staying_parts
from privstats.moments.base import Moments
from privstats.progress import progress_bar
from privstats.records.cells import cells_in, gaps_in, require_cells
from privstats.records.emptied import ListedColumn, listed_columns
from privstats.records.reasons import GAP, WORD, Why, no_cell, no_number, spelled
from privstats.schema.public_values import Values

if TYPE_CHECKING:
    from privstats.kinds.hazard import HazardSchema
    from privstats.moments.clip_report import ClipTally
    from privstats.moments.grid import Ints
    from privstats.records.opened import Opened

PART_BITS = 16  # bits of f, a bin's observed part; f times a hazard is exact in float64
_BITS = 32
"""Bits of a hazard: its product with an entry of a grid row is exact in float64."""
_ONE = float(1 << _BITS)
_EXPONENTIAL_BITS = 40  # bits of gradient_map.exponentials
_ROWS = 4096

# fmt: off
# B_2k / (2k)!, k = 8 .. 1: x / (e^x - 1) = 1 - x / 2 + sum_k B_2k x^2k / (2k)!, to 1e-13 on [0, 1]
_BERNOULLI = (
    -3.3896802963225827e-13, 1.3382536530684679e-11, -5.284190138687493e-10, 2.08767569878681e-08,
    -8.267195767195768e-07, 3.306878306878307e-05, -0.001388888888888889, 0.08333333333333333,
)
# fmt: on


def measured_hazards(schema: HazardSchema, records: Opened, values: Mapping[str, Values]) -> Moments:
    """Return the exact sums of a round, as :meth:`HazardSchema.moments_of` guarantees."""
    persons, why, declared = _read(schema, records)
    if records.excluded is not None:
        fine = ~np.logical_or.reduce(list(why.values()))
        records.excluded.add(fine, why, declared)
        persons = persons.part(fine)
    return _summed(schema, persons, values, records.progress)


class _Persons(NamedTuple):
    """Columns ``(n, columns)``; bin, event, time (infinite beyond the last edge), stratum ``(n,)``.

    ``since`` is the bin of the entry, of ``periods`` beyond the last edge, and ``entries`` its time; -1 and 0 without.
    ``others`` marks persons whose time ended by another cause.
    """

    rows: NDArray[np.float64]
    bins: NDArray[np.intp]
    events: NDArray[np.bool_]
    times: NDArray[np.float64]
    strata: NDArray[np.intp]
    since: NDArray[np.intp]
    entries: NDArray[np.float64]
    others: NDArray[np.bool_]

    def part(self, where: slice | NDArray[np.bool_]) -> _Persons:
        rows, bins, events = self.rows[where], self.bins[where], self.events[where]
        strata, since, entries = self.strata[where], self.since[where], self.entries[where]
        return _Persons(rows, bins, events, self.times[where], strata, since, entries, self.others[where])


def _read(schema: HazardSchema, records: Opened) -> tuple[_Persons, Why, dict[str, ListedColumn]]:
    clock, event, *_ = counted = schema.counted().variables
    (columns,) = records.columns([*schema.feature_names, *(each.name for each in counted)])
    cells = {each.name: cells_in(each, columns[each.name]) for each in counted}
    rows = np.column_stack([_numbers(schema, name, columns[name]) for name in schema.feature_names])
    gone = np.isnan(rows)
    if records.excluded is None:
        for each in counted:
            require_cells(each, columns[each.name], cells[each.name])
        if gone.any():
            bad = zip(schema.feature_names, np.atleast_1d(gone.any(axis=0)), strict=True)
            wrong = listed([name for name, any_ in bad if any_])
            raise RecordError(f"X has gaps, or values that are no numbers, in {wrong}; correct or impute them")
    why = Why()
    for each in counted:
        why |= no_cell(repr(each.name), each, columns[each.name], cells[each.name] < 0)
        why |= spelled(repr(each.name), each, columns[each.name])
    levels = schema.reading.levels
    for name, column in zip(schema.feature_names, gone.T, strict=True):
        declared = None if levels is None else levels.of(name)
        empty = gaps_in(declared, columns[name])
        unread = column & ~empty
        why[repr(name), GAP] = empty
        why |= no_number(repr(name), columns[name], unread) if declared is None else {(repr(name), WORD): unread}
        why |= spelled(repr(name), declared, columns[name])
    of_cell = np.append(schema.in_bin, [schema.periods, -1])
    bins = of_cell[cells[clock.name]]
    died = (cells[event.name] == 1) & (bins < schema.periods)  # a person seen beyond the last edge is censored there
    times = np.where(bins < schema.periods, columns[clock.name].numbers, np.inf)
    strata = () if schema.strata is None else (schema.strata,)
    stratum = cells[strata[0].name] if strata else np.zeros_like(bins)
    since, entries = np.full_like(bins, -1), np.zeros(len(bins))
    if (entering := schema.late_entry) is not None:
        since, entries = of_cell[cells[entering.entry]], np.nan_to_num(columns[entering.entry].numbers)
        exits = columns[clock.name].numbers
        late = entering.never_at_risk(columns[entering.entry].numbers, exits, since, bins, beyond=schema.periods)
        if records.excluded is None:
            entering.refuse(late)
        why[repr(entering.entry), entering.reason] = late
    worded = listed_columns((event, *strata, *(() if levels is None else levels.columns)), columns)
    others = (cells[event.name] > 1) & (bins < schema.periods)
    persons = _Persons(rows, np.minimum(bins, schema.periods - 1), died, times, stratum, since, entries, others)
    return persons, why, worded


def _numbers(schema: HazardSchema, name: str, column: Readings) -> NDArray[np.float64]:
    levels = schema.reading.levels
    texts = None if levels is None else levels.of(name)
    return column.numbers if texts is None else texts.codes_and_unread(column)[0]


def _summed(schema: HazardSchema, persons: _Persons, values: Mapping[str, Values], progress: bool) -> Moments:
    sums = moments.grid.sums_of(schema, "gHJ")
    tally = moments.clip_report.ClipTally(schema.features, schema.grid_steps)
    with progress_bar("records", len(persons.rows), at_once=progress) as advance:
        for start in range(0, len(persons.rows), _ROWS):
            part = persons.part(slice(start, start + _ROWS))
            for total in sums.values():
                total.admit(len(part.rows))
            for stratum in range(schema.baselines):
                own, first = _of_stratum(schema, values, stratum)
                unit, residuals, roots = _mapped(schema, part.part(part.strata == stratum), own, tally)
                _add_score(schema, unit, residuals, sums["g"].partial, first)
                _add_information(schema, unit, roots, sums["H"].partial, first)
                if "J" in sums:
                    _add_squares(schema, unit, residuals, sums["J"].partial, first)
            advance(len(part.rows))
    totals = {letter: total.result() for letter, total in sums.items()}
    exact, _ = schema.containers()
    return exact(schema, records=len(persons.rows), clip_report=tally.report(), **totals)


def _of_stratum(schema: HazardSchema, values: Mapping[str, Values], stratum: int) -> tuple[dict[str, Values], int]:
    columns, cells = schema.features - 1, len(schema.in_bin)
    first, w = columns + stratum * schema.periods, values["w"]
    own = {"w": Values(np.r_[w.integers[:columns], w.integers[first : first + schema.periods]], w.exponent)}
    if "c" in values:
        own["c"] = Values(values["c"].integers[stratum * cells :][:cells], PART_BITS)
    if "G" in values:
        own["G"] = Values(values["G"].integers[stratum * cells :][:cells], PART_BITS)
    return own, first


def _mapped(
    schema: HazardSchema, persons: _Persons, values: Mapping[str, Values], tally: ClipTally
) -> tuple[Ints, Ints, Ints]:
    """Return (x, a) ``(n, p + 1)``, r and v ``(n, K)`` in steps of 2**-32, zero where a bound fails."""
    clips: list[moments.grid.Quantized] = []
    unit, fine = moments.rounds.grid_rows(schema, persons.rows, clips=clips)
    moments.rounds.add_clips(tally, schema, unit, fine, clips)
    mu, seen = _hazards(schema, unit, values["w"]), _seen(schema, persons, values)
    if schema.entry is not None:
        mu, seen = _from_entry(schema, mu, seen, persons, values)
    if schema.ratios is not None:
        mu, seen, persons = _with_others(schema, mu, seen, persons, values)
    residuals, variances, within = _periods(schema, mu, persons, seen)
    maximum = float(schema.grid_steps) ** 2
    fine &= within & (np.vecdot(unit, unit) <= maximum) & (2 * np.square(unit[:, -1]) <= maximum)
    return unit, residuals * fine[:, None], variances * fine[:, None]


def _hazards(schema: HazardSchema, unit: Ints, w: Values) -> Ints:
    """Return mu ``(n, K)`` in steps of 2**-32; any value above 1 becomes 2, which exceeds the cap."""
    columns = unit.shape[1] - 1
    weights = w.integers.astype(np.float64)
    scores = (unit[:, :columns] @ weights[:columns])[:, None] + unit[:, -1:] * weights[columns:]
    fitted = scores * math.ldexp(schema.clip_norm / float(schema.grid_steps), -w.exponent)
    pairs = np.stack([np.zeros(fitted.size), fitted.reshape(-1)], axis=1)
    exponentials = moments.gradient_map.exponentials(pairs, 0)[:, 1].reshape(fitted.shape)
    mu = np.floor(np.ldexp(exponentials, _BITS - _EXPONENTIAL_BITS))
    return np.where(fitted > 0, 2 * _ONE, mu)


def _seen(schema: HazardSchema, persons: _Persons, values: Mapping[str, Values]) -> Ints:
    """Return f ``(n,)``, rounded down to steps of 2**-16."""
    if "c" not in values:
        return np.ones(len(persons.times))
    return _passed(schema, persons.bins, persons.times + (schema.time_unit or 0.0) / 2, values["c"])


def _passed(schema: HazardSchema, bins: NDArray[np.intp], times: NDArray[np.float64], clock: Values) -> Ints:
    """Return the part of each person's bin that the clock has passed at a time, rounded down to steps of 2**-16."""
    marks, steps, of = np.array(schema.marks), clock.floats, schema.in_bin
    first, last = np.searchsorted(of, bins), np.searchsorted(of, bins, side="right") - 1
    cell = np.clip(np.searchsorted(marks, times, side="right") - 1, first, last)
    part = np.clip((times - marks[cell]) / (marks[cell + 1] - marks[cell]), 0.0, 1.0)
    before = np.where(cell > first, steps[cell - 1], 0.0)
    return np.asarray(np.floor(before + part * (steps[cell] - before)) / (1 << PART_BITS))


def _from_entry(
    schema: HazardSchema, mu: Ints, seen: Ints, persons: _Persons, values: Mapping[str, Values]
) -> tuple[Ints, Ints]:
    """Return hazards from the entry on, and the part of the last bin's that was observed.

    Hazards only shrink, to p mu in the entry bin, and stay integers of 2**-32: p is one of 2**-16. A hazard beyond the
    cap stays beyond it, so a person's censoring follows from columns, weights and entry alone.
    """
    places, since = np.arange(mu.shape[1]), np.minimum(persons.since, schema.periods - 1)
    left = np.zeros(len(since))  # at discrete times a person is at risk after the visit of the entry
    if schema.times == "continuous":
        middle = (schema.time_unit or 0.0) / 2 * (persons.entries > 0)  # an entry of 0 is the origin itself
        left = 1 - _passed(schema, since, persons.entries + middle, values["c"])
        left = np.where(persons.since == schema.periods, 0.0, left)
    parts = np.where(places == since[:, None], left[:, None], places > since[:, None])
    parts = np.where((persons.since == schema.periods)[:, None], 0.0, parts)
    shrunk = np.where((mu > _ONE) & (parts > 0), 2 * _ONE, np.floor(parts * mu))
    own = (persons.bins == since) & (left > 0)
    held = np.where(own, left, 1.0)
    within = np.clip((seen - (1 - held)) / held, 0.0, 1.0)
    return shrunk, np.where(own, np.floor(within * (1 << PART_BITS)) / (1 << PART_BITS), seen)


def _with_others(
    schema: HazardSchema, mu: Ints, seen: Ints, persons: _Persons, values: Mapping[str, Values]
) -> tuple[Ints, Ints, _Persons]:
    """Return hazards, parts and persons in which who had another cause is observed until the last bin.

    Hazards after that person's time shrink to p mu, with p the sum over the bin's cells of the clock's part times
    G / G(the person's cell). The cap is checked before, so a person's censoring follows from columns and weights alone.
    """
    below = np.cumsum(mu, axis=1) <= schema.cap * _ONE
    parts = staying_parts(schema, values)[cells_of(schema, persons.times)]
    parts = np.where(persons.others[:, None], parts, 1.0)
    shrunk = np.where(below, np.floor(parts * mu), 2 * _ONE)
    last = np.where(persons.others, schema.periods - 1, persons.bins)
    return shrunk, np.where(persons.others, 1.0, seen), persons._replace(bins=last)


def _periods(schema: HazardSchema, mu: Ints, persons: _Persons, seen: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    last = np.arange(mu.shape[1]) == persons.bins[:, None]
    at_risk = (np.arange(mu.shape[1]) <= persons.bins[:, None]) & (np.cumsum(mu, axis=1) <= schema.cap * _ONE)
    at_risk &= (mu > 0) | (np.arange(mu.shape[1]) > persons.since[:, None])  # no event counts before the entry
    died = at_risk & last & persons.events[:, None]
    f = np.where(last & ~died, seen[:, None], 1.0)
    mu = mu * at_risk
    ratio, passed = np.floor(_decay(mu / _ONE) * _ONE), f * mu
    rise = passed / _ONE / _decay(passed / _ONE)  # e^(f mu) - 1
    stayed = np.where(f < 1, np.floor(np.minimum(ratio * rise, passed)), mu)
    variances = np.floor(mu * (ratio / _ONE) * np.maximum(1 - (1 - f) * (1 + rise), 0.0))
    fine = (stayed * ~died).sum(axis=1) <= schema.cap * _ONE
    fine &= ((ratio >= 0) & (ratio <= _ONE) & (variances >= 0) & (variances <= mu)).all(axis=1)
    fine &= ((stayed >= 0) & (stayed <= mu)).all(axis=1)
    return np.where(died, ratio, -stayed), variances, fine


def _decay(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return mu / (exp(mu) - 1) on [0, 1] by IEEE sums and products."""
    square, value = mu * mu, np.full_like(mu, _BERNOULLI[0])
    for coefficient in _BERNOULLI[1:]:
        value *= square
        value += coefficient
    value *= square
    value -= mu * 0.5
    return np.minimum(value + 1.0, 1.0)


def _add_score(schema: HazardSchema, unit: Ints, residuals: Ints, into: Ints, first: int) -> None:
    columns, down = unit.shape[1] - 1, schema.grid_bits - _BITS
    together = residuals.sum(axis=1)[:, None]
    into[:columns] += np.trunc(np.ldexp(together * unit[:, :columns], down)).sum(axis=0)
    into[first : first + schema.periods] += np.trunc(np.ldexp(residuals * unit[:, -1:], down)).sum(axis=0)


def _add_information(schema: HazardSchema, unit: Ints, variances: Ints, into: Ints, first: int) -> None:
    columns, maximum = unit.shape[1] - 1, float(schema.grid_steps) ** 2
    for place, variance in enumerate(variances.T):
        roots = np.trunc(unit * (np.sqrt(variance / _ONE) * moments.gradient_map.SHY)[:, None])
        roots *= (np.vecdot(roots, roots) * _ONE <= maximum * variance)[:, None]
        block, own = roots.T @ roots, first + place
        into[:columns, :columns] += block[:columns, :columns]
        into[:columns, own] += block[:columns, -1]
        into[own, :columns] += block[-1, :columns]
        into[own, own] += block[-1, -1]


def _add_squares(schema: HazardSchema, unit: Ints, residuals: Ints, into: Ints, first: int) -> None:
    """Add c c', with c the person's score over columns and the stratum's bins, in steps of R M."""
    columns = unit.shape[1] - 1
    exact = np.hstack([residuals.sum(axis=1)[:, None] * unit[:, :columns], residuals * unit[:, -1:]])
    scores = within_length(np.ldexp(exact, -_BITS) / schema.cap, float(schema.grid_steps) ** 2)
    block, bins = scores.T @ scores, slice(first, first + schema.periods)
    into[:columns, :columns] += block[:columns, :columns]
    into[:columns, bins] += block[:columns, columns:]
    into[bins, :columns] += block[columns:, :columns]
    into[bins, bins] += block[columns:, columns:]
