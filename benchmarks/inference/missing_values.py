"""Measure how often intervals of shares of missing values hold, by arm.

    python -m benchmarks.inference.missing_values --save

Two arms of unequal size, and columns with rarely, sometimes and mostly missing values, each crossed with the arm.
"Worst row" is the column and arm that misses most.
"""

from __future__ import annotations

import argparse
import zlib
from functools import partial
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.runs import add_options, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.moments import exact_moments
from privstats.randomness import seeded

NAME = "inference.missing_values"
CELLS = ((1_000, 1.0), (1_000, 8.0), (10_000, 1.0))
SHARES = {"rare": (0.01, 0.02), "some": (0.1, 0.15), "most": (0.7, 0.5)}
ARM = ps.Categories("arm", ("a", "b"))
SCHEMA = ps.CountSchema(
    (ARM, *(ps.Bins(name, (0, 1, 2, 3), missing=True) for name in SHARES)), tuple(("arm", name) for name in SHARES)
)


def tables(options: argparse.Namespace) -> Tables:
    """Shares by column and arm."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    if options.only in "shares":
        yield from table_of(NAME, "shares", CELLS[:few], partial(measured, runs=runs))


def measured(records: int, epsilon: float, runs: int) -> Row:
    """Count intervals that miss the probability of a missing value."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 2 * records), privacy=privacy)
    seed = zlib.crc32(repr((records, epsilon)).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    reported: list[Any] = []
    missed: list[Any] = []
    for _ in range(runs):
        arm = (chance.random(records) < 0.3).astype(int)
        table: dict[str, Any] = {"arm": np.where(arm, "b", "a")}
        for name, shares in SHARES.items():
            gone = chance.random(records) < np.array(shares)[arm]
            table[name] = np.where(gone, np.nan, chance.uniform(0, 3, records))
        parts = [exact_moments(SCHEMA, {name: column[k::2] for name, column in table.items()}) for k in (0, 1)]
        found = ps.inference.missing_values(session.aggregate_unmasked(plan, parts, rng), by="arm")
        truth = [SHARES[each.column][each.group == "b"] for each in found]
        reported.append([each.share.reported for each in found])
        missed.append([not each.share.low <= p <= each.share.high for each, p in zip(found, truth, strict=True)])
    worst = float(np.sum(missed, axis=0).max())
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": float(np.mean(reported)),
        "reported and missed": float(np.mean(missed)),
        "worst row": worst / runs,
        **ends(worst, runs),
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
