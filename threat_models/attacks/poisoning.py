"""The effect on the model of one client that lies about its moments, and the checks of the total that detect it.

A lie inside the ring is masked like the truth, and a server sees sums only, so every check must be a statement about
the total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

Array: TypeAlias = NDArray[np.float64]
Values: TypeAlias = NDArray[Any]
Lie: TypeAlias = Literal["scaled sums", "scaled records", "negated sums", "swapped classes"]


@dataclass(frozen=True, eq=False)
class Moments:
    """Class moments in real units: N ``(C,)``, A ``(C, d)``, S ``(C, d, d)``."""

    N: Array
    A: Array
    S: Array

    @classmethod
    def of(cls, X: Values, y: Values, classes: int) -> Moments:
        """Moments of records ``(n, d)`` with labels ``(n,)``."""
        onehot = np.eye(classes)[np.asarray(y, dtype=np.intp)]
        rows = np.asarray(X, dtype=np.float64)
        S = np.stack([rows[y == c].T @ rows[y == c] for c in range(classes)])
        return cls(onehot.sum(axis=0), onehot.T @ rows, S)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.N + other.N, self.A + other.A, self.S + other.S)


@dataclass(frozen=True, eq=False)
class Checks:
    """Masks ``(C,)`` of the classes of a total that break a law of every sum of records.

    Attributes:
        norm: ``||A_c|| > N_c R``.
        trace: ``tr S_c > N_c R^2``.
        scatter: ``S_c - A_c A_c^T / N_c`` has a negative eigenvalue.
    """

    norm: NDArray[np.bool_]
    trace: NDArray[np.bool_]
    scatter: NDArray[np.bool_]

    @property
    def caught_by(self) -> tuple[str, ...]:
        """Names of the checks that see something."""
        return tuple(name for name in ("norm", "trace", "scatter") if getattr(self, name).any())


def poisoned(honest: Moments, lie: Lie, scale: float) -> Moments:
    """The client's message in place of its own moments.

    Args:
        honest: its moments.
        lie: "scaled sums" multiplies A alone; "scaled records" sends what records ``scale`` times as long would give;
            "negated sums" sends -scale A; "swapped classes" sends A of the class behind, times scale.
        scale: 1 is honest for the first two.

    Raises:
        DataError: an unknown lie.
    """
    if lie == "scaled sums":
        return Moments(honest.N, scale * honest.A, honest.S)
    if lie == "scaled records":
        return Moments(honest.N, scale * honest.A, scale**2 * honest.S)
    if lie == "negated sums":
        return Moments(honest.N, -scale * honest.A, honest.S)
    if lie == "swapped classes":
        return Moments(honest.N, scale * np.roll(honest.A, 1, axis=0), honest.S)
    raise DataError(f"lie must be 'scaled sums', 'scaled records', 'negated sums' or 'swapped classes', got {lie!r}")


def check_total(
    total: Moments,
    clip_norm: float,
    *,
    sigma_N: float = 0.0,
    sigma_A: float = 0.0,
    sigma_S: float = 0.0,
    z: float = 6.0,
) -> Checks:
    """Check the total of all clients, with an allowance of z standard deviations for known noise.

    The allowance for A is ``sigma_A (sqrt d + z)``, for a trace ``z sigma_S sqrt d``, for an eigenvalue
    ``sigma_S (sqrt(2 d) + z)``, the edge of the symmetric noise matrix's spectrum, and what noise in A A^T / N adds.

    Args:
        total: N, A and S of all clients.
        clip_norm: R, the norm that every record keeps to.
        sigma_N, sigma_A, sigma_S: noise standard deviations in the total, in real units.
        z: standard deviations; at 6 an honest total is accused about once in 10^9.
    """
    C, d = total.A.shape
    most = total.N + z * sigma_N
    room = sigma_A * (np.sqrt(d) + z)
    rounding = 1e-9 * np.maximum(np.abs(most), 1.0) * clip_norm
    norms = np.linalg.norm(total.A, axis=1)
    norm = norms > most * clip_norm + room + rounding
    traces = np.einsum("cii->c", total.S)
    trace = traces > most * clip_norm**2 + z * sigma_S * np.sqrt(d) + rounding * clip_norm
    scatter = np.zeros(C, dtype=bool)
    for c in range(C):
        n = max(float(most[c]), 1.0)
        least = np.linalg.eigvalsh(total.S[c] - np.outer(total.A[c], total.A[c]) / n)[0]
        allowed = sigma_S * (np.sqrt(2 * d) + z) + (2 * norms[c] * room + room**2) / n + rounding[c] * clip_norm
        scatter[c] = least < -allowed
    return Checks(norm, trace, scatter)


def accuracy(total: Moments, X: Values, y: Values, *, shrinkage: float = 0.1) -> float:
    """Share of test records ``(m, d)`` that linear discriminants from the total get right.

    The pooled covariance is shrunk to a round one and its negative eigenvalues, which a lie can bring, are dropped.
    """
    n = np.maximum(total.N, 1.0)
    means = total.A / n[:, None]
    pooled = (total.S.sum(axis=0) - np.einsum("ci,cj->ij", total.A, means)) / n.sum()
    values, vectors = np.linalg.eigh((pooled + pooled.T) / 2)
    values = np.maximum(values, 0.0)
    values = (1 - shrinkage) * values + shrinkage * max(float(values.mean()), np.finfo(np.float64).tiny)
    coef = (means @ vectors / values) @ vectors.T
    scores = np.asarray(X, dtype=np.float64) @ coef.T - np.einsum("cd,cd->c", coef, means) / 2 + np.log(n / n.sum())
    return float((scores.argmax(axis=1) == y).mean())


def baseline(honest: Moments, X: Values, y: Values) -> float:
    """Accuracy on the same test records without the lie."""
    return accuracy(honest, X, y)
