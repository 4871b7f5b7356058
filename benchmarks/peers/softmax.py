"""A linear softmax layer and stochastic gradient steps on it, as the parties of iterative peers take them.

No federation and no message; ``flower`` and ``scaffold`` call it per party, ``fedpft`` and ``ccvr`` on what they drew.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.interface import Part

__all__ = ["BATCH", "Weights", "blank", "scores", "steps", "trained", "with_bias"]

BATCH = 32

Weights: TypeAlias = NDArray[np.float32]
"""``(d + 1, C)``; the last row is the bias."""


def blank(features: int, classes: int) -> Weights:
    """All zeros: the loss is convex, so that where one starts only costs steps."""
    return np.zeros((features + 1, classes), np.float32)


def with_bias(X: NDArray[Any]) -> NDArray[np.float32]:
    """Rows with a one behind them."""
    return np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)


def scores(W: Weights, X: NDArray[Any]) -> NDArray[np.float32]:
    """Logits ``(n, C)`` of rows without a bias."""
    return np.asarray(X @ W[:-1] + W[-1])


def gradient(W: Weights, rows: NDArray[np.float32], labels: NDArray[np.intp]) -> Weights:
    """Mean gradient of the cross entropy at rows with a bias."""
    p = rows @ W
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return np.asarray(rows.T @ p / np.float32(len(labels)))


def steps(
    W: Weights,
    part: Part,
    rate: float,
    count: int,
    rng: np.random.Generator,
    *,
    pull: float = 0.0,
    drift: Weights | None = None,
) -> Weights:
    """The weights after ``count`` steps of SGD on batches drawn from one party's records, with replacement.

    Args:
        W: where to start; not changed.
        part: rows with a bias, and labels.
        rate: of learning.
        count: steps.
        rng: of the batches.
        pull: mu of FedProx, which adds ``mu (W - W_0)`` to every gradient.
        drift: added to every gradient; SCAFFOLD's ``c - c_k``.
    """
    rows, labels = part
    start, W, rate = W, W.copy(), np.float32(rate)  # type: ignore[assignment]
    for batch in rng.integers(0, len(labels), (count, BATCH)):
        G = gradient(W, rows[batch], labels[batch])
        if pull:
            G += np.float32(pull) * (W - start)
        if drift is not None:
            G += drift
        W -= rate * G
    return W


def trained(
    part: Part,
    classes: int,
    rate: float,
    rng: np.random.Generator,
    *,
    count: int = 2_000,
    start: Weights | None = None,
) -> Weights:
    """A layer trained in one place: SGD on larger batches with a rate that falls to nothing (cosine).

    Args:
        part: rows without a bias, and labels.
        classes: C.
        rate: of the first step.
        rng: of the batches.
        count: steps.
        start: the first weights; zeros where omitted.
    """
    rows, labels = with_bias(part[0]), part[1]
    W = blank(rows.shape[1] - 1, classes) if start is None else start.copy()
    for step in range(count):
        batch = rng.integers(0, len(labels), 4 * BATCH)
        now = rate * (1 + math.cos(math.pi * step / count)) / 2
        W -= np.float32(now) * gradient(W, rows[batch], labels[batch])
    return W
