"""Measure how often some look at a trial crosses its boundary though nothing has an effect, and how often some look's
interval misses.

    python -m benchmarks.inference.looks --save

A randomised trial whose records come in unequal parts. Records go through every session of the course, and the public
reader. "Usual levels" counts trials in which some look has a p-value below .05. "Information alone" takes boundaries
from the information at each look as if no look had noise of its own.
"""

from __future__ import annotations

import argparse
import math
import zlib
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

import privstats as ps
from benchmarks.inference.runs import add_options, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import session
from privstats.course import Looks
from privstats.estimates.boundaries import boundaries, spent
from privstats.moments import exact_moments
from privstats.randomness import seeded

NAME = "inference.looks"
ALPHA = 0.05
CELLS = (
    (3, "obrien-fleming", 3_000, 1.0),
    (3, "obrien-fleming", 3_000, 8.0),
    (5, "pocock", 3_000, 1.0),
    (5, "pocock", 3_000, 8.0),
    (5, "pocock", 20_000, 1.0),
)


def tables(options: argparse.Namespace) -> Tables:
    """Trials without an effect, and with one."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    for title, effect, cells in (("no effect", 0.0, CELLS), ("an effect of .06", 0.06, CELLS[1:3])):
        if options.only in title:
            yield from table_of(NAME, title, cells[:few], partial(looked, effect=effect, runs=runs))


def looked(number: int, spending: Any, records: int, epsilon: float, effect: float, runs: int) -> Row:
    """Trials of so many looks: how often any look errs."""
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"well": (0, 1)}, probability=0.5)
    declared = ps.course.Analysis(primary=("well",), looks=Looks(number, spending))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), privacy, analysis=declared)
    seed = zlib.crc32(repr((number, spending, records, epsilon, effect)).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    counts = {"reported": 0, "crossed": 0, "missed": 0, "usual levels": 0, "information alone": 0}
    noise: list[float] = []
    for _ in range(runs):
        age, arm = chance.uniform(20, 90, records), chance.integers(0, 2, records)
        well = chance.random(records) < 0.3 + 0.004 * (age - 55) + effect * arm
        X = np.column_stack([age, arm])
        so_far = np.ceil(np.cumsum(shares := chance.uniform(0.5, 1.5, number)) / shares.sum() * records).astype(int)

        def release(node: Any, X: Any = X, well: Any = well, so_far: Any = so_far) -> ps.Release:
            last = so_far[course.look_of(node.place) or 0]
            parts = [(X[k:last:2], well[k:last:2]) for k in (0, 1)]
            moments = [exact_moments(node.plan.schema, *each, published=node.plan.published) for each in parts]
            return session.aggregate_unmasked(node.plan, moments, rng)

        found = ps.inference.looks(courses.run(course, release), course)
        reported = [each for each in found if math.isfinite(each.conf_low)]
        counts["reported"] += len(reported) == len(found)
        counts["crossed"] += found.stopped is not None
        counts["missed"] += any(not each.conf_low <= effect <= each.conf_high for each in reported)
        counts["usual levels"] += any(each.table.pvalue < ALPHA for each in found)
        counts["information alone"] += _naively(found)
        noise.append(found.rounds[-1].noise_share)
    wrong = counts["missed"]
    shares_of = {name: count / runs for name, count in counts.items()}
    about = {"looks": number, "spending": spending, "records": records, "epsilon": epsilon, "runs": runs}
    return {**about, "noise": float(np.median(noise)), **shares_of, **ends(wrong, runs)}


def _naively(found: ps.inference.LookTable) -> bool:
    """Whether some look crosses a boundary of the information alone, noise included in the variance."""
    looks: Any = found.course.analysis.looks  # type: ignore[union-attr]
    information = [1 / each.table.bse**2 for each in found]
    alphas = np.diff(spent(looks.spending, [each.time for each in found], ALPHA), prepend=0)
    levels = 2 * ndtr(-boundaries(information, np.zeros(len(information)).tolist(), alphas.tolist()))
    return any(each.table.pvalue < level for each, level in zip(found, levels, strict=True))


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
