"""Ratios of noisy sums and means of independent records, with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privstats.inference.inversion import quantile, two_sided


@dataclass(frozen=True)
class RatioOfSums:
    """A ratio theta_0 + S / W of noisy sums of independent records.

    Attributes:
        variance: of S, noise included.
        noise: noise part of it.
        sigma_W: noise standard deviation of W.
        degrees: of freedom of the variance.
        widened: whether the variance allows for few heavy records, beyond sampling and noise.
    """

    offset: float
    S: float
    W: float
    variance: float
    noise: float
    sigma_W: float
    degrees: float
    widened: bool = False

    def with_variance(self, variance: float) -> RatioOfSums:
        """Return this ratio with another variance of S."""
        return replace(self, variance=variance, widened=True)

    def as_wide_as(self, other: RatioOfSums) -> RatioOfSums:
        """Return this ratio with the other's variance and degrees."""
        return replace(self, variance=other.variance, degrees=other.degrees, widened=True)

    @property
    def estimate(self) -> float:
        """The ratio; NaN where W is not above 0."""
        return self.offset + self.S / self.W if self.W > 0 else math.nan

    @property
    def error(self) -> float:
        """Standard error."""
        return self._error(self.variance)

    @property
    def noise_error(self) -> float:
        """Standard error from the noise alone."""
        return self._error(self.noise)

    def _error(self, variance: float) -> float:
        if self.W <= 0:
            return math.inf
        return math.sqrt(variance + (self.S / self.W * self.sigma_W) ** 2) / self.W

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return Fieller's (1954) interval: ``(S - t W)^2 <= q^2 (variance + t^2 sigma_W^2)``, or all numbers."""
        q2, tau2 = quantile(alpha, self.degrees) ** 2, self.sigma_W**2
        square = self.W**2 - q2 * tau2
        if self.W <= 0 or square <= 0:
            return -math.inf, math.inf
        root = math.sqrt(q2 * max(self.variance * square + tau2 * self.S**2, 0.0))
        low, high = ((self.S * self.W + sign * root) / square for sign in (-1, 1))
        return self.offset + low, self.offset + high

    def reported(self, alpha: float) -> bool:
        """Return whether the interval is bounded."""
        return math.isfinite(self.interval(alpha)[0])

    def pvalue(self, null: float = 0.0) -> float:
        """Return the p-value: below alpha exactly where the interval is bounded and excludes ``null``."""
        if self.W <= 0:
            return 1.0
        t = null - self.offset
        scale = math.sqrt(self.variance + (t * self.sigma_W) ** 2)
        apart = abs(self.S - t * self.W)
        statistic = apart / scale if scale else math.inf if apart else 0.0
        least = self.W / self.sigma_W if self.sigma_W else math.inf
        return float(two_sided(np.asarray(min(statistic, least)), self.degrees))


@dataclass(frozen=True)
class RatioOfMeans:
    """The ratio rho_0 + S / W of two means.

    S sums psi_1 - rho_0 psi_0, W sums psi_0. At a ratio rho the sum of psi_1 - rho psi_0 is S - t W with t = rho -
    rho_0. Its variance includes a covariance that is in no sum. The largest possible value, ``(sd(S) + |t| sd(W))^2``
    by Cauchy and Schwarz, makes the interval hold for any guess.

    Attributes:
        spread: sampling and nuisance variance of S.
        below: sampling variance of W.
    """

    offset: float
    S: float
    W: float
    spread: float
    below: float
    noise: float
    sigma_W: float
    degrees: float
    widened: bool = False

    def with_variance(self, variance: float) -> RatioOfMeans:
        """Return this ratio with another variance of S."""
        return replace(self, spread=variance - self.noise, widened=True)

    def as_wide_as(self, other: RatioOfMeans) -> RatioOfMeans:
        """Return this ratio with the other's variances and degrees."""
        wide = self.with_variance(other.variance)
        return replace(wide, below=max(self.below, other.below), sigma_W=other.sigma_W, degrees=other.degrees)

    @property
    def variance(self) -> float:
        """Variance of S, noise included."""
        return self.spread + self.noise

    @property
    def estimate(self) -> float:
        """The ratio, at least 0, as means are; NaN where W is not above 0."""
        return max(self.offset + self.S / self.W, 0.0) if self.W > 0 else math.nan

    @property
    def error(self) -> float:
        """Standard error at the maximum covariance."""
        return math.sqrt(self._variance_at(self.S / self.W)) / self.W if self.W > 0 else math.inf

    @property
    def noise_error(self) -> float:
        """Standard error from the noise alone."""
        return math.sqrt(self.noise + (self.S / self.W * self.sigma_W) ** 2) / self.W if self.W > 0 else math.inf

    def _variance_at(self, t: float) -> float:
        sampling = (math.sqrt(self.spread) + abs(t) * math.sqrt(self.below)) ** 2
        return sampling + self.noise + (t * self.sigma_W) ** 2

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return ratios >= 0 with ``(S - t W)^2 <= q^2 variance(t)``, or all numbers."""
        q2 = quantile(alpha, self.degrees) ** 2
        square = self.W**2 - q2 * (self.below + self.sigma_W**2)
        if self.W <= 0 or square <= 0:
            return -math.inf, math.inf
        ends = [0.0] if q2 * self.variance >= self.S**2 else []
        for side in (-1.0, 1.0):
            half = side * self.S * self.W + q2 * math.sqrt(self.spread * self.below)
            inside = half**2 - square * (self.S**2 - q2 * self.variance)
            roots = [half + sign * math.sqrt(inside) for sign in (-1.0, 1.0)] if inside >= 0 else []
            ends += [side * root / square for root in roots if root > 0]
        return max(self.offset + min(ends), 0.0), max(self.offset + max(ends), 0.0)

    def reported(self, alpha: float) -> bool:
        """Return whether the interval is bounded."""
        return math.isfinite(self.interval(alpha)[1])

    def pvalue(self, null: float = 1.0) -> float:
        """Return the p-value: below alpha only where the interval is bounded and excludes ``null``."""
        if self.W <= 0:
            return 1.0
        t = null - self.offset
        scale, apart = math.sqrt(self._variance_at(t)), abs(self.S - t * self.W)
        statistic = apart / scale if scale else math.inf if apart else 0.0
        deviation = math.sqrt(self.below + self.sigma_W**2)
        return float(two_sided(np.asarray(min(statistic, self.W / deviation if deviation else math.inf)), self.degrees))
