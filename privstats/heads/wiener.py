"""Regression weights from a noisy Gram matrix and a noisy moment vector.

Not the choice of a penalty for exact sums (``penalty``): here the noise levels are known and the weights are the
posterior mean given them. Used by both ridge heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from privstats.heads.denoise import Spectrum, denoise_spectrum
from privstats.heads.evidence import Array

__all__ = ["WienerFit", "adassp_penalty", "denoised_solve", "moment_evidence"]

_GRID = np.linspace(-6.0, 6.0, 13)
_FLOOR = 1e-12


@dataclass(frozen=True)
class WienerFit:
    """Weights and what they rest on.

    Attributes:
        weights: shape ``(d, T)``.
        penalty: the ridge penalty s_noise^2 / s_w^2 that the evidence implies.
        log_evidence: of the moment vector under the chosen Gram estimate.
        gram: ``"denoised"`` or ``"linear"``, whichever estimate had the higher evidence.
    """

    weights: Array
    penalty: float
    log_evidence: float
    gram: str


def denoised_solve(G: Array, h: Array, sigma_G: float, sigma_h: float, penalty: float | None = None) -> WienerFit:
    """Posterior mean of the weights under a Gaussian prior, given noisy G and h (MATH section 4, "Ridge").

    ``w = sum_i q_i g_i / (g_i^2 + (s_noise^2 / s_w^2) g_i + tau^2 / s_w^2) q_i^T h`` with
    G-hat = sum_i g_i q_i q_i^T and ``tau^2 = sigma_h^2 + s_w^2 risk(G-hat) / d``; s_w^2 and s_noise^2 by marginal
    likelihood of h. G-hat is linear shrinkage to a multiple of the identity or the denoised spectrum, whichever
    explains h better. Without noise this is ridge regression with penalty s_noise^2 / s_w^2.

    Args:
        G: symmetric, ``(d, d)``; noise variance sigma_G^2 on the diagonal, half of it off.
        h: ``(d, T)``, noise variance sigma_h^2.
        sigma_G: noise level of G, 0 for none.
        sigma_h: noise level of h, 0 for none.
        penalty: s_noise^2 / s_w^2 where it is given and not estimated.
    """
    grams = {"denoised": denoise_spectrum(G, sigma_G, pull=False)}
    if sigma_G > 0:
        grams["linear"] = _linear_shrinkage(G, sigma_G)
    fits = [_solve(name, gram, h, sigma_h, penalty) for name, gram in grams.items()]
    return max(fits, key=lambda fit: fit.log_evidence)


def adassp_penalty(values: Array, sigma_G: float, failure: float = 0.05) -> float:
    """AdaSSP's penalty from the eigenvalues of a noisy Gram matrix (Wang 2018, algorithm 2), at no further budget.

    ``max(0, sigma_G sqrt(d ln(2 d^2 / rho)) - lambda_min)``, rho = ``failure``, where lambda_min is the smallest
    noisy eigenvalue, floored at 0. Wang releases lambda_min by a mechanism of its own; here G is public already.
    """
    d = len(values)
    return max(0.0, sigma_G * math.sqrt(d * math.log(2 * d * d / failure)) - max(0.0, float(values.min())))


def moment_evidence(g: Array, squares: Array, floor: Array | float, error: float) -> tuple[float, float, float]:
    """Weight variance, noise variance and log evidence of h given the spectrum of G.

    In the eigenbasis each entry of ``q_i^T h`` is N(0, s_w^2 (g_i^2 + error) + s^2 g_i + floor), so two numbers are
    fitted to d x T observations and neither q nor the record count is needed.

    Args:
        g: eigenvalues of G-hat, ``(d,)``.
        squares: squares of ``q_i^T h`` averaged over targets, ``(d,)``.
        floor: noise variance of h.
        error: risk(G-hat) / d.
    """
    scale = max(float(g.max()), _FLOOR)
    level = max(float(squares.mean()), _FLOOR**2)
    basis = np.stack([(np.square(g) + error) / scale**2, g / scale])  # so that unit coefficients have h's own size

    def loss(log_parts: Array) -> float:
        variance = level * (np.exp(log_parts) @ basis + _FLOOR) + floor
        return float((np.log(variance) + squares / variance).sum())

    grid = np.array([(a, b) for a in _GRID * 2.5 for b in _GRID * 2.5])
    table = level * (np.exp(grid) @ basis + _FLOOR) + floor
    best = grid[int((np.log(table) + squares / table).sum(axis=1).argmin())]
    found = minimize(loss, best, method="L-BFGS-B", bounds=[(-30.0, 30.0)] * 2)
    weight, noise = level * np.exp(found.x) / np.array([scale**2, scale])
    return float(weight), float(noise), -float(found.fun) / 2


def _solve(name: str, gram: Spectrum, h: Array, sigma_h: float, penalty: float | None) -> WienerFit:
    g, rotated, d = gram.values, gram.vectors.T @ h, len(h)
    squares = np.square(rotated).mean(axis=1)
    weight, noise, evidence = moment_evidence(g, squares, sigma_h**2, gram.risk / d)
    ridge = noise / weight if penalty is None else penalty
    tau2 = sigma_h**2 / weight + gram.risk / d
    denominator = np.square(g) + ridge * g + tau2
    safe = denominator > np.finfo(np.float64).tiny
    gain = np.where(safe, g / np.where(safe, denominator, 1.0), 0.0)
    return WienerFit(gram.vectors @ (gain[:, None] * rotated), ridge, evidence, name)


def _linear_shrinkage(G: Array, sigma: float) -> Spectrum:
    """The multiple of G pulled toward (tr/d) I that has least expected squared error at this noise level."""
    values, vectors = np.linalg.eigh(G)
    d = len(values)
    noise = sigma**2 / 2 * d * (d + 1)
    centre = max(float(values.mean()), 0.0)
    signal = max(float(np.square(values - values.mean()).sum()) - noise, 0.0)
    keep = signal / (signal + noise)
    return Spectrum(np.maximum(centre + keep * (values - centre), 0.0), vectors, 1 - keep, noise * keep)
