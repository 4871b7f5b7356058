"""Measure how often effects of cluster-randomised trials miss, with one row per cluster and with one per patient.

    python -m benchmarks.inference.clusters --save

Clusters of 10 to 60 patients are assigned to an arm as a whole, and patients of a cluster are alike: a cluster's risk
varies about its arm's. With one row per cluster the outcome is the cluster's share of patients who improved, and a
record is a cluster. "Rows of patients" releases the same patients as records, as if each had been assigned alone.

In the crossover trials the order of two treatments is assigned, and the outcome is each person's difference of two
periods, with skewed errors that vary more in one order; half the order's effect is the treatment's.
"""

from __future__ import annotations

import argparse
import math
import zlib
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.runs import add_options, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import seeded
from threat_models.audits.effect_worlds import played

NAME = "inference.clusters"
EFFECT, SMALLEST, LARGEST = 0.1, 10, 60
RANGE = (0.0, 0.9)  # of a cluster's share, publicly known
_FEW = 200  # runs of rows of patients, which miss in most


@dataclass(frozen=True)
class World:
    """A number of clusters, the spread of their risks, and how much wider that is in the second arm."""

    clusters: int
    epsilon: float
    spread: float
    factor: float = 1.0

    def drawn(self, chance: np.random.Generator) -> tuple[Any, Any, Any, Any]:
        """Return a column of the cluster, its arm, size and number of patients who improved, each ``(clusters,)``."""
        n = self.clusters
        size, arm = chance.integers(SMALLEST, LARGEST + 1, n), chance.integers(0, 2, n)
        region = chance.uniform(-1, 1, n)
        own = self.spread * np.where(arm == 1, self.factor, 1.0) * chance.uniform(-math.sqrt(3), math.sqrt(3), n)
        risk = np.clip(0.35 + EFFECT * arm + 0.05 * region + own, 0.0, 1.0)
        return region, arm, size, chance.binomial(size, risk)


WORLDS = (
    World(200, 8.0, 0.05),
    World(200, 30.0, 0.15, factor=0.3),
    World(200, 30.0, 0.15),
    World(400, 3.0, 0.1),
    World(400, 8.0, 0.15),
    World(2_000, 1.0, 0.1),
)


CROSSOVERS = ((500, 8.0), (1_000, 3.0), (5_000, 1.0))
"""Persons and epsilon."""
BENEFIT, RANGES = 4.0, (-40.0, 40.0)


def tables(options: argparse.Namespace) -> Tables:
    """Effects, and crossover trials."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    if options.only in "effects":
        yield from table_of(NAME, "effects", [(world,) for world in WORLDS[:few]], partial(measured, runs=runs))
    if options.only in "crossover trials":
        yield from table_of(NAME, "crossover trials", CROSSOVERS[:few], partial(crossed, runs=runs))


def crossover(persons: int, chance: np.random.Generator) -> tuple[Any, Any]:
    """Draw an age and the order (1 where the treatment comes first), and the difference of both periods."""
    order, age = chance.integers(0, 2, persons), chance.uniform(-1, 1, persons)
    own = chance.normal(50.0, 8.0, persons)
    errors = chance.exponential(3.0, (2, persons)) * np.where(order == 1, 2.0, 1.0)
    first, second = own + BENEFIT * (order == 1), own + 2.0 + age + BENEFIT * (order == 0)
    return np.c_[age, order], np.clip(first + errors[0] - second - errors[1], *RANGES)


def crossed(persons: int, epsilon: float, runs: int) -> Row:
    """Count intervals of crossover trials that miss the treatment's effect."""
    schema = ps.EffectSchema.of({"age": (-1.0, 1.0)}, treatment="order", outcome=RANGES, probability=0.5)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * persons), privacy)
    seed = zlib.crc32(repr((persons, epsilon)).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    reported = missed = 0
    widths = []
    for _ in range(runs):
        low, high = ps.inference.effect(played(course, *crossover(persons, chance), rng)).conf_int() / 2
        reported, missed = reported + math.isfinite(high - low), missed + (not low <= BENEFIT <= high)
        widths.append((high - low) / 2)
    width = float(np.median(widths))
    return {
        "records": persons,
        "epsilon": epsilon,
        "runs": runs,
        "reported": reported / runs,
        "reported and missed": missed / runs,
        **ends(missed, runs),
        "half width": width if math.isfinite(width) else None,
    }


def course_of(world: World, outcome: tuple[float, float], records: int) -> ps.Effect:
    """Return the course of a trial with one column."""
    schema = ps.EffectSchema.of({"region": (-1.0, 1.0)}, treatment="arm", outcome=outcome, probability=0.5)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=world.epsilon, delta=1e-6)
    return ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), privacy)


def measured(world: World, runs: int) -> Row:
    """Count intervals that miss the mean over clusters."""
    seed = zlib.crc32(repr(world).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    clusters, patients = course_of(world, RANGE, world.clusters), course_of(world, (0.0, 1.0), LARGEST * world.clusters)
    reported = missed = rows = 0
    widths = []
    for run in range(runs):
        region, arm, size, improved = world.drawn(chance)
        table = ps.inference.effect(played(clusters, np.c_[region, arm], improved / size, rng))
        low, high = table.conf_int()
        reported, missed = reported + math.isfinite(high - low), missed + (not low <= EFFECT <= high)
        widths.append((high - low) / 2)
        if run < _FEW:
            each = np.repeat(np.arange(world.clusters), size)
            first = np.concatenate([[0], np.cumsum(size)[:-1]])
            y = (np.arange(len(each)) - first[each] < improved[each]) * 1.0
            low, high = ps.inference.effect(played(patients, np.c_[region, arm][each], y, rng)).conf_int()
            rows += not low <= EFFECT <= high
    width = float(np.median(widths))
    return {
        "clusters": world.clusters,
        "spread": world.spread,
        "factor": world.factor,
        "epsilon": world.epsilon,
        "runs": runs,
        "reported": reported / runs,
        "reported and missed": missed / runs,
        **ends(missed, runs),
        "half width": width if math.isfinite(width) else None,
        "rows of patients miss": rows / min(runs, _FEW),
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
