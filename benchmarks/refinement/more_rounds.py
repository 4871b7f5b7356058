"""How many rounds are worth it, on records of the training set that no weights have seen.

    python -m benchmarks.refinement.more_rounds --save

No test rows: a fifth of the training records is held out, and courses in real numbers run on the rest. What
`estimates.recipes.advised_rounds` says was read from this; the data sets of `benchmarks.data` on which nothing
is tuned are left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Row, Tables, command, results
from benchmarks.refinement.models import DELTA
from benchmarks.refinement.prototype import play
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.recipes import SoftmaxRecipe

ROUNDS = (4, 6, 8)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
DRAWS: Mapping[str, int] = {"digits": 20, "banking77": 8, "banking77 whole": 4, "cifar10": 3, "fmnist": 3}
TITLE = "held-out training records, %"
_SPLITS = 5


def options(parser: argparse.ArgumentParser) -> None:
    """What to measure."""
    parser.add_argument("--tasks", nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--keep", action="store_true", help="keep saved rows of other data sets")


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per data set and epsilon, longer by one data set at a time."""
    saved = results("refinement.more_rounds")[TITLE] if options.keep else []
    rows: list[Row] = [row for row in saved if row["data"] not in options.tasks]
    for task in private_tasks(bundled_only=options.quick):
        if task.name in options.tasks:
            split, draws = task.transformed(), 2 if options.quick else DRAWS[task.name]
            for epsilon in EPSILONS[2:3] if options.quick else EPSILONS:
                rows.append({"data": task.name, **gained(split, epsilon, draws)})
            yield TITLE, rows


def gained(split: Split, epsilon: float, draws: int) -> Row:
    """Accuracy of the fewest rounds, and what others have beyond it, with standard errors of the paired difference."""
    X, _, y, _ = split
    ends = np.array([[_end(X, y, epsilon, T, seed) for T in ROUNDS] for seed in range(draws)])
    row: dict[str, Any] = {"epsilon": epsilon, f"T = {ROUNDS[0]}": float(ends[:, 0].mean()), "draws": draws}
    for place, T in enumerate(ROUNDS[1:], start=1):
        beyond = ends[:, place] - ends[:, 0]
        row[f"T = {T} beyond it"], row[f"se {T}"] = float(beyond.mean()), float(beyond.std(ddof=1) / math.sqrt(draws))
    return row


def _end(X: Any, y: Any, epsilon: float, T: int, seed: int) -> float:
    fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=seed % _SPLITS, stratify=y)
    recipe = SoftmaxRecipe(int(y.max()) + 1, X.shape[1], len(fit), gaussian_mu(epsilon, DELTA), T)
    *_, last = play(recipe, fit, fit_y, np.random.default_rng(seed))
    return 100 * last.accuracy(held, held_y)


if __name__ == "__main__":
    command("refinement.more_rounds", __doc__, tables, options)
