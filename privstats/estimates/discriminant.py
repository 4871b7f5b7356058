"""Linear discriminant analysis from noisy class sums, and the public map by which a course calibrates it.

The computation of ``heads.LDA``, as a function of real numbers: the course that sums how sure a discriminant is must
publish the very scores that the head gives, and the head must read the sums as the course published them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privstats.estimates import denoise
from privstats.estimates.noisy_sums import NoisySums
from privstats.estimates.shrinkage import Shrinkage, conditioned, shrink_values
from privstats.estimates.spectrum import Array, denoise_spectrum

__all__ = ["Discriminant", "published_weights", "temperature"]

_PART = 0.25
"""What published scores are of the head's: discriminants are bold, and the factors end at .3 and 4.5."""
_SPREAD = 0.7
"""Prior standard deviation of the logarithm of a discriminant's temperature."""


@dataclass(frozen=True)
class Discriminant:
    """Gaussian classes with means of their own and one covariance ``V diag(values) V'``.

    Attributes:
        means: ``(C, d)``, about the origin of the sums.
        vectors: V, ``(d, d)``, orthonormal columns.
        values: eigenvalues, ``(d,)``, all above 0.
        shrinkage: the intensity that was used.

    Example:
        >>> from privstats.estimates.discriminant import Discriminant
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
        >>> sums = NoisyClassSums(np.array([50.0, 50.0]), 40 * np.eye(2), 50 * np.eye(2), dict.fromkeys("NAB", 0.0))
        >>> coef, intercept = Discriminant.of(sums, sums.N).scores(np.log([0.5, 0.5]))
        >>> bool(coef[0, 0] > coef[1, 0]), bool(intercept[0] == intercept[1])
        (True, True)
    """

    means: Array
    vectors: Array
    values: Array
    shrinkage: float

    @classmethod
    def of(
        cls,
        sums: NoisySums,
        n: Array,
        covariance: Literal["pooled", "total"] = "pooled",
        shrinkage: Shrinkage = "auto",
    ) -> Discriminant:
        """From class sums with B.

        Args:
            sums: with noise or without.
            n: counts, ``(C,)``, all above 0 (``denoise.counts``).
            covariance: within classes, or of all records about the grand mean.
            shrinkage: of the eigenvalues toward their mean.

        Raises:
            ValueError: without B.
        """
        means = denoise.class_means(sums, n)
        scatter = (denoise.within_scatter if covariance == "pooled" else denoise.total_scatter)(sums, n)
        spectrum = denoise_spectrum(scatter, sums.noise("B"))
        values, intensity = shrink_values(spectrum.values / n.sum(), n.sum(), shrinkage)
        return cls(means.values, spectrum.vectors, conditioned(values), intensity)

    def scores(self, log_priors: Array) -> tuple[Array, Array]:
        """``w_c = Sigma^-1 mu_c``, ``(C, d)``, and ``b_c = log pi_c - mu_c' Sigma^-1 mu_c / 2``, ``(C,)``."""
        rotated = self.means @ self.vectors
        weighted = rotated / self.values
        return weighted @ self.vectors.T, log_priors - np.einsum("cd,cd->c", rotated, weighted) / 2


def published_weights(coef: Array, intercept: Array) -> Array:
    """W, ``(C, d + 1)``: scores ``W u`` of ``u = (sqrt(1 - a^2) x, a)``, a quarter of ``coef x + intercept``, |x| = 1.

    Less what all classes share, which no probability depends on, so that the published integers are fine enough.

    Args:
        coef: ``(C, d)``.
        intercept: ``(C,)``.
    """
    from privstats.estimates.softmax import INTERCEPT

    weights = np.column_stack([coef / math.sqrt(1 - INTERCEPT**2), intercept / INTERCEPT])
    return np.asarray(_PART * (weights - weights.mean(axis=0)))


def temperature(sums: Array, sigma: float, factors: Sequence[float]) -> float:
    """What a discriminant's scores are to be divided by.

    Args:
        sums: of a calibration at :func:`published_weights`.
        sigma: noise standard deviation of each; 0 without noise.
        factors: those of the calibration.

    Example:
        >>> from privstats.estimates.discriminant import temperature
        >>> round(temperature(np.array([0.0, 5.0]), 0.0, (1.0, 2.0)), 1)  # hits meet the confidence at a quarter
        4.0
    """
    from privstats.estimates import calibration

    return calibration.temperature(sums, sigma, [_PART * factor for factor in factors], _SPREAD)
