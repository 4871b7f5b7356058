"""SAFLe's closed-form head from exact sums, and under noise, beside ridge and LDA on the features themselves.

    python -m benchmarks.heads.sparse_groups --save

Features are projected to at most 64 by a public map, and their ranges are stated as -4 to 4 standard deviations of a
row of norm 1 (the pixels' own for digits). At most 10,000 records train. The indicators are those of
``contrib.heads.sparse_groups``. Under noise one record is protected (central, add-remove, delta 1e-5); three draws.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command, standard_error
from privstats.contrib.heads.sparse_groups import SparseGroups
from privstats.heads import LDA, RidgeClassifier
from privstats.randomness import seeded
from privstats.transforms import GaussianProjection, apply

__all__ = ["TITLE", "row_of"]

TITLE = "accuracy in % of heads from sums: "
_SETS, _EPSILONS, _DRAWS, _FEATURES = ("digits", "cifar10", "agnews"), (None, 8.0, 1.0), 3, 64
_LEVELS, _GROUP, _RECORDS = 4, 4, 10_000


def row_of(name: str, split: Split, epsilon: float | None, *, raw: bool) -> Row:
    """Return the accuracies of one set at one epsilon, or without noise."""
    X, T, y, truth = split
    d, classes = X.shape[1], int(y.max()) + 1
    ends = (np.zeros(d), np.full(d, 16.0)) if raw else (np.full(d, -4 / math.sqrt(d)), np.full(d, 4 / math.sqrt(d)))
    groups = SparseGroups(0, tuple(ends[0]), tuple(ends[1]), _LEVELS, _GROUP)
    plain = ps.ClassSchema(classes, d, "NAB", clip_norm=float(np.linalg.norm(X, axis=1).max()) if raw else 1.0)
    ways: dict[str, tuple[Any, ps.ClassSchema, Any, Any]] = {
        "LDA": (LDA(), plain, X, T),
        "ridge": (RidgeClassifier(), plain, X, T),
        "sparse groups": (RidgeClassifier(), groups.schema(classes), groups.apply(X), groups.apply(T).toarray()),
    }
    row: dict[str, Any] = {"data": name, "epsilon": epsilon, "indicators": groups.width}
    for way, (head, schema, rows, test) in ways.items():
        scores = []
        for draw in range(1 if epsilon is None else _DRAWS):
            release = _release(schema, rows, y, epsilon, draw)
            scores.append(100 * head.fit_release(release).score(test, truth))
        row |= {way: float(np.mean(scores)), f"{way} se": standard_error(scores) if len(scores) > 1 else None}
    return row


def _release(schema: ps.ClassSchema, X: Any, y: Any, epsilon: float | None, draw: int) -> ps.Release:
    if epsilon is None:
        return ps.Release.exact(schema, ps.measure(schema, X, y))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
    return ps.private_release(
        schema, privacy, X, y, ledger="uncharged", rng=seeded(draw), allow_reproducible=True, max_records=1 << 16
    )


def _splits(*, quick: bool) -> Iterator[tuple[str, Split, bool]]:
    for task in (*private_tasks(bundled_only=quick), *([] if quick else agnews())):
        if task.name == "digits":
            yield "digits", task.load(), True
        elif task.name in _SETS:
            X, T, y, truth = task.transformed()
            project = (GaussianProjection(seed=0, inputs=X.shape[1], features=_FEATURES), ps.transforms.UnitNorm())
            some = slice(0, _RECORDS)
            yield task.name, (apply(project, X[some]), apply(project, T[some]), y[some], truth[some]), False


def tables(options: argparse.Namespace) -> Tables:
    """Yield one table per set."""
    epsilons = _EPSILONS[:2] if options.quick else _EPSILONS
    for name, split, raw in _splits(quick=options.quick):
        yield TITLE + name, [row_of(name, split, epsilon, raw=raw) for epsilon in epsilons]


if __name__ == "__main__":
    command("heads.sparse_groups", __doc__, tables)
