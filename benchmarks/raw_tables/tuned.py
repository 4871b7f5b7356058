"""Raw tables beside peers that are tuned at no charge: AUC and balanced accuracy.

    PRIVSTATS_DIFFPRIVLIB=PYTHON python -m benchmarks.raw_tables.tuned --save --keep

No cell is removed. Ours reads the declared columns, ranges unknown. Every peer is told the true range of each number.
DP-GD and Opacus's DP-SGD get the same columns in rows of norm 1 with a constant, and for each table and epsilon the
recipe with the best AUC on a fifth of the first split's training records, which nobody is charged for. "ours, ranges"
gets those rows, untuned. Balanced accuracy is that of the best threshold on the test records in hindsight, for every
way alike; "own" is that of the probability above the share of positives among the training records, without hindsight.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import balanced_accuracy_score, roc_auc_score, roc_curve

from benchmarks.measuring import RESULTS, Row, Tables, command, standard_error
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.rivals import DIFFPRIVLIB, ebm_scores, logistic_scores
from benchmarks.raw_tables.sets import TABLES, Split, splits
from benchmarks.refinement import gradient
from benchmarks.refinement.peers import tuned
from privstats import heads
from privstats.contrib.sweep.rivals.private_descent import Recipe, linear, noise_multiplier, trained
from privstats.errors import PrivstatsError

EPSILONS = (0.3, 1.0, 3.0, 8.0)
DELTA = 1e-5
TITLE = "tuned peers on raw tables"
CHOSEN = ("titanic", "rotterdam", "credit", "churn", "hdma", "health insurance", "default", "remote work")
_SPLITS = 10

Array: TypeAlias = NDArray[Any]
Way: TypeAlias = Callable[[Known, Sequence[Split], float], list[Array]]
"""From what is known, the splits and an epsilon: probabilities of the test records, per split."""


def ours(known: Known, there: Sequence[Split], epsilon: float) -> list[Array]:
    """The declared columns, whose ranges nobody knows."""
    columns = declared(known).columns
    return [_fitted(split, split.whole, split.whole_test, epsilon, columns=columns) for split in there]


def ours_ranges(known: Known, there: Sequence[Split], epsilon: float) -> list[Array]:
    """The rows of the tuned peers."""
    return [_fitted(split, *_rows(known, split), epsilon) for split in there]


def _fitted(split: Split, X: Any, X_test: Any, epsilon: float, **given: Any) -> Array:
    head = heads.RefinedSoftmax()
    promise: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "adjacency": "add-remove", "ledger": "uncharged"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few, or a count tells little
        try:
            head.fit_private(X, split.y, classes=(0, 1), expected_records=len(split.y), **given, **promise)
        except PrivstatsError:
            return np.full(len(split.y_test), split.y.mean())
        return np.asarray(head.predict_proba(X_test)[:, 1])


def _rows(known: Known, split: Split) -> tuple[Array, Array]:
    return _unit(known.scaled(split.whole)), _unit(known.scaled(split.whole_test))


def _unit(X: Array) -> Array:
    X = np.hstack([X, np.ones((len(X), 1))])
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _best(known: Known, there: Sequence[Split], epsilon: float, schedules: Sequence[gradient.Schedule]) -> Recipe:
    split = there[0]
    return tuned((*_rows(known, split), split.y, split.y_test), epsilon, DELTA, schedules, _ranked)


def _ranked(scores: Array, y: Array) -> float:
    return float(roc_auc_score(y, np.nan_to_num(scores[:, 1] - scores[:, 0])))


def dp_gd(known: Known, there: Sequence[Split], epsilon: float) -> list[Array]:
    """Full-batch DP gradient descent at the best recipe."""
    best, found = _best(known, there, epsilon, gradient.FULL_BATCH), list[Array]()

    def kept(scores: Array, _: Array) -> float:
        found.append(_sure(scores))
        return 0.0

    noise = noise_multiplier(epsilon, DELTA, best.sample, best.steps)
    for split in there:
        rows = (*_rows(known, split), split.y, split.y_test)
        gradient.train(rows, [best], noise, np.random.default_rng(split.seed), score=kept)
    return found[int(best.tail) :: 2]


def opacus(known: Known, there: Sequence[Split], epsilon: float) -> list[Array]:
    """Opacus's DP-SGD of a linear softmax at the best recipe."""
    best, found = _best(known, there, epsilon, gradient.SAMPLED), []
    for split in there:
        X, X_test = _rows(known, split)
        layer = trained(_linear(X.shape[1]), X, split.y, best, epsilon, DELTA, split.seed)
        weight, bias = (each.detach().numpy() for each in layer.parameters())
        found.append(_sure(X_test.astype(np.float32) @ weight.T + bias))
    return found


