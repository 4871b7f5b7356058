"""Estimate how far apart a refined softmax scores two classes, from its releases alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.special import expit, ndtri

from privstats.estimates import denoise, softmax
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.estimates.filter_bank import Filter
from privstats.estimates.mean_noise import weight_noise
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.estimates.softmax import INTERCEPT, LDA_SHARE, SoftmaxWhitening

Discriminant: TypeAlias = Callable[[Array], Array]
"""The discriminant's part of the weights ``(2, k)``, by class sums A ``(2, d)``."""

_AREAS = np.linspace(0.5, 0.999, 100)
_DISTANCES = math.sqrt(2) * ndtri(_AREAS)
_NORMAL, _FEW_NORMAL = (ndtri((np.arange(count) + 0.5) / count) for count in (64, 6))
_PRIOR = 0.5
_LOG_SPREAD = _PRIOR * np.linspace(-2.5, 2.5, 11)
"""Logarithm of the within-class variance over the released one, with its prior standard deviation."""
_OF_OPTIMISM, _OF_DISTANCE, _OF_RESIDUAL = 0.25, 0.15, 0.05
"""Relative standard deviations of the linear response, and of the normal law on rows of one length."""
_CORRELATION = 0.1
"""Correlation between residuals and what a score of 1 misses, a priori."""
_LEVELS = (0.025, 0.975)
_TRACE_ENTRIES = 128  # of noise in each class, by which a trace is estimated
_LEAST = 1e-9


@dataclass(frozen=True)
class Separation:
    """Normal margins of two classes, and a range of their AUC.

    Attributes:
        centres, spread: mean margins ``(2,)``, and their standard deviation within a class.
        low, high: 2.5 % and 97.5 % quantile of the AUC, given the releases.
    """

    centres: Array
    spread: float
    low: float
    high: float

    def scaled(self, divisor: float, shift: float) -> Separation:
        """Return the law of ``margin / divisor + shift``."""
        return replace(self, centres=self.centres / divisor + shift, spread=self.spread / divisor)


def separation(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    states: Sequence[Filter],
    rounds: Sequence[tuple[Array, float, float]],
    weights: Array,
    discriminant: Discriminant,
) -> Separation:
    """Return the posterior law of the margins ``(W_1 - W_0) u`` under both classes.

    The first measurement is the distance of the class means from A, less the covariance of A's noise with weights that
    follow it (Stein 1981). The second is the last gradient along the weights, corrected likewise. The AUC is uniform a
    priori. For clear classes with little noise it is too low, by .04 at .996: the variance is that of all rows.

    Args:
        rounds: gradient in the filter's coordinates, kappa and sigma of each round.
    """
    counts = denoise.counts(sums.N, sums.sigma["N"])
    margins = _Margins(recipe, sums, whitening, counts, weights[1] - weights[0], states[-2].weights)
    levels = [(kappa, sigma) for _, kappa, sigma in rounds]
    unclipped = [margins.unclipped(state.weights, kappa) for state, (kappa, _) in zip(states, levels, strict=False)]
    noise = weight_noise(recipe, sums, whitening, states, levels, unclipped)
    residual = margins.residual(rounds[-1][0], noise[-1], levels[-1][1])
    return _posterior(margins, margins.distance(noise[0], discriminant), residual)


def _posterior(margins: _Margins, measured: tuple[float, float], residual_measured: tuple[float, float]) -> Separation:
    (distance, distance_error), (residual, residual_error) = measured, residual_measured
    variances = margins.variance * np.exp(_LOG_SPREAD)
    expected = np.array([margins.expected(_DISTANCES, each) for each in variances])
    apart = _DISTANCES * np.sqrt(variances)[:, None]
    distance_variance = distance_error**2 + np.square(_OF_DISTANCE * apart) + _LEAST
    residual_variance = residual_error**2 + np.square(_OF_RESIDUAL * margins.share * (1 - margins.share) * apart)
    chi = np.square(distance - apart) / distance_variance + np.log(distance_variance)
    chi += np.square(residual - expected) / residual_variance + np.log(residual_variance)
    chi += np.square(_LOG_SPREAD / _PRIOR)[:, None]
    posterior = np.exp((chi.min() - chi) / 2)
    posterior = posterior / posterior.sum()
    areas = posterior.sum(axis=0)
    low, high = np.interp(_LEVELS, np.cumsum(areas) - areas / 2, _AREAS)
    spread = math.sqrt(float(posterior.sum(axis=1) @ variances))
    between = math.sqrt(2) * float(ndtri(areas @ _AREAS)) * spread
    centres = margins.mean + between * np.array([-margins.share, 1 - margins.share])
    return Separation(centres, spread, float(low), float(high))


