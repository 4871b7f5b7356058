"""Records that harm a linear discriminant most, to first order: slopes of its test accuracy in the sums behind it.

Sums of fractional records are a convex hull, so the best of them against a linear slope is one record, a trust region
problem. ``admissible_lies`` replaces a lie's worst records by it, again and again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privstats.estimates.shrinkage import conditioned, shrink_values

__all__ = ["Slopes", "best_record", "slopes", "worth"]

Array: TypeAlias = NDArray[np.float64]
Slopes: TypeAlias = tuple[Array, Array, Array]
"""Of N ``(C,)``, A ``(C, d)`` and B ``(d, d)``."""

_HALVINGS = 60


def slopes(N: Array, A: Array, B: Array, X: Array, y: NDArray[Any]) -> tuple[float, Slopes]:
    """The mean probability of the true class under linear discriminants of these sums, and its slope in each of them.

    Args:
        N, A, B: of all clients, in real units.
        X, y: test records.
    """
    n, d = np.maximum(N, np.finfo(np.float64).tiny), A.shape[1]
    total, means = n.sum(), A / n[:, None]
    values, vectors = np.linalg.eigh((B - np.einsum("ci,cj->ij", A, means)) / total)
    shrunk, share = shrink_values(values, total, "auto")
    inverse = (vectors / conditioned(shrunk)) @ vectors.T
    rotated = means @ inverse
    scores = X @ rotated.T - np.einsum("cd,cd->c", rotated, means) / 2 + np.log(n)
    chances = softmax(scores, axis=1)
    true = chances[np.arange(len(y)), y]
    by_score = true[:, None] * (np.eye(len(n))[y] - chances) / len(y)
    weights = by_score.sum(axis=0)
    by_mean = (by_score.T @ X - weights[:, None] * means) @ inverse
    outer = X.T @ by_score @ means - (means.T * weights) @ means / 2
    by_covariance = -inverse @ ((outer + outer.T) / 2) @ inverse
    by_scatter = ((1 - share) * by_covariance + share / d * np.trace(by_covariance) * np.eye(d)) / total
    by_A = by_mean / n[:, None] - 2 * means @ by_scatter
    by_N = (weights - np.einsum("cd,cd->c", by_mean, means)) / n + np.einsum("ci,ij,cj->c", means, by_scatter, means)
    return float(true.mean()), (by_N, by_A, by_scatter)


def worth(slope: Slopes, X: Array, y: NDArray[Any]) -> Array:
    """What each of some records adds, to first order; the least harms most."""
    by_N, by_A, by_B = slope
    return np.asarray(by_N[y] + np.einsum("kd,kd->k", by_A[y], X) + np.einsum("ki,ij,kj->k", X, by_B, X))


def best_record(slope: Slopes, norm: float) -> tuple[Array, int]:
    """The vector of at most this norm, and its label, that add least: for every label the least of a quadratic form
    over a ball, by the multiplier at which its minimum lies on the sphere."""
    _, by_A, by_B = slope
    values, vectors = np.linalg.eigh(by_B)
    across = by_A @ vectors
    across += 1e-12 * np.abs(across).max() + np.finfo(np.float64).tiny  # no component is exactly zero
    least = max(0.0, -float(values[0]))
    low, high = np.full(len(across), least), least + np.linalg.norm(across, axis=1) / norm + 1e-300
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        outside = np.linalg.norm(across / (2 * (values + middle[:, None])), axis=1) > norm
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    X = -(across / (2 * (values + high[:, None]))) @ vectors.T
    X *= np.minimum(1.0, norm / np.linalg.norm(X, axis=1))[:, None]
    label = int(worth(slope, X, np.arange(len(X))).argmin())
    return X[label], label
