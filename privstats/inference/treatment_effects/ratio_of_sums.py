"""A ratio of noisy sums of independent records, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.inference.inversion import quantile, two_sided

__all__ = ["RatioOfSums"]


@dataclass(frozen=True)
class RatioOfSums:
    """A ratio theta_0 + S / W of noisy sums of independent records.

    Attributes:
        offset: theta_0.
        S, W: the sums, in units of the outcome and in records.
        variance: of S, sampling and noise together.
        noise: the part of it that is noise.
        sigma_W: noise standard deviation of W.
        degrees: of freedom of the variance.
    """

    offset: float
    S: float
    W: float
    variance: float
    noise: float
    sigma_W: float
    degrees: float

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
        """Fieller's (1954): the t with ``(S - t W)^2 <= q^2 (variance + t^2 sigma_W^2)``, or all numbers."""
        q2, tau2 = quantile(alpha, self.degrees) ** 2, self.sigma_W**2
        square = self.W**2 - q2 * tau2
        if self.W <= 0 or square <= 0:
            return -math.inf, math.inf
        root = math.sqrt(q2 * max(self.variance * square + tau2 * self.S**2, 0.0))
        low, high = ((self.S * self.W + sign * root) / square for sign in (-1, 1))
        return self.offset + low, self.offset + high

    def told(self, alpha: float) -> bool:
        """Whether the interval is bounded."""
        return math.isfinite(self.interval(alpha)[0])

    def pvalue(self, null: float = 0.0) -> float:
        """Two-sided; below alpha exactly where the interval at alpha is bounded and leaves ``null`` out."""
        if self.W <= 0:
            return 1.0
        t = null - self.offset
        scale = math.sqrt(self.variance + (t * self.sigma_W) ** 2)
        apart = abs(self.S - t * self.W)
        statistic = apart / scale if scale else math.inf if apart else 0.0
        least = self.W / self.sigma_W if self.sigma_W else math.inf
        return float(two_sided(np.asarray(min(statistic, least)), self.degrees))
