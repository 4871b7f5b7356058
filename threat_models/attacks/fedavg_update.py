"""Compute one FedAvg update: the first full-batch step of a linear softmax from zero is a function of N and A.

GH-OFL's appendix B claims that moments leak no more than FedAvg, by every measure that obeys data processing.
This update is computed from the moments N and A, so by data processing it leaks no more than they do; B comes on top.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

Array = NDArray[np.float64]


class Update(NamedTuple):
    """A client's message: new weights ``(C, d)`` and biases ``(C,)`` of a linear softmax."""

    weights: Array
    bias: Array


def first_step(X: Array, y: NDArray[np.integer], classes: int, rate: float = 1.0) -> Update:
    """One full-batch step of gradient descent on the mean cross-entropy, from zero (McMahan et al. 2017, FedSGD).

    Args:
        X: records, ``(n, d)``.
        y: classes 0 to C - 1, ``(n,)``.
        classes: C.
        rate: of learning.
    """
    weights, bias = np.zeros((classes, X.shape[1])), np.zeros(classes)
    scores = X @ weights.T + bias
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    off = likely / likely.sum(axis=1, keepdims=True) - np.eye(classes)[y]
    return Update(weights - rate * off.T @ X / len(X), bias - rate * off.mean(axis=0))


def step_of_sums(N: Array, A: Array, rate: float = 1.0) -> Update:
    """Compute the update from counts ``(C,)`` and sums ``(C, d)`` alone: every softmax at zero is 1 / C."""
    n, classes = float(N.sum()), len(N)
    return Update(rate * (A - A.sum(axis=0) / classes) / n, rate * (N / n - 1 / classes))


def sums_of(update: Update, records: int, rate: float = 1.0) -> tuple[Array, Array]:
    """N ``(C,)`` and A ``(C, d)`` of a client with an absent class, from its message; its row of A is 0.

    Raises:
        DataError: every class is there: the message holds the sums only up to one vector that all share.
    """
    N = np.rint(records * (update.bias / rate + 1 / len(update.bias)))
    if N.min() > 0:
        raise DataError("the client has records of every class, so its update gives the sums up to a common vector")
    return N, records * (update.weights - update.weights[int(N.argmin())]) / rate
