"""What the grid costs: LDA accuracy from moments on grids of 4 to 12 bits, without noise and at epsilon 1.

    python -m benchmarks.moments.grid --save

Without noise beside float64 without clip or grid; under privacy (central, record level, add-remove, delta 1e-5) behind
each set's public map to rows of norm 1, where a seed gives all grids the same noise up to rounding.
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Split, Task, agnews, tasks
from benchmarks.measuring import Row, Tables, command, standard_error
from benchmarks.refinement.models import one_shot_plan
from privstats.randomness import seeded

CLIP_NORMS = {"digits": 80.0, "banking77": 1.0, "cifar10": 24.0, "fmnist": 24.0, "agnews": 1.0}
"""About the largest norm in each set: 1 by the encoder's definition, 24 covers all but one record in 50,000."""
GRID_BITS = tuple(range(4, 13))
EXACT, PRIVATE = "LDA accuracy (%) by grid_bits", "LDA accuracy (%) by grid_bits at epsilon 1"


def options(parser: argparse.ArgumentParser) -> None:
    """How much noise."""
    parser.add_argument("--draws", type=int, default=10, help="noise draws")


def tables(chosen: argparse.Namespace) -> Tables:
    """One row per data set, without noise and with it."""
    sets = tasks(bundled_only=True) if chosen.quick else chain(tasks(), agnews())
    used = [task for task in sets if task.name in CLIP_NORMS]
    yield EXACT, [accuracies(task.name, task.load()) for task in used]
    warnings.simplefilter("ignore", ps.heads.FewRecordsWarning)
    yield PRIVATE, [private_accuracies(task, 2 if chosen.quick else chosen.draws) for task in used]


def accuracies(name: str, split: Split) -> Row:
    """Accuracy in per cent by grid, and what one standard error is."""
    X, X_test, y, y_test = split
    exact = ps.heads.LDA().fit(X, y).score(X_test, y_test)
    row: dict[str, Any] = {"features": name, "clip norm": CLIP_NORMS[name], "float64": 100 * exact}
    for bits in GRID_BITS:
        schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", CLIP_NORMS[name], bits)
        release = ps.Release.exact(schema, ps.measure(schema, X, y))
        row[f"{bits} bits"] = 100 * ps.heads.LDA().fit_release(release).score(X_test, y_test)
    return {**row, "standard error": 100 * math.sqrt(exact * (1 - exact) / len(y_test))}


def private_accuracies(task: Task, draws: int) -> Row:
    """Mean accuracy in per cent by grid; the standard error is of the mean over the draws on the finest grid."""
    split, row, drawn = task.transformed(), dict[str, Any](features=task.name), [math.nan] * draws
    plan = one_shot_plan(split, "NAB", 1.0, None)
    for bits in GRID_BITS:
        schema: Any = plan.schema
        try:
            drawn = _drawn(replace(plan, schema=replace(schema, grid_bits=bits)), split, draws)
        except ps.PlanError:
            row[f"{bits} bits"] = "refused"
        else:
            row[f"{bits} bits"] = float(np.mean(drawn))
    return {**row, "standard error": standard_error(drawn)}


def _drawn(plan: ps.Plan, split: Split, draws: int) -> list[float]:
    X, X_test, y, y_test = split
    parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(plan.cohort.clients)]
    releases = (ps.session.aggregate_unmasked(plan, parts, seeded(seed)) for seed in range(draws))
    return [100 * ps.heads.LDA().fit_release(release).score(X_test, y_test) for release in releases]


if __name__ == "__main__":
    command("moments.grid", __doc__, tables, options)
