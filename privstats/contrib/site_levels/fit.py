"""Fit a linear random intercept from noisy site sums.

benchmarks/inference/site_level_numbers.md has the derivation.

The score with weights c and w is, for the intercept, ``sum_s c_s r_s(b)``, and for slopes ``X'(y - X b) - sum_s w_s a_s
r_s(b)``, with a site's column sums ``a_s`` and residual sum ``r_s(b)``. It is unbiased for any weights independent of
targets. Given the variances in the weights, Stein's lemma subtracts exactly the bias by noise that weights and sums
share; they are estimated from the same sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri

from privstats.extend.support import Array

FEWEST_DEGREES = 5
"""Minimum number of sites beyond the number of parameters for an interval of tau."""
_MAX_ITERATIONS = 40
_LEVELS = (1e-3, 1e6)  # of lambda
_CLEAR = 5.0  # noise deviations that a site's count exceeds where the site serves for tau
_FLOOR = 2.0  # noise deviations below which a count no longer raises the weight
_SOLVED = 1 / 3  # largest relative error of the solution by noise in its matrix
_LEAST = 1e-3  # share of the residual variance's first estimate that later ones may not go below
_MAX_TAU = 1e6  # in residual standard deviations
ALL_SHARED = 1e-6
"""Part of the residual variance that averages of persons' rows have at least, where tau's upper end is sought."""


@dataclass(frozen=True, eq=False)
class SiteSums:
    """Sums by site and over all sites; noise has known deviations.

    Attributes:
        t: ``(K, p + 1)``, each site's record count and column sums.
        sy: ``(K,)``, each site's target sum.
        G: ``(p, p)``, sum of products of columns; h: ``(p,)``, of columns and target; q: of squared targets.
        sigma_G: noise of counts and of G's diagonal; other entries of ``t`` and G have 1 / sqrt 2 of it.
        sigma_h: noise of ``sy`` and h; sigma_q: of q.
        averaged: whether a "record" is the average of a person's rows, whose residual variance is at most a row's.
    """

    t: Array
    sy: Array
    G: Array
    h: Array
    q: float
    sigma_G: float
    sigma_h: float
    sigma_q: float
    averaged: bool = False

    @property
    def least(self) -> float:
        """Return the least part of a row's residual variance that a record of these sums may have."""
        return ALL_SHARED if self.averaged else 1.0

    @cached_property
    def noise(self) -> Array:
        """Variances of one site's ``t``, ``(p + 1,)``."""
        half = np.full(self.t.shape[1], self.sigma_G**2 / 2)
        half[0] *= 2
        return half

    @cached_property
    def gram(self) -> Array:
        """Sum of products of constant and columns, ``(p + 1, p + 1)``."""
        total = self.t.sum(axis=0)
        return np.block([[total[:1, None], total[None, 1:]], [total[1:, None], self.G]])

    @cached_property
    def moments(self) -> Array:
        """Sum of products of constant, columns and the target, ``(p + 1,)``."""
        return np.append(self.sy.sum(), self.h)

    def site_noise(self, b: Array) -> float:
        """Return the noise variance of a site's residual sum at b."""
        return self.sigma_h**2 + float(self.noise @ b**2)

    def energy(self, b: Array) -> float:
        """Return the sum of squared residuals at b."""
        return float(self.q - 2 * b @ self.moments + b @ self.gram @ b)

    def energy_noise(self, b: Array) -> float:
        """Return the noise variance of :meth:`energy`."""
        K, level, slopes = len(self.t), b[0], b[1:]
        of_h = 4 * self.sigma_h**2 * (K * level**2 + slopes @ slopes)
        of_G = self.sigma_G**2 * (K * level**4 + 2 * K * level**2 * (slopes @ slopes) + (slopes @ slopes) ** 2)
        return float(self.sigma_q**2 + of_h + of_G)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted random intercept.

    Attributes:
        b: intercept and slopes, ``(p + 1,)``.
        covariance: of b, noise included; ``noise`` of the noise alone.
        degrees: of freedom, ``(p + 1,)``, by Satterthwaite (1946).
        residual, level: variances of residuals and of site levels, the second at least 0. Of persons' averages, the
            first is a row's, an upper bound, and the second is in the middle of what follows from that and from 0.
        gap: half of the distance between these two; 0 for records.
        solved: relative error of b by noise in the matrix that b solves.
        clear: number of sites that serve for tau.
    """

    sums: SiteSums
    b: Array
    covariance: Array
    noise: Array
    parts: tuple[Array, Array]
    variances: tuple[float, float]
    residual: float
    level: float
    solved: float
    clear: int
    gap: float

    @property
    def reported(self) -> bool:
        """Whether noise leaves the coefficients determined, and enough sites clear to estimate the levels' variance."""
        return self.clear > len(self.b) and self.solved <= _SOLVED and bool((np.diag(self.covariance) > 0).all())

    def degrees(self, rows: Array) -> Array:
        """Return Satterthwaite's degrees of freedom of combinations, ``(r,)``."""
        total, *parts = (np.einsum("ij,jk,ik->i", rows, M, rows) for M in (self.covariance, *self.parts))
        spread = sum(np.square(part) * variance for part, variance in zip(parts, self.variances, strict=True))
        return np.asarray(2 * np.square(total) / spread)

    def tau(self, alpha: float) -> tuple[float, float]:
        """Return the interval of tau by inverting Q (Viechtbauer 2007); (0, inf) where it is not reported.

        Q decreases in the residual variance. That of persons' averages is between 0 and a row's, so the lower end has
        a row's and the upper end next to none: whatever one person's rows share, neither end misses more often.
        """
        sums, places = self.sums, clear_sites(self.sums)
        free = len(places) - sums.t.shape[1]
        if not self.reported or free < FEWEST_DEGREES:
            return 0.0, math.inf
        parts = ((1.0, alpha / 2), (sums.least, 1 - alpha / 2))
        ends = [
            _level_at(
                generalised_q(sums, self.b, part * self.residual, places), float(chdtri(free, share)), self.residual
            )
            for part, share in parts
        ]
        return (math.sqrt(ends[0]), math.sqrt(ends[1])) if 0 < ends[1] < math.inf else (0.0, math.inf)


