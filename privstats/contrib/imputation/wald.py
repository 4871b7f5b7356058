"""Test log odds that chance, gaps and noise move, by the normal law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from privstats.extend.readers import MixedErrors, quantile
from privstats.extend.support import Array

# Noise of a log odds. Noise that inflates a count also makes its error look small: with a limit L on the noise's
# deviation over the count, a count of exp(-1.96 L) / L deviations is reported and missed with a chance of 4.7 % at L =
# 1/6, 5.3 % at 1/5 and 7.5 % at 1/3.
_MAX_NOISE = 1 / 6
_MAX_ERROR = 2.0  # of a log odds: beyond, hardly a record has the value together with the other


@dataclass(frozen=True, eq=False)
class WaldErrors(MixedErrors):
    """Tests and intervals by the normal law."""

    noise: Array

    @classmethod
    def of(cls, estimate: Array, covariance: Array, noise: Array) -> WaldErrors:
        """Return the errors of log odds; one that noise or gaps hide has no degrees of freedom.

        Covariances are NaN of what has no unique value.
        """
        error, moved = (np.sqrt(np.maximum(np.diag(each), 0.0)) for each in (covariance, noise))
        clear = (error <= _MAX_ERROR) & (moved <= _MAX_NOISE)
        return cls(estimate, np.nan_to_num(covariance), np.where(clear, np.inf, 0.0), np.nan_to_num(noise))

    @property
    def error(self) -> Array:
        """Standard errors, ``(m,)``; infinite where not reported."""
        return self._shown(self.covariance)

    @property
    def noise_error(self) -> Array:
        """Standard errors from noise alone, ``(m,)``; infinite where not reported."""
        return self._shown(self.noise)

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; about exact sums, with the noise's error alone."""
        margin = quantile(alpha, math.inf) * (self.error if sampling else self.noise_error)
        return self.estimate - margin, self.estimate + margin

    def combined(self, rows: Array) -> WaldErrors:
        """Return linear combinations, ``(r, m)``; of reported parameters alone they are reported."""
        degrees = np.where(rows != 0, self.degrees, np.inf).min(axis=1)
        both = (rows @ each @ rows.T for each in (self.covariance, self.noise))
        return WaldErrors(rows @ self.estimate, next(both), degrees, next(both))

    def joint_pvalue(self) -> float:
        """Return the chi-squared law's joint p-value; 1 where a parameter is not reported."""
        if not self.degrees.all():
            return 1.0
        statistic = float(self.estimate @ np.linalg.solve(self.covariance, self.estimate))
        return float(chdtrc(len(self.estimate), statistic))

    def _shown(self, covariance: Array) -> Array:
        variance = np.where(self.degrees > 0, np.diag(covariance), np.inf)
        return np.sqrt(np.maximum(variance, 0.0))
