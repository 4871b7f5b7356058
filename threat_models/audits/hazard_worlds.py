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
from privstats.errors import ReleaseError
from privstats.inference import HazardRatios, hazards
from privstats.inference.evidence import map_columns
from privstats.moments import exact_moments
from privstats.progress import track
from privstats.randomness import Generator
from privstats.release import Release
from threat_models.audits.inference import MOST_RECORDS, Tally, report_of
from threat_models.audits.verdict import Report

__all__ = ["HazardWorld", "audit_hazard_intervals", "ratios_of", "tally"]

_CUMULATIVE = 0.4  # hazard over all bins where the columns are in the middle
_RATIO = 0.6  # most that the logarithm of a ratio is, over the range of a column
_STAYING = 0.3  # chance that somebody is followed to the end

Array = NDArray[np.float64]


def audit_hazard_intervals(course: Hazard, rng: Generator, *, runs: int = 500) -> Report:
    """Count how often a log ratio is told and its interval misses, at the cohort's most records and at a third of them.

    Raises:
        ReleaseError: columns that are mapped by more than ranges.
    """
    most = min(course.plan.cohort.max_records, MOST_RECORDS)
    tallies = [(n, tally(course, n, rng, runs)) for n in (most, most // 3)]
    note = "columns fill the clip and nobody is censored inside a bin: no audit of a reader sees real persons"
    return report_of(tallies, runs, (note,))


def tally(course: Hazard, records: int, rng: Generator, runs: int) -> Tally:
    """Play ``runs`` worlds of this many persons, and hold every interval against the truth."""
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    names = course.schema.feature_names
    unread, told, missed = 0, np.zeros(len(names)), np.zeros(len(names))
    for _ in track("releasing", range(runs)):
        world = HazardWorld.draw(course, records, chance)
        try:
            table = ratios_of(course, world, rng)
        except ReleaseError:
            unread += 1
            continue
        low, high = table.conf_int().T
        told += table.told
        missed += (low > world.truth) | (high < world.truth)
    return Tally(names, runs, told, missed, unread)


@dataclass(frozen=True, eq=False)
class HazardWorld:
    """Persons, and the log ratios of their columns in raw units."""

    table: dict[str, Array]
    truth: Array

    @classmethod
    def draw(cls, course: Hazard, records: int, chance: np.random.Generator) -> HazardWorld:
        """Columns that fill the clip, 0 and 1 where counts are crossed; nobody is censored inside a bin."""
        schema = course.schema
        columns, edges = schema.features - 1, np.array(schema.bins.edges)
        scale, shift = map_columns(schema.transform, columns)
        room = np.sqrt(max(schema.clip_norm**2 - schema.constant**2, 0.0) / columns)
        raw = (chance.uniform(-room, room, (records, columns)) - shift) / scale
        if course.by is not None:
            raw[:, schema.feature_names.index(course.by)] = chance.integers(0, 2, records)
        rows = raw * scale + shift
        slopes = chance.uniform(-1, 1, columns) * _RATIO / room
        level = np.log(_CUMULATIVE / schema.periods * chance.uniform(0.5, 1.5, schema.periods))
        hazard = np.exp(level + (rows @ slopes)[:, None])
        place = (np.cumsum(hazard, axis=1) < chance.exponential(size=records)[:, None]).sum(axis=1)
        leaves = np.where(
            chance.random(records) < _STAYING, schema.periods, chance.integers(0, schema.periods, records)
        )
        seen = np.minimum(place, leaves)
        middles = np.append((edges[1:] + edges[:-1]) / 2, 2 * edges[-1])
        table: dict[str, Any] = dict(zip(schema.feature_names, raw.T, strict=True))
        died = (place <= leaves) & (place < schema.periods)
        return cls(table | {schema.bins.name: middles[seen], schema.event: died * 1.0}, slopes * scale)


def ratios_of(course: Hazard, world: HazardWorld, rng: Generator) -> HazardRatios:
    """The table of a course over the world's persons, dealt to all clients."""
    clients = course.first.cohort.clients
    parts = [{name: column[k::clients] for name, column in world.table.items()} for k in range(clients)]

    def release(node: courses.Round) -> Release:
        moments = [exact_moments(node.plan.schema, part, published=node.plan.published) for part in parts]
        return session.aggregate_unmasked(node.plan, moments, rng)

    return hazards(courses.run(course, release))
