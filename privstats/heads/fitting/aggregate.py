"""Average estimates of ridge weights, weighted by their estimated risks (Stein 1981).

Weights are exp(-risk / temperature), at four times the noise's variance. The average's risk is at most any estimate's
plus temperature times log(1 / its share) (Leung and Barron 2006; Dalalyan and Salmon 2012). AdaSSP's penalty (Wang
2018) and ``estimates.denoise``'s posterior mean have a third of the shares each; smaller penalties and zero weights
have the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privstats.estimates.algebra import algebra
from privstats.estimates.denoise import WienerFit, adassp_penalty, denoised_solve
from privstats.heads.evidence import Array, GramEvidence

_TEMPERATURE = 4.0
_STEPS_PER_OCTAVE = 3
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Aggregate:
    """Weights ``(d, T)``, and the penalty and eigenvalues ``(d,)`` of the estimate with the largest share."""

    weights: Array
    penalty: float
    values: Array


@dataclass(frozen=True)
class CentredSums:
    """Centred least-squares sums in the noisy Gram matrix's eigenbasis, with their noise.

    Attributes:
        sums: the centred sums, with G diagonal.
        vectors: the basis, ``(d, d)``.
        means: column means over the constant, in the basis, ``(d,)``.
        targets: target means over the constant, ``(T,)``.
        share: ``1 / (n constant^2)``, the variance of an intercept; else 0.
        sigma_h: noise level of h before centring.
        records: n, or None.
    """

    sums: GramEvidence
    vectors: Array
    means: Array
    targets: Array
    share: float
    sigma_h: float
    records: float | None

    @classmethod
    def of(cls, released: GramEvidence, centred: GramEvidence) -> CentredSums:
        """Build the sums from released ones, with and without their constant."""
        values, vectors = algebra().eigh(centred.G)
        counted = centred.records or released.least_records
        sums = replace(centred, G=np.diag(values), h=algebra().product(vectors.T, centred.h), records=counted)
        c, n, (d, T) = released.constant, centred.records, centred.h.shape
        if c is None or n is None:
            return cls(sums, vectors, np.zeros(d), np.zeros(T), 0.0, released.sigma_h, n)
        means, targets = vectors.T @ centred.feature_means / c, centred.target_means / c
        return cls(sums, vectors, means, targets, 1 / (n * c**2), released.sigma_h, n)

    @property
    def values(self) -> Array:
        """Noisy eigenvalues, ``(d,)``."""
        return np.diagonal(self.sums.G)

    def intercept(self, weights: Array) -> Array:
        """Return the constant's weight, ``(T,)``."""
        return np.asarray(self.targets - self.means @ weights)

    def noise(self, gains: Array) -> float:
        """Return the noise variance of an entry of h minus what the weights of these gains explain."""
        weights = gains[:, None] * self.sums.h
        square = np.square(weights).sum() + np.square(self.intercept(weights)).sum()
        return float(self.sigma_h**2 + self.sums.sigma_G**2 / 2 * square / weights.shape[1])

    def residual(self, weights: Array) -> float:
        """Return the targets' residual variance under these weights, at least 0; 0 where n is unknown."""
        if self.records is None:
            return 0.0
        fit = (self.values[:, None] * weights * weights).sum() - 2 * (self.sums.h * weights).sum()
        return float(max(0.0, self.sums.q + fit) / (self.records * weights.shape[1]))

    def risk(self, gains: Array, slopes: Array) -> float:
        """Return an unbiased estimate of the noiseless ``w' G w - 2 h' w`` for ``w = gains * h`` in the basis.

        F is the gains' diagonal matrix; N = I + m m' the noise's covariance after centring; u the weights with their
        intercept; v = w - m intercept; D the gains' divided differences (``slopes`` on its diagonal). The estimate is
        ``w' G w - 2 h' w + 2 sigma_h^2 T tr F N`` minus ``sigma_G^2`` times the sum over k, l of
        ``D_kl (N_kk h_l v_l + N_kl h_l v_k)``, and terms of the intercept (Stein's lemma for a symmetric Gaussian
        matrix). For a penalty that exempts the constant it is
        ``w' G w - 2 h' w + 2 sigma_h^2 tr R + sigma_G^2 (tr(R) |u|^2 + u' R u)``, with R the inverse of the full
        penalised G.
        """
        a, h, m = self.values, self.sums.h, self.means
        w = gains[:, None] * h
        constant = self.intercept(w)
        v = w - np.outer(m, constant)
        gaps = a[:, None] - a
        apart = gaps != 0
        D = np.where(apart, (gains[:, None] - gains) / np.where(apart, gaps, 1.0), slopes[:, None])
        N = np.eye(len(a)) + np.outer(m, m)
        spread = float(gains @ np.diagonal(N))
        moved = np.diagonal(N) @ D @ (h * v).sum(axis=1) + ((D * N) * algebra().product(v, h.T)).sum()
        of_targets = spread * (constant @ self.targets) - gains @ (v * np.outer(m, self.targets)).sum(axis=1)
        of_intercept = self.share * (np.square(w).sum() + 2 * np.square(constant).sum())
        fit = (a[:, None] * w * w).sum() - 2 * (h * w).sum()
        return float(
            fit + 2 * self.sigma_h**2 * h.shape[1] * spread - self.sums.sigma_G**2 * (moved - of_targets - of_intercept)
        )