def _level_at(q: Callable[[float], float], wanted: float, residual: float) -> float:
    """Return where the decreasing q is ``wanted``: 0 where it starts below, infinity where it stays above."""
    if q(0.0) <= wanted:
        return 0.0
    low, high = 0.0, residual / 16
    while q(high) > wanted:
        low, high = high, 4 * high
        if high > _MAX_TAU**2 * residual:
            return math.inf
    return float(brentq(lambda level: q(level) - wanted, low, high, xtol=1e-12 * residual, rtol=1e-6))


def clear_sites(sums: SiteSums) -> NDArray[np.intp]:
    """Return the places of sites with a count that noise leaves clear."""
    return np.flatnonzero(sums.t[:, 0] >= max(_CLEAR * sums.sigma_G, 1.0))


def generalised_q(sums: SiteSums, b: Array, residual: float, places: NDArray[np.intp]) -> Callable[[float], float]:
    """Return Q of the sites at ``places``, a decreasing function of the levels' variance."""
    t, r = sums.t[places], (sums.sy - sums.t @ b)[places]
    n, square, noise = t[:, 0], np.maximum(t[:, 0] ** 2 - sums.sigma_G**2, 0.0), sums.site_noise(b)

    def q(level: float) -> float:
        root = 1 / np.sqrt(n * residual + square * level + noise)
        basis, _ = np.linalg.qr(t * root[:, None])
        scaled = r * root
        return float(scaled @ scaled - np.square(basis.T @ scaled).sum())

    return q


@dataclass(frozen=True, eq=False)
class _Weights:
    """The sites' weights c and w, and their derivatives by the count.

    ``c = 1 / (1 + n / ratio + noise / n)``, with the noise's variance over the residual one, is efficient: it is the
    inverse of a residual sum's variance per record, in residual variances. ``w = 1 / (n + ratio)``.
    """

    c: Array
    c_slope: Array
    w: Array
    w_slope: Array

    @classmethod
    def of(cls, sums: SiteSums, ratio: float, noise: float) -> _Weights:
        n, floor = sums.t[:, 0], max(_FLOOR * sums.sigma_G, 1.0)
        w = 1 / (np.maximum(n, floor) + ratio)
        some = np.maximum(n, 1e-9)
        c = np.where(n > 0, 1 / (1 + some / ratio + noise / some), 0.0)
        c_slope = np.where(n > 0, c**2 * (noise / some**2 - 1 / ratio), 0.0)
        return cls(c, c_slope, w, np.where(n > floor, -np.square(w), 0.0))

    def rows(self, sums: SiteSums) -> Array:
        """Return what multiplies each site's residual sum, ``(K, p + 1)``."""
        return np.column_stack([self.c, -self.w[:, None] * sums.t[:, 1:]])

    def matrix(self, sums: SiteSums) -> Array:
        """Return the score's matrix: its noise has the mean 0, as Stein's lemma gives that of products."""
        B = self.rows(sums).T @ sums.t
        B[1:] += sums.gram[1:]
        B[1:, 1:] += self.w.sum() * sums.sigma_G**2 / 2 * np.eye(len(B) - 1)
        B[0, 0] -= sums.sigma_G**2 * self.c_slope.sum()
        B[1:, 0] += sums.sigma_G**2 * (self.w_slope @ sums.t[:, 1:])
        return B

    def right(self, sums: SiteSums) -> Array:
        """Return the score's right-hand side, ``(p + 1,)``."""
        found = self.rows(sums).T @ sums.sy
        found[1:] += sums.h
        return found


