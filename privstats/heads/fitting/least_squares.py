"""Choose a ridge penalty from sums alone, then compute weights.

The intercept is not penalised: the constant column is eliminated after noisy counts and means were shrunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from privstats.errors import MissingStatisticError
from privstats.estimates.denoise import adassp_penalty, denoise_spectrum, denoised_solve, positive_part
from privstats.estimates.eigenbasis import Eigenbasis, eigenbasis
from privstats.heads.evidence import Array, FoldSums, GramEvidence
from privstats.heads.fitting.aggregate import aggregate

Solver: TypeAlias = Literal["auto", "aggregate", "plain", "adassp", "wiener"]
Penalty: TypeAlias = Literal["auto", "gcv", "evidence", "folds"] | float
SINGULAR = 1e-14
"""Share of the largest eigenvalue up to which an eigenvalue is taken for 0."""
_EXPONENTS = np.linspace(-9.0, 4.0, 131)


@dataclass(frozen=True)
class Solution:
    """Weights ``(d, T)``, intercepts ``(T,)``, the penalty, the solver and the condition number."""

    weights: Array
    intercept: Array
    penalty: float
    solver: str
    condition: float


def solve(evidence: GramEvidence, solver: Solver, penalty: Penalty) -> Solution:
    """Return weights from sums; MissingStatisticError where the penalty needs a missing count or folds."""
    noisy = evidence.sigma_G > 0 or evidence.sigma_h > 0
    solver = ("aggregate" if noisy else "plain") if solver == "auto" else solver
    centred = eliminate_constant(evidence)
    # Without noise in G the penalty is chosen from the spectrum that the weights need, so G is decomposed once.
    exact = GramSpectrum.of(centred.G, centred.h) if centred.sigma_G == 0 and solver in ("plain", "adassp") else None
    chosen = _penalty(evidence, centred, penalty, noisy, exact)
    if solver == "aggregate" and noisy:
        result = aggregate(evidence, centred, chosen)
        return _with_intercept(evidence, centred, result.weights, result.penalty, solver, result.values)
    if solver in ("aggregate", "wiener"):
        fit = denoised_solve(_counted(centred), chosen)
        return _with_intercept(evidence, centred, fit.weights, fit.penalty, solver, fit.values)
    spectrum = exact or GramSpectrum.of(centred.G, centred.h)
    if chosen is None:
        chosen = denoised_solve(_counted(centred)).penalty
    if solver == "adassp":
        chosen += adassp_penalty(spectrum.raw, centred.sigma_G)
    # half the radius of the noise's own semicircle: a smaller eigenvalue is uninformative, and its inverse is large
    noise_alone = centred.sigma_G * math.sqrt(len(spectrum.values) / 2)
    return _with_intercept(evidence, centred, spectrum.weights(chosen, noise_alone), chosen, solver, spectrum.values)


def _penalty(
    evidence: GramEvidence, centred: GramEvidence, penalty: Penalty, noisy: bool, exact: GramSpectrum | None
) -> float | None:
    if not isinstance(penalty, str):
        return float(penalty)
    if penalty == "auto":
        counted = centred.records is not None and not noisy
        # folds have sqrt(F) times the noise of one sum, and choose worse by it than the evidence does
        penalty = "folds" if evidence.folds is not None and not noisy else "gcv" if counted else "evidence"
    if penalty == "folds":
        return _from_folds(evidence, centred)
    if penalty == "evidence" and (centred.sigma_q > 0 or centred.records is None):
        return None
    if centred.records is None:
        raise MissingStatisticError(
            "penalty='gcv' needs the record count, which G, h and q do not hold; pass records=, "
            "end the schema's transform with ConstantFeature, or use penalty='evidence'"
        )
    spectrum = exact or GramSpectrum.denoised(centred.G, centred.h, centred.sigma_G)
    if penalty == "evidence":
        return likelihood_penalty(spectrum, centred.q, centred.records)
    intercept = evidence.constant is not None or bool(centred.feature_means.any() or centred.target_means.any())
    return gcv_penalty(spectrum, centred.q, centred.records, intercept)


def _counted(evidence: GramEvidence) -> GramEvidence:
    """Return the evidence with a record count; if unknown, the minimum that such sums need."""
    return evidence if evidence.records is not None else replace(evidence, records=evidence.least_records)


def _from_folds(evidence: GramEvidence, centred: GramEvidence) -> float:
    folds = evidence.folds
    if folds is None:
        raise MissingStatisticError("penalty='folds' needs fold sums; give the RidgeSchema folds=5, or use 'evidence'")
    grid = penalty_grid(np.diagonal(centred.G))
    losses = [_fold_losses(evidence, folds, held, grid) for held in range(len(folds.q))]
    return float(grid[int(np.sum(losses, axis=0).argmin())])


def _fold_losses(evidence: GramEvidence, folds: FoldSums, held: int, grid: Array) -> Array:
    rest = replace(
        evidence,
        G=evidence.G - folds.G[held],
        h=evidence.h - folds.h[held],
        q=evidence.q - float(folds.q[held]),
        folds=None,
    )
    trained = eliminate_constant(rest)
    test = replace(rest, G=folds.G[held], h=folds.h[held], q=float(folds.q[held]))
    spectrum = GramSpectrum.of(trained.G, trained.h, columns=len(trained.G))
    return fold_losses(spectrum, *_about(test, trained), grid)


def _about(test: GramEvidence, trained: GramEvidence) -> tuple[Array, Array, float]:
    c = test.constant
    if c is None:
        return test.G, test.h, test.q
    totals = (test.G[:-1, -1] / c, test.h[-1] / c, float(test.G[-1, -1]) / c**2)
    return sums_about(test.G[:-1, :-1], test.h[:-1], test.q, totals, (trained.feature_means, trained.target_means))


def _with_intercept(
    evidence: GramEvidence, centred: GramEvidence, weights: Array, penalty: float, solver: str, values: Array
) -> Solution:
    intercept = centred.target_means - centred.feature_means @ weights
    if evidence.constant is not None:
        weights = np.vstack([weights, np.zeros_like(intercept)])
    return Solution(weights, intercept, penalty, solver, _condition(values, penalty))


def _condition(values: Array, penalty: float) -> float:
    least, most = float(values.min()) + penalty, float(values.max()) + penalty
    return most / least if least > SINGULAR * most else math.inf


def eliminate_constant(evidence: GramEvidence) -> GramEvidence:
    """Return the centred problem without its intercept column (Schur complement); unchanged without one.

    The count stays above its noise, so that nothing is divided by 0, and means are shrunk to the origin. The noise that
    feature sums bring into h is added to h's level.
    """
    c = evidence.constant
    if c is None:
        return evidence
    error = evidence.sigma_G / c**2
    n = max(float(positive_part(evidence.G[-1, -1] / c**2, error)), 2 * error, np.finfo(np.float64).tiny)
    sums, targets = evidence.G[:-1, -1] / c, evidence.h[-1] / c
    sums_sigma, targets_sigma = evidence.sigma_G / (math.sqrt(2) * abs(c)), evidence.sigma_h / abs(c)
    x, y = _shrunk_mean(sums, n, error, sums_sigma), _shrunk_mean(targets, n, error, targets_sigma)
    G, h, q = sums_about(evidence.G[:-1, :-1], evidence.h[:-1], evidence.q, (sums, targets, n), (x, y))
    return GramEvidence(
        G=G,
        h=h,
        q=max(q, 0.0),
        sigma_G=evidence.sigma_G,
        sigma_h=math.hypot(evidence.sigma_h, sums_sigma * math.sqrt(float(np.square(y).mean()))),
        sigma_q=evidence.sigma_q,
        records=evidence.records or n,
        feature_means=x,
        target_means=y,
    )


def sums_about(
    G: Array, h: Array, q: float, totals: tuple[Array, Array, float], centre: tuple[Array, Array]
) -> tuple[Array, Array, float]:
    """Return sums about ``centre``, from sums about 0 and ``totals = (sum a, sum b, n)``."""
    (sums, targets, n), (x, y) = totals, centre
    return (
        G - np.outer(sums, x) - np.outer(x, sums) + n * np.outer(x, x),
        h - np.outer(sums, y) - np.outer(x, targets) + n * np.outer(x, y),
        q - 2 * float(targets @ y) + n * float(y @ y),
    )


def _shrunk_mean(sums: Array, n: float, error: float, sigma: float) -> Array:
    """Return noisy sums / n with the minimum mean squared error: ``n sums / (n^2 + error^2 + sigma^2 / m^2)``.

    ``error`` and ``sigma`` are noise standard deviations of n and sums, m^2 the means' estimated mean square. Where
    noise hides n the result is near 0, never a ratio of noises.
    """
    if sigma == 0:
        return sums / n
    level = (sigma / n) ** 2
    spread = float(positive_part(np.square(sums / n).mean() - level, math.sqrt(2 / sums.size) * level))
    return np.asarray(sums * (n / (n**2 + error**2 + sigma**2 / spread)))


@dataclass(frozen=True)
class GramSpectrum:
    """A Gram matrix and moment vector in the Gram matrix's eigenbasis.

    Attributes:
        values: eigenvalues, ``(d,)``, not negative.
        raw: eigenvalues before truncation at 0.
        basis: eigenvectors V.
        rotated: ``V' h``, ``(d, T)``.
    """

    values: Array
    raw: Array
    basis: Eigenbasis
    rotated: Array

    @classmethod
    def of(cls, G: Array, h: Array, columns: int | None = None) -> GramSpectrum:
        """Build the spectrum of G; ``columns`` is the maximum number that its basis turns at once, T unless stated."""
        values, basis = eigenbasis(G, columns or h.shape[1])
        return cls(np.maximum(values, 0.0), values, basis, basis.into(h))

    @classmethod
    def denoised(cls, G: Array, h: Array, sigma: float) -> GramSpectrum:
        """Build the denoised spectrum of a noisy G."""
        result = denoise_spectrum(G, sigma, pull=False)
        basis = Eigenbasis(result.vectors)
        return cls(result.values, result.values, basis, basis.into(h))

    def weights(self, penalty: float, least: float = 0.0) -> Array:
        """Return ``(G + penalty I)^-1 h``, ``(d, T)``; weight 0 where ``eigenvalue + penalty`` is at most ``least``."""
        shifted = self.values + penalty
        usable = shifted > max(least, max(float(shifted.max()), np.finfo(np.float64).tiny) * SINGULAR)
        gains = np.where(usable, 1 / np.where(usable, shifted, 1.0), 0.0)
        return self.basis.back(gains[:, None] * self.rotated)


def penalty_grid(values: Array) -> Array:
    """Return candidate penalties: ten per decade, from 1e-9 to 1e4 times the mean eigenvalue (or 1)."""
    mean = float(values.mean())
    return np.asarray((mean if mean > 0 else 1.0) * 10.0**_EXPONENTS)


def gcv_penalty(spectrum: GramSpectrum, q: float, n: float, intercept: bool) -> float:
    """Return the penalty that minimises ``n RSS / (n - df)^2`` (Golub, Heath and Wahba 1979)."""
    grid = penalty_grid(spectrum.values)
    residual, freedom = _residual_and_freedom(spectrum, q, grid)
    remaining = np.maximum(n - freedom - intercept, 1e-3)
    return float(grid[int((np.log(residual) - 2 * np.log(remaining)).argmin())])


def likelihood_penalty(spectrum: GramSpectrum, q: float, n: float) -> float:
    """Return the penalty s_noise^2 / s_w^2 that maximises the targets' marginal likelihood.

    ``log p = -T/2 (sum_i log(1 + g_i / lambda) + n log s^2)``, s^2 = (q - sum_i |q_i^T h|^2 / (g_i + lambda)) / (n T).
    """
    grid, g = penalty_grid(spectrum.values), spectrum.values
    squares, T = np.square(spectrum.rotated).sum(axis=1), spectrum.rotated.shape[1]
    misfit = np.maximum(q - (squares / (g + grid[:, None])).sum(axis=1), q * 1e-12 + np.finfo(np.float64).tiny)
    volume = np.log1p(g / grid[:, None]).sum(axis=1)
    return float(grid[int((volume + n * np.log(misfit / (n * T))).argmin())])


def fold_losses(trained: GramSpectrum, G: Array, h: Array, q: float, grid: Array) -> Array:
    """Return a held-out fold's loss under weights fitted elsewhere, per penalty.

    ``q_f - 2 tr(w^T h_f) + tr(w^T G_f w)`` with ``w = (G + penalty I)^-1 h`` of the other folds. Unbiased under noise,
    because the fold's noise is independent of w.
    """
    shifted = 1 / (trained.values + grid[:, None])
    inner, seen = trained.basis.into(trained.basis.into(G).T), trained.basis.into(h)
    linear = shifted @ (trained.rotated * seen).sum(axis=1)
    square = np.einsum("ki,ki->k", shifted @ (inner * (trained.rotated @ trained.rotated.T)), shifted)
    return np.asarray(q - 2 * linear + square)


def _residual_and_freedom(spectrum: GramSpectrum, q: float, grid: Array) -> tuple[Array, Array]:
    g, squares = spectrum.values, np.square(spectrum.rotated).sum(axis=1)
    inverse = 1 / (g + grid[:, None])
    fitted = inverse @ squares
    residual = q - 2 * fitted + (np.square(inverse) * g) @ squares
    return np.maximum(residual, q * 1e-12 + np.finfo(np.float64).tiny), (inverse * g).sum(axis=1)
