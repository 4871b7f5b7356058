"""Estimate how far apart a refined softmax scores two classes, from its releases alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, ndtri

from privstats.estimates import denoise, softmax
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.estimates.filter_bank import Filter
from privstats.estimates.mean_noise import weight_noise
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.estimates.softmax import INTERCEPT, LDA_SHARE, SoftmaxWhitening

Discriminant: TypeAlias = Callable[[Array], Array]
"""The discriminant's part of the weights ``(2, k)``, its share .15 included, by class sums A ``(2, d)``."""

_AREAS = np.linspace(0.48, 0.999, 104)
"""AUCs that are equally likely a priori; none is above the last."""
_DISTANCES = math.sqrt(2) * ndtri(_AREAS)
_NORMAL, _FEW_NORMAL = (ndtri((np.arange(count) + 0.5) / count) for count in (64, 6))
_WITHIN = np.exp(np.linspace(-2.0, 2.0, 41))
"""Within-class variances over the released one, equally likely a priori: log-uniform."""
_OF_OPTIMISM, _OF_MODEL = 0.25, 0.05
"""Model errors, relative: of the covariance subtracted from the distance, and of the normal law of margins."""
_OF_DISTANCE, _OF_VARIANCE = 0.15, 0.5
"""Further relative errors of distance and variance, times the share of the variance that noise hides."""
_OF_ANSWER = 0.5
"""Used share of a round's derived answer to earlier noise, since lost directions have less curvature than the filter
assumes. Where no direction is lost it is too low."""
_CORRELATION = 0.1
"""Correlation between residuals and what a score of 1 misses, a priori."""
_TRACE_ENTRIES = 128  # of noise in each class, by which a trace is estimated
_LEAST = 1e-9
"""Keeps divisors and variances above 0, in whatever unit; far below each that noise leaves."""
_MOST_GAIN = 2.0
"""Limit on how much more the map stretches a class than a typical row."""


