"""Measure how often intervals of treatment effects cover, and how wide they are, in worlds with known effects.

    python -m benchmarks.inference.effects --save --only trial

Worlds of the audit: records through every session of the course, the public reader, and truths of the population that
the table names, over fresh records at the published weights.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import seeded
from threat_models.audits.effect_worlds import played, population_of, worlds_of

RANGES = dict.fromkeys(("a", "b", "c", "d"), (-1.0, 1.0))
NAME = "inference.effects"
TRIALS = (
    ("trial", 0.5, 500, 0.3),
    ("trial", 0.5, 500, 1.0),
    ("trial", 0.5, 500, 8.0),
    ("trial", 0.3, 2_000, 1.0),
    ("trial", 0.5, 2_000, 8.0),
    ("trial", 0.5, 10_000, 1.0),
    ("trial, rare events", 0.1, 2_000, 1.0),
    ("trial, rare events", 0.1, 2_000, 100.0),
)
CONFOUNDED = (("overlap", "confounded", 2_000, 8.0), ("overlap", "confounded", 10_000, 1.0))
DIFFERING = (("overlap", "differing", 10_000, 1.0), ("overlap", "differing", 10_000, 8.0))
OTHERS = (
    ("ate", "confounded", 10_000, 1.0),
    ("att", "confounded", 10_000, 1.0),
    ("ate", "differing", 10_000, 8.0),
)
FEWER = 200  # of the largest cell
BEYOND = (("ate", "beyond", 50_000, 8.0),)
SIX = dict.fromkeys("abcdef", (-1.0, 1.0))
FEW = tuple(("overlap", "differing", 1_566, epsilon) for epsilon in (1.0, 3.0, 8.0, 30.0))


def tables(options: argparse.Namespace) -> Tables:
    """Trials, overlap weights, and the other populations."""
    runs, few = (3, 1) if options.quick else (options.runs, None)
    groups: dict[str, Callable[[], list[Row]]] = {
        "trials": lambda: [trial(*cell, runs) for cell in TRIALS[:few]],
        "overlap weights, confounded": lambda: [observed(*cell, runs) for cell in CONFOUNDED[:few]],
        "overlap weights, differing": lambda: [observed(*cell, runs) for cell in DIFFERING[:few]],
        "adjusted differences, all and treated": lambda: [observed(*cell, runs) for cell in OTHERS[:few]],
        "beyond the trim": lambda: [observed(*_small(cell, few), min(runs, FEWER)) for cell in BEYOND],
        "few records, six columns": lambda: [observed(*cell, runs, SIX) for cell in FEW[:few]],
    }
    for title, rows in groups.items():
        if options.only in title:
            yield title, rows()


def _small(cell: tuple[str, str, int, float], few: int | None) -> tuple[str, str, int, float]:
    """A cell of fewer records, in the quick form."""
    estimand, world, records, epsilon = cell
    return estimand, world, records // 20 if few else records, epsilon


def trial(world: str, probability: float, records: int, epsilon: float, runs: int) -> Row:
    """A cell of a randomised trial."""
    outcome = (0.0, 1.0) if "events" in world else (-1.0, 1.0)
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=outcome, probability=probability)
    return {"world": world, "probability": probability, **_cell(schema, world, records, epsilon, runs)}


def observed(estimand: Any, world: str, records: int, epsilon: float, runs: int, columns: Any = RANGES) -> Row:
    """A cell of a world where the treatment was not randomised."""
    schema = ps.EffectSchema.of(columns, treatment="arm", outcome=(-1, 1), estimand=estimand, trim=0.1)
    return {"world": world, "estimand": estimand, **_cell(schema, world, records, epsilon, runs)}


def _cell(schema: ps.EffectSchema, world: str, records: int, epsilon: float, runs: int) -> Row:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), privacy)
    seed = zlib.crc32(repr((world, schema.estimand, schema.probability, records, epsilon)).encode())
    chance, rng, made = np.random.default_rng(seed), seeded(seed), worlds_of(schema)[world]
    reported, missed, widths = 0, 0, list[float]()
    for _ in range(runs):
        table = ps.inference.effect(played(course, *made.draw(schema, records, chance), rng))
        low, high = table.conf_int()
        reported, missed = (
            reported + table.reported,
            missed + (not low <= made.truth(schema, population_of(table)) <= high),
        )
        widths += [(high - low) / 2] * table.reported
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": reported / runs,
        "reported and missed": missed / runs,
        **ends(missed, runs),
        "half width": float(np.median(widths)) if widths else math.inf,
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
