"""Complete second moments by gap pattern, and draw completed moments from their posterior.

A pattern P has the sums ``S_P = sum z z'`` over its records, and O and M are its observed and missing columns. Under a
normal model with regression B and residual covariance V of M on O, imputing the records of P adds to the sums

    z_O z_O':  G;    z_M z_O':  B G + F;    z_M z_M':  B G B' + B F' + F B' + E,

with G the block of S_P, F normal with covariance V across rows and G across columns, and E = F G^+ F' + Wishart(n_P -
rank G, V). Their law depends on records only through G and n_P: no record is imputed.
benchmarks/inference/imputation_numbers.md has the derivation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.extend.support import Array

FLOOR = 1e-3
"""Smallest eigenvalue of moments, per record: the columns have spreads of about 1."""

MAX_MISSING = 0.75
"""Largest share of missing information for which :data:`DRAW_STEPS` steps of data augmentation are enough."""

# After t steps from the mode, draws lack MAX_MISSING^(2 t) of their variance: .06 %.
DRAW_STEPS = 13

_MAX_ITERATIONS, _MAX_WARM_ITERATIONS = 200, 60
_TOLERANCE, _WARM_TOLERANCE = 1e-9, 1e-3  # per record; in noise deviations
_POWERS, _DIFFERENCE = 30, 1e-5


@dataclass(frozen=True)
class Patterns:
    """Second moments by gap pattern; the last column is the constant.

    Attributes:
        S: ``(..., patterns, d, d)``; the first pattern has no gap.
        observed: ``(patterns, d)``.
        constant: the constant column's value.
    """

    S: Array
    observed: NDArray[np.bool_]
    constant: float

    @property
    def counts(self) -> Array:
        """Number of records of each pattern."""
        return np.asarray(self.S[..., -1, -1] / self.constant**2)

    @property
    def records(self) -> Array:
        """Number of records."""
        return np.asarray(self.counts.sum(-1))

    def block(self, pattern: int) -> Array:
        """Return the observed block of a pattern, ``(..., |O|, |O|)``."""
        shown = np.flatnonzero(self.observed[pattern])
        return np.asarray(self.S[..., pattern, shown[:, None], shown])

    def with_noise(self, rng: np.random.Generator, sigma: float, draws: int) -> Patterns:
        """Return ``draws`` copies, each with fresh symmetric noise of the released level."""
        noise = rng.standard_normal((draws, *self.S.shape)) * (sigma / np.sqrt(2))
        upper = np.triu(noise, 1)
        diagonal = noise * np.eye(self.S.shape[-1]) * np.sqrt(2)
        return Patterns(self.S + upper + np.swapaxes(upper, -1, -2) + diagonal, self.observed, self.constant)


@dataclass(frozen=True)
class Mode:
    """Total moments at the maximum of the observed-data likelihood.

    Attributes:
        T: ``(..., d, d)``.
        converged: whether the last step of EM was below the tolerance, ``(...)``.
    """

    T: Array
    converged: NDArray[np.bool_]


def completed(sums: Patterns) -> Mode:
    """Return the likelihood's maximum, by EM from the records without gaps."""
    start = sums.S[..., 0, :, :] * (sums.records / np.maximum(sums.counts[..., 0], 1.0))[..., None, None]
    return _climbed(sums, start, _TOLERANCE * sums.records, _MAX_ITERATIONS)


def completed_again(sums: Patterns, start: Array, sigma: float) -> Mode:
    """Return the likelihood's maximum of sums with fresh noise, by EM from the mode ``start`` without it.

    EM ends where no entry moves by more than a thousandth of the noise's deviation.
    """
    return _climbed(sums, start, _WARM_TOLERANCE * sigma + _TOLERANCE * sums.records, _MAX_WARM_ITERATIONS)


def _climbed(sums: Patterns, start: Array, tolerance: Array, iterations: int) -> Mode:
    T, n = start, sums.records
    converged = np.zeros(n.shape, bool)
    for _ in range(iterations):
        before, T = T, _expected(sums, floored(T, FLOOR * n)[0])
        converged = np.abs(T - before).max((-2, -1)) <= tolerance
        if converged.all():
            break
    return Mode(T, converged)


def missing_information(sums: Patterns, mode: Array) -> Array:
    """Return the largest share of missing information of any moment, ``(...)``.

    It is the rate at which EM converges near the mode (Dempster, Laird and Rubin 1977): the largest eigenvalue of a
    step's derivative there, by power iteration on differences.

    Args:
        mode: moments at the likelihood's maximum, ``(..., d, d)``.
    """
    scale = _DIFFERENCE * sums.records[..., None, None]
    away = np.random.default_rng(0).standard_normal(mode.shape[-2:])
    step, rate = np.broadcast_to(away + away.T, mode.shape), np.zeros(mode.shape[:-2])
    step = step / np.linalg.norm(step, axis=(-2, -1), keepdims=True)
    home = _expected(sums, mode)
    for _ in range(_POWERS):
        step = (_expected(sums, mode + scale * step) - home) / scale
        rate = np.linalg.norm(step, axis=(-2, -1))
        step = step / np.maximum(rate, np.finfo(np.float64).tiny)[..., None, None]
    return rate


def _expected(sums: Patterns, T: Array) -> Array:
    total, counts, n = sums.S[..., 0, :, :].copy(), sums.counts, T[..., -1, -1] / sums.constant**2
    for pattern in range(1, len(sums.observed)):
        shown = sums.observed[pattern]
        B, V = _conditional(T, shown)
        V = V * (counts[..., pattern] / n)[..., None, None]
        G = sums.block(pattern)
        total += _joined(shown, G, B @ G, B @ G @ _turned(B) + V)
    return total


