"""Linear discriminant analysis from noisy class sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from privstats.errors import HeadError
from privstats.estimates import denoise
from privstats.estimates.algebra import Array, algebra
from privstats.estimates.denoise import NoisySums, denoise_spectrum

_PART = 0.25
"""Scale of the published scores relative to the head's: discriminants are overconfident; factors end at .3 and 4.5."""
_SPREAD_OF_TEMPERATURE = 0.7
"""Prior standard deviation of the logarithm of a discriminant's temperature."""


@dataclass(frozen=True)
class Discriminant:
    """Gaussian classes with one covariance.

    Attributes:
        means: ``(C, d)``, about the sums' origin.
        covariance: ``(d, d)``, positive definite.
        weights: ``w_c = Sigma^-1 mu_c``, ``(C, d)``.
        squares: ``mu_c' Sigma^-1 mu_c``, ``(C,)``.
        shrinkage: the intensity used.
    """

    means: Array
    covariance: Array
    weights: Array
    squares: Array
    shrinkage: float

    @classmethod
    def of(
        cls,
        sums: NoisySums,
        n: Array,
        covariance: Literal["pooled", "total"] = "pooled",
        shrinkage: Shrinkage = "auto",
    ) -> Discriminant:
        """Build a discriminant from class sums with B (else ValueError); counts ``n`` are above 0.

        Without noise and with enough shrinkage no eigenvalue is corrected or floored. The covariance is then factored
        by Cholesky, at d^3 / 3 products in place of some 9 d^3 for eigenvectors.
        """
        means = denoise.class_means(sums, n)
        scatter = denoise.within_scatter if covariance == "pooled" else denoise.total_scatter
        if sums.noise("B") == 0:
            found = _factored(means.values, scatter(sums, n), float(n.sum()), shrinkage)
            if found is not None:
                return found
        spectrum = denoise_spectrum(scatter(sums, n), sums.noise("B"))
        values, a = shrink_values(spectrum.values / n.sum(), n.sum(), shrinkage)
        values, vectors = conditioned(values), spectrum.vectors
        rotated = algebra().product(means.values, vectors)
        weighted = rotated / values
        weights, squares = algebra().product(weighted, vectors.T), np.einsum("cd,cd->c", rotated, weighted)
        return cls(means.values, algebra().composed(values, vectors), weights, squares, a)

    def scores(self, log_priors: Array) -> tuple[Array, Array]:
        """Return ``w_c``, ``(C, d)``, and ``b_c = log pi_c - mu_c' Sigma^-1 mu_c / 2``, ``(C,)``."""
        return self.weights, log_priors - self.squares / 2


def _factored(means: Array, scatter: Array, n: float, shrinkage: Shrinkage) -> Discriminant | None:
    """Return the discriminant of an exact scatter, or None where its spectrum must be known.

    The covariance overwrites the scatter, so no second matrix of that size is allocated. A scatter is positive
    semi-definite up to rounding, so eigenvalues are at least the intensity times their mean.
    """
    d = len(scatter)
    mean = float(np.trace(scatter)) / n / d
    square = float(np.einsum("ij,ij->", scatter, scatter)) / n**2 / d if shrinkage == "oas" else 0.0
    a = intensity(shrinkage, d, n, mean, square)
    if a < _ENOUGH or mean <= np.finfo(np.float64).tiny:
        return None
    covariance = np.multiply(scatter, (1 - a) / n, out=scatter)
    covariance.flat[:: d + 1] += a * mean
    solved = algebra().solved(covariance, means.T)
    if solved is None:  # sums that no records have
        return None
    weights = solved.T
    return Discriminant(means, covariance, weights, np.einsum("cd,cd->c", means, weights), a)


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
_ENOUGH = 1e-6
"""Intensity of shrinkage above which no eigenvalue of an exact covariance is near the floor."""


def oas(mean: float, square: float, d: int, n: float) -> float:
    """Return the oracle approximating shrinkage intensity from a covariance's eigenvalues and its n records.

    ``min(1, (tr(S^2)/d + mu^2) / ((n + 1) (tr(S^2)/d - mu^2 / d)))``, mu = tr(S)/d, as scikit-learn's ``oas``
    (Chen, Wiesel, Eldar and Hero 2010, eq. 23); 1 for a zero covariance.

    Args:
        mean, square: means of the d eigenvalues and of their squares.
    """
    mu2 = mean**2
    denominator = (n + 1) * (square - mu2 / d)
    return 1.0 if denominator <= 0 else min(1.0, (square + mu2) / denominator)


def round_prior(d: int, n: Array | float) -> Any:
    """Return the intensity ``d / (d + 2 n)``: a round covariance weighs d / 2 records (inverse Wishart prior)."""
    return d / (d + 2 * n)


def intensity(shrinkage: Shrinkage, d: int, n: float, mean: float, square: float) -> float:
    """Return the intensity that ``shrinkage`` means, from the means of d eigenvalues and of their squares."""
    if shrinkage is None:
        return 0.0
    if shrinkage == "auto":
        return float(round_prior(d, n))
    return oas(mean, square, d, n) if shrinkage == "oas" else float(shrinkage)


def shrink_values(values: Array, n: float, shrinkage: Shrinkage) -> tuple[Array, float]:
    """Return shrunk eigenvalues ``(1 - a) l + a mean(l)``, and the intensity a."""
    a = intensity(shrinkage, len(values), n, float(values.mean()), float(np.square(values).mean()))
    return (1 - a) * values + a * values.mean(), a


def conditioned(values: Array, spacing: float = 0.0) -> Array:
    """Return invertible eigenvalues (last axis): floored relative to their mean, or all 1 where all are 0.

    For records on a grid no variance is below ``spacing^2 / 4``: rounding moves a row by up to half the spacing.
    """
    values = np.maximum(values, 0.0)
    mean = values.mean(axis=-1, keepdims=True)
    floored = np.where(mean > np.finfo(np.float64).tiny, np.maximum(values, _FLOOR * mean), 1.0)
    return np.maximum(floored, spacing**2 / 4)


def log_priors(priors: Any, n: Array) -> Array:
    """Return log prior probabilities, ``(C,)``; HeadError unless there are C priors, which must be positive."""
    if isinstance(priors, str) and priors in ("counts", "uniform"):
        weights = n if priors == "counts" else np.ones_like(n)
    else:
        weights = np.asarray(priors, dtype=np.float64)
        if weights.shape != n.shape:
            raise HeadError(f"priors must be 'counts', 'uniform' or {len(n)} positive numbers, one per remaining class")
    return np.asarray(np.log(weights / weights.sum()))
