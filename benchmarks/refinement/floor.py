"""Measure what a softmax's rounds gain by whitening as far as noise allows, compared with whitening by half.

    python -m benchmarks.refinement.floor --save
    python -m benchmarks.refinement.floor --save --keep --tasks digits  # measure some anew

Accuracy of courses in real numbers on test rows of the feature sets of ``benchmarks.data``, and the AUC of raw tables
of ``benchmarks.raw_tables`` whose numbers were brought to -1 to 1 by their true ranges, one 0 or 1 per listed value and
a constant beside them, on four splits. Both whitenings get the same noise. Where the floor is 1 they are one, and
nothing is measured.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.data import agnews, private_tasks
from benchmarks.measuring import Row, Tables, command, results, standard_error
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.sets import TABLES, splits
from benchmarks.refinement.models import DELTA
from benchmarks.refinement.prototype import Played, play
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.recipes import SoftmaxRecipe, advised_rounds
from privstats.transforms import UnitNorm

EPSILONS = (0.3, 1.0, 3.0, 8.0)
TITLE = "gain by the floor of the whitening"
_DRAWS, _SPLITS, _TABLE_DRAWS = 4, 4, 5

Array: TypeAlias = NDArray[Any]
Split: TypeAlias = tuple[Array, Array, Array, Array]
Score: TypeAlias = Callable[[Played, Array, Array], float]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tasks", nargs="+", help="names of feature sets and raw tables; all if omitted")
    parser.add_argument("--keep", action="store_true", help="keep saved rows of others")


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per data set and epsilon, longer by one data set at a time."""
    saved = results("refinement.floor")[TITLE] if options.keep else []
    rows: list[Row] = [row for row in saved if options.tasks and row["data"] not in options.tasks]
    for name, there, score, draws in _sets(options):
        rows += [{"data": name, **gained(there, score, epsilon, draws)} for epsilon in EPSILONS]
        yield TITLE, rows


def gained(there: list[Split], score: Score, epsilon: float, draws: int) -> Row:
    """The floor, the score of whitening by half in percent, and the gain over splits and draws of the noise."""
    X, _, y, _ = there[0]
    mu = gaussian_mu(epsilon, DELTA)
    recipe = SoftmaxRecipe(int(y.max()) + 1, X.shape[1], len(X), mu, advised_rounds(mu))
    row: dict[str, Any] = {"epsilon": epsilon, "floor": recipe.floor}
    if recipe.floor == 1:
        return row
    found = np.array([_both(recipe, split, score, seed) for split in there for seed in range(draws)])
    gains = found[:, 1] - found[:, 0]
    return {**row, "half": float(found[:, 0].mean()), "gain": float(gains.mean()), "se": standard_error(gains)}


def _both(recipe: SoftmaxRecipe, split: Split, score: Score, seed: int) -> list[float]:
    X, X_test, y, y_test = split
    ends = []
    for floor in (1.0, recipe.floor):
        *_, last = play(recipe, X, y, np.random.default_rng(seed), floor=floor)
        ends.append(100 * score(last, X_test, y_test))
    return ends


def _sets(options: argparse.Namespace) -> Iterator[tuple[str, list[Split], Score, int]]:
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        if options.tasks is None or task.name in options.tasks:
            yield task.name, [task.transformed()], Played.accuracy, 1 if options.quick else _DRAWS
    for table in () if options.quick else TABLES:
        if options.tasks is None or table.name in options.tasks:
            try:
                columns, y = table.load()
            except ImportError as error:
                print(f"{table.name} left out: {error}")
                continue
            known = Known.of(columns)
            there = [
                (_rows(known, each.whole), _rows(known, each.whole_test), each.y, each.y_test)
                for each in splits(columns, y, range(_SPLITS))
            ]
            yield table.name, there, _ranked, _TABLE_DRAWS


def _rows(known: Known, columns: Any) -> Array:
    scaled = known.scaled(columns)
    return np.asarray(UnitNorm().apply(np.column_stack([scaled, np.ones(len(scaled))])))


def _ranked(played: Played, X: Array, y: Array) -> float:
    scores = played.whitening.rows(X) @ played.weights.T
    return float(roc_auc_score(y, scores[:, 1] - scores[:, 0])) if math.isfinite(scores.sum()) else 0.5


if __name__ == "__main__":
    command("refinement.floor", __doc__, tables, options)
