"""Correct probabilities of a softmax with clipped residuals.

A record's gradient is ``q_y (p - e_y)``, ``q_y = min(1, c / |p - e_y|)``. If the classes have
probabilities p*, gradients add up to 0 where ``sum_y p*_y q_y (p - e_y) = 0``, and so

    p*_y  is proportional to  p_y max(1, |p - e_y| / c).

So p is more confident than p*. The nearest temperature T and shifts b replace this link, so that scores stay sums over
columns.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, ndtri, softmax

from privstats.estimates import denoise
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening

_POINTS = 1_024
_STEPS = 100
_SHIFT_VARIANCE = 0.3**2  # of a class's shift a priori
_LEAST_SPREAD = 1e-3
_LEAST_SLOPE = 1 / 16


def unclipped(probabilities: Array, clip: float) -> Array:
    """Return p* for the p of a softmax with residuals clipped to c > 0, each ``(n, C)``.

    Example:
        >>> from privstats.estimates.clip_link import unclipped
        >>> unclipped(np.array([[0.99, 0.01], [0.6, 0.4]]), clip=0.7).round(3).tolist()  # the second is within reach
        [[0.98, 0.02], [0.548, 0.452]]
    """
    squares = np.square(probabilities)
    lengths = np.sqrt(np.maximum(squares.sum(axis=1, keepdims=True) - squares + np.square(1 - probabilities), 0.0))
    weighted = probabilities * np.maximum(1.0, lengths / clip)
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def link_of(whitening: SoftmaxWhitening, sums: NoisyClassSums, weights: Array, clip: float) -> tuple[float, Array]:
    """Return T and b, ``(C,)``, for which ``softmax(W u / T + b)`` is nearest to p*.

    Scores are assumed normal over the records, with means at which p* has the class shares. Shifts are shrunk by the
    counts' noise. Computed from releases alone.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening
        >>> from privstats.estimates.clip_link import link_of
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> weights = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]])
        >>> temperatures = [link_of(SoftmaxWhitening.of(sums), sums, weights, clip)[0] for clip in (0.5, 1.0, 1.5)]
        >>> [round(each, 1) for each in temperatures]  # no residual is longer than the square root of 2
        [1.7, 1.1, 1.0]
    """
    counts = denoise.counts(sums.N, sums.sigma["N"])
    scores = _scores(_covariance(whitening, sums, weights, counts), counts / counts.sum(), clip)
    temperature, shifts = _nearest(scores, unclipped(softmax(scores, axis=1), clip))
    noise = sums.sigma["N"] ** 2 * (1 / np.square(counts) + 1 / np.square(counts.sum() - counts))
    shifts = shifts * _SHIFT_VARIANCE / (_SHIFT_VARIANCE + noise)
    return temperature, shifts - shifts.mean()


def _covariance(whitening: SoftmaxWhitening, sums: NoisyClassSums, weights: Array, counts: Array) -> Array:
    slopes = weights[:, :-1] - weights[:, :-1].mean(axis=0)
    curvature = (1 - INTERCEPT**2) * whitening.values * np.square(whitening.scale) / whitening.spread
    curvature[whitening.values.argmax()] = 0.0  # along the mean, which moves all scores alike
    within = (slopes * curvature) @ slopes.T
    means = slopes @ (whitening.vectors * (whitening.scale * whitening.stretch)).T @ (sums.A / counts[:, None]).T
    share = counts / counts.sum()
    apart = means - (means @ share)[:, None]
    between = (apart * share) @ apart.T
    return np.asarray(max(within, between, key=np.trace))


def _scores(covariance: Array, shares: Array, clip: float) -> Array:
    C = len(shares)
    values, vectors = np.linalg.eigh(covariance)
    spread = np.sqrt(np.maximum(values, _LEAST_SPREAD**2))
    golden = _golden(C)
    places = np.modf((np.arange(_POINTS)[:, None] + 0.5) * golden ** -np.arange(1.0, C + 1))[0]
    scattered = (ndtri(np.clip(places, 0.5 / _POINTS, 1 - 0.5 / _POINTS)) * spread[::-1]) @ vectors[:, ::-1].T
    mean = np.log(shares)
    for _ in range(_STEPS):
        target = unclipped(softmax(scattered + mean, axis=1), clip).mean(axis=0)
        mean = mean + np.log(shares / target)
    return np.asarray(scattered + mean)


def _golden(dimension: int) -> float:
    """Powers of the root above 1 of ``x^(k + 1) = x + 1`` spread points evenly in k dimensions."""
    root = 2.0
    for _ in range(_STEPS):
        root = (1 + root) ** (1 / (dimension + 1))
    return root


def _nearest(scores: Array, target: Array) -> tuple[float, Array]:
    def loss(at: Array) -> tuple[float, Array]:
        shifted = scores * at[0] + np.append(0.0, at[1:])
        gap = softmax(shifted, axis=1) - target
        value = -float((target * log_softmax(shifted, axis=1)).sum(axis=1).mean())
        return value, np.append((gap * scores).sum(axis=1).mean(), gap.mean(axis=0)[1:])

    shifts = scores.shape[1] - 1
    bounds = [(_LEAST_SLOPE, 1.0), *[(None, None)] * shifts]
    fit = minimize(loss, np.append(1.0, np.zeros(shifts)), jac=True, method="L-BFGS-B", bounds=bounds)
    return 1 / float(fit.x[0]), np.append(0.0, fit.x[1:])
