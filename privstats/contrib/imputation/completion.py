"""Complete second moments by gap pattern, and draw completed moments from their posterior.

A pattern P has the sums ``S_P = sum z z'`` over its records, and O and M are its observed and missing columns. Under a
normal model with regression B and residual covariance V of M on O, imputing the records of P adds to the sums

    z_O z_O':  G;    z_M z_O':  B G + F;    z_M z_M':  B G B' + B F' + F B' + E,

with G the block of S_P, F normal with covariance V across rows and G across columns, and E = F G^-1 F' + Wishart(n_P -
|O|, V). Their law depends on records only through G and n_P: no record is imputed (docs/imputation_on_sums.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.denoise import Array

_FLOOR = 1e-3  # smallest eigenvalue of moments, per record: the columns have spreads of about 1
_STEPS, _WARM_STEPS = 200, 8
_CONVERGED = 1e-9


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


def completed(sums: Patterns, start: Array | None = None) -> Array:
    """Return total moments at the maximum of the observed-data likelihood, ``(..., d, d)``, by EM.

    Args:
        start: moments to start a few steps from; None: the records without gaps, until convergence.
    """
    n = sums.records
    first = sums.S[..., 0, :, :]
    T = first * (n / sums.counts[..., 0])[..., None, None] if start is None else start
    for _ in range(_STEPS if start is None else _WARM_STEPS):
        before, T = T, _expected(sums, floored(T, _FLOOR * n)[0])
        if np.abs(T - before).max() <= _CONVERGED * np.abs(T).max():
            break
    return T


def _expected(sums: Patterns, T: Array) -> Array:
    total, counts, n = sums.S[..., 0, :, :].copy(), sums.counts, T[..., -1, -1] / sums.constant**2
    for pattern in range(1, len(sums.observed)):
        shown = sums.observed[pattern]
        B, V = _conditional(T, shown)
        V = V * (counts[..., pattern] / n)[..., None, None]
        G = sums.block(pattern)
        total += _joined(shown, G, B @ G, B @ G @ _turned(B) + V)
    return total


def drawn(sums: Patterns, start: Array, rng: np.random.Generator, steps: int) -> Array:
    """Return completed moments drawn from their posterior by data augmentation, ``(..., d, d)``.

    Args:
        start: completed moments, ``(..., d, d)``.
        steps: of data augmentation (Tanner and Wong 1987).
    """
    roots = [floored(sums.block(pattern), np.zeros(sums.records.shape))[1] for pattern in range(len(sums.observed))]
    T = start
    for _ in range(steps):
        T = _imputed(sums, roots, _parameters(T, sums.constant, rng), rng)
    return T


def _imputed(sums: Patterns, roots: list[Array], moments: Array, rng: np.random.Generator) -> Array:
    total, counts = sums.S[..., 0, :, :].copy(), sums.counts
    for pattern in range(1, len(sums.observed)):
        shown = sums.observed[pattern]
        o, m = int(shown.sum()), int((~shown).sum())
        B, V = _conditional(moments, shown)
        half = floored(V, np.full(V.shape[:-2], _FLOOR**2))[1]
        Z = rng.standard_normal((*V.shape[:-2], m, o))
        L = _wishart_root(rng, np.maximum(counts[..., pattern] - o, 0.0), m)
        G, F = sums.block(pattern), half @ Z @ roots[pattern]
        mixed = B @ _turned(F)
        E = half @ (Z @ _turned(Z) + L @ _turned(L)) @ half
        total += _joined(shown, G, B @ G + F, B @ G @ _turned(B) + mixed + _turned(mixed) + E)
    return total


def _parameters(T: Array, constant: float, rng: np.random.Generator) -> Array:
    """Draw the second moments of one record from the normal model's posterior given completed moments T."""
    n = T[..., -1, -1] / constant**2
    mean = T[..., -1, :-1] / (constant * n)[..., None]
    scatter = T[..., :-1, :-1] - n[..., None, None] * mean[..., :, None] * mean[..., None, :]
    scatter = floored(scatter, _FLOOR * n)[0]
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
    """Return lower triangles L such that L L' is Wishart with these degrees (Bartlett 1933)."""
    L = np.tril(rng.standard_normal((*degrees.shape, k, k)), -1)
    for i in range(k):
        L[..., i, i] = np.sqrt(rng.chisquare(np.maximum(degrees - i, _FLOOR)))
    return L


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


def _turned(S: Array) -> Array:
    return np.swapaxes(S, -1, -2)
