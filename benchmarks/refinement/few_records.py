"""The refined softmax without noise, where records are few, beside the heads that know more from few.

    python -m benchmarks.refinement.few_records --save

Heads fit training records drawn at random, every class at least once; scored on the first 2,500 test rows. Logistic
regression has the best of three penalties on these very rows.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command
from privstats import heads
from privstats.estimates.recipes import SoftmaxRecipe

RECORDS = (100, 300, 1_000, 5_000)
TASKS = ("digits", "banking77", "cifar10", "fmnist", "agnews")
WITHOUT_RIDGE = "without its ridge"
HEADS: Mapping[str, Callable[[], Any]] = {
    "refined softmax": heads.RefinedSoftmax,
    WITHOUT_RIDGE: heads.RefinedSoftmax,
    "LDA": heads.LDA,
    "RDA": heads.RDA,
}
_PENALTIES, _MOST_TESTED = (1.0, 10.0, 100.0), 2_500
TITLE = "accuracy from few records, without noise, %"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, default=10)


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row longer each time."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    warnings.filterwarnings("ignore", "The number of unique classes")  # 77 classes in 100 records
    counts, draws = ((100,), 1) if options.quick else (RECORDS, options.draws)
    rows: list[Row] = []
    for task in (*private_tasks(bundled_only=options.quick), *agnews()):
        if task.name in TASKS:
            split = task.transformed()
            for count in (count for count in counts if count < len(split[0])):
                rows.append(
                    {"data": task.name, "features": split[0].shape[1], "records": count, **means(split, count, draws)}
                )
                yield TITLE, rows


def means(split: Split, count: int, draws: int) -> Row:
    """Mean accuracy by model, and its standard error."""
    found: dict[str, list[float]] = {}
    for seed in range(draws):
        for name, accuracy in scores(split, chosen(split[2], count, seed)).items():
            found.setdefault(name, []).append(accuracy)
    spread = {
        name: float(np.std(each, ddof=1)) / math.sqrt(draws) if draws > 1 else 0.0 for name, each in found.items()
    }
    return {name: float(np.mean(each)) for name, each in found.items()} | {f"se {n}": s for n, s in spread.items()}


def scores(split: Split, rows: NDArray[np.intp]) -> dict[str, float]:
    """Accuracies in percent of models that fit these rows."""
    X, X_test, y, y_test = split[0][rows], split[1][:_MOST_TESTED], split[2][rows], split[3][:_MOST_TESTED]
    made = {name: 100 * float(fitted(name, X, y).score(X_test, y_test)) for name in HEADS}
    peers = (LogisticRegression(C=penalty, max_iter=300).fit(X, y).score(X_test, y_test) for penalty in _PENALTIES)
    return {**made, "logistic regression": 100 * float(max(peers))}


def fitted(name: str, X: NDArray[np.float64], y: NDArray[np.intp]) -> Any:
    """A head of these rows."""
    if name != WITHOUT_RIDGE:
        return HEADS[name]().fit(X, y)
    with patch.object(SoftmaxRecipe, "ridge", 0.0):
        return HEADS[name]().fit(X, y)


def chosen(y: NDArray[np.intp], count: int, seed: int) -> NDArray[np.intp]:
    """``count`` rows at random, the first of each class among them."""
    order = np.random.default_rng(seed).permutation(len(y))
    first = np.array([order[y[order] == c][0] for c in range(int(y.max()) + 1)])
    return np.concatenate([first, order[~np.isin(order, first)][: count - len(first)]])


if __name__ == "__main__":
    command("refinement.few_records", __doc__, tables, options)