@dataclass(frozen=True)
class Separation:
    """Normal margins of two classes.

    Attributes:
        centres, spread: mean margins ``(2,)``, and their standard deviation within a class.
    """

    centres: Array
    spread: float

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

    Measurements are the class means' distance from A and the last gradient along the weights, each less the covariance
    with noise that the weights follow (Stein 1981), and B's variance along them. The AUC is uniform a priori, and stays
    so if the sum of N or the trace of B is below 1.

    Args:
        states: the filter before each round and after the last.
        rounds: gradient in the filter's coordinates, kappa and sigma of each round.
        weights: final weights in the filter's coordinates, averaged with the discriminant.
    """
    counts = denoise.counts(sums.N, sums.sigma["N"])
    along = weights[1] - weights[0]
    if min(float(sums.N.sum()), float(np.trace(sums.B))) < 1:
        return _unknown(along, float(counts[1] / counts.sum()))
    margins = _Margins(recipe, sums, whitening, counts, along, states[-2].weights)
    levels = [(kappa, sigma) for _, kappa, sigma in rounds]
    answers = [margins.answer(state.weights, kappa) for state, (kappa, _) in zip(states[:-1], levels, strict=True)]
    noise = weight_noise(recipe, sums, whitening, states, levels, answers)
    residual = margins.residual(rounds[-1][0], noise[-1], levels[-1][1])
    return _posterior(margins, margins.distance(noise[0], discriminant), residual)


def _unknown(along: Array, share: float) -> Separation:
    # Rows are assumed isotropic. The mean AUC of the prior sets the distance of the classes.
    spread = math.sqrt(max((1 - INTERCEPT**2) * float(np.square(along[:-1]).mean()), _LEAST))
    apart = math.sqrt(2) * float(ndtri(_AREAS.mean())) * spread
    centres = float(along[-1]) * INTERCEPT + apart * np.array([-share, 1 - share])
    return Separation(centres, spread)


class _Measured(NamedTuple):
    value: float
    error: float


def _posterior(margins: _Margins, distance: _Measured, residual: _Measured) -> Separation:
    variances, visible = margins.variance * _WITHIN, margins.visible()
    expected = np.array([margins.expected(_DISTANCES, each) for each in variances])
    apart = _DISTANCES * np.sqrt(variances)[:, None]
    between = margins.share * (1 - margins.share) * np.square(margins.distance_without_gain(apart))
    released = variances[:, None] / margins.within_factor + visible * between
    of_distance, of_variance = (math.hypot(_OF_MODEL, each * (1 - visible)) for each in (_OF_DISTANCE, _OF_VARIANCE))
    distance_variance = distance.error**2 + np.square(of_distance * apart) + _LEAST
    residual_variance = residual.error**2 + np.square(_OF_MODEL * margins.share * (1 - margins.share) * apart)
    chi = np.square(distance.value - apart) / distance_variance + np.log(distance_variance)
    chi += np.square(residual.value - expected) / residual_variance + np.log(residual_variance)
    chi += np.square(np.log(released / margins.variance) / of_variance)
    posterior = np.exp((chi.min() - chi) / 2)
    posterior = posterior / posterior.sum()
    areas = posterior.sum(axis=0)
    spread = math.sqrt(float(posterior.sum(axis=1) @ variances))
    middle = margins.distance_without_gain(math.sqrt(2) * float(ndtri(areas @ _AREAS)) * spread)
    centres = margins.intercept_part + margins.class_gain * (margins.row_part + margins.sides * middle)
    return Separation(centres, spread)


def _hidden_share(B: Array, sigma: float, values: Array) -> float:
    # Share of B's directions that noise hides: 0 where all are resolved, 1 where noise alone sets the eigenvectors.
    # Without the mean eigenvalue, the squares of B exceed those of the denoised values by sigma^2 (d - 1) / 2 times 2 d
    # where eigenvalues are resolved, and times d + 2 where all are hidden. For two columns both are 4, so 3 is used.
    d = len(B)
    if sigma == 0 or d == 1:
        return 0.0
    squares = float(np.square(B - np.trace(B) / d * np.eye(d)).sum()) - d * float(values.var())
    seen = 2 * squares / (sigma**2 * (d - 1))
    return min(max((2 * d - seen) / max(d - 2, 1), 0.0), 1.0)


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
        self.column_scale = whitening.scale * whitening.stretch
        rows = sums.A @ whitening.vectors * self.column_scale
        self.row = np.append(rows.sum(axis=0) / sums.records, INTERCEPT)
        self.curvature = (1 - INTERCEPT**2) * whitening.values * np.square(whitening.scale) / whitening.spread
        top = int(whitening.values.argmax())  # rows with a long mean have it there
        self.curvature[top] = max(self.curvature[top] - self.row[top] ** 2, 0.0)
        self.mean_margin, self.intercept_part = float(along @ self.row), float(along[-1]) * INTERCEPT
        self.row_part, self.sides = self.mean_margin - self.intercept_part, np.array([-self.share, 1 - self.share])
        self.class_gain, self.within_factor = self._class_gain()
        self.inverse = self.class_gain / counts
        self.rows = rows * self.inverse[:, None]
        self.variance = max(self.covariance(along, along), _LEAST)
        earlier = before[1] - before[0]
        both = self.covariance(along, earlier)
        self.slope, self.earlier_mean = both / self.variance, float(earlier @ self.row)
        self.rest = max(self.covariance(earlier, earlier) - both**2 / self.variance, 0.0) / self.variance

    def _class_gain(self) -> tuple[Array, float]:
        # The map divides rows by their mapped length. A class with a long mean has little scatter, since rows have norm
        # 1, so its mapped rows have another length. Also returned: the factor on the mean variance within a class.
        means, shares = denoise.class_means(self.sums, self.counts).values, self.counts / self.records
        scatter = np.maximum(1 - np.square(means).sum(axis=1), _LEAST)
        scatter = scatter / float(shares @ scatter)
        spread = self.whitening.spread
        squares = np.square(means @ self.whitening.vectors * self.whitening.scale).sum(axis=1)
        squares = squares - float(shares @ squares) + (scatter - 1) * max(spread - float(shares @ squares), 0.0)
        gain = np.sqrt(spread / np.maximum(spread + squares, spread / _MOST_GAIN**2))
        return gain, float((scatter * np.square(gain)).mean())

    def distance_without_gain(self, apart: Array | float) -> Array:
        difference = self.class_gain[1] - self.class_gain[0]
        return np.asarray((apart - difference * self.row_part) / float(self.class_gain @ np.abs(self.sides)))

    def covariance(self, one: Array, other: Array) -> float:
        return float((one * other)[:-1] @ self.curvature)

    def visible(self) -> float:
        # Share of the between-class variance that the variance along the weights holds: B's diagonal in noisy
        # eigenvectors misses what is off it.
        values, parts = self.sums.records * self.whitening.values, np.square(self.along[:-1]) * self.curvature
        alone = 1 - float(np.square(parts).sum()) / max(float(parts.sum()), _LEAST) ** 2
        return 1 - _hidden_share(self.sums.B, self.sums.sigma["B"], values) * alone

    def answer(self, weights: Array, kappa: float) -> float:
        # Clipped residuals do not answer a change of the weights.
        margin = weights[1] - weights[0]
        spread = math.sqrt(max(self.covariance(margin, margin), 0.0))
        p = expit(float(margin @ self.row) + spread * _NORMAL)
        free = p * (1 - p < self.limit) + (1 - p) * (p < self.limit)
        scale = softmax.hessian_scale(self.recipe, self.sums, kappa)  # twice the mean of p (1 - p)
        return min(_OF_ANSWER * 2 * float((free * p * (1 - p)).mean()) / scale, 1.0)

    def distance(self, noise: Array, discriminant: Discriminant) -> _Measured:
        sigma, inverse = self.sums.sigma["A"], self.inverse
        found = float(self.along[:-1] @ (self.rows[1] - self.rows[0]))
        optimism = -(1 - LDA_SHARE) * float(noise[:-1] @ self.column_scale) * sigma * float(inverse.sum())
        chance = np.random.default_rng(0)
        replicates = max(1, _TRACE_ENTRIES // self.sums.A.shape[1])
        for _ in range(replicates):
            error = chance.normal(size=self.sums.A.shape) * sigma
            moved = (discriminant(self.sums.A + error) - discriminant(self.sums.A - error)) / 2
            rows = error @ self.whitening.vectors * self.column_scale * inverse[:, None]
            optimism += float((moved[1] - moved[0])[:-1] @ (rows[1] - rows[0])) / replicates
        chance_error = sigma * math.sqrt(float(np.square(self.along[:-1] * self.column_scale).sum()))
        chance_error *= math.sqrt(float((inverse**2).sum()))
        return _Measured(found - optimism, math.hypot(chance_error, _OF_OPTIMISM * optimism))

    def residual(self, gradient: Array, noise: Array, sigma: float) -> _Measured:
        # ``constant`` are weights that score near 1 on every row: by the intercept, or by the mean row where that has
        # less noise. Without the mean margin times these, the weights score 0 on average.
        variance = sigma**2 / (2 * self.records**2)
        ridge = variance / (_CORRELATION**2 * self.share * (1 - self.share)) + _LEAST
        constant = self.row / (np.append(self.curvature, 0.0) + ridge)
        constant = constant / float(constant @ self.row)
        centred = self.along - self.mean_margin * constant
        optimism = (1 - LDA_SHARE) * sigma * float(noise @ (1 - constant * self.row))
        error = max(math.sqrt(variance * float(centred @ centred)), _LEAST)
        return _Measured((float((gradient[1] - gradient[0]) @ centred) / 2 - optimism) / self.records, error)

    def expected(self, distances: Array, variance: float) -> Array:
        total, apart = variance * (1 + self.share * (1 - self.share) * distances**2), distances * math.sqrt(variance)
        around, out = np.sqrt(self.rest * total)[:, None, None] * _FEW_NORMAL, np.zeros_like(distances)
        for label, share in ((0, 1 - self.share), (1, self.share)):
            margin = (label - self.share) * apart[:, None] + math.sqrt(variance) * _NORMAL
            p = expit(self.earlier_mean + self.slope * margin[..., None] + around)
            out += share * (np.clip(p - label, -self.limit, self.limit).mean(axis=-1) * margin).mean(axis=-1)
        return out
