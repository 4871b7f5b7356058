"""The clip of residuals where the public rule of tables does not decide it: a fit on exact rows, and embeddings.

    python -m benchmarks.refinement.clips --save
    python -m benchmarks.refinement.clips --save --keep  # measure only rows that have fewer splits or draws

Without noise: ``RefinedSoftmax.fit`` on rows of ``Cells`` with given cuts and on embeddings, beside scikit-learn's
logistic regression on the same rows. Under noise: four rounds on embeddings, central model, record level, add-remove,
delta 1e-5, the library's noise. Scores are on records held out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Row, Tables, command, results, standard_error
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.sets import TABLES, splits
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA
from privstats import heads
from privstats.estimates import recipes

CLIPS = (0.3, 0.5, 0.7, 1.0)
RAW = ("biopsy", "titanic", "rotterdam", "churn", "monica", "default", "mortgages", "lending")
EMBEDDED = ("digits", "banking77", "cifar10")
EXACT, NOISY = "a fit on exact rows", "embeddings under noise"
_PAIR = 2
_LEAST = 1e-6  # a probability, where a class has 0


def options(parser: argparse.ArgumentParser) -> None:
    """How much."""
    parser.add_argument("--splits", type=int, default=8, help="splits of a table")
    parser.add_argument("--draws", type=int, default=8, help="of an embedding's noise")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--parts", nargs="+", default=["tables", "embeddings", "noise"])
    parser.add_argument("--keep", action="store_true", help="keep saved rows that have enough splits or draws")


def tables(options: argparse.Namespace) -> Tables:
    """A row per data set without noise, and a row per data set and epsilon with it."""
    saved = results("refinement.clips") if options.keep else {}
    exact, noisy = ({_key(row): row for row in saved.get(title, ())} for title in (EXACT, NOISY))
    yield from ((title, list(rows.values())) for title, rows in ((EXACT, exact), (NOISY, noisy)) if rows)
    count = 2 if options.quick else options.splits
    if "tables" in options.parts:
        for name in ("cancer",) if options.quick else RAW:
            if exact.get((name, None), {}).get("splits", 0) < count:
                exact[name, None] = _exact(name, "cells", list(_rows_of(name, count)))
                yield EXACT, list(exact.values())
    embedded = [] if options.quick and "noise" not in options.parts else _embeddings(options.quick)
    for name, split in embedded if "embeddings" in options.parts else ():
        if (name, None) not in exact:
            exact[name, None] = _exact(name, "embedding", [split])
            yield EXACT, list(exact.values())
    draws = 1 if options.quick else options.draws
    for epsilon in (1.0,) if options.quick else options.epsilons:
        for name, split in embedded if "noise" in options.parts else ():
            if noisy.get((name, epsilon), {}).get("draws", 0) < draws:
                noisy[name, epsilon] = _noisy(name, split, epsilon, draws)
                yield NOISY, list(noisy.values())


def _key(row: Row) -> tuple[str, float | None]:
    """Data set, and the epsilon of a row under noise."""
    return row["data"], row.get("epsilon")


def _rows_of(name: str, count: int) -> Iterator[Split]:
    """Splits of a table as rows of its cells, a tenth of them missing."""
    columns, y = next(table for table in TABLES if table.name == name).load()
    known = Known.of(columns)
    cells = declared(known, known.edges)
    for split in splits(columns, y, range(count)):
        rows, tested = (cells.apply(cells.codes(frame)) for frame in (split.gaps, split.gaps_test))
        yield rows, tested, split.y, split.y_test


def _embeddings(quick: bool) -> list[tuple[str, Split]]:
    wanted = EMBEDDED[:1] if quick else EMBEDDED
    return [(task.name, task.transformed()) for task in private_tasks(bundled_only=quick) if task.name in wanted]


def _exact(name: str, kind: str, several: Sequence[Split]) -> Row:
    ways: Mapping[str, Callable[[Split], NDArray[np.float64]]] = {
        **{f"clip {clip:g}": partial(_clipped, clip) for clip in CLIPS},
        "logistic regression": _logistic,
    }
    row: dict[str, Any] = {"data": name, "rows": kind, "classes": int(several[0][2].max()) + 1, "splits": len(several)}
    for way, fitted in ways.items():
        row |= _summary(way, np.array([_scored(fitted(split), split[3]) for split in several]))
    return row


def _clipped(clip: float, split: Split) -> NDArray[np.float64]:
    X, T, y, _ = split
    with mock.patch.object(recipes, "EXACT_CLIP", clip), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few
        return np.asarray(heads.RefinedSoftmax().fit(X, y).predict_proba(T))


def _logistic(split: Split) -> NDArray[np.float64]:
    X, T, y, _ = split
    return np.asarray(LogisticRegression(C=30, max_iter=500).fit(X, y).predict_proba(T))


def _noisy(name: str, split: Split, epsilon: float, draws: int) -> Row:
    X, T, y, t = split
    records, course = Records(X, y, CENTRAL.clients), course_of(split, epsilon, DELTA, 4)
    row: dict[str, Any] = {"data": name, "epsilon": epsilon, "classes": int(y.max()) + 1, "draws": draws}
    for clip in CLIPS:
        found = []
        for seed in range(draws):
            releases = played(replace(course, clip=clip), X, y, CENTRAL, seed, records)
            found.append(_scored(heads.RefinedSoftmax().fit_releases(releases).predict_proba(T), t))
        row |= _summary(f"clip {clip:g}", np.array(found))
    return row


def _scored(shares: NDArray[np.float64], y: NDArray[np.intp]) -> tuple[float, float]:
    """AUC of two classes, accuracy of more; and the log loss."""
    clipped = np.clip(shares, _LEAST, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    loss = float(log_loss(y, clipped, labels=range(shares.shape[1])))
    if shares.shape[1] == _PAIR:
        return float(roc_auc_score(y, shares[:, 1])), loss
    return float(np.mean(shares.argmax(axis=1) == y)), loss


def _summary(way: str, found: NDArray[np.float64]) -> Row:
    spread = standard_error(found[:, 0].tolist()) if len(found) > 1 else None
    return {way: float(found[:, 0].mean()), f"{way}, se": spread, f"{way}, loss": float(found[:, 1].mean())}


if __name__ == "__main__":
    command("refinement.clips", __doc__, tables, options)
