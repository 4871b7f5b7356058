"""Standard errors from disjoint parts of the records: the change of the estimate when one part is left out.

They need no model of the residual variance. The parts are a ridge schema's folds, in which a record's fold is a public
hash of the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from privstats.estimates.spectrum import Array
from privstats.inference.evidence import Parts
from privstats.inference.inversion import Inversion, quantile, two_sided

__all__ = ["FEWEST_PARTS", "PartErrors", "uneven"]

FEWEST_PARTS = 8
"""With fewer parts the quantiles of their few degrees of freedom are too wide to be of use."""

_UNEVEN_BELOW = 1e-3


@dataclass(frozen=True)
class PartErrors:
    """Wald tests and intervals about the whole solution, with errors from leaving out one part at a time.

    ``se_j^2 = (F - 1) / F sum_f (w_(f) - w)_j^2`` with w_(f) from the sums without part f, and Student's t with F - 1
    degrees. The parts carry the noise of the sums already. A parameter is told where test inversion tells it at that
    quantile and every G without a part is positive definite.

    Attributes:
        inversion: of the whole sums, with F - 1 degrees.
        parts: the sums of the parts.
    """

    inversion: Inversion
    parts: Parts

    @property
    def estimate(self) -> Array:
        """Parameters at the solution, ``(m,)``."""
        return self.inversion.estimate

    @property
    def noise_error(self) -> Array:
        """Standard error from the noise alone, ``(m,)``."""
        return self.inversion.noise_error

    @cached_property
    def error(self) -> Array:
        """Standard error, ``(m,)``; infinite where the sums without some part determine nothing."""
        F = len(self.parts.G)
        if not self._positive:
            return np.full(len(self.estimate), np.inf)
        left = np.linalg.solve(self._remaining, (self.inversion.equations.h - self.parts.h)[..., None])[..., 0]
        moved = left @ self.inversion.contrasts.T - self.estimate
        return np.asarray(np.sqrt((F - 1) / F * np.square(moved).sum(axis=0)))

    def told(self, alpha: float) -> NDArray[np.bool_]:
        """Whether the interval at this level is bounded."""
        return self.inversion.told(alpha) & self._positive

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Estimate less ``null``, over its standard error."""
        with np.errstate(invalid="ignore"):
            step = self.estimate - null
            return np.where(step == 0, 0.0, step / self.error)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Two-sided p-values of "parameter == null", never below the level at which the parameter is told."""
        least = self.inversion.least_level() if self._positive else np.ones(len(self.estimate))
        return np.maximum(two_sided(np.abs(self.statistics(null)), self.inversion.degrees), least)

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Ends of the intervals; about the exact sums, those of :meth:`Inversion.interval`."""
        if not sampling:
            low, high = self.inversion.interval(alpha, sampling=False)
        else:
            margin = quantile(alpha, self.inversion.degrees) * self.error
            low, high = self.estimate - margin, self.estimate + margin
        told = self.told(alpha)
        return np.where(told, low, -np.inf), np.where(told, high, np.inf)

    def combined(self, rows: Array) -> PartErrors:
        """The same of linear combinations of the parameters, ``(r, m)``."""
        return PartErrors(self.inversion.combined(rows), self.parts)

    def joint_pvalue(self) -> float:
        """p-value of "all parameters are 0", with one residual variance."""
        return self.inversion.joint_pvalue()

    @cached_property
    def _remaining(self) -> Array:
        return np.asarray(self.inversion.equations.G - self.parts.G)

    @cached_property
    def _positive(self) -> bool:
        values = np.linalg.eigvalsh(self._remaining)
        return bool((values[:, 0] > values.shape[1] * np.finfo(np.float64).eps * values[:, -1]).all())


def uneven(parts: Parts) -> bool:
    """Whether parts differ in size by more than a hash of different records gives: equal records share a part."""
    F = len(parts.records)
    expected = parts.records.sum() / F
    spread = np.square(parts.records - expected).sum() / (expected + parts.records_sigma**2)
    return bool(expected <= 0 or chdtrc(F - 1, spread) < _UNEVEN_BELOW)
