"""Estimates from one client's own records after a release, outside every promise; they must not leave the client."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from privstats.extend.support import Array

PULLS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, math.inf)
"""Candidates for the pull back to the release, the weakest first; infinity leaves the release as it is."""

_FOLDS = 5
_MAX_ITERATIONS, _ENOUGH = 100, 1e-7  # the loss, in nats a record, then moves by less than a prediction can show


def label_shares(index: NDArray[np.intp], classes: int) -> Array:
    """Return Laplace's estimate of the label probabilities, ``(n_c + 1) / (n + C)``, shape ``(C,)``."""
    return (np.bincount(index, minlength=classes) + 1.0) / (len(index) + classes)


def offset(residuals: Array, pull: float) -> Array:
    """Return the client's shift that the labels do not explain, ``sum(x - m_y) / (n + lambda)``, ``lambda = pull n``.

    Args:
        residuals: rows less the class mean of their label, ``(n, d)``.
        pull: toward no shift; 1 halves it.
    """
    shift: Array = residuals.mean(axis=0) / (1.0 + pull)
    return shift


@dataclass(frozen=True)
class Adapter:
    """The linear map toward the class means, for every pull at once.

    ``P = (Z'Z + l I)^-1 (Z'T + l I)`` (FedCGS eq. 12 without its task loss) is ``I + V diag(s / (s^2 + l)) U' (T - Z)``
    for ``Z = U diag(s) V'``.

    Attributes:
        centre: fixed point of the map, ``(d,)``.
        inward, values: V, ``(d, r)``, and s, ``(r,)``.
        outward: U' (T - Z), ``(r, d)``.
    """

    centre: Array
    inward: Array
    values: Array
    outward: Array

    @classmethod
    def of(cls, rows: Array, targets: Array, centre: Array) -> Adapter:
        """Compute the adapter from rows and their class means, both ``(n, d)``."""
        centred = rows - centre
        left, values, right = np.linalg.svd(centred, full_matrices=False)
        return cls(centre, right.T, values, left.T @ (targets - rows))

    def moved(self, rows: Array, pull: float) -> Array:
        """Return ``centre + (rows - centre) P`` at one pull."""
        return rows + ((rows - self.centre) @ self.inward * self._gains(pull)) @ self.outward

    def matrix(self, pull: float) -> Array:
        """Return P at one pull, ``(d, d)``."""
        return np.eye(len(self.centre)) + (self.inward * self._gains(pull)) @ self.outward

    def _gains(self, pull: float) -> Array:
        """Let l be ``pull`` times the mean eigenvalue of Z'Z, so that 1 halves an average direction."""
        ridge = pull * float(np.square(self.values).sum()) / len(self.centre)
        bottom = np.square(self.values) + ridge
        return np.where(bottom > 0, self.values / np.where(bottom > 0, bottom, 1.0), 0.0)


@dataclass(frozen=True)
class TrainedAdapter:
    """The linear map that minimises all of FedCGS eq. 12.

    P minimises the mean of ``-log softmax(W f(x) + b)_y + lambda |f(x) - m_y|^2 / s^2`` plus ``lambda pull |P - I|^2``,
    with ``f(x) = c + (x - c) P`` and s^2 the mean square of the entries of ``x - c``. The problem is convex; the
    columns of the best P - I are in the rows' span.

    Attributes:
        start: the closed form on the same rows.
        rows, means: rows and their labels' class means, ``(n, d)``.
        coef, intercept: of the scores, ``(C, d)`` and ``(C,)``.
        attraction: lambda.
    """

    start: Adapter
    rows: Array
    means: Array
    index: NDArray[np.intp]
    coef: Array
    intercept: Array
    attraction: float

    @property
    def centre(self) -> Array:
        """Fixed point, ``(d,)``."""
        return self.start.centre

    def moved(self, rows: Array, pull: float) -> Array:
        """Return moved rows, as :meth:`Adapter.moved`."""
        moved: Array = self.centre + (rows - self.centre) @ self.matrix(pull)
        return moved

    def matrix(self, pull: float) -> Array:
        """Return P, ``(d, d)``, by L-BFGS."""
        if math.isinf(pull) or not self.start.values.any():
            return np.eye(len(self.centre))
        inward = self.start.inward
        first = inward.T @ (self.start.matrix(pull) - np.eye(len(self.centre)))
        loss = partial(self._loss, pull=pull)
        result = minimize(
            loss, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MAX_ITERATIONS, "ftol": _ENOUGH}
        )
        matrix: Array = np.eye(len(self.centre)) + inward @ result.x.reshape(first.shape)
        return matrix

    @cached_property
    def _inner(self) -> Array:
        inner: Array = (self.rows - self.centre) @ self.start.inward
        return inner

    def _loss(self, flat: Array, pull: float) -> tuple[float, Array]:
        inner = self._inner
        M, n = flat.reshape(inner.shape[1], -1), len(self.rows)
        square = float(np.square(self.start.values).sum()) / (n * len(self.centre))
        moved = self.rows + inner @ M
        logs = log_softmax(moved @ self.coef.T + self.intercept, axis=1)
        error = np.exp(logs)
        error[np.arange(n), self.index] -= 1.0
        apart = moved - self.means
        task = -float(logs[np.arange(n), self.index].mean())
        drawn = float(np.square(apart).sum()) / (n * square) + pull * float(np.square(M).sum())
        slope = inner.T @ (error @ self.coef / n + 2 * self.attraction / (n * square) * apart)
        return task + self.attraction * drawn, (slope + 2 * self.attraction * pull * M).ravel()


def choose_pull(
    index: NDArray[np.intp], judge: Callable[[NDArray[np.intp], NDArray[np.intp]], Sequence[Array]]
) -> float:
    """Return the strongest of :data:`PULLS` that folds cannot distinguish from the best.

    Five folds are stratified, without randomness. A weaker pull must win by more than one standard error of the paired
    difference.

    Args:
        judge: function of training and held-out indices to each held-out label's log-probability, one array per pull.
    """
    folds = min(_FOLDS, len(index))
    if folds < 2:
        return math.inf
    fold = np.empty(len(index), np.intp)
    fold[np.argsort(index, kind="stable")] = np.arange(len(index)) % folds
    logs = np.empty((len(PULLS), len(index)))
    for held in range(folds):
        logs[:, fold == held] = np.stack(judge(np.flatnonzero(fold != held), np.flatnonzero(fold == held)))
    gap = logs[logs.mean(axis=1).argmax()] - logs
    error = gap.std(axis=1, ddof=1) / math.sqrt(len(index))
    return PULLS[int(np.flatnonzero(gap.mean(axis=1) <= error).max())]