def drawn(sums: Patterns, start: Array, rng: np.random.Generator) -> Array:
    """Return completed moments drawn from their posterior by data augmentation (Tanner and Wong 1987), ``(..., d, d)``.

    Args:
        start: completed moments at the mode, ``(..., d, d)``.
    """
    axes = [_axes(sums.block(pattern)) for pattern in range(len(sums.observed))]
    T = start
    for _ in range(DRAW_STEPS):
        T = _imputed(sums, axes, _parameters(T, sums.constant, rng), rng)
    return T


def _axes(G: Array) -> Array:
    """Return A with A A' = G, its columns by increasing length; negative eigenvalues, which are noise, count as 0."""
    values, vectors = np.linalg.eigh(G)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def _imputed(sums: Patterns, axes: list[Array], moments: Array, rng: np.random.Generator) -> Array:
    """Draw completed moments given the second moments of one record.

    In the axes of G, F has independent columns. A pattern with fewer records than observed columns has as many axes as
    records, so the degrees of E sum to n_P in every pattern. A count below 0, which is noise, subtracts V.
    """
    total, counts = sums.S[..., 0, :, :].copy(), sums.counts
    for pattern in range(1, len(sums.observed)):
        shown = sums.observed[pattern]
        o, m = int(shown.sum()), int((~shown).sum())
        B, V = _conditional(moments, shown)
        half = floored(V, np.full(V.shape[:-2], FLOOR**2))[1]
        n = counts[..., pattern]
        Z = rng.standard_normal((*V.shape[:-2], m, o))
        weights = np.clip(n[..., None] - np.arange(o)[::-1], 0.0, 1.0)
        L = _wishart_root(rng, np.maximum(n - o, 0.0), m)
        E = (Z * weights[..., None, :]) @ _turned(Z) + L @ _turned(L) + np.minimum(n, 0.0)[..., None, None] * np.eye(m)
        G, F = sums.block(pattern), half @ Z @ _turned(axes[pattern])
        mixed = B @ _turned(F)
        total += _joined(shown, G, B @ G + F, B @ G @ _turned(B) + mixed + _turned(mixed) + half @ E @ half)
    return total


def _parameters(T: Array, constant: float, rng: np.random.Generator) -> Array:
    """Draw the second moments of one record from the normal model's posterior given completed moments T.

    The prior is Jeffreys' for a covariance matrix, with density ``|Sigma|^(-(k + 1) / 2)``, and flat in the mean.
    """
    n = T[..., -1, -1] / constant**2
    mean = T[..., -1, :-1] / (constant * n)[..., None]
    scatter = T[..., :-1, :-1] - n[..., None, None] * mean[..., :, None] * mean[..., None, :]
    scatter = floored(scatter, FLOOR * n)[0]
    k = scatter.shape[-1]
    root = np.linalg.cholesky(scatter) @ _turned(np.linalg.inv(_wishart_root(rng, n - 1, k)))
    mean = mean + (root @ rng.standard_normal((*n.shape, k, 1)))[..., 0] / np.sqrt(n)[..., None]
    moments = np.empty(T.shape)
    moments[..., -1, -1] = constant**2
    moments[..., -1, :-1] = moments[..., :-1, -1] = constant * mean
    moments[..., :-1, :-1] = root @ _turned(root) + mean[..., :, None] * mean[..., None, :]
    return moments


def floored(S: Array, least: Array) -> tuple[Array, Array]:
    """Return S with eigenvalues of at least ``least`` ``(...)``, and the symmetric root of that."""
    values, vectors = np.linalg.eigh(S)
    values = np.maximum(values, least[..., None])
    return (vectors * values[..., None, :]) @ _turned(vectors), (vectors * np.sqrt(values)[..., None, :]) @ _turned(
        vectors
    )


def _wishart_root(rng: np.random.Generator, degrees: Array, k: int) -> Array:
    """Return lower triangles L such that L L' is Wishart with these degrees (Bartlett 1933), ``(..., k, k)``.

    Integer degrees below k yield singular matrices of that rank. Other degrees below k - 1 have the right mean.
    """
    free = degrees[..., None] - np.arange(k)
    L = np.tril(rng.standard_normal((*free.shape, k)), -1) * np.sqrt(np.clip(free, 0.0, 1.0))[..., None, :]
    squares = rng.chisquare(np.maximum(free, np.finfo(np.float64).tiny))
    return np.asarray(L + np.eye(k) * np.sqrt(np.where(free > 0, squares, 0.0))[..., None, :])


def _conditional(T: Array, shown: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return B and the residual moments of the missing columns on the observed ones."""
    o, m = np.flatnonzero(shown), np.flatnonzero(~shown)
    cross = T[..., o[:, None], m]
    B = _turned(np.linalg.solve(T[..., o[:, None], o], cross))
    return B, T[..., m[:, None], m] - B @ cross


def _joined(shown: NDArray[np.bool_], observed: Array, mixed: Array, missing: Array) -> Array:
    o, m = np.flatnonzero(shown), np.flatnonzero(~shown)
    T = np.empty((*observed.shape[:-2], len(shown), len(shown)))
    T[..., o[:, None], o], T[..., m[:, None], m] = observed, missing
    T[..., m[:, None], o], T[..., o[:, None], m] = mixed, _turned(mixed)
    return T


def _turned(S: NDArray[np.floating]) -> Array:
    return np.asarray(np.swapaxes(S, -1, -2), np.float64)
