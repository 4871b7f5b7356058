"""A regression's rounds beside tuned DP-GD on the small problems, with so many draws that luck hardly counts.

    python -m benchmarks.refinement.many_draws --save

Test MSE of courses of 24 rounds in real numbers with the noise of the library's plans, and of full-batch DP-GD by the
recipe that ``benchmarks.refinement.regression`` tunes at no charge. Both have every split, each with several noises of
their own; the change is that of the mean over splits, and its error that of the difference by split.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement import least_squares
from benchmarks.refinement.least_squares import DELTA, Split, mse
from benchmarks.refinement.prototype import play_ridge
from benchmarks.refinement.regression import EPSILONS, PROBLEMS, Problem
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe

NAMES = ("diabetes", "breast cancer", "digits")
TITLE = "test MSE of a regression's rounds beside tuned DP-GD, many draws"
_ROUNDS = 24


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--noises", type=int, default=4, help="of each split")


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row longer each time."""
    names, epsilons = (NAMES[:1], EPSILONS[-1:]) if options.quick else (NAMES, EPSILONS)
    splits, noises = (6, 2) if options.quick else (options.splits, options.noises)
    rows: list[Row] = []
    for problem in (problem for problem in PROBLEMS if problem.name in names):
        drawn = [problem.clipped(seed) for seed in range(splits)]
        for epsilon in epsilons:
            rows.append(compared(problem, drawn, epsilon, noises))
            yield TITLE, rows


def compared(problem: Problem, splits: list[Split], epsilon: float, noises: int) -> Row:
    """Mean errors over noises and splits, and the change in percent of DP-GD's."""
    bounds = problem.bounds
    best = least_squares.shared([least_squares.held_out(bounds, splits, epsilon)])
    theirs = _by_split(np.array(least_squares.dp_gd(bounds, splits * noises, epsilon, best)), noises)
    ours = _by_split(
        np.array([_refined(problem, split, epsilon, seed) for seed, split in enumerate(splits * noises)]), noises
    )
    difference, whole = ours - theirs, float(theirs.mean())
    return {
        "data": problem.name,
        "epsilon": epsilon,
        "DP-GD": whole,
        "refined": float(ours.mean()),
        "change, %": 100 * float(difference.mean()) / whole,
        "se": 100 * float(difference.std(ddof=1)) / math.sqrt(len(difference)) / whole,
        "draws": len(splits) * noises,
    }


def _by_split(errors: NDArray[np.float64], noises: int) -> NDArray[np.float64]:
    return np.asarray(errors.reshape(noises, -1).mean(axis=0))


def _refined(problem: Problem, split: Split, epsilon: float, seed: int) -> float:
    X, X_test, y, y_test = split
    bounds = problem.bounds
    recipe = RidgeRecipe(X.shape[1], len(X), gaussian_mu(epsilon, DELTA), bounds.row, bounds.target, _ROUNDS)
    *_, weights = play_ridge(recipe, X, y, np.random.default_rng([seed, 1]))
    return mse(weights, X_test, y_test)


if __name__ == "__main__":
    command("refinement.many_draws", __doc__, tables, options)
