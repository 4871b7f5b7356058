"""Shrinkage of covariance eigenvalues and priors of classes, from moments alone.

Shrinkage corrects for few records; ``denoise`` removes what the mechanism added.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from privstats.errors import HeadError
from privstats.estimates.spectrum import Array

__all__ = ["Priors", "Shrinkage", "conditioned", "log_priors", "oas", "round_prior", "shrink_values"]

Shrinkage: TypeAlias = Literal["auto", "oas"] | float | None
Priors: TypeAlias = Literal["counts", "uniform"]

_SMALLEST_RATIO = 1e-9
"""Floor of an eigenvalue over the mean one: far above float64 rounding of moments, far below any real variance."""


def oas(values: Array, n: float) -> float:
    """Oracle approximating shrinkage intensity from the eigenvalues of a covariance of n records.

    ``min(1, (tr(S^2)/d + mu^2) / ((n + 1) (tr(S^2)/d - mu^2 / d)))``, mu = tr(S)/d, the form of scikit-learn's ``oas``
    (Chen, Wiesel, Eldar and Hero 2010, eq. 23). It needs only the spectrum and the count, hence only moments; 1 for a
    covariance that is 0.
    """
    d = len(values)
    square, mu2 = float(np.square(values).mean()), float(values.mean()) ** 2
    denominator = (n + 1) * (square - mu2 / d)
    return 1.0 if denominator <= 0 else min(1.0, (square + mu2) / denominator)


def round_prior(d: int, n: Array | float) -> Any:
    """Shrinkage intensity ``d / (d + 2 n)``: a round covariance counts as much as d / 2 records.

    The posterior mean under an inverse Wishart prior of that weight. OAS minimises the error of the matrix,
    which is not the error of the classifier, where records are few; with thousands per class both are the same.
    """
    return d / (d + 2 * n)


def shrink_values(values: Array, n: float, shrinkage: Shrinkage) -> tuple[Array, float]:
    """Eigenvalues pulled toward their mean, ``(1 - a) l + a mean(l)``, and the intensity a that was used."""
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
    """Eigenvalues (last axis) that can be inverted: floored relative to their mean, or all 1 where all are 0.

    A direction without variance (a constant coordinate, fewer records than dimensions) gets a small variance and not
    an infinite weight, so exactly singular covariances need no special case anywhere.

    Args:
        values: eigenvalues or variances.
        step: of the grid that the records were rounded to, 0 for none. No variance is below ``step^2 / 4``: rounding
            moves a row by up to half a step, and a row at prediction is not rounded.
    """
    values = np.maximum(values, 0.0)
    mean = values.mean(axis=-1, keepdims=True)
    floored = np.where(mean > np.finfo(np.float64).tiny, np.maximum(values, _SMALLEST_RATIO * mean), 1.0)
    return np.maximum(floored, step**2 / 4)


def log_priors(priors: Any, n: Array) -> Array:
    """Log prior probabilities, shape ``(C,)``, from ``"counts"``, ``"uniform"`` or given probabilities.

    Raises:
        HeadError: given priors are not C positive finite numbers.
    """
    if isinstance(priors, str) and priors in ("counts", "uniform"):
        weights = n if priors == "counts" else np.ones_like(n)
    else:
        weights = np.asarray(priors, dtype=np.float64)
        if weights.shape != n.shape:
            raise HeadError(
                f"priors must be 'counts', 'uniform' or {len(n)} positive numbers, one per class that is left"
            )
    return np.asarray(np.log(weights / weights.sum()))