@dataclass(frozen=True)
class _Estimate:
    gains: Array
    slopes: Array
    penalty: float
    values: Array


def aggregate(released: GramEvidence, centred: GramEvidence, penalty: float | None) -> Aggregate:
    """Return the averaged ridge weights.

    ``centred`` is ``released`` without a constant column; ``penalty`` None is estimated from the sums.
    """
    problem = CentredSums.of(released, centred)
    adassp, *smaller = _shifted(problem, penalty or 0.0)
    nothing = np.zeros(len(problem.values))
    none = _Estimate(nothing, nothing, math.inf, np.maximum(problem.values, 0.0))
    estimates = [adassp, _of_wiener(problem, denoised_solve(problem.sums, penalty)), *smaller, none]
    residual = problem.residual(estimates[1].gains[:, None] * problem.sums.h)
    shares = np.array([1.0, 1.0, *np.full(len(estimates) - 2, 1 / (len(estimates) - 2))]) / 3
    belief = _belief(problem, estimates, shares, residual)
    gains = belief @ np.array([each.gains for each in estimates])
    first = estimates[int(belief[:-1].argmax())]  # the last one has no penalty
    weights = algebra().product(problem.vectors, gains[:, None] * problem.sums.h)
    return Aggregate(weights, first.penalty, first.values)


def _belief(problem: CentredSums, estimates: Sequence[_Estimate], shares: Array, residual: float) -> Array:
    """Return the estimates' weights, of sum 1.

    For new records, weights that follow the targets' variance s^2 risk ``2 s^2 tr F G`` more (Mallows 1973). An entry
    of h minus what weights u explain has noise variance ``sigma_h^2 + sigma_G^2 |u|^2 / 2``. The temperature is
    ``4 (s^2 + variance * largest gain)``, maxima over AdaSSP's and the least-risk estimate.
    """
    followed = 2 * residual * problem.sums.h.shape[1] * np.maximum(problem.values, 0.0)
    risks = np.array([problem.risk(each.gains, each.slopes) + each.gains @ followed for each in estimates])
    likely = estimates[0], estimates[int(risks.argmin())]
    noise = max(problem.noise(each.gains) for each in likely)
    temperature = _TEMPERATURE * (noise * max(float(each.gains.max()) for each in likely) + residual)
    belief = shares * np.exp(-(risks - risks.min()) / max(temperature, _TINY))
    return np.asarray(belief / belief.sum())


def _shifted(problem: CentredSums, penalty: float) -> Iterator[_Estimate]:
    sigma, noisy = problem.sums.sigma_G, problem.values
    values, radius = np.maximum(noisy, 0.0), sigma * math.sqrt(2 * len(noisy))
    level = adassp_penalty(noisy, sigma)
    count = 1 + max(0, math.floor(_STEPS_PER_OCTAVE * math.log2(level / radius))) if 0 < radius <= level else 1
    for shift in level * 2.0 ** (-np.arange(count) / _STEPS_PER_OCTAVE) + penalty:
        usable = values + shift > max(float(values.max()) * 1e-14, _TINY)
        gains = np.where(usable, 1 / np.where(usable, values + shift, 1.0), 0.0)
        yield _Estimate(gains, np.where(noisy > 0, -np.square(gains), 0.0), float(shift), values)


def _of_wiener(problem: CentredSums, fit: WienerFit) -> _Estimate:
    by_noisy = _of_denoised if fit.gram == "denoised" else _of_linear
    slopes = fit.slopes * by_noisy(problem.values, fit.values, problem.sums.sigma_G)
    return _Estimate(fit.gains, slopes, fit.penalty, fit.values)


def _of_denoised(noisy: Array, values: Array, sigma: float) -> Array:
    """Return the derivative of denoised eigenvalues by noisy ones; a monotone block counts as its mean."""
    s2, squares = sigma**2 / 2, np.square(noisy[:, None] - noisy)
    bend = (s2 - squares) / np.maximum(np.square(squares + s2), _TINY)
    block = np.isclose(values[:, None], values, rtol=1e-12, atol=0.0)
    slopes = (1 - 2 * s2 * np.where(block, 0.0, bend).sum(axis=1)) / block.sum(axis=1)
    return np.where(values > 0, slopes, 0.0)


def _of_linear(noisy: Array, values: Array, sigma: float) -> Array:
    d, noise = len(noisy), sigma**2 / 2 * len(noisy) * (len(noisy) + 1)
    signal = max(float(np.square(noisy - noisy.mean()).sum()) - noise, 0.0)
    keep = signal / (signal + noise)
    return np.where(values > 0, keep + (1 - keep) / d * (noisy.mean() > 0), 0.0)
