"""Estimates of counts, means and covariances from class sums with Gaussian noise of known level.

Post-processing of released sums, so it costs no privacy. Heads call these functions on the evidence before they solve
their closed form, and the course that calibrates a discriminant calls the same ones; with noise 0 every function
returns the plain estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.noisy_sums import NoisySums
from privstats.estimates.spectrum import Array, positive_part

__all__ = [
    "Means",
    "class_means",
    "counts",
    "public_means",
    "total_scatter",
    "within_scatter",
]

_SMALLEST_SHARE = 1e-3
"""Floor of a noisy count, as a share of the mean count: keeps A / N finite without moving any real class."""
_MOST_SHIFT = 3.0
"""Standard errors that what is expected of a variance may count against what is seen of it."""
_AGREE, _DOUBT = 0.5, 0.25
"""What is expected of b before the release says anything of it, and the standard deviation of that."""


@dataclass(frozen=True)
class Means:
    """Class means after shrinkage.

    Attributes:
        values: shape ``(C, d)``.
        grand: the mean of all records, ``(d,)``.
        kept: share of the distance to the grand mean that survived shrinkage, ``(C,)``; 1 without noise.
    """

    values: Array
    grand: Array
    kept: Array


def counts(N: Array, sigma: float) -> Array:
    """Class counts, shape ``(C,)``, all positive.

    Noisy counts are shrunk toward their mean by the known noise variance, and only spread that noise alone would not
    show (two standard deviations of its sum of squares) counts as real; the result is the mean of the posterior
    truncated at 0 (docs/heads_numbers.md).
    """
    if sigma == 0:
        return np.maximum(N, np.finfo(np.float64).tiny)
    C = len(N)
    mean = float(positive_part(N.mean(), sigma / math.sqrt(C)))
    excess = float(np.square(N - N.mean()).sum())
    expected = sigma**2 * (C - 1)
    real = excess > expected + 2 * sigma**2 * math.sqrt(2 * (C - 1))
    spread = (excess - expected) / (C - 1) if real else 0.0
    posterior = mean + spread / (spread + sigma**2) * (N - mean)
    error = math.sqrt(spread * sigma**2 / (spread + sigma**2))
    return np.maximum(positive_part(posterior, error), max(_SMALLEST_SHARE * mean, np.finfo(np.float64).tiny))


def class_means(evidence: NoisySums, n: Array) -> Means:
    """James-Stein class means: each pulled to the grand mean by the known noise variance in A.

    One between-class variance t^2 is estimated for all classes and directions (weighted by how well each class is
    known), then class c keeps ``t^2 / (t^2 + v_c)`` of its distance, v_c = sigma_A^2 / n_c^2. Pooling the estimate was
    better than class-wise James-Stein and than singular-value shrinkage on digits and BANKING77 at epsilon <= .5.

    With public records the classes are pulled to ``grand + b^2 p_c`` instead (``grand + b p_c`` where b is above 1),
    p_c the public mean of class c less that of all, and keep as much of their own distance as without. One number b, at
    least 0, is the regression of all released distances on the public ones, so it is known C d times better than an
    entry of a mean: public records that say nothing of the classes get b near 0, and with it the estimate without them.
    b p_c would have the least squared error; the second b is there because public records are wrong where records vary
    most, which costs a classifier more than noise of the same length that is even in all directions
    (docs/heads_numbers.md). The grand mean moves to that of the public records by a James-Stein factor of its own: its
    noise is small, but every class shares it, and with it every intercept.
    """
    total = n.sum()
    grand = evidence.A.sum(axis=0) / total
    raw = evidence.A / n[:, None]
    sigma, (C, d) = evidence.noise("A"), raw.shape
    if sigma == 0 or C == 1:
        return Means(raw, grand, np.ones(C))
    distance = raw - grand
    variance = sigma**2 * (1 / n**2 - 2 / (n * total) + C / total**2)
    between = _between_variance(np.square(distance).mean(axis=1), variance, d)
    kept = between / (between + sigma**2 / n**2)
    if evidence.public is None:
        return Means(grand + kept[:, None] * distance, grand, kept)
    public_grand, directions = _directions(evidence.public, n)
    b = _agreement(directions, distance, variance)
    grand = _moved(public_grand, grand, sigma**2 * C / total**2, _AGREE**2 * _spread(directions))
    pull = min(b, 1.0) * b * (1 - kept)[:, None] * directions
    return Means(grand + pull + kept[:, None] * distance, grand, kept)


def public_means(rows: Array, labels: NDArray[np.intp], classes: int) -> Array:
    """Means of public rows per class, ``(C, d)``; NaN for a class without a row.

    Args:
        rows: ``(m, d)``, behind the public map of the release.
        labels: ``(m,)``, 0..C-1.
        classes: C.
    """
    count = np.bincount(labels, minlength=classes)
    sums = np.zeros((classes, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], np.nan)


def _directions(public: Array, n: Array) -> tuple[Array, Array]:
    """The mean of public means, ``(d,)``, by counts, and their distances to it, ``(C, d)``; 0 for a class without."""
    weights = np.where(np.isnan(public).any(axis=1), 0.0, n)
    public_grand = weights @ np.nan_to_num(public, nan=0.0) / weights.sum()
    return public_grand, np.where(weights[:, None] > 0, public - public_grand, 0.0)


def _agreement(directions: Array, distance: Array, variance: Array) -> float:
    """b: the weighted least-squares coefficient of the distances on the public ones, at least 0.

    It has variance 1 / energy by the known noise, and is averaged with what is expected of it by their variances.
    """
    weighted = directions / variance[:, None]
    energy = float((weighted * directions).sum())
    b = (float((weighted * distance).sum()) + _AGREE / _DOUBT**2) / (energy + 1 / _DOUBT**2)
    return max(b, 0.0)


def _spread(directions: Array) -> float:
    """Variance of public means between classes, per coordinate; infinite where there is none to be seen."""
    classes = np.count_nonzero(directions.any(axis=1))
    return float(np.square(directions).sum()) / (directions.shape[1] * (classes - 1)) if classes > 1 else math.inf


def _moved(public_grand: Array, grand: Array, noise: float, expected: float) -> Array:
    """The grand mean, ``(d,)``, moved to the public one by the share of their squared distance that noise explains."""
    off = grand - public_grand
    real = _between_variance(np.array([np.square(off).mean()]), np.array([noise]), len(off), expected)
    return np.asarray(public_grand + real / (real + noise) * off)


def within_scatter(evidence: NoisySums, n: Array) -> Array:
    """Pooled within-class scatter W = B - sum_c A_c A_c^T / n_c, shape ``(d, d)``.

    A_c A_c^T holds sigma_A^2 I of pure noise per class, which is added back. Symmetric; not positive under noise.
    """
    if evidence.B is None:
        raise ValueError("within_scatter needs B")
    scaled = evidence.A / np.sqrt(n)[:, None]
    W = evidence.B - scaled.T @ scaled
    W.flat[:: len(W) + 1] += evidence.noise("A") ** 2 * (1 / n).sum()
    return np.asarray((W + W.T) / 2)


def total_scatter(evidence: NoisySums, n: Array) -> Array:
    """Scatter of all records about the grand mean, ``(d, d)``: the covariance of FedCGS's head, times the count."""
    if evidence.B is None:
        raise ValueError("total_scatter needs B")
    total, everything = n.sum(), evidence.A.sum(axis=0)
    T = evidence.B - np.outer(everything, everything) / total
    T.flat[:: len(T) + 1] += evidence.noise("A") ** 2 * len(n) / total
    return np.asarray((T + T.T) / 2)


def _between_variance(squares: Array, noise: Array, d: int, expected: float = math.inf) -> float:
    """t^2 from mean squared distances that have expectation t^2 + noise; two rounds of inverse-variance weights.

    The posterior mean, of an exponential prior with mean ``expected`` as far as noise alone could hide that much, and
    by three errors at most: beyond, the release knows better.
    """
    _, noise_error = _weights_and_error(noise, d)
    shift = noise_error * (_MOST_SHIFT if noise_error >= _MOST_SHIFT * expected else noise_error / expected)
    between = 0.0
    for _ in range(2):
        weights, error = _weights_and_error(between + noise, d)
        between = float(positive_part(float(weights @ (squares - noise)) - shift, error))
    return between


def _weights_and_error(variance: Array, d: int) -> tuple[Array, float]:
    """Inverse-variance weights of mean squares of d normal numbers, and the standard deviation of their average."""
    weights = 1 / np.square(variance)
    weights = weights / weights.sum()
    return weights, math.sqrt(2 / d * float(np.square(weights * variance).sum()))
