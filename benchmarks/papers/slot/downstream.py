"""The three methods that SLOT-Align is put in front of, each from clients' rows to labels of test rows.

O-FedAvg averages local softmax layers once (McMahan et al. 2017, one round; 200 steps of L-BFGS). FedCGS is LDA with
the total covariance of the summed moments (AAAI 2025), through the library. FedPFT trains on draws from every client's
class Gaussians (Beitollahi et al. 2024, one diagonal component).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import privstats as ps
from benchmarks.alignment.methods import CLASSES
from privstats import heads

__all__ = ["DOWNSTREAM", "Array", "Predict", "Shards", "Train"]

Array: TypeAlias = NDArray[np.float64]
Shards: TypeAlias = Sequence[tuple[Array, NDArray[np.intp]]]
Predict: TypeAlias = Callable[[Array], NDArray[Any]]
Train: TypeAlias = Callable[[Shards, np.random.Generator], Predict]

_STEPS = 200  # of L-BFGS
_FLOOR = 1e-6  # variance of a class with one record


def o_fedavg(shards: Shards, rng: np.random.Generator) -> Predict:
    """Local softmax layers, averaged once by their records; a class that a client never saw keeps zero weights."""
    del rng
    d, total = shards[0][0].shape[1], sum(len(y) for _, y in shards)
    W, b = np.zeros((CLASSES, d)), np.zeros(CLASSES)
    for X, y in shards:
        coefficients, intercepts, classes = _softmax(X, y)
        W[classes] += coefficients * (len(y) / total)
        b[classes] += intercepts * (len(y) / total)
    return lambda rows: (rows @ W.T + b).argmax(axis=1)


def fedcgs(shards: Shards, rng: np.random.Generator) -> Predict:
    """N, A and B of all clients, summed as integers, and the head that the paper computes from them."""
    del rng
    longest = max(float(np.linalg.norm(X, axis=1).max()) for X, _ in shards)
    schema = ps.ClassSchema(CLASSES, shards[0][0].shape[1], "NAB", clip_norm=1.01 * longest, grid_bits=16)
    cohort = ps.Cohort(len(shards), len(shards), sum(len(y) for _, y in shards))
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
    release = ps.session.aggregate_unmasked(plan, [ps.measure(schema, X, y) for X, y in shards])
    return heads.LDA(covariance="total").fit_release(release).predict


def fedpft(shards: Shards, rng: np.random.Generator) -> Predict:
    """As many draws from every client's Gaussian of every class as it has records, and one softmax layer on them."""
    drawn, labels = [], []
    for X, y in shards:
        for label in np.unique(y):
            rows = X[y == label]
            spread = np.sqrt(rows.var(axis=0) + _FLOOR)
            drawn.append(rows.mean(axis=0) + spread * rng.standard_normal(rows.shape))
            labels.append(np.full(len(rows), label))
    W, b, classes = _softmax(np.concatenate(drawn), np.concatenate(labels))
    return lambda rows: classes[(rows @ W.T + b).argmax(axis=1)]


DOWNSTREAM: Mapping[str, Train] = {
    "O-FedAvg": o_fedavg,
    "FedCGS": fedcgs,
    "FedPFT": fedpft,
}


def _softmax(X: Array, y: NDArray[np.intp]) -> tuple[Array, Array, NDArray[np.intp]]:
    """Weights ``(c, d)``, intercepts and names of the classes that are there; one alone has weights of zero."""
    classes = np.unique(y)
    if len(classes) == 1:
        return np.zeros((1, X.shape[1])), np.zeros(1), classes
    model = LogisticRegression(C=1.0, max_iter=_STEPS).fit(X, y)
    W, b = model.coef_, model.intercept_
    if len(classes) == 2:  # scikit-learn keeps the second class's half alone
        W, b = np.vstack([-W, W]) / 2, np.concatenate([-b, b]) / 2
    return W, b, classes
