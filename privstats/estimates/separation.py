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

_AREAS = np.linspace(0.48, 0.999, 104)
_DISTANCES = math.sqrt(2) * ndtri(_AREAS)
_NORMAL, _FEW_NORMAL = (ndtri((np.arange(count) + 0.5) / count) for count in (64, 6))
_WITHIN = np.exp(np.linspace(-2.0, 2.0, 41))
"""Within-class variances over the released one, equally likely a priori."""
_OF_OPTIMISM, _OF_MODEL = 0.25, 0.05
"""Relative standard deviations of the linear response, and of the normal law on rows of one length."""
_OF_DISTANCE, _OF_VARIANCE = 0.15, 0.5
"""Those that a map adds whose directions noise hides."""
_CORRELATION = 0.1
"""Correlation between residuals and what a score of 1 misses, a priori."""
_LEVELS = (0.025, 0.975)
_TRACE_ENTRIES = 128  # of noise in each class, by which a trace is estimated
_LEAST, _MOST_GAIN = 1e-9, 2.0


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
    follow it (Stein 1981). The second is the last gradient along the weights, corrected likewise. The third is B's
    variance along them. The AUC is uniform a priori, and stays so if the sum of N or the trace of B is below 1.

    Args:
        rounds: gradient in the filter's coordinates, kappa and sigma of each round.
    """
    counts = denoise.counts(sums.N, sums.sigma["N"])
    along = weights[1] - weights[0]
    if min(float(sums.N.sum()), float(np.trace(sums.B))) < 1:
        return _unknown(along, float(counts[1] / counts.sum()))
    margins = _Margins(recipe, sums, whitening, counts, along, states[-2].weights)
    levels = [(kappa, sigma) for _, kappa, sigma in rounds]
    unclipped = [margins.unclipped(state.weights, kappa) for state, (kappa, _) in zip(states, levels, strict=False)]
    noise = weight_noise(recipe, sums, whitening, states, levels, unclipped)
    residual = margins.residual(rounds[-1][0], noise[-1], levels[-1][1])
    return _posterior(margins, margins.distance(noise[0], discriminant), residual)


def _unknown(along: Array, share: float) -> Separation:
    # Rows are assumed isotropic. The mean AUC of the prior sets the distance of the classes.
    spread = math.sqrt(max((1 - INTERCEPT**2) * float(np.square(along[:-1]).mean()), _LEAST))
    apart = math.sqrt(2) * float(ndtri(_AREAS.mean())) * spread
    low, high = np.quantile(_AREAS, _LEVELS)
    centres = float(along[-1]) * INTERCEPT + apart * np.array([-share, 1 - share])
    return Separation(centres, spread, float(low), float(high))


def _posterior(margins: _Margins, measured: tuple[float, float], residual_measured: tuple[float, float]) -> Separation:
    (distance, distance_error), (residual, residual_error) = measured, residual_measured
    variances, visible = margins.variance * _WITHIN, margins.visible()
    expected = np.array([margins.expected(_DISTANCES, each) for each in variances])
    apart = _DISTANCES * np.sqrt(variances)[:, None]
    between = margins.share * (1 - margins.share) * np.square(margins.alike(apart))
    released = variances[:, None] / margins.widened + visible * between
    of_distance, of_variance = (math.hypot(_OF_MODEL, each * (1 - visible)) for each in (_OF_DISTANCE, _OF_VARIANCE))
    distance_variance = distance_error**2 + np.square(of_distance * apart) + _LEAST
    residual_variance = residual_error**2 + np.square(_OF_MODEL * margins.share * (1 - margins.share) * apart)
    chi = np.square(distance - apart) / distance_variance + np.log(distance_variance)
    chi += np.square(residual - expected) / residual_variance + np.log(residual_variance)
    chi += np.square(np.log(released / margins.variance) / of_variance)
    posterior = np.exp((chi.min() - chi) / 2)
    posterior = posterior / posterior.sum()
    areas = posterior.sum(axis=0)
    low, high = np.interp(_LEVELS, np.cumsum(areas) - areas / 2, _AREAS)
    spread = math.sqrt(float(posterior.sum(axis=1) @ variances))
    middle = np.asarray(math.sqrt(2) * ndtri(areas @ _AREAS) * spread)
    centres = margins.own + margins.gain * (margins.level + margins.sides * margins.alike(middle))
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
        self.mean, self.own = float(along @ self.row), float(along[-1]) * INTERCEPT
        self.level, self.sides = self.mean - self.own, np.array([-self.share, 1 - self.share])
        self._stretch(rows)
        self.variance = max(self.covariance(along, along), _LEAST)
        earlier = before[1] - before[0]
        own, both = self.covariance(earlier, earlier), self.covariance(along, earlier)
        self.slope, self.earlier = both / self.variance, float(earlier @ self.row)
        self.rest = max(own - both**2 / self.variance, 0.0) / self.variance

    def _stretch(self, rows: Array) -> None:
        # Rows have norm 1, so a class with a long mean has little scatter, and mapped rows of another mean length.
        means, shares = denoise.class_means(self.sums, self.counts).values, self.counts / self.records
        scatter = np.maximum(1 - np.square(means).sum(axis=1), _LEAST)
        scatter = scatter / float(shares @ scatter)
        squares, spread = (
            np.square(means @ self.whitening.vectors * self.whitening.scale).sum(axis=1),
            self.whitening.spread,
        )
        squares = squares - float(shares @ squares) + (scatter - 1) * max(spread - float(shares @ squares), 0.0)
        gain = np.sqrt(spread / np.maximum(spread + squares, spread / _MOST_GAIN**2))
        self.inverse = gain / self.counts
        self.rows = rows * self.inverse[:, None]
        self.gain, self.widened = gain, float((scatter * np.square(gain)).mean())

    def alike(self, apart: Array) -> Array:
        # The distance if the map stretched both classes alike.
        return np.asarray((apart - (self.gain[1] - self.gain[0]) * self.level) / float(self.gain @ np.abs(self.sides)))

    def covariance(self, one: Array, other: Array) -> float:
        return float((one * other)[:-1] @ self.curvature)

    def visible(self) -> float:
        # The variance leaves out what noise hides, off the diagonal of B in its eigenvectors. Of the scatter between
        # classes it leaves out the more, the less of noise's own sum of squares the rest there explains.
        d, parts = len(self.sums.B), np.square(self.along[:-1]) * self.curvature
        noise = self.sums.sigma["B"] ** 2 * d * (d + 1) / 2
        off = float(np.square(self.sums.B).sum() - np.square(self.sums.records * self.whitening.values).sum()) - noise
        hidden = max(1 - max(off, 0.0) / noise, 0.0) if noise else 0.0
        return 1 - hidden * (1 - float(np.square(parts).sum()) / max(float(parts.sum()), _LEAST) ** 2)

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
        sigma, inverse = self.sums.sigma["A"], self.inverse
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
