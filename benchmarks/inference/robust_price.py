"""Measure what robust errors cost where the model's own errors are right: seconds, reported coefficients and width.

    python -m benchmarks.inference.robust_price --save

Both courses read the same records and spend the same epsilon; with robust errors 5 % of it goes to the score's second
moment. Seconds are of the processor, for measuring, noise and reading over all rounds, without the masking protocol.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from benchmarks.inference.coverings import Array, Way, seed_of
from benchmarks.inference.runs import add_options, others_of
from benchmarks.inference.stretched import bent, bent_hazards, counts
from benchmarks.measuring import Row, Tables, command
from privstats.kinds.score import SQUARE
from privstats.randomness import seeded

NAME = "inference.robust_price"
World: TypeAlias = Callable[[bool], Callable[[int, float], Way]]

WORLDS: dict[str, tuple[World, list[tuple[int, float]]]] = {
    "logistic, 6 rounds": (partial(bent, 0.0, -3.0), [(20_000, 8.0), (5_000, 3.0), (5_000, 1.0)]),
    "hazards, 6 rounds": (
        partial(bent_hazards, 0.0),
        [(20_000, 8.0), (20_000, 3.0), (5_000, 8.0), (5_000, 3.0), (2_000, 8.0)],
    ),
    "Poisson, bound 8, 5 rounds": (partial(counts, 0.0, -0.7, 8.0), [(50_000, 8.0), (10_000, 8.0)]),
    "Poisson, bound 20, 5 rounds": (partial(counts, 0.0, -0.7, 20.0), [(50_000, 8.0), (10_000, 8.0)]),
}
"""For each regression its world, with the model's or with robust errors, and records and epsilon."""


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per regression and cell."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    for title, (world, cells) in list(WORLDS.items())[:few]:
        if options.only in title:
            yield title, [priced(title, world, *cell, runs) for cell in cells[:few]]


def priced(title: str, world: World, records: int, epsilon: float, runs: int) -> Row:
    """Return shares reported and seconds of both courses, and the median ratio of widths where both report."""
    ways = [world(robust)(records, epsilon) for robust in (False, True)]
    seconds, widths = np.zeros((runs, 2)), list[list[Array]]()
    for run in range(runs):
        seed = seed_of(f"{title} {records} {epsilon}", run)
        both = list[Array]()
        for place, way in enumerate(ways):
            start = time.process_time()
            answer = way(np.random.default_rng(seed), seeded(seed))
            seconds[run, place] = time.process_time() - start
            assert answer.low is not None
            assert answer.high is not None
            both.append((answer.high - answer.low) / 2)
        widths.append(both)
    plain, robust = np.array(widths).swapaxes(0, 1)
    reported = np.isfinite(plain) & np.isfinite(robust)
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "share": SQUARE.share,
        "seconds": float(np.median(seconds[:, 0])),
        "seconds, robust": float(np.median(seconds[:, 1])),
        "reported": float(np.isfinite(plain).mean()),
        "reported, robust": float(np.isfinite(robust).mean()),
        "width": float(np.median(robust[reported] / plain[reported])) if reported.any() else None,
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