class _Margins:
    def __init__(
        self,
        recipe: SoftmaxRecipe,
        sums: NoisyClassSums,
        whitening: SoftmaxWhitening,
        counts: Array,
        along: Array,
        before: Array,
    ) -> None:
        self.recipe, self.sums, self.whitening, self.counts, self.along = recipe, sums, whitening, counts, along
        self.limit = recipe.clip / math.sqrt(2)
        self.records, self.share = float(counts.sum()), float(counts[1] / counts.sum())
        self.stretch = whitening.scale * whitening.stretch
        rows = sums.A @ whitening.vectors * self.stretch
        self.row = np.append(rows.sum(axis=0) / sums.records, INTERCEPT)
        self.curvature = (1 - INTERCEPT**2) * whitening.values * np.square(whitening.scale) / whitening.spread
        top = int(whitening.values.argmax())  # which holds the mean row where rows have one
        self.curvature[top] = max(self.curvature[top] - self.row[top] ** 2, 0.0)
        self.rows, self.mean = rows / counts[:, None], float(along @ self.row)
        self.variance = max(self.covariance(along, along), _LEAST)
        earlier = before[1] - before[0]
        own, both = self.covariance(earlier, earlier), self.covariance(along, earlier)
        self.slope, self.earlier = both / self.variance, float(earlier @ self.row)
        self.rest = max(own - both**2 / self.variance, 0.0) / self.variance

    def covariance(self, one: Array, other: Array) -> float:
        return float((one * other)[:-1] @ self.curvature)

    def unclipped(self, weights: Array, kappa: float) -> float:
        # Clipped residuals do not answer a change of the weights. Half of the others' share is what releases show,
        # since the curvature of lost directions is less than the filter assumes.
        margin = weights[1] - weights[0]
        spread = math.sqrt(max(self.covariance(margin, margin), 0.0))
        p = expit(float(margin @ self.row) + spread * _NORMAL)
        free = p * (1 - p < self.limit) + (1 - p) * (p < self.limit)
        scale = softmax.hessian_scale(self.recipe, self.sums, kappa)  # twice the mean of p (1 - p)
        return min(float((free * p * (1 - p)).mean()) / scale, 1.0)

    def distance(self, noise: Array, discriminant: Discriminant) -> tuple[float, float]:
        sigma, inverse = self.sums.sigma["A"], 1 / self.counts
        found = float(self.along[:-1] @ (self.rows[1] - self.rows[0]))
        optimism = -(1 - LDA_SHARE) * float(noise[:-1] @ self.stretch) * sigma * float(inverse.sum())
        chance = np.random.default_rng(0)
        replicates = max(1, _TRACE_ENTRIES // self.sums.A.shape[1])
        for _ in range(replicates):
            error = chance.normal(size=self.sums.A.shape) * sigma
            moved = (discriminant(self.sums.A + error) - discriminant(self.sums.A - error)) / 2
            rows = error @ self.whitening.vectors * self.stretch * inverse[:, None]
            optimism += float((moved[1] - moved[0])[:-1] @ (rows[1] - rows[0])) / replicates
        chance_error = sigma * math.sqrt(float(np.square(self.along[:-1] * self.stretch).sum()))
        chance_error *= math.sqrt(float((inverse**2).sum()))
        return found - optimism, math.hypot(chance_error, _OF_OPTIMISM * optimism)

    def residual(self, gradient: Array, noise: Array, sigma: float) -> tuple[float, float]:
        # These weights score near 1 on every row: by the intercept, or with less of its noise by the mean row.
        level = sigma**2 / (2 * self.records**2)
        ridge = level / (_CORRELATION**2 * self.share * (1 - self.share)) + _LEAST
        one = self.row / (np.append(self.curvature, 0.0) + ridge)
        one = one / float(one @ self.row)
        centred = self.along - self.mean * one
        optimism = (1 - LDA_SHARE) * sigma * float(noise @ (1 - one * self.row))
        error = math.sqrt(level * float(centred @ centred))
        return (float((gradient[1] - gradient[0]) @ centred) / 2 - optimism) / self.records, max(error, _LEAST)

    def expected(self, distances: Array, variance: float) -> Array:
        total, apart = variance * (1 + self.share * (1 - self.share) * distances**2), distances * math.sqrt(variance)
        around, out = np.sqrt(self.rest * total)[:, None, None] * _FEW_NORMAL, np.zeros_like(distances)
        for label, share in ((0, 1 - self.share), (1, self.share)):
            margin = (label - self.share) * apart[:, None] + math.sqrt(variance) * _NORMAL
            p = expit(self.earlier + self.slope * margin[..., None] + around)
            out += share * (np.clip(p - label, -self.limit, self.limit).mean(axis=-1) * margin).mean(axis=-1)
        return out
