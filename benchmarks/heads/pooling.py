"""Measure how far RDA should pull classes together where classes are many and records few: its own choice and fixed
weights.

    python -m benchmarks.heads.pooling --save

Without noise, on sentence features of BANKING77. No test rows: heads fit some training records of every class and are
scored on others, at most 40 of each class.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import private_tasks
from benchmarks.measuring import Row, Tables, command
from privstats import heads

PER_CLASS = (100, 50, 25, 10)
WEIGHTS = (0.8, 0.9, 0.95, 1.0)
TASKS = ("banking77", "banking77 whole")
_MOST_HELD, _FITTED = 40, 0.75


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--per-class", nargs="+", type=int, default=list(PER_CLASS))


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row longer each time."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    names, counts = (("digits",), (25,)) if options.quick else (options.tasks, options.per_class)
    rows: list[Row] = []
    for task in private_tasks(bundled_only=options.quick):
        if task.name in names:
            X, _, y, _ = task.transformed()
            for count in counts:
                rows.append({"data": task.name, "per class": count, **pooled(X, y, count)})
                yield "accuracy of RDA by pooled weight, %", rows


def pooled(X: NDArray[Any], y: NDArray[np.intp], count: int) -> Row:
    """Accuracy by pooled weight, with at most ``count`` records per class and at most three quarters of a class."""
    fit, held = _divided(y, count)
    row: dict[str, Any] = {}
    for weight in ("auto", *WEIGHTS):
        head = heads.RDA(pooled_weight=weight).fit(X[fit], y[fit])
        row[f"{weight}"] = 100 * float(head.score(X[held], y[held]))
        if weight == "auto":
            row["chosen"] = head.pooled_weight_
    return row


def _divided(y: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order, fit, held = np.random.default_rng(0).permutation(len(y)), [], []
    for label in range(int(y.max()) + 1):
        mine = order[y[order] == label]
        cut = min(count, int(len(mine) * _FITTED))
        fit.append(mine[:cut])
        held.append(mine[cut : cut + _MOST_HELD])
    return np.concatenate(fit), np.concatenate(held)


if __name__ == "__main__":
    command("heads.pooling", __doc__, tables, options)
