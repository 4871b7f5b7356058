"""Correct probabilities of a softmax with clipped residuals.

A record's gradient is ``q_y (p - e_y)``, ``q_y = min(1, c / |p - e_y|)``. If the classes have
probabilities p*, gradients add up to 0 where ``sum_y p*_y q_y (p - e_y) = 0``, and so

    p*_y  is proportional to  p_y max(1, |p - e_y| / c).

So p is more confident than p*. The nearest temperature T and shifts b replace this link, so that scores stay sums over
columns. Of two classes, the last released gradient then moves b, because rounds end before their optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, ndtri, softmax

from privstats.estimates import denoise
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening

_POINTS = 1_024
_MAX_ITERATIONS = 100
_SHIFT_VARIANCE = 0.3**2  # of a class's shift a priori
_LEAST_SPREAD = 1e-3
_LEAST_SLOPE = 1 / 16
_PAIR = 2
_MEAN_DEVIATION = 0.02  # of a mean probability from its rate a priori
_LEAST_VARIANCE = 1e-3  # of a label
_NEWTON_ITERATIONS, _LONGEST_STEP = 8, 0.5
_QUANTILES = ndtri((np.arange(6) + 0.5) / 6)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LastGradient:
    """The last released gradient, and the weights at which it was summed, each ``(C, k)`` in the filter's coordinates.

    Attributes:
        weights, gradient: W, and the noisy sum of ``q r u'``.
        sigma: noise standard deviation of its entries.
    """

    weights: Array
    gradient: Array
    sigma: float


@dataclass(frozen=True)
class Match:
    """First-order response to noise of a shift that follows the last gradient.

    Attributes:
        variance: mean of ``p (1 - p)``, p the corrected probabilities.
        kept: share of the mean score's error that the shift leaves, 0 to 1.
        pull: error of the mean score before the division by T, per unit of noise in the mean residual.

    Example:
        >>> from privstats.estimates.clip_link import Match
        >>> Match(variance=0.2, kept=0.5, pull=2.5).kept
        0.5
    """

    variance: float
    kept: float
    pull: float


@dataclass(frozen=True)
class Link:
    """Divisor T and shifts b, ``(C,)``, of the scores; ``match`` is None where no gradient moved b.

    Example:
        >>> from privstats.estimates.clip_link import Link
        >>> Link(1.5, np.zeros(2)).match is None
        True
    """

    temperature: float
    shifts: Array
    match: Match | None = None


def unclipped(probabilities: Array, clip: float) -> Array:
    """Return p* for the p of a softmax with residuals clipped to c > 0, each ``(n, C)``."""
    squares = np.square(probabilities)
    lengths = np.sqrt(np.maximum(squares.sum(axis=1, keepdims=True) - squares + np.square(1 - probabilities), 0.0))
    weighted = probabilities * np.maximum(1.0, lengths / clip)
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def link_of(
    whitening: SoftmaxWhitening, sums: NoisyClassSums, weights: Array, clip: float, last: LastGradient | None = None
) -> Link:
    """Return T and b for which ``softmax(W u / T + b)`` is nearest to p*.

    Scores are assumed normal over the records, with means at which p* has the class shares. Shifts are shrunk by the
    counts' noise. Of two classes, b then moves toward the value at which the probabilities predict the mean clipped
    residual that ``last`` releases. Computed from releases alone.
    """
    counts = denoise.counts(sums.N, sums.sigma["N"])
    scores = _scores(normal_scores(whitening, sums, weights, counts), counts / counts.sum(), clip)
    temperature, shifts = _nearest(scores, unclipped(softmax(scores, axis=1), clip))
    noise = sums.sigma["N"] ** 2 * (1 / np.square(counts) + 1 / np.square(counts.sum() - counts))
    shifts = shifts * _SHIFT_VARIANCE / (_SHIFT_VARIANCE + noise)
    shifts = shifts - shifts.mean()
    link = Link(temperature, shifts)
    if last is not None and len(counts) == _PAIR:
        link = _matched(whitening, sums, weights, clip, last, scores, link)
    return link


def _matched(
    whitening: SoftmaxWhitening,
    sums: NoisyClassSums,
    weights: Array,
    clip: float,
    last: LastGradient,
    scores: Array,
    link: Link,
) -> Link:
    """Return two classes' link with shifts moved toward those that predict the last gradient along the mean row.

    The margins at the gradient's weights are normal given the final ones. The most likely shift weighs the gradient's
    noise against a mean probability within .02 of its rate a priori.
    """
    row = np.append(sums.A.sum(axis=0) @ whitening.vectors * (whitening.scale * whitening.stretch), 0.0) / sums.records
    row[-1] = INTERCEPT
    length = float(row @ row)
    released = float((last.gradient[1] - last.gradient[0]) @ row) / (2 * length * sums.records)
    noise = last.sigma / (math.sqrt(2 * length) * sums.records)
    margins = scores[:, 1] - scores[:, 0]
    before = _margins_before(whitening, row, weights[1] - weights[0], last.weights[1] - last.weights[0], margins)
    p, limit = expit(before), clip / math.sqrt(2)
    over, under = np.minimum(p, limit).mean(axis=1), np.minimum(1 - p, limit).mean(axis=1)
    start = float(link.shifts[1] - link.shifts[0])
    shift, match = _likeliest(margins / link.temperature, start, over, under, (released, noise))
    shifts = np.asarray(link.shifts + np.array([-0.5, 0.5]) * (shift - start))
    return Link(link.temperature, shifts, replace(match, pull=match.pull * link.temperature))


def _likeliest(
    margins: Array, start: float, over: Array, under: Array, residual: tuple[float, float]
) -> tuple[float, Match]:
    """Return the most likely shift near ``start``, given the released mean residual and its noise."""
    eta, (released, noise), shift = expit(margins + start), residual, start
    prior = (_MEAN_DEVIATION / max(float((eta * (1 - eta)).mean()), _LEAST_VARIANCE)) ** 2
    for _ in range(_NEWTON_ITERATIONS):
        eta = expit(margins + shift)
        missed = float(((1 - eta) * over - eta * under).mean()) - released
        slope = float((eta * (1 - eta) * (over + under)).mean())
        step = (slope * missed * prior - (shift - start) * noise**2) / (slope**2 * prior + noise**2 + _TINY)
        shift += min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
    variance = eta * (1 - eta)
    pull = slope * prior / (slope**2 * prior + noise**2 + _TINY)
    return shift, Match(float(variance.mean()), 1 - pull * slope, pull)


def _margins_before(whitening: SoftmaxWhitening, row: Array, final: Array, before: Array, margins: Array) -> Array:
    """Return quantiles, ``(n, 6)``, of the margins at earlier weights, given those at the final ones."""
    curvature = _curvature(whitening)
    own, both, other = (
        float((one * two)[:-1] @ curvature) for one, two in ((final, final), (final, before), (before, before))
    )
    own = max(own, _LEAST_SPREAD**2)
    centre = float(margins.mean())
    spread = math.sqrt(max(other - both**2 / own, 0.0) / own) * float(margins.std())
    moved = centre + float((before - final) @ row) + both / own * (margins - centre)
    return np.asarray(moved[:, None] + spread * _QUANTILES)


def _curvature(whitening: SoftmaxWhitening) -> Array:
    curvature = (1 - INTERCEPT**2) * whitening.values * np.square(whitening.scale) / whitening.spread
    curvature[whitening.values.argmax()] = 0.0  # along the mean, which moves all scores alike
    return np.asarray(curvature)


def _covariance(whitening: SoftmaxWhitening, sums: NoisyClassSums, weights: Array, counts: Array) -> Array:
    slopes = weights[:, :-1] - weights[:, :-1].mean(axis=0)
    within = (slopes * _curvature(whitening)) @ slopes.T
    means = slopes @ (whitening.vectors * (whitening.scale * whitening.stretch)).T @ (sums.A / counts[:, None]).T
    share = counts / counts.sum()
    apart = means - (means @ share)[:, None]
    between = (apart * share) @ apart.T
    return np.asarray(max(within, between, key=np.trace))


def normal_scores(whitening: SoftmaxWhitening, sums: NoisyClassSums, weights: Array, counts: Array) -> Array:
    """Return 1,024 points of the scores' normal distribution over the records, about their mean, ``(1_024, C)``."""
    covariance = _covariance(whitening, sums, weights, counts)
    C = len(covariance)
    values, vectors = np.linalg.eigh(covariance)
    spread = np.sqrt(np.maximum(values, _LEAST_SPREAD**2))
    golden = _golden(C)
    places = np.modf((np.arange(_POINTS)[:, None] + 0.5) * golden ** -np.arange(1.0, C + 1))[0]
    return np.asarray((ndtri(np.clip(places, 0.5 / _POINTS, 1 - 0.5 / _POINTS)) * spread[::-1]) @ vectors[:, ::-1].T)


def _scores(scattered: Array, shares: Array, clip: float) -> Array:
    mean = np.log(shares)
    for _ in range(_MAX_ITERATIONS):
        target = unclipped(softmax(scattered + mean, axis=1), clip).mean(axis=0)
        mean = mean + np.log(shares / target)
    return np.asarray(scattered + mean)


def _golden(dimension: int) -> float:
    # Powers of the root above 1 of x^(k + 1) = x + 1 spread points evenly in k dimensions.
    root = 2.0
    for _ in range(_MAX_ITERATIONS):
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
