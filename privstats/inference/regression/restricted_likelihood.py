"""Fit a random intercept by REML from sums within sites at a few pulls, without noise.

A site of n records of mean m adds ``f(l) m m'`` between sites to ``Q(l)``, f(l) = n l / (n + l). ``T(lambda) = sum w_i
Q(l_i)``, weights summing to 1, approximates Q where ``sum w_i f(l_i)`` is close to f(lambda) for all site sizes. REML's
log-determinant has derivative ``-T_11 / lambda^2`` in lambda, T_11 the constant's entry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from privstats.estimates.denoise import Array
from privstats.inference.inversion import quantile, two_sided

LEVELS: Array = np.geomspace(0.3, 1000.0, 200)
"""Ratios of residual to site variance among which REML chooses."""

_SIZES = 60
_RIDGE = 1e-6
_STEP = 1  # grid points to either side for a derivative


def pull_weights(pulls: Sequence[float], sizes: tuple[int, int]) -> Array:
    """Return the pulls' weights per level, ``(200, L)``, each summing to 1.

    They minimise the squared relative error of ``sum w_i f(l_i)``.
    """
    n = np.geomspace(*sizes, _SIZES)[:, None]
    at_pulls, at_levels = (n * each / (n + each) for each in (np.array(pulls), LEVELS))
    weights = np.empty((len(LEVELS), len(pulls)))
    for place, wanted in enumerate(at_levels.T):
        near = at_pulls / wanted[:, None]
        bordered = np.ones((len(pulls) + 1, len(pulls) + 1))
        bordered[:-1, :-1] = near.T @ near + _RIDGE * np.eye(len(pulls))
        bordered[-1, -1] = 0.0
        weights[place] = np.linalg.solve(bordered, np.append(near.sum(axis=0), 1.0))[:-1]
    return weights


@dataclass(frozen=True, eq=False)
class Reml:
    """The restricted likelihood over :data:`LEVELS`; T ``(200, p + 1, p + 1)`` is by columns, constant, target."""

    T: Array
    constant: float
    records: float

    @cached_property
    def criterion(self) -> Array:
        """Minus twice the profiled restricted log-likelihood, up to a constant."""
        p = self.T.shape[1] - 1
        out = np.full(len(LEVELS), np.inf)
        for place, T in enumerate(self.T):
            values = np.linalg.eigvalsh(T)
            if values[0] <= len(T) * np.finfo(np.float64).eps * values[-1]:
                continue
            sign, log_gram = np.linalg.slogdet(T[:-1, :-1])
            residual = float(np.linalg.slogdet(T)[1] - log_gram)  # log of q - h'G^-1 h
            out[place] = (self.records - p) * residual + log_gram + self._log_sites[place] if sign > 0 else np.inf
        return out

    @property
    def best(self) -> int | None:
        """Index of the most likely level; None for collinear columns."""
        place = int(self.criterion.argmin())
        return place if math.isfinite(self.criterion[place]) else None

    @cached_property
    def _log_sites(self) -> Array:
        """sum log(1 + n_k / lambda), by trapezoids in log lambda."""
        slope = self.T[:, -2, -2] / self.constant**2 / LEVELS  # minus the derivative in log lambda
        steps = (slope[1:] + slope[:-1]) / 2 * np.diff(np.log(LEVELS))
        return np.append(np.cumsum(steps[::-1])[::-1], 0.0)

    def moving(self, contrasts: Array, place: int) -> Array:
        """Return the share of each contrast's variance due to the sites' levels, ``(m,)``.

        It is -d log var / d log lambda. Levels without a likelihood are skipped; without any neighbour the share is 1,
        which widens the intervals.
        """
        around = range(max(place - _STEP, 0), min(place + _STEP, len(LEVELS) - 1) + 1)
        near = [k for k in around if k == place or math.isfinite(self.criterion[k])]
        low, high = near[0], near[-1]
        if low == high:
            return np.ones(len(contrasts))
        at = [np.einsum("ij,jk,ik->i", contrasts, np.linalg.inv(self.T[k, :-1, :-1]), contrasts) for k in (low, high)]
        return np.asarray(np.log(at[0] / at[1]) / math.log(LEVELS[high] / LEVELS[low]))


@dataclass(frozen=True, eq=False)
class MixedErrors:
    """Wald tests and intervals of a mixed model without noise.

    ``degrees`` of freedom are 0 where a parameter is not reported.
    """

    estimate: Array
    covariance: Array
    degrees: Array

    @property
    def error(self) -> Array:
        """Standard error, ``(m,)``."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def noise_error(self) -> Array:
        """0, without noise."""
        return np.zeros(len(self.estimate))

    @property
    def df(self) -> Array:
        """Degrees of freedom, ``(m,)``."""
        return self.degrees

    def reported(self, alpha: float) -> NDArray[np.bool_]:  # noqa: ARG002  the same at every level
        """Return whether enough sites determine the parameter."""
        return np.asarray(self.degrees > 0)

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return (estimate - ``null``) / standard error."""
        return np.asarray((self.estimate - null) / self.error)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Return two-sided p-values; 1 where not reported."""
        sizes = np.abs(self.statistics(null))
        pairs = zip(sizes, self.degrees, strict=True)
        return np.array([float(two_sided(size, degrees)) if degrees > 0 else 1.0 for size, degrees in pairs])

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; about exact sums, both the estimate."""
        reach = np.array([quantile(alpha, degrees) if degrees > 0 else np.inf for degrees in self.degrees])
        margin = reach * self.error if sampling else np.where(self.degrees > 0, 0.0, np.inf)
        return self.estimate - margin, self.estimate + margin

    def combined(self, rows: Array) -> MixedErrors:
        """Return combinations, with minimum degrees of freedom."""
        degrees = np.where(rows != 0, self.degrees, np.inf).min(axis=1)
        return MixedErrors(rows @ self.estimate, rows @ self.covariance @ rows.T, degrees)

    def joint_pvalue(self) -> float:
        """Return the F law's joint p-value."""
        degrees, r = float(self.degrees.min()), len(self.estimate)
        if degrees <= 0:
            return 1.0
        return float(fdtrc(r, degrees, float(self.estimate @ np.linalg.solve(self.covariance, self.estimate)) / r))