def _sure(scores: Array) -> Array:
    """The probability of class 1 of a softmax."""
    return np.asarray(expit(np.nan_to_num(scores[:, 1] - scores[:, 0])))


def _linear(features: int) -> Callable[[], Any]:
    return lambda: linear(features, 2)


def ebm(known: Known, there: Sequence[Split], epsilon: float) -> list[Array]:
    """DP-EBM as it comes."""
    return [ebm_scores(known, split, split.whole, split.whole_test, epsilon, DELTA) for split in there]


def diffprivlib(known: Known, there: Sequence[Split], epsilon: float) -> list[Array]:
    """diffprivlib's logistic regression, epsilon-DP; no score where its interpreter is missing."""
    return [expit(each) for each in logistic_scores(known, there, epsilon)] if DIFFPRIVLIB else []


WAYS: Mapping[str, Way] = {
    "ours": ours,
    "ours, ranges": ours_ranges,
    "DP-EBM": ebm,
    "diffprivlib": diffprivlib,
    "DP-GD, tuned": dp_gd,
    "Opacus, tuned": opacus,
}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tables", nargs="+", default=list(CHOSEN))
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--keep", action="store_true", help="go on with the saved cells")
    parser.add_argument("--minutes", type=float, help="begin no further cell after so many")


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per data set, epsilon and way, longer by one row at a time."""
    rows = _saved(options.json) if options.keep and not options.quick else {}
    begun = time.monotonic()
    yield TITLE, list(rows.values())
    for name, epsilon, way in _cells(options):
        if (name, epsilon, way) in rows or time.monotonic() - begun > 60 * (options.minutes or 1e9):
            continue
        known, there = _loaded(name, 2 if options.quick else _SPLITS)
        row = _measured(there, WAYS[way](known, there, epsilon))
        if row:
            rows[name, epsilon, way] = {"data": name, "epsilon": epsilon, "way": way, **row}
            yield TITLE, list(rows.values())


def _cells(options: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    names, epsilons = (["cancer"], (1.0,)) if options.quick else (options.tables, EPSILONS)
    ways = ("ours", "DP-GD, tuned") if options.quick else options.ways
    return ((name, epsilon, way) for name in names for epsilon in epsilons for way in ways)


@cache
def _loaded(name: str, many: int) -> tuple[Known, list[Split]]:
    columns, y = next(table for table in TABLES if table.name == name).load()
    return Known.of(columns), list(splits(columns, y, range(many)))


def _measured(there: Sequence[Split], scores: Sequence[Array]) -> Row:
    if not scores:
        return {}
    pairs = list(zip(there, scores, strict=True))
    aucs = [100 * float(roc_auc_score(split.y_test, each)) for split, each in pairs]
    even = [100 * balanced(split.y_test, each) for split, each in pairs]
    own = [100 * balanced_accuracy_score(split.y_test, each > split.y.mean()) for split, each in pairs]
    found = {"AUC": aucs, "balanced": even, "own": own}
    means = {name: float(np.mean(each)) for name, each in found.items()}
    return {**means, **{f"{name} se": standard_error(each) for name, each in found.items()}, "splits": len(aucs)}


def balanced(y: Array, scores: Array) -> float:
    """Balanced accuracy of the best threshold."""
    wrong, right, _ = roc_curve(y, scores)
    return float((right + 1 - wrong).max() / 2)


def _saved(path: Path | None) -> dict[tuple[str, float, str], Row]:
    path = path or RESULTS / "raw_tables.tuned.json"
    rows = json.loads(path.read_text()).get(TITLE, []) if path.exists() else []
    return {(row["data"], row["epsilon"], row["way"]): row for row in rows}


if __name__ == "__main__":
    command("raw_tables.tuned", __doc__, tables, options)
