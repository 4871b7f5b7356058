"""Measure what the grid costs: LDA's accuracy and ridge's error from moments on grids of 4 to 12 bits, exact and at
epsilon 1.

    python -m benchmarks.moments.grid --save

Without noise beside float64 without clip or grid; under privacy (central, record level, add-remove, delta 1e-5) a seed
gives all grids the same noise up to rounding, and classifications are behind each set's public map to rows of norm 1.
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Split, Task, agnews, private_tasks, tasks
from benchmarks.measuring import Row, Tables, command, standard_error
from benchmarks.refinement.least_squares import DELTA, mse
from benchmarks.refinement.models import one_shot_plan
from benchmarks.refinement.regression import PROBLEMS, Problem
from privstats.randomness import seeded

CLIP_NORMS = {
    "digits": 80.0,
    "wine": 3.6,
    "breast cancer": 5.5,
    "banking77": 1.0,
    "cifar10": 24.0,
    "fmnist": 24.0,
    "mnist5k": 28.0,
    "letter": 4.0,
    "agnews": 1.0,
}
"""About the largest norm in each set: 1 by the encoder's definition, 24 covers all but one record in 50,000."""
GRID_BITS = tuple(range(4, 13))
EXACT, PRIVATE = "LDA accuracy (%) by grid_bits", "LDA accuracy (%) by grid_bits at epsilon 1"
RIDGE = "ridge's test MSE by grid_bits, over that on the finest grid"
PRIVATE_RIDGE = f"{RIDGE}, at epsilon 1"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, default=10, help="noise draws")


def tables(chosen: argparse.Namespace) -> Tables:
    """One row per data set, without noise and with it."""
    quick, draws = chosen.quick, 2 if chosen.quick else chosen.draws
    private = {task.name: task for task in chain(private_tasks(bundled_only=quick), () if quick else agnews())}
    used = {task.name: task for task in tasks(bundled_only=quick)} | private
    yield EXACT, [accuracies(name, used[name].load()) for name in CLIP_NORMS if name in used]
    warnings.simplefilter("ignore", ps.heads.FewRecordsWarning)
    yield PRIVATE, [private_accuracies(private[name], draws) for name in CLIP_NORMS if name in private]
    problems = PROBLEMS[1:2] if quick else PROBLEMS
    yield RIDGE, [errors(problem, draws, private=False) for problem in problems]
    yield PRIVATE_RIDGE, [errors(problem, draws, private=True) for problem in problems]


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


def errors(problem: Problem, draws: int, *, private: bool) -> Row:
    """Mean error by grid over that on the finest one, whose standard error it is; each draw is another split."""
    finest = [_error(problem, GRID_BITS[-1], seed, private=private) for seed in range(draws)]
    row: dict[str, Any] = {"data": problem.name}
    for bits in GRID_BITS:
        try:
            found = [_error(problem, bits, seed, private=private) for seed in range(draws)]
        except ps.PlanError:
            row[f"{bits} bits"] = "refused"
        else:
            row[f"{bits} bits"] = fmean(found) / fmean(finest)
    return {**row, "standard error": standard_error(finest) / fmean(finest)}


def _error(problem: Problem, bits: int, seed: int, *, private: bool) -> float:
    X, X_test, y, y_test = problem.clipped(seed)
    schema = ps.RidgeSchema(
        X.shape[1], clip_norm=problem.bounds.row, target_bound=problem.bounds.target, grid_bits=bits
    )
    parts = [ps.measure(schema, X[k::2], y[k::2]) for k in range(2)]
    if private:
        privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=DELTA)
        plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, len(X)), privacy=privacy)
        release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
    else:
        release = ps.Release.exact(schema, parts[0] + parts[1])
    return mse(
        ps.heads.Ridge(solver="wiener", fit_intercept=False, records=len(X)).fit_release(release).coef_, X_test, y_test
    )


def _drawn(plan: ps.Plan, split: Split, draws: int) -> list[float]:
    X, X_test, y, y_test = split
    parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(plan.cohort.clients)]
    releases = (ps.session.aggregate_unmasked(plan, parts, seeded(seed)) for seed in range(draws))
    return [100 * ps.heads.LDA().fit_release(release).score(X_test, y_test) for release in releases]


if __name__ == "__main__":
    command("moments.grid", __doc__, tables, options)
