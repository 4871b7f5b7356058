"""Measure how often intervals of trials with missing outcomes cover, and how often complete cases miss.

    python -m benchmarks.inference.missing_outcomes --save

Worlds of the audit: records through every session of the course, the public reader, and truths over fresh records at
the published weights. Beside them the same records without noise, those with an outcome alone (Welch's difference).
"""

from __future__ import annotations

import argparse
import math
import zlib

import numpy as np
from scipy import stats

import privstats as ps
from benchmarks.inference.effects import RANGES
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import seeded
from threat_models.audits.effect_worlds import INCOMPLETE, played, population_of

NAME = "inference.missing_outcomes"
CELLS = {
    "a fourth missing": (
        ("missing", 2_000, 8.0),
        ("missing", 10_000, 1.0),
        ("missing", 10_000, 3.0),
        ("missing", 10_000, 8.0),
        ("missing", 10_000, 100.0),
        ("missing", 50_000, 1.0),
    ),
    "other worlds": (
        ("missing, few", 10_000, 3.0),
        ("missing, few", 10_000, 8.0),
        ("missing, most beyond", 10_000, 3.0),
        ("missing, most beyond", 10_000, 8.0),
        ("missing, wrong lines", 10_000, 3.0),
        ("missing, wrong lines", 10_000, 8.0),
        ("missing, wrong propensity", 10_000, 3.0),
        ("missing, wrong propensity", 10_000, 8.0),
    ),
}
FEWER = 200  # of the largest cell


def tables(options: argparse.Namespace) -> Tables:
    """The plain world, and those where few or most are missing, or one of both models is wrong."""
    runs, few = (3, 1) if options.quick else (options.runs, None)
    for title, cells in CELLS.items():
        if options.only in title:
            yield title, [cell_of(*cell, min(runs, FEWER) if cell[1] > 10_000 else runs) for cell in cells[:few]]


def cell_of(world: str, records: int, epsilon: float, runs: int) -> Row:
    """Count intervals that are reported and miss the population that the table names; complete cases, that of all."""
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5, missing="weights", trim=0.5)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), privacy)
    seed = zlib.crc32(repr((world, records, epsilon)).encode())
    chance, rng, made = np.random.default_rng(seed), seeded(seed), INCOMPLETE[world]
    reported, missed, complete, widths, kept, seen = 0, 0, 0, list[float](), list[float](), list[float]()
    of_all = made.truth(schema, None)
    for _ in range(runs):
        X, y = made.draw(schema, records, chance)
        table = ps.inference.effect(played(course, X, y, rng))
        low, high = table.conf_int()
        reported, missed = (
            reported + table.reported,
            missed + (not low <= made.truth(schema, population_of(table)) <= high),
        )
        widths += [(high - low) / 2] * table.reported
        kept.append(table.mean_weight or 0.0)
        there = np.isfinite(y)
        seen.append(float(there.mean()))
        welch = stats.ttest_ind(y[there & (X[:, -1] == 1)], y[there & (X[:, -1] == 0)], equal_var=False)
        interval = welch.confidence_interval()
        complete += not interval.low <= of_all <= interval.high
    return {
        "world": world,
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "observed": float(np.mean(seen)),
        "kept": float(np.median(kept)),
        "reported": reported / runs,
        "reported and missed": missed / runs,
        **ends(missed, runs),
        "half width": float(np.median(widths)) if widths else math.inf,
        "complete cases missed": complete / runs,
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
