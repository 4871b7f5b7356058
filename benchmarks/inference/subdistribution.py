"""Measure how often intervals of subdistribution hazard ratios miss.

    python -m benchmarks.inference.subdistribution --save

The event's cumulative incidence follows Fine and Gray's model, as they simulated it in 1999; another cause ends the
time of most others, faster in the second arm. Persons leave at random. "Cause-specific" counts how often intervals of
the cause-specific ratios, from the same records, miss the subdistribution ratios.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.runs import add_options, ends, noisy_releases, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature, Levels

NAME = "inference.subdistribution"
LOGS = {"arm": 0.5, "age": 0.4}
EDGES = (0, 4, 8, 12, 16, 20, 24)
EVENT = ps.Categories("ended", ("no", "relapse", "death"))
_SHARE, _SCALE = 0.45, 10.0  # who relapses ever at the columns' 0, and the time's scale
_FEW = 100
CELLS = ((10_000, 8.0, 40.0), (10_000, 8.0, 15.0), (20_000, 3.0, 15.0))


def schema_of(ratios: Any = "subdistribution", times: Any = "continuous") -> ps.HazardSchema:
    """Two columns, six bins and two causes."""
    return ps.HazardSchema(
        3,
        3**0.5,
        bins=ps.Bins("months", EDGES),
        event="ended",
        feature_names=tuple(LOGS),
        transform=(Levels((), (EVENT,)), ConstantFeature(1.0)),
        times=times,
        ratios=ratios,
    )


def persons(records: int, leaving: float, chance: np.random.Generator) -> dict[str, Any]:
    """Draw persons, who leave at random with a mean of ``leaving`` months."""
    arm, age = chance.integers(0, 2, records), chance.uniform(-1, 1, records)
    ratio = np.exp(LOGS["arm"] * arm + LOGS["age"] * age)
    ever = 1 - (1 - _SHARE) ** ratio
    relapses = chance.random(records) < ever
    # F(t | x) = 1 - (1 - p (1 - exp(-t / s)))^ratio, inverted at a uniform part of its limit
    u = chance.random(records) * ever
    relapse = -_SCALE * np.log(1 - (1 - (1 - u) ** (1 / ratio)) / _SHARE)
    death = chance.exponential(np.where(arm == 1, 6.0, 14.0), records)
    at, left = np.where(relapses, relapse, death), chance.exponential(leaving, records)
    seen = np.minimum(at, left)
    ended = np.where(left < at, "no", np.where(relapses, "relapse", "death"))
    return {"arm": arm, "age": age, "months": np.minimum(seen, 24.5), "ended": np.where(seen > 24, "no", ended)}


def tables(options: argparse.Namespace) -> Tables:
    """Ratios."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    yield from table_of(NAME, "ratios", CELLS[:few], partial(measured, runs=runs))


def course_of(schema: ps.HazardSchema, records: int, epsilon: float) -> ps.Hazard:
    """Return a course of six rounds."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return ps.Hazard.start(schema, ps.Cohort(2, 2, 2 * records), privacy, rounds=6)


def played(course: ps.Hazard, table: dict[str, Any], rng: Any) -> list[ps.Release | None]:
    """Return the releases of a course over a table at two parties."""
    return noisy_releases(course, [({name: column[k::2] for name, column in table.items()},) for k in (0, 1)], rng)


def measured(records: int, epsilon: float, leaving: float, runs: int) -> Row:
    """Count intervals that miss."""
    schema = schema_of()
    course, other = (course_of(each, records, epsilon) for each in (schema, replace(schema, ratios=None)))
    seed = zlib.crc32(repr((records, epsilon, leaving)).encode())
    chance, rng, truth = np.random.default_rng(seed), seeded(seed), np.array([*LOGS.values()])
    reported, missed, specific = np.zeros(2), np.zeros(2), np.zeros(2)
    for run in range(runs):
        table = persons(records, leaving, chance)
        found = ps.inference.hazards(played(course, table, rng))
        low, high = found.conf_int().T
        reported, missed = reported + found.reported, missed + ((low > truth) | (high < truth))
        if run < _FEW:
            low, high = ps.inference.hazards(played(other, table, rng)).conf_int().T
            specific += (low > truth) | (high < truth)
    worst = float(missed.max())
    return {
        "records": records,
        "epsilon": epsilon,
        "leaving": leaving,
        "runs": runs,
        "reported": float(reported.mean()) / runs,
        "reported and missed": float(missed.mean()) / runs,
        "worst row": worst / runs,
        **ends(worst, runs),
        "cause-specific misses": float(specific.max()) / min(runs, _FEW),
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
