"""Rounds of a torch module beside those of a linear softmax: what a hidden layer is worth, and what it costs.

    pip install tests/brought/hidden
    python -m benchmarks.refinement.module_rounds --save

Whole courses of the library at one promise: its integers, its noise, Opacus's gradients of single records. Central,
record level, add-remove, delta 1e-5, rows of norm 1, at most the first 2,500 training records of a set. ``products`` is
made for a hidden layer: three numbers, and a class that is the sign of the product of two. Without a promise: the heads
of the records themselves, after as many rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command, standard_error
from benchmarks.refinement.library import CENTRAL, course_of, played
from privstats import heads

TITLE = "accuracy under differential privacy with a hidden layer, %: "
DELTA, EPSILONS, ROUNDS = 1e-5, (1.0, 8.0), 12
TASKS = ("digits", "cifar10", "agnews")
MODELS: Mapping[str, Mapping[str, Any]] = {
    "linear": {},
    "adapter/32": {"module": "adapter/32"},
    "mlp/32": {"module": "mlp/32"},
}
_MOST = 2_500


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set, a row per epsilon; the last without noise."""
    every = (*private_tasks(bundled_only=options.quick), *([] if options.quick else agnews()))
    splits = {task.name: task.transformed() for task in every if task.name in TASKS}
    epsilons, rounds, draws = (EPSILONS[-1:], 2, 2) if options.quick else (EPSILONS, ROUNDS, 2)
    for name, (X, X_test, y, y_test) in {"products": products(), **splits}.items():
        split = (X[:_MOST], X_test, y[:_MOST], y_test)
        rows: list[Row] = [{"epsilon": e, **_row(split, e, rounds, draws)} for e in epsilons]
        yield TITLE + name, [*rows, {"epsilon": None, **_exact(split, rounds)}]


def products() -> Split:
    """Records whose class no linear scores can tell."""
    X = np.random.default_rng(0).normal(size=(6_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return X[:4_000], X[4_000:], y[:4_000], y[4_000:]


def _row(split: Split, epsilon: float, rounds: int, draws: int) -> Row:
    """Mean accuracy and its standard error, of the same noise seeds for every model."""
    X, X_test, y, y_test = split
    row: dict[str, object] = {}
    for name, more in MODELS.items():
        course = course_of(split, epsilon, DELTA, rounds, **more)
        fitted = [heads.RefinedSoftmax().fit_releases(played(course, X, y, CENTRAL, seed)) for seed in range(draws)]
        scores = [100 * head.score(X_test, y_test) for head in fitted]
        row |= {name: float(np.mean(scores)), f"se {name}": standard_error(scores)}
    return row


def _exact(split: Split, rounds: int) -> Row:
    X, X_test, y, y_test = split
    return {
        name: 100 * heads.RefinedSoftmax(rounds=rounds, **more).fit(X, y).score(X_test, y_test)
        for name, more in MODELS.items()
    }


if __name__ == "__main__":
    command("refinement.module_rounds", __doc__, tables)
