"""Published heads back to the moments they were fitted on.

For publishers of a model alone; a release shows the moments anyway. The recovered moments feed every other attack,
because a model that determines the moments hides no more than they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

Array: TypeAlias = NDArray[np.float64]
Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Class moments read off a head.

    Attributes:
        N: counts, ``(C,)``.
        A: sums, ``(C, d)``.
        second: S ``(C, d, d)`` from covariances, D ``(C, d)`` from variances.
    """

    N: Array
    A: Array
    second: Array


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """Ridge moments read off a path of penalties.

    Attributes:
        G: Gram matrix, ``(d, d)``.
        h: moments with the targets, ``(d, T)``.
        condition: of the linear system that gave them; its logarithm is the number of digits lost.
    """

    G: Array
    h: Array
    condition: float


def moments_of_covariances(counts: Values, means: Values, covariances: Values, *, ddof: int = 0) -> ClassSums:
    """(N, A, S) of quadratic discriminants: ``S_c = (N_c - ddof) Sigma_c + N_c mu_c mu_c^T``.

    Args:
        counts: records per class, ``(C,)``; priors times the number of records where the head holds priors.
        means: ``(C, d)``.
        covariances: ``(C, d, d)``, without shrinkage (:func:`unshrink` undoes it).
        ddof: 0 where the head divides by N_c, 1 where by N_c - 1.
    """
    N, mu = np.asarray(counts, dtype=np.float64), np.asarray(means, dtype=np.float64)
    A = N[:, None] * mu
    S = (N - ddof)[:, None, None] * np.asarray(covariances, dtype=np.float64) + A[:, :, None] * mu[:, None, :]
    return ClassSums(N, A, S)


def moments_of_variances(counts: Values, means: Values, variances: Values, *, added: float = 0.0) -> ClassSums:
    """(N, A, D) of Gaussian naive Bayes: ``D_c = N_c (v_c - added + mu_c^2)``.

    Args:
        counts, means: as in :func:`moments_of_covariances`.
        variances: ``(C, d)``.
        added: what the head added to every variance (scikit-learn's ``epsilon_``).
    """
    N, mu = np.asarray(counts, dtype=np.float64), np.asarray(means, dtype=np.float64)
    D = N[:, None] * (np.asarray(variances, dtype=np.float64) - added + np.square(mu))
    return ClassSums(N, N[:, None] * mu, D)


def pooled_moment(counts: Values, means: Values, covariance: Values) -> Array:
    """B of linear discriminants, ``(d, d)``: ``N Sigma + sum_c N_c mu_c mu_c^T`` for a pooled covariance by N."""
    N, mu = np.asarray(counts, dtype=np.float64), np.asarray(means, dtype=np.float64)
    return np.asarray(N.sum() * np.asarray(covariance, dtype=np.float64) + (mu * N[:, None]).T @ mu)


def from_quadratic_rule(arrays: dict[str, Array], records: float) -> ClassSums:
    """(N, A, S) from the arrays of this library's quadratic decision rule and the number of records.

    The rule is all that a head file holds: packed precisions about an origin in a whitening basis, and biases, in
    which the priors stand. Shrinkage is still in the covariances.

    Args:
        arrays: as ``rule_.arrays()`` gives them, with a basis of full rank.
        records: of all classes together.

    Raises:
        DataError: a projection to fewer dimensions than features: what it dropped is not in the head.
    """
    P, linear = arrays["projection"], arrays["linear"]
    d, k = P.shape
    if d != k:
        raise DataError(f"the head keeps {k} of {d} dimensions, so its moments of the others cannot be recovered")
    Q = np.zeros((len(linear), k, k))
    rows, columns = np.triu_indices(k)
    Q[:, rows, columns] = arrays["packed"] / np.where(rows == columns, 1.0, 2.0)
    Q[:, columns, rows] = Q[:, rows, columns]
    lift = np.linalg.inv(P)  # z = (x - origin) P, so x = origin + z P^-1
    means = np.linalg.solve(Q, linear[:, :, None])[:, :, 0]
    covariances = lift.T @ np.linalg.inv(Q) @ lift
    log_prior = arrays["bias"] - np.linalg.slogdet(Q)[1] / 2
    prior = np.exp(log_prior - log_prior.max())
    counts = records * prior / prior.sum()
    return moments_of_covariances(counts, arrays["origin"] + means @ lift, covariances)


