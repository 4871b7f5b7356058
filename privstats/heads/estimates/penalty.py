"""The ridge penalty from sums alone: generalised cross-validation, marginal likelihood, or fold sums.

``least_squares`` calls these with denoised sums; fold sums may stay noisy, because their loss is unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privstats.estimates.spectrum import denoise_spectrum
from privstats.heads.evidence import Array

__all__ = ["SINGULAR", "GramSpectrum", "fold_losses", "gcv_penalty", "likelihood_penalty", "penalty_grid"]

SINGULAR = 1e-14
"""Share of the largest eigenvalue up to which an eigenvalue is taken for 0."""

_EXPONENTS = np.linspace(-9.0, 4.0, 131)


@dataclass(frozen=True)
class GramSpectrum:
    """A Gram matrix in its eigenbasis, with the moment vector rotated into it.

    Attributes:
        values: eigenvalues, ``(d,)``, not negative.
        raw: the same before rounding and noise below 0 were cut off.
        vectors: orthonormal columns, ``(d, d)``.
        rotated: ``vectors.T @ h``, ``(d, T)``.
    """

    values: Array
    raw: Array
    vectors: Array
    rotated: Array

    @classmethod
    def of(cls, G: Array, h: Array) -> GramSpectrum:
        """The spectrum of a symmetric G."""
        values, vectors = np.linalg.eigh(G)
        return cls(np.maximum(values, 0.0), values, vectors, vectors.T @ h)

    @classmethod
    def denoised(cls, G: Array, h: Array, sigma: float) -> GramSpectrum:
        """The denoised spectrum of a symmetric G with noise; :meth:`of` where there is none."""
        found = denoise_spectrum(G, sigma, pull=False)
        return cls(found.values, found.values, found.vectors, found.vectors.T @ h)

    def weights(self, penalty: float, least: float = 0.0) -> Array:
        """``(G + penalty I)^-1 h``, shape ``(d, T)``; the pseudo-inverse where penalty is 0.

        Args:
            penalty: at least 0.
            least: directions with ``eigenvalue + penalty`` up to here get weight 0.
        """
        shifted = self.values + penalty
        usable = shifted > max(least, max(float(shifted.max()), np.finfo(np.float64).tiny) * SINGULAR)
        return self.vectors @ (np.where(usable, 1 / np.where(usable, shifted, 1.0), 0.0)[:, None] * self.rotated)


def penalty_grid(values: Array) -> Array:
    """Candidate penalties: ten per decade, from 1e-9 to 1e4 times the mean eigenvalue (times 1 if that is 0)."""
    mean = float(values.mean())
    return np.asarray((mean if mean > 0 else 1.0) * 10.0**_EXPONENTS)


def gcv_penalty(spectrum: GramSpectrum, q: float, n: float, intercept: bool) -> float:
    """The penalty that minimises ``n RSS / (n - df)^2`` (Golub, Heath and Wahba 1979), from (G, h, q) and n."""
    grid = penalty_grid(spectrum.values)
    residual, freedom = _residual_and_freedom(spectrum, q, grid)
    left = np.maximum(n - freedom - intercept, 1e-3)
    return float(grid[int((np.log(residual) - 2 * np.log(left)).argmin())])


def likelihood_penalty(spectrum: GramSpectrum, q: float, n: float) -> float:
    """The penalty s_noise^2 / s_w^2 that maximises the marginal likelihood of the targets, from (G, h, q) and n.

    ``log p = -T/2 (sum_i log(1 + g_i / lambda) + n log s^2)``, s^2 = (q - sum_i |q_i^T h|^2 / (g_i + lambda)) / (n T).
    """
    grid, g = penalty_grid(spectrum.values), spectrum.values
    squares, T = np.square(spectrum.rotated).sum(axis=1), spectrum.rotated.shape[1]
    misfit = np.maximum(q - (squares / (g + grid[:, None])).sum(axis=1), q * 1e-12 + np.finfo(np.float64).tiny)
    volume = np.log1p(g / grid[:, None]).sum(axis=1)
    return float(grid[int((volume + n * np.log(misfit / (n * T))).argmin())])


def fold_losses(trained: GramSpectrum, G: Array, h: Array, q: float, grid: Array) -> Array:
    """Loss on one held-out fold of weights fitted elsewhere, for each penalty of a grid, from sums alone.

    ``q_f - 2 tr(w^T h_f) + tr(w^T G_f w)`` with ``w = (G + penalty I)^-1 h`` of the other folds (docs/heads.md).
    Unbiased where the fold carries noise, because that noise is independent of w.
    """
    shifted = 1 / (trained.values + grid[:, None])
    inner, seen = trained.vectors.T @ G @ trained.vectors, trained.vectors.T @ h
    linear = shifted @ (trained.rotated * seen).sum(axis=1)
    square = np.einsum("ki,ki->k", shifted @ (inner * (trained.rotated @ trained.rotated.T)), shifted)
    return np.asarray(q - 2 * linear + square)


def _residual_and_freedom(spectrum: GramSpectrum, q: float, grid: Array) -> tuple[Array, Array]:
    g, squares = spectrum.values, np.square(spectrum.rotated).sum(axis=1)
    inverse = 1 / (g + grid[:, None])
    fitted = inverse @ squares
    residual = q - 2 * fitted + (np.square(inverse) * g) @ squares
    return np.maximum(residual, q * 1e-12 + np.finfo(np.float64).tiny), (inverse * g).sum(axis=1)
