"""What Gaussian noise of known level has left of a symmetric matrix, and of a quantity that cannot be negative.

Not an estimate of any one statistic: those call this. With noise 0 every function returns the plain estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

__all__ = ["Array", "Spectrum", "denoise_spectrum", "positive_part"]

Array: TypeAlias = NDArray[np.float64]

_FAR_BELOW = 30.0
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Spectrum:
    """A symmetric positive semi-definite estimate as eigenvalues and eigenvectors.

    Attributes:
        values: shape ``(d,)``, ascending order of the noisy eigenvalues, never negative.
        vectors: orthonormal columns, ``(d, d)``.
        lost: estimated share of the signal (squared spread of the eigenvalues) that noise made unrecoverable, 0..1;
            never below what its own error allows.
        risk: estimated squared Frobenius error of the estimate.
    """

    values: Array
    vectors: Array
    lost: float
    risk: float


def positive_part(estimate: Array | float, error: Array | float) -> Array:
    """Posterior mean of a quantity known to be >= 0, given an unbiased Gaussian estimate and its standard error.

    The mean of N(estimate, error^2) truncated to [0, inf): always above 0 where error > 0, and ``max(estimate, 0)``
    where error is 0. In place of a hard ``max``, so that weak evidence shrinks to little and never to nothing.
    """
    estimate, error = np.broadcast_arrays(np.asarray(estimate, np.float64), np.asarray(error, np.float64))
    safe = np.where(error > 0, error, 1.0)
    lower = -estimate / safe
    far = lower > _FAR_BELOW  # there the inverse Mills ratio less its argument cancels; its asymptote is 1 / argument
    near = np.where(far, 0.0, np.maximum(lower, -_FAR_BELOW))
    mills = np.exp(-np.square(near) / 2 - _LOG_SQRT_2PI - log_ndtr(-near))
    shifted = np.where(far, safe / np.where(far, lower, 1.0), estimate + safe * mills)
    return np.where(error > 0, np.maximum(shifted, 0.0), np.maximum(estimate, 0.0))


def denoise_spectrum(matrix: Array, sigma: float, *, pull: bool = True) -> Spectrum:
    """The positive semi-definite matrix behind a symmetric one with GOE noise.

    Rotation-invariant estimate (eigenvectors kept, eigenvalues corrected; Bun, Bouchaud and Potters 2017):
    ``xi_i = l_i - 2 s^2 sum_{j != i} (l_i - l_j) / ((l_i - l_j)^2 + s^2)``, s^2 = sigma^2 / 2, made monotone by
    isotonic regression and >= 0. With ``pull`` the eigenvalues then move the share ``sqrt(lost)`` of the way to their
    mean: what noise has hidden is better called round than guessed.

    Args:
        matrix: symmetric, shape ``(d, d)``.
        sigma: noise standard deviation on the diagonal; sigma / sqrt 2 off it.
        pull: whether to pull toward the mean eigenvalue.
    """
    from sklearn.isotonic import isotonic_regression  # slow to import, and whoever measures does not wait for it

    values, vectors = np.linalg.eigh(matrix)
    if sigma == 0:
        return Spectrum(np.maximum(values, 0.0), vectors, 0.0, 0.0)
    d, s2 = len(values), sigma**2 / 2
    gaps = values[:, None] - values
    corrected = values - 2 * s2 * (gaps / (np.square(gaps) + s2)).sum(axis=1)
    xi = np.maximum(isotonic_regression(corrected), 0.0)
    noise = s2 * d * (d + 1)
    signal = max(float(np.square(values - values.mean()).sum()) - noise, 0.0)
    found = float(np.square(xi - xi.mean()).sum())
    lost = min(1.0, max(_least_lost(signal, noise, d), 1 - found / signal)) if signal > 0 else 1.0
    if pull:
        kappa = math.sqrt(lost)
        xi = (1 - kappa) * xi + kappa * xi.mean()
    return Spectrum(xi, vectors, lost, min(noise, lost * signal) if signal > 0 else noise)


def _least_lost(signal: float, noise: float, d: int) -> float:
    """How much of the signal must be called lost, whatever the estimate of what was found says.

    Under strong noise signal is a small difference of large numbers, and what was found passes it by chance just where
    least is known. So lost is no less than two standard deviations of the sum of squares of the noise, each
    2 / sqrt(d (d + 1)) of its mean, over signal; or half of what linear shrinkage loses, where that is less.
    """
    return min(0.5 * noise / (signal + noise), 4 / math.sqrt(d * (d + 1)) * noise / signal)