def unshrink(covariance: Values, intensity: float) -> Array:
    """The covariance before shrinkage to a round one: ``(Sigma* - a m I) / (1 - a)``, m = tr / d, which it keeps.

    Undoes Ledoit-Wolf, OAS and a chosen intensity alike; ``(..., d, d)``.

    Raises:
        DataError: an intensity outside [0, 1); at 1 only the trace is left.
    """
    if not 0 <= intensity < 1:
        raise DataError(f"intensity must lie in [0, 1), got {intensity}; at 1 nothing but the trace is left")
    shrunk = np.asarray(covariance, dtype=np.float64)
    d = shrunk.shape[-1]
    mean = np.trace(shrunk, axis1=-2, axis2=-1)[..., None, None] / d
    return np.asarray((shrunk - intensity * mean * np.eye(d)) / (1 - intensity))


def unshrink_singular(covariance: Values) -> tuple[Array, float]:
    """The covariance before shrinkage, and the intensity, of a class with no more records than dimensions.

    Its smallest eigenvalue was 0, so after shrinkage it is a m: that reveals a, which need not be published.
    """
    shrunk = np.asarray(covariance, dtype=np.float64)
    mean = float(np.trace(shrunk)) / len(shrunk)
    intensity = float(np.linalg.eigvalsh(shrunk)[0]) / mean if mean > 0 else 0.0
    return unshrink(shrunk, min(max(intensity, 0.0), 1 - 1e-12)), intensity


def ridge_sums(penalties: Values, weights: Values, *, prior: Values | None = None) -> RidgeSums:
    """(G, h) from ridge weights at several penalties: ``(G + l_i I) w_i = h`` for each.

    Differences leave ``G (w_i - w_j) = l_j w_j - l_i w_i``, linear in G, whose symmetry is used: each column of the
    differences fixes G along itself and, by symmetry, across. T targets and m penalties give ``T (m - 1)`` columns; d
    of them that are independent determine G. Fewer leave G along the rest at what the attacker takes it for.

    Args:
        penalties: ``(m,)``, distinct, at least two.
        weights: without intercept, ``(m, d, T)``.
        prior: G as taken for before, ``(d, d)``, such as a public sample's; None for 0.

    Raises:
        DataError: fewer than two distinct penalties.
    """
    lam, W = np.asarray(penalties, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if len(np.unique(lam)) < 2 or len(lam) != len(W):
        raise DataError("penalties must be at least two different numbers, one for each set of weights")
    before = np.zeros((W.shape[1], W.shape[1])) if prior is None else np.asarray(prior, dtype=np.float64)
    scaled = lam[:, None, None] * W
    change, target = _columns(W[1:] - W[:-1]), _columns(scaled[:-1] - scaled[1:])
    difference, condition = _symmetric(change, target - before @ change)
    G = before + difference
    return RidgeSums(G, (G @ W + scaled).mean(axis=0), condition)


def _columns(stack: Array) -> Array:
    """``(m, d, T)`` as ``(d, m T)``."""
    return np.asarray(stack.transpose(1, 0, 2).reshape(stack.shape[1], -1))


def _symmetric(change: Array, target: Array) -> tuple[Array, float]:
    """The smallest symmetric M with ``M change = target``, and the condition of its equations."""
    scale = np.linalg.norm(change, axis=0)
    scale[scale == 0] = 1.0  # a target that is 0 throughout
    left, values, right = np.linalg.svd(change / scale, full_matrices=False)
    significant = values > values[0] * np.finfo(np.float64).eps * len(change)
    if not significant.any():  # weights that are 0 at every penalty tell nothing
        return np.zeros((len(change), len(change))), np.inf
    along = (
        (target / scale) @ right[significant].T / values[significant]
    )  # M U on the directions U that the columns span
    U = left[:, significant]
    block = U.T @ along
    M = along @ U.T + U @ along.T - U @ (block + block.T) / 2 @ U.T
    return (M + M.T) / 2, float(values[significant][0] / values[significant][-1])


def baseline(public: Values) -> Array:
    """Return the attacker's second moment per record without the head: that of a public sample ``(m, d)``."""
    rows = np.asarray(public, dtype=np.float64)
    return np.asarray(rows.T @ rows / len(rows))