def fitted(sums: SiteSums, known: Callable[[float], float] | None = None) -> Fit:
    """Fit by alternating the weighted score and two moment equations of the variances.

    Args:
        known: the residual variance as a function of the levels', where it needs no ``sums.q``.
    """
    residual, level, ratio = 1.0, 0.0, _LEVELS[1]
    b: Array = np.zeros(sums.t.shape[1])
    b[0] = float(sums.sy.sum()) / max(float(sums.t[:, 0].sum()), 1.0)
    residual = known(0.0) if known else max(sums.energy(b) / max(float(sums.t[:, 0].sum()), 1.0), 1e-12)
    for _ in range(_MAX_ITERATIONS):
        weights = _Weights.of(sums, ratio, sums.site_noise(b) / residual)
        b = np.asarray(np.linalg.solve(weights.matrix(sums), weights.right(sums)), np.float64)
        residual, level = _variances(sums, b, weights.w, residual, level, known)
        last, ratio = ratio, float(np.clip(residual / max(level, 1e-12 * residual), *_LEVELS))
        if abs(ratio - last) <= 1e-6 * ratio:
            break
    return _with_errors(sums, b, weights, residual, _levels(sums, b, residual, level), known)


def _levels(sums: SiteSums, b: Array, residual: float, level: float) -> tuple[float, float]:
    """Return the least and the largest variance of levels, over the residual variances that these sums may have."""
    clear = clear_sites(sums)
    if not sums.averaged or len(clear) <= len(b):
        return level, level
    g, by_level, squares, _ = _clear_moment(sums, b, clear, residual, level)
    return level, max(float(g @ squares) / max(float(g @ by_level), 1e-300), level)


def _clear_moment(
    sums: SiteSums, b: Array, clear: NDArray[np.intp], residual: float, level: float
) -> tuple[Array, Array, Array, Array]:
    """Return the terms of the equation of squared residual sums, each ``(clear,)``.

    They are weights, the part of the levels' variance in each square, the squares without noise, and the part of the
    residual variance.
    """
    n, noise = np.maximum(sums.t[clear, 0], 0.0), sums.site_noise(b)
    square = np.maximum(n**2 - sums.sigma_G**2, 0.0)
    variance = n * residual + square * max(level, 0.0) + noise
    share = 1 - _lost(sums, clear, variance)
    squares = np.square((sums.sy - sums.t @ b)[clear]) - noise * share
    return square / np.square(variance), square * share, squares, n * share


def _variances(
    sums: SiteSums, b: Array, w: Array, residual: float, level: float, known: Callable[[float], float] | None
) -> tuple[float, float]:
    """Solve the expectations of the weighted residual energy and of squared residual sums for both variances."""
    n, clear = np.maximum(sums.t[:, 0], 0.0), clear_sites(sums)
    noise = sums.site_noise(b)
    squares = np.square(sums.sy - sums.t @ b) - noise
    inside = sums.energy(b) - float(w @ squares)
    g, by_level, of_clear, by_residual = _clear_moment(sums, b, clear, residual, level)
    all_square = np.maximum(n**2 - sums.sigma_G**2, 0.0)
    matrix = np.array(
        [
            [n.sum() - w @ n - len(b) + 1, n.sum() - w @ all_square],
            [g @ by_residual, g @ by_level],
        ]
    )
    wanted = np.array([inside, g @ of_clear])
    if known is not None:
        usable = len(clear) > len(b) and matrix[1, 1] > 0
        between = max(float((wanted[1] - matrix[1, 0] * residual) / matrix[1, 1]), 0.0) if usable else 0.0
        return known(between), between
    total = max(sums.energy(b) / max(float(n.sum()), 1.0), 1e-12)
    if len(clear) <= len(b) or abs(np.linalg.det(matrix)) < 1e-12 * np.abs(matrix).max() ** 2:
        return total, 0.0
    found, between = np.linalg.solve(matrix, wanted)
    if between < 0:
        found, between = inside / matrix[0, 0], 0.0
    return max(float(found), _LEAST * total), float(between)


