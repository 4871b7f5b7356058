"""A search over persons and everything that a lying server may publish, against the sensitivity of a round of hazards.

Starts from the corners: one period or many that fill the cap, with and without an event, opposed rows and equal ones.
Rows, times, events, weights and the clock are then moved, and kept where the weighted distance grows. It measures by
the library's own map, because what is searched is that map; no formula is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.encoding import flatten
from privstats.errors import PlanError
from privstats.kinds import HazardSchema
from privstats.kinds.hazard_sums import PART_BITS
from privstats.progress import track
from privstats.randomness import Generator
from privstats.schema import narrowed
from privstats.schema.public_values import Published, Values
from privstats.transforms import Levels
from threat_models.audits.climb import Search, most_apart
from threat_models.audits.sensitivity import Finding, report_of
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Published weights and the persons: one under add-remove, two under replace-one.

    Attributes:
        w: weights of the columns and of the bins.
        clock: which part of its bin's hazard had passed at the end of each cell, in steps of 2**-16; None: not read.
        rows: columns behind no transform, ``(n, columns)``.
        times: in bins, ``(n,)``; a half is the middle of one.
        events: 0 or 1, or 2 for another cause that stays at risk, ``(n,)``.
        strata: index of each person's stratum, ``(n,)``; None: there are none.
        entries: in bins, ``(n,)``; None: everyone is at risk from 0 on.
        staying: share of persons who have not left by each cell, in steps of 2**-16; None: not read.
    """

    w: Array
    clock: NDArray[np.int64] | None
    rows: Array
    times: Array
    events: NDArray[np.int64]
    strata: NDArray[np.int64] | None = None
    entries: Array | None = None
    staying: NDArray[np.int64] | None = None


def audit_hazards(target: Target, rng: Generator, *, moves: int = 150, starts: int = 9) -> Report:
    """Search the worst persons and published weights, under both adjacencies, against the claimed mu of a round.

    Raises:
        PlanError: not a plan of hazards.
    """
    refusal = PlanError("this search is for rounds of hazards: give such a plan, or use `audit sensitivity`")
    schema = narrowed(target.schema, HazardSchema, refusal)
    questions = {**{s: {s: 1.0} for s in schema.statistics}, "joint": dict(target.sigma)}
    results = []
    for (name, noise), adjacency in track("searching", [*product(questions.items(), _ADJACENCIES)]):
        best = _best(schema, noise, adjacency, rng, moves, starts)
        results.append(Finding(name, adjacency, joint_mu(schema, noise, adjacency), best))
    notes = (
        f"{starts} starts of {moves} moves over persons, with every published w and clock, by the library's own map",
    )
    return report_of("hazards", results, notes)


def _best(
    schema: HazardSchema, sigmas: Mapping[str, float], adjacency: Adjacency, rng: Generator, moves: int, starts: int
) -> float:
    bare = behind_the_transform(schema)
    return max(worst_trajectories(bare, sigmas, adjacency, rng, moves)[0] for _ in range(starts))


def behind_the_transform(schema: HazardSchema) -> HazardSchema:
    """The schema of rows as they come out of the transform, which is where persons are searched."""
    names = tuple(f"x{place}" for place in range(schema.features - 1))
    levels = schema.reading.levels
    causes = (Levels((), levels.outcomes),) if schema.ratios and levels is not None else ()
    maps = (*causes, *schema.transform[-1:])
    return replace(schema, transform=maps, feature_names=names, expected_events=None)


def _start(schema: HazardSchema, adjacency: Adjacency, chance: np.random.Generator) -> Trajectories:
    """Rows as long as may be; hazards that fill the cap in one bin or in all; an event at once, at the end or never."""
    columns, a = schema.features - 1, schema.constant
    row = chance.normal(size=columns)
    row *= math.sqrt(schema.clip_norm**2 - a * a) * chance.choice([1.0, 0.999, 9.0]) / np.linalg.norm(row)
    count = int(chance.choice([1, 2, schema.periods]))
    hazards = np.full(schema.periods, 1e-9)
    hazards[:count] = (1 - 2.0**-20) / count
    w = np.concatenate([np.zeros(columns), np.tile(np.log(hazards) / a, schema.baselines)])
    two = adjacency == "replace-one"
    rows = np.stack([row, chance.choice([-1.0, 1.0]) * row][: 1 + two])
    ends = chance.choice([0.5, count - 0.5, schema.periods - 0.5], 1 + two)
    events, strata = _events(schema, 1 + two, chance), _strata(schema, 1 + two, chance)
    entries, staying = _entries(schema, chance, ends), _staying(schema, chance)
    return Trajectories(w, _clock(schema, chance), rows, np.array(ends), events, strata, entries, staying)


def _events(schema: HazardSchema, persons: int, chance: np.random.Generator) -> NDArray[np.int64]:
    return chance.integers(0, 3 if schema.ratios else 2, persons)


