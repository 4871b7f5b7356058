"""A linear softmax layer, and the SGD steps on it that a party of FedAvg, FedProx or an ensemble computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Weights: TypeAlias = NDArray[np.float32]
"""``(d + 1, C)``; the last row is the bias."""
Part: TypeAlias = tuple[NDArray[np.float32], NDArray[np.intp]]
"""Rows with a one appended, ``(n, d + 1)``, and class places, ``(n,)``."""
BATCH = 32
"""Records of a local step, sampled with replacement."""


def zero_weights(features: int, classes: int) -> Weights:
    """Return weights of zero, ``(d + 1, C)``. The loss is convex, so a start only costs steps."""
    return np.zeros((features + 1, classes), np.float32)


def with_bias(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows with a one appended."""
    return np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)


def scores(W: Weights, X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return logits ``(n, C)`` of rows without a bias."""
    return np.asarray(X @ W[:-1] + W[-1])


def gradient(W: Weights, rows: NDArray[np.float32], labels: NDArray[np.intp]) -> Weights:
    """Return the mean gradient of the cross entropy at rows with a bias."""
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
    """Return the weights after ``count`` steps of SGD on one party's records.

    Args:
        W: the start; not changed.
        part: the party's records.
        rate: learning rate.
        count: number of steps.
        rng: samples the batches of ``BATCH`` records, with replacement.
        pull: FedProx's mu, which adds ``mu (W - W_0)`` to every gradient.
        drift: added to every gradient, as SCAFFOLD's ``c - c_k``.

    Example:
        >>> from privstats.contrib.sweep.rivals.softmax_layer import steps, with_bias, zero_weights
        >>> part = with_bias(np.eye(2, dtype=np.float32)), np.array([0, 1])
        >>> W = steps(zero_weights(2, 2), part, rate=1.0, count=5, rng=np.random.default_rng(0))
        >>> bool(W[0, 0] > W[0, 1])  # the first column indicates the first class
        True
    """
    rows, labels = part
    start, W, size = W, W.copy(), np.float32(rate)
    for batch in rng.integers(0, len(labels), (count, BATCH)):
        G = gradient(W, rows[batch], labels[batch])
        if pull:
            G += np.float32(pull) * (W - start)
        if drift is not None:
            G += drift
        W -= size * G
    return W


@dataclass(frozen=True)
class SoftmaxModels:
    """A classifier of the weighted mean of softmax layers' probabilities; one layer is a usual softmax.

    Attributes:
        layers: weights of each layer.
        shares: of each layer in the mean; their sum is 1.

    Example:
        >>> from privstats.contrib.sweep.rivals.softmax_layer import SoftmaxModels, zero_weights
        >>> SoftmaxModels((zero_weights(2, 4),), (1.0,)).predict_proba(np.ones((1, 2), np.float32)).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    layers: Sequence[Weights]
    shares: Sequence[float]

    @property
    def classes_(self) -> NDArray[np.intp]:
        """Class places, ``(C,)``."""
        return np.arange(self.layers[0].shape[1])

    def predict_proba(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return probabilities, ``(n, C)``."""
        logits = (scores(W, X).astype(np.float64) for W in self.layers)
        return np.asarray(sum(share * softmax(each, axis=1) for share, each in zip(self.shares, logits, strict=True)))

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return the most probable class places, ``(n,)``."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))
