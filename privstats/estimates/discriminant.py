"""Linear discriminant analysis from noisy class sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from privstats.errors import HeadError
from privstats.estimates import denoise
from privstats.estimates.denoise import Array, NoisySums, denoise_spectrum

_PART = 0.25
"""Scale of the published scores relative to the head's: discriminants are overconfident; factors end at .3 and 4.5."""
_SPREAD_OF_TEMPERATURE = 0.7
"""Prior standard deviation of the logarithm of a discriminant's temperature."""


@dataclass(frozen=True)
class Discriminant:
    """Gaussian classes with one covariance ``V diag(values) V'``.

    Attributes:
        means: ``(C, d)``, about the sums' origin.
        vectors, values: V, ``(d, d)``, and eigenvalues above 0, ``(d,)``.
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
        """Build a discriminant from class sums with B (else ValueError); counts ``n`` are above 0."""
        means = denoise.class_means(sums, n)
        scatter = (denoise.within_scatter if covariance == "pooled" else denoise.total_scatter)(sums, n)
        spectrum = denoise_spectrum(scatter, sums.noise("B"))
        values, intensity = shrink_values(spectrum.values / n.sum(), n.sum(), shrinkage)
        return cls(means.values, spectrum.vectors, conditioned(values), intensity)

    def scores(self, log_priors: Array) -> tuple[Array, Array]:
        """Return ``w_c = Sigma^-1 mu_c``, ``(C, d)``, and ``b_c = log pi_c - mu_c' Sigma^-1 mu_c / 2``, ``(C,)``."""
        rotated = self.means @ self.vectors
        weighted = rotated / self.values
        return weighted @ self.vectors.T, log_priors - np.einsum("cd,cd->c", rotated, weighted) / 2


def published_weights(coef: Array, intercept: Array) -> Array:
    """Return W, ``(C, d + 1)``: ``W u`` is a quarter of ``coef x + intercept``, ``u = (sqrt(1 - a^2) x, a)``, |x| = 1.

    The mean over classes is subtracted: no probability depends on it.
    """
    from privstats.estimates.softmax import INTERCEPT

    weights = np.column_stack([coef / math.sqrt(1 - INTERCEPT**2), intercept / INTERCEPT])
    return np.asarray(_PART * (weights - weights.mean(axis=0)))


def temperature(sums: Array, sigma: float, factors: Sequence[float]) -> float:
    """Return the divisor of a discriminant's scores that calibrates them, from sums at :func:`published_weights`."""
    from privstats.estimates import softmax

    return softmax.temperature(sums, sigma, [_PART * factor for factor in factors], _SPREAD_OF_TEMPERATURE)


Shrinkage: TypeAlias = Literal["auto", "oas"] | float | None
Priors: TypeAlias = Literal["counts", "uniform"]

_FLOOR = 1e-9
"""Floor of an eigenvalue over the mean one: far above float64 rounding of moments, far below any real variance."""


def oas(values: Array, n: float) -> float:
    """Return the oracle approximating shrinkage intensity from a covariance's eigenvalues and its n records.

    ``min(1, (tr(S^2)/d + mu^2) / ((n + 1) (tr(S^2)/d - mu^2 / d)))``, mu = tr(S)/d, as scikit-learn's ``oas``
    (Chen, Wiesel, Eldar and Hero 2010, eq. 23); 1 for a zero covariance.
    """
    d = len(values)
    square, mu2 = float(np.square(values).mean()), float(values.mean()) ** 2
    denominator = (n + 1) * (square - mu2 / d)
    return 1.0 if denominator <= 0 else min(1.0, (square + mu2) / denominator)


def round_prior(d: int, n: Array | float) -> Any:
    """Return the intensity ``d / (d + 2 n)``: a round covariance weighs d / 2 records (inverse Wishart prior)."""
    return d / (d + 2 * n)


def shrink_values(values: Array, n: float, shrinkage: Shrinkage) -> tuple[Array, float]:
    """Return shrunk eigenvalues ``(1 - a) l + a mean(l)``, and the intensity a."""
    if shrinkage is None:
        intensity = 0.0
    elif shrinkage == "auto":
        intensity = round_prior(len(values), n)
    elif shrinkage == "oas":
        intensity = oas(values, n)
    else:
        intensity = float(shrinkage)
    return (1 - intensity) * values + intensity * values.mean(), intensity


def conditioned(values: Array, step: float = 0.0) -> Array:
    """Return invertible eigenvalues (last axis): floored relative to their mean, or all 1 where all are 0.

    For records on a grid no variance is below ``step^2 / 4``: rounding moves a row by up to half a step.
    """
    values = np.maximum(values, 0.0)
    mean = values.mean(axis=-1, keepdims=True)
    floored = np.where(mean > np.finfo(np.float64).tiny, np.maximum(values, _FLOOR * mean), 1.0)
    return np.maximum(floored, step**2 / 4)


def log_priors(priors: Any, n: Array) -> Array:
    """Return log prior probabilities, ``(C,)``; HeadError unless there are C priors, which must be positive."""
    if isinstance(priors, str) and priors in ("counts", "uniform"):
        weights = n if priors == "counts" else np.ones_like(n)
    else:
        weights = np.asarray(priors, dtype=np.float64)
        if weights.shape != n.shape:
            raise HeadError(f"priors must be 'counts', 'uniform' or {len(n)} positive numbers, one per remaining class")
    return np.asarray(np.log(weights / weights.sum()))