def _staying(schema: HazardSchema, chance: np.random.Generator) -> NDArray[np.int64] | None:
    """Any that parties admit: falling from at most 1, at once or in steps; None where it is not read."""
    if "G" not in schema.needs:
        return None
    drawn = chance.choice([1, 2, 1 << 15, 1 << PART_BITS, int(chance.integers(1, 1 << PART_BITS))], schema.needs["G"])
    return np.asarray(-np.sort(-drawn.reshape(schema.baselines, -1), axis=1)).ravel().astype(np.int64)


def _strata(schema: HazardSchema, persons: int, chance: np.random.Generator) -> NDArray[np.int64] | None:
    """Draw each person's stratum; None where there are none."""
    return None if schema.strata is None else chance.integers(0, schema.baselines, persons)


def _entries(schema: HazardSchema, chance: np.random.Generator, ends: Array) -> Array | None:
    """Draw each person's entry: at the beginning, before the end, in the same bin, or too late; None without any."""
    if schema.entry is None:
        return None
    share = chance.choice([0.0, 0.0, 0.5, 1.0, 2.0], len(ends)) * chance.choice([1.0, chance.random()])
    return np.asarray(share * ends)


def _clock(schema: HazardSchema, chance: np.random.Generator) -> NDArray[np.int64] | None:
    """Any that parties admit: rising inside every bin, at once, in steps or at the end."""
    if "c" not in schema.needs:
        return None
    drawn = chance.choice([0, 1, 1 << 15, 1 << PART_BITS, int(chance.integers(1 << PART_BITS))], schema.needs["c"])
    of = (np.arange(schema.baselines)[:, None] * schema.periods + schema.in_bin).ravel()
    parts = [np.sort(drawn[of == place]) for place in range(schema.periods * schema.baselines)]
    return np.concatenate([[*each[:-1], 1 << PART_BITS] for each in parts]).astype(np.int64)


def _moved(schema: HazardSchema, here: Trajectories, chance: np.random.Generator) -> Trajectories:
    """One of rows, times, events and strata, or weights, moved a little or drawn anew."""
    size = 10.0 ** chance.uniform(-4, 0)
    match int(chance.integers(6)):
        case 0:
            return replace(here, rows=here.rows + size * schema.clip_norm * chance.normal(size=here.rows.shape))
        case 1:
            inside = chance.choice([0.0, 0.5, 1 - 1e-9, chance.random()], len(here.times))
            times = chance.integers(0, schema.periods + 1, len(here.times)) + inside
            return replace(here, times=times, entries=_entries(schema, chance, times))
        case 2:
            strata = _strata(schema, len(here.events), chance)
            return replace(here, events=_events(schema, len(here.events), chance), strata=strata)
        case 3:
            return replace(here, rows=here.rows * (1 + size * chance.normal()))
        case 4:
            return replace(here, clock=_clock(schema, chance), staying=_staying(schema, chance))
        case _:
            return replace(here, w=here.w + size * chance.normal(size=here.w.shape))


def _distance(schema: HazardSchema, sigmas: Mapping[str, float], here: Trajectories) -> float:
    return most_apart(schema, sigmas, added_by(schema, here))


def added_by(schema: HazardSchema, here: Trajectories) -> list[Array]:
    """Return each person's contribution, in wire steps."""
    clock = {} if here.clock is None else {"c": Values(here.clock, PART_BITS)}
    staying = {} if here.staying is None else {"G": Values(here.staying, PART_BITS)}
    values = Published.of({"w": Values.rounded(np.clip(here.w, -1e6, 1e6)), **clock, **staying})
    texts = np.array(["", *schema.causes])  # the first text is none of the causes
    if schema.ratios and schema.reading.levels is not None:
        texts[0] = str(getattr(schema.reading.levels.outcomes[0], "values", texts)[0])
    events = texts[here.events] if schema.ratios else here.events
    edges = np.array(schema.bins.edges)
    times = np.interp(here.times, np.arange(len(edges)), edges, right=edges[-1] + 1)
    added = []
    for place in range(len(here.rows)):
        table: dict[str, Any] = dict(zip(schema.feature_names, here.rows[place][:, None], strict=True))
        table |= {schema.bins.name: times[place : place + 1], schema.event: events[place : place + 1]}
        if schema.strata is not None and here.strata is not None:
            table[schema.strata.name] = [schema.strata.values[here.strata[place]]]
        if schema.entry is not None and here.entries is not None:
            enters = np.interp(here.entries, np.arange(len(edges)), edges, right=edges[-1] + 1)
            table[schema.entry] = enters[place : place + 1]
        moments = sums_of(schema, table, published=values, unreadable="leave out")
        added.append(flatten(moments).astype(np.float64))
    return added


worst_trajectories = Search[HazardSchema, Trajectories](_start, _moved, _distance).worst
"""One climb of this search; see :meth:`Search.worst`."""