def _lost(sums: SiteSums, clear: NDArray[np.intp], variance: Array) -> Array:
    """Return each clear site's leverage: the share of its squared residual sum that fitting b takes."""
    root = sums.t[clear] / np.sqrt(variance)[:, None]
    if len(root) <= root.shape[1]:
        return np.zeros(len(root))
    basis, _ = np.linalg.qr(root)
    return np.asarray(np.square(basis).sum(axis=1))


def _noise_covariance(sums: SiteSums, rows: Array, b: Array, sigma_h: float) -> Array:
    """Return the covariance of the score's noise at b."""
    half, slopes = sums.sigma_G**2 / 2, b[1:]
    variance = sigma_h**2 + float(sums.noise @ b**2)
    shared = np.outer(rows.sum(axis=0), np.append(0.0, b[0] * half * slopes))
    total = variance * rows.T @ rows + shared + shared.T
    own = sigma_h**2 + half * float(slopes @ slopes) + len(rows) * half * b[0] ** 2
    total[1:, 1:] += own * np.eye(len(slopes)) + half * np.outer(slopes, slopes)
    return np.asarray(total)


def _with_errors(
    sums: SiteSums,
    b: Array,
    weights: _Weights,
    residual: float,
    levels: tuple[float, float],
    known: Callable[[float], float] | None,
) -> Fit:
    """Return the fit; errors have the largest variance of levels, and so cover persons with rows at several sites."""
    level = levels[1]
    n, a, rows = np.maximum(sums.t[:, 0], 0.0), sums.t[:, 1:], weights.rows(sums)
    total = max(float(n.sum()), 1.0)
    inside, half = 1 - weights.w * n, sums.sigma_G**2 / 2
    sites = np.column_stack([weights.c * n, inside[:, None] * a])  # what multiplies each site's level
    moved = np.column_stack([weights.c_slope * n, -(weights.w_slope * n)[:, None] * a])  # per unit of a count's noise
    of_level = sites.T @ sites + sums.sigma_G**2 * moved.T @ moved
    of_level[1:, 1:] += half * float((1 - 2 * inside).sum()) * np.eye(a.shape[1])  # w a n has a's noise, a has not
    of_residual = np.zeros_like(of_level)
    of_residual[0, 0] = np.square(weights.c) @ n
    of_residual[0, 1:] = of_residual[1:, 0] = (weights.c * inside) @ a
    squared = 2 * weights.w - n * weights.w**2
    of_residual[1:, 1:] = sums.G - (squared[:, None] * a).T @ a + 2 * half * weights.w.sum() * np.eye(a.shape[1])
    inverse = np.linalg.inv(weights.matrix(sums))
    parts = (inverse @ of_residual @ inverse.T, inverse @ of_level @ inverse.T)
    noise = inverse @ _noise_covariance(sums, rows, b, sums.sigma_h) @ inverse.T
    covariance = residual * parts[0] + level * parts[1] + noise
    errors = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    shaken = [inverse @ _noise_covariance(sums, rows, unit, 0.0) @ inverse.T for unit in np.eye(len(b))]
    solved = math.sqrt(
        sum(scale**2 * float((np.diag(M) / errors**2).sum()) for scale, M in zip(errors, shaken, strict=True))
    )
    clear = clear_sites(sums)
    size = n[clear]
    spread = size * residual + size**2 * level + sums.site_noise(b)
    g = np.square(size / spread)
    free = max(len(clear) - len(b), 1) / max(len(clear), 1)
    of_tau = 2 * float(np.square(g * spread).sum()) / max(float(g @ size**2) ** 2, 1e-300) / free
    of_sigma = 2 * residual**2 / total + sums.energy_noise(b) / total**2 if known is None else 0.0
    variances = (of_sigma, of_tau)
    middle, gap = sum(levels) / 2, (levels[1] - levels[0]) / 2
    return Fit(
        sums, b, covariance * (1 + solved**2), noise, parts, variances, residual, middle, solved, len(clear), gap
    )
