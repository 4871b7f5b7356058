"""Measure what exact integers and the symmetric map cost in accuracy: the same course, the same noise, three ways to
the sums.

    python -m benchmarks.refinement.exactness --save

"Real numbers" sums float64 gradients at exact weights in the coordinates of the eigenvectors; "symmetric" publishes
V diag P V' and W V' instead; "integers" has them rounded to 20 bits and what a record adds to integers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Rows, Tables, command
from benchmarks.refinement.library import course_of
from benchmarks.refinement.models import DELTA
from benchmarks.refinement.prototype import gradient, play
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.estimates.softmax import SoftmaxWhitening
from privstats.schema.public_values import Published, Values

TASKS = ("digits", "banking77", "cifar10")
EPSILONS = (0.3, 1.0, 8.0)

Sums = Callable[[SoftmaxWhitening, NDArray[Any]], tuple[NDArray[Any], float]]
"""From the map and the filter's weights to (G, kappa), G in the published coordinates."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, default=5)


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per data set and epsilon."""
    epsilons, draws = ((1.0,), 2) if options.quick else (EPSILONS, options.draws)
    rows: list[Any] = []
    for task in private_tasks(bundled_only=options.quick):
        if task.name in TASKS:
            rows += [{"data": task.name, **row} for row in compared(task.transformed(), epsilons, draws)]
    yield "accuracy, %, of one course summed in three ways", rows


def compared(split: Split, epsilons: tuple[float, ...], draws: int) -> Rows:
    """Means, and mean differences to real numbers with their standard errors over draws."""
    X, X_test, y, y_test = split
    rows = []
    for epsilon in epsilons:
        recipe = SoftmaxRecipe(int(y.max()) + 1, X.shape[1], len(X), gaussian_mu(epsilon, DELTA))
        scores = np.array(
            [
                [100 * list(play(recipe, X, y, np.random.default_rng(seed), sums=way))[-1].accuracy(X_test, y_test)]
                for way in ways(split, epsilon).values()
                for seed in range(draws)
            ]
        ).reshape(3, draws)
        row: dict[str, Any] = {"epsilon": epsilon, "real numbers": float(scores[0].mean())}
        for name, own in zip(("symmetric", "integers"), scores[1:], strict=True):
            difference = own - scores[0]
            row[f"{name} less real"] = float(difference.mean())
            row[f"se {name}"] = float(difference.std(ddof=1) / math.sqrt(draws))
        rows.append({**row, "draws": draws})
    return rows


def ways(split: Split, epsilon: float) -> Mapping[str, Sums]:
    """The three ways over the training records."""
    X, _, y, _ = split
    schema = course_of(split, epsilon, DELTA, 4).template.schema

    def real(whitening: SoftmaxWhitening, weights: NDArray[Any]) -> tuple[NDArray[Any], float]:
        U = whitening.rows(X)
        G, kappa = gradient(np.hstack([U[:, :-1] @ whitening.vectors, U[:, -1:]]), y, weights)
        return whitening.published(G), kappa

    def symmetric(whitening: SoftmaxWhitening, weights: NDArray[Any]) -> tuple[NDArray[Any], float]:
        return gradient(whitening.rows(X), y, whitening.published(weights))

    def integers(whitening: SoftmaxWhitening, weights: NDArray[Any]) -> tuple[NDArray[Any], float]:
        values = {"M": Values.rounded(whitening.matrix), "W": Values.rounded(whitening.published(weights))}
        found: Any = ps.measure(schema, X, y, published=Published.of(values, b"")).real()
        return found.g, found.k

    return {"real numbers": real, "symmetric": symmetric, "integers": integers}


if __name__ == "__main__":
    command("refinement.exactness", __doc__, tables, options)
