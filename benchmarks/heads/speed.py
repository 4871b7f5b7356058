"""Seconds of fitting and predicting, as ratios to a floor or a peer measured in the same run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import privstats as ps
from benchmarks.measuring import Row, Rows, least_seconds
from privstats import heads
from privstats.randomness import seeded


@dataclass(frozen=True)
class Size:
    """Numbers of rows fitted and predicted, and of repetitions."""

    classes: int
    features: int
    per_class: int
    repeats: int


FULL, QUICK = Size(100, 512, 600, 5), Size(3, 8, 60, 1)


def speed(size: Size) -> Rows:
    """Rows: what, seconds, floor or peer, ratio, and the bar where there is one."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(size.classes), size.per_class)
    X = rng.standard_normal((size.classes, size.features))[y] + rng.standard_normal((len(y), size.features))
    return [*_fit_rows(X, y, size), *_predict_rows(X, y, rng, size.repeats)]


def _fit_rows(X: Any, y: Any, size: Size) -> list[Row]:
    release = _central_release(X, y, size)
    pooled: Any = release.moments.B
    tasks = {
        "one eigendecomposition": lambda: np.linalg.eigh(pooled),
        "LDA fit from a release": lambda: heads.LDA().fit_release(release),
        "NaiveBayes fit from a release": lambda: heads.NaiveBayes().fit_release(release),
        "RidgeClassifier fit from a release": lambda: heads.RidgeClassifier().fit_release(release),
    }
    seconds = least_seconds(tasks, size.repeats)
    floor, *ours = tasks
    return [_row(name, seconds[name], floor, seconds[floor], "< 3" if "LDA" in name else "") for name in ours]


def _predict_rows(X: Any, y: Any, rng: Any, repeats: int) -> list[Row]:
    lda, qda, rda, low = (
        heads.LDA().fit(X, y),
        heads.QDA().fit(X, y),
        heads.RDA().fit(X, y),
        heads.LowRankQDA().fit(X, y),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer_lda, peer_qda = LinearDiscriminantAnalysis().fit(X, y), QuadraticDiscriminantAnalysis().fit(X, y)
    many, rows = X[rng.permutation(len(X))[:10_000]], X[rng.permutation(len(X))[:2000]]
    weights = np.ascontiguousarray(lda.coef_.T)
    linear = least_seconds(
        {
            "one matrix product": lambda: many @ weights,
            "LDA predict": lambda: lda.predict(many),
            "scikit-learn LDA predict": lambda: peer_lda.predict(many),
        },
        2 * repeats,
    )
    quadratic = least_seconds(
        {
            "scikit-learn QDA predict": lambda: peer_qda.predict(rows),
            "QDA predict": lambda: qda.predict(rows),
            "QDA scores of all classes": lambda: qda.decision_function(rows),
            "RDA predict": lambda: rda.predict(rows),
            "LowRankQDA predict": lambda: low.predict(rows),
        },
        min(3, repeats),
    )
    table = [
        _row(name, linear[name], "one matrix product", linear["one matrix product"], bar)
        for name, bar in (("LDA predict", "< 1.5"), ("scikit-learn LDA predict", ""))
    ]
    peer = "scikit-learn QDA predict"
    return table + [
        _row(name, quadratic[name], peer, quadratic[peer], "< 0.2" if name == "QDA predict" else "")
        for name in quadratic
        if name != peer
    ]


def _row(name: str, seconds: float, floor: str, floor_seconds: float, bar: str) -> Row:
    return {
        "what": name,
        "seconds": seconds,
        "beside": floor,
        "its seconds": floor_seconds,
        "ratio": seconds / floor_seconds,
        "bar": bar,
    }


def _central_release(X: Any, y: Any, size: Size) -> ps.Release:
    plan = ps.Plan(
        schema=ps.ClassSchema(size.classes, size.features, "NAB", clip_norm=40.0),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=len(X)),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5),
    )
    return ps.session.aggregate_unmasked(plan, [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)], seeded(0))
