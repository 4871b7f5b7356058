"""Do the intervals of hazard ratios keep their claim? Persons with known hazards, read as a user reads them.

Every world is within the course's public bounds and goes through counts, rounds and noise as in a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import course as courses
from privstats import session
from privstats.course import Hazard
from privstats.errors import PlanError, ReleaseError
from privstats.inference import HazardRatios, hazards
from privstats.inference.releases import column_names, interactions_of, map_columns, raw_slopes
from privstats.progress import track
from privstats.randomness import Generator
from privstats.release import Release
from threat_models.audits.inference import MOST_RECORDS, Tally, report_of
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_ALPHA = 0.05
_CUMULATIVE = 0.4  # hazard over all bins where the columns are in the middle
_RATIO = 0.6  # most that the logarithm of a ratio is, over the range of a column
_STAYING = 0.3  # chance that a person is followed to the end, where nobody leaves inside a bin
_LATE = 0.5  # chance that a person enters after 0, where the plan has an entry
_LEAVE = (0.25, 0.05)  # rates a bin of two halves of the persons, where they leave at any time

Array = NDArray[np.float64]


def audit_hazard_intervals(course: Hazard, rng: Generator, *, runs: int = 500) -> Report:
    """Count how often a reported log ratio's interval misses, at the cohort's most records and at a third of them.

    Raises:
        ReleaseError: columns that are mapped by more than ranges.
        PlanError: an event of several causes.
    """
    if len(course.schema.causes) > 1:
        raise PlanError(
            "this audit makes up persons with one event, and the plan has several causes: audit the intervals of a "
            "plan without the other causes"
        )
    most = min(course.plan.cohort.max_records, MOST_RECORDS)
    tallies = [(n, tally(course, n, rng, runs)) for n in (most, most // 3)]
    inside = (
        "one half leaves five times as fast" if course.schema.times == "continuous" else "nobody leaves inside a bin"
    )
    note = f"columns fill the clip and {inside}: no audit of a reader sees real persons"
    return report_of(tallies, runs, (note,))


def tally(course: Hazard, records: int, rng: Generator, runs: int) -> Tally:
    """Play ``runs`` worlds of this many persons, and compare every interval with the truth.

    Hazards are proportional in these worlds. So a course with early bins has a row more for every column: a rejection
    of its proportionality at .05 is a miss.
    """
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    names = column_names(course.schema, course.schema.features - 1)
    if course.early_bins:
        names += tuple(f"{name}, proportional" for name in names)
    unread, reported, missed = 0, np.zeros(len(names)), np.zeros(len(names))
    for _ in track("releasing", range(runs)):
        world = HazardWorld.draw(course, records, chance)
        try:
            table = ratios_of(course, world, rng)
        except ReleaseError:
            unread += 1
            continue
        low, high = table.conf_int().T
        columns = [(table.reported, (low > world.truth) | (high < world.truth))]
        if course.early_bins:
            tests = table.proportionality_by_column()
            columns.append((tests.reported, tests.p_value < _ALPHA))
        reported += np.concatenate([shown for shown, _ in columns])
        missed += np.concatenate([wrong for _, wrong in columns])
    return Tally(names, runs, reported, missed, unread)


@dataclass(frozen=True, eq=False)
class HazardWorld:
    """Persons, and the log ratios of their columns in raw units."""

    table: dict[str, Array]
    truth: Array

    @classmethod
    def draw(cls, course: Hazard, records: int, chance: np.random.Generator) -> HazardWorld:
        """Columns that fill the clip, 0 and 1 where counts are crossed. At continuous times they leave at two rates, by
        the crossed or first column; else nobody is censored inside a bin."""
        schema = course.schema
        columns, edges = schema.features - 1, np.array(schema.bins.edges)
        products = interactions_of(schema.transform)
        inputs = columns if products is None else products.takes(columns)
        scale, shift = map_columns([map_ for map_ in schema.transform if map_ is not products], inputs)
        room = np.sqrt(max(schema.clip_norm**2 - schema.constant**2, 0.0) / columns)
        room = room if products is None else min(room, 1.0)  # products of columns within 1 are within 1
        raw = (chance.uniform(-room, room, (records, inputs)) - shift) / scale
        if course.by is not None:
            raw[:, schema.feature_names.index(course.by)] = chance.integers(0, 2, records)
        rows = raw * scale + shift
        rows = rows if products is None else np.asarray(products.apply(rows))
        slopes = chance.uniform(-1, 1, columns) * _RATIO / room
        stratum = chance.integers(0, schema.baselines, records)
        sizes = chance.uniform(0.5, 1.5, (schema.baselines, schema.periods))
        level = np.log(_CUMULATIVE / schema.periods * sizes)[stratum]
        hazard = np.exp(level + (rows @ slopes)[:, None])
        passed, left = np.cumsum(hazard, axis=1), chance.exponential(size=records)
        place = (passed < left[:, None]).sum(axis=1)
        bin_ = np.minimum(place, schema.periods - 1)[:, None]
        part = 1 - (np.take_along_axis(passed, bin_, 1)[:, 0] - left) / np.take_along_axis(hazard, bin_, 1)[:, 0]
        event = np.where(place < schema.periods, place + part, np.inf)
        stays = chance.random(records) < _STAYING
        leaves = np.where(stays, schema.periods, chance.integers(1, schema.periods + 1, records)).astype(np.float64)
        if schema.times == "continuous":
            own = raw[:, 0 if course.by is None else schema.feature_names.index(course.by)]
            leaves = chance.exponential(1 / np.where(own > np.median(own), *_LEAVE))
        seen = np.interp(np.minimum(event, leaves), np.arange(len(edges)), edges, right=2 * edges[-1])
        seen = np.where(event > leaves, np.nextafter(seen, 0), seen)  # who leaves at an edge was seen in the bin before
        table: dict[str, Any] = dict(zip(schema.feature_names, raw.T, strict=True))
        if schema.strata is not None:
            table[schema.strata.name] = np.array(schema.strata.values)[stratum]
        truth = raw_slopes(schema.transform, columns)[0] @ slopes
        table |= {schema.bins.name: seen, schema.event: (event <= leaves) * 1.0}
        if schema.entry is not None:  # half enter late, and only if they are still there
            late = chance.uniform(0, edges[-1] / 2, records) * (chance.random(records) < _LATE)
            table[schema.entry] = late
            there = seen > late
            if schema.times == "discrete":
                there = np.searchsorted(edges, seen, side="right") > np.searchsorted(edges, late, side="right")
            table = {name: column[there] for name, column in table.items()}
        return cls(table, truth)


def ratios_of(course: Hazard, world: HazardWorld, rng: Generator) -> HazardRatios:
    """The table of a course over the world's persons, dealt to all clients."""
    clients = course.first.cohort.clients
    parts = [{name: column[k::clients] for name, column in world.table.items()} for k in range(clients)]

    def release(node: courses.Round) -> Release:
        moments = [sums_of(node.plan.schema, part, published=node.plan.published) for part in parts]
        return session.aggregate_unmasked(node.plan, moments, rng)

    return hazards(courses.run(course, release))
