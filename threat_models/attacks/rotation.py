"""Recovering many records from (N, A, S): constraints on every record determine the rotation that the sums leave open.

``inversion`` recovers one or two records. ``S = X^T X`` gives X up to a rotation Q with ``Q 1 = 1``; the attack
searches the rotation that moves all rows to where records can be: at or above zero, in a range, on a grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from threat_models.attacks.constraints import NONNEGATIVE, Constraints

Array: TypeAlias = NDArray[np.float64]
Sums: TypeAlias = NDArray[Any]

_RELAXATION = 0.5
_CHECK_EVERY = 20
_POLISH_BELOW = 0.05  # relative gap at which bounds that are met can be told from those that are not
_LENGTH = 1e-9
_NEARLY = 0.05
_AT_BOUND = (0.03, 0.01, 0.003, 1e-3, 1e-4, 1e-6)  # of a typical entry, loose to tight
_EXACT = 1e-9
_RANK = 1e-9


@dataclass(frozen=True, eq=False)
class Recovered:
    """Rows whose sums are (nearly) those that were given.

    Attributes:
        rows: ``(n, d)``, in no order.
        gap: how far the rows are from meeting sums and constraints together, relative to the root of tr S.
        certified: on a grid, the rows are whole grid steps with exactly these sums; off a grid, sums and constraints
            are met to 1e-9. Only a wrong rotation that is as lucky to every digit could have the same.
        iterations: projections made.
    """

    rows: Array
    gap: float
    certified: bool
    iterations: int


def recover(
    N: float,
    A: Sums,
    S: Sums,
    *,
    constraints: Constraints = NONNEGATIVE,
    rng: np.random.Generator,
    starts: int = 8,
    iterations: int = 3000,
) -> Recovered:
    """Records of one class from its count, sum and second moment alone.

    Alternates between the rotations (an orthogonal Procrustes problem, as Huang, Sidiropoulos and Swami 2014, "Non-
    negative matrix factorization revisited", have it for ``S = X^T X``) and the constraints, from several random
    rotations at once. Plain alternation stalls where the two sets nearly touch; the relaxed reflection
    ``X += b (P_C(2 P_Q(X) - X) - P_Q(X))`` (Elser, Rankenburg and Thibault 2007, "Searching with iterated maps") leaves
    such traps. Once bounds that are met are known, each row solves linear equations, which gives it to the last digit.

    Args:
        N: records in the class, at least 1; noisy counts are rounded.
        A, S: ``(d,)`` and ``(d, d)``, in one unit and its square. Noise is allowed: the answer is then the best found.
        constraints: known of every record; a norm alone determines nothing.
        rng: for the first rotations.
        starts: random rotations, all at once.
        iterations: most projections; the search ends earlier when one start has met sums and constraints.

    Raises:
        DataError: N rounds to less than 1, or constraints that say nothing about coordinates.
    """
    n = round(float(N))
    if n < 1:
        raise DataError(f"N must be at least 1 record, got {N}")
    if not constraints.informative:
        raise DataError("constraints must bound coordinates or put them on a grid; give lower, upper or spacing")
    orbit = _Orbit.of(n, np.asarray(A, dtype=np.float64), np.asarray(S, dtype=np.float64))
    X = orbit.random(starts, rng)
    best = Recovered(orbit.nearest(X)[0], np.inf, False, 0)
    for iteration in range(1, iterations + 1):
        P = orbit.nearest(X)
        if iteration % _CHECK_EVERY == 0 or iteration == iterations:
            best = _better(best, P, orbit, constraints, iteration)
            if best.certified:
                return best
        X += _RELAXATION * (constraints.nearest(2 * P - X) - P)
    return best


def certify(rows: Array, A: Sums, S: Sums, constraints: Constraints) -> bool:
    """Whether rows have these sums: exactly, in grid steps, where there is a grid; else to 1e-9 of tr S."""
    if constraints.spacing > 0:
        integers = np.rint(rows / constraints.spacing)
        if not np.array_equal(integers * constraints.spacing, rows):
            return False
        A, S = np.asarray(A) / constraints.spacing, np.asarray(S) / constraints.spacing**2
        return bool(
            np.array_equal(integers.sum(axis=0), np.rint(A)) and np.array_equal(integers.T @ integers, np.rint(S))
        )
    scale = max(float(np.trace(S)), np.finfo(np.float64).tiny)
    wrong = max(np.abs(rows.sum(axis=0) - A).max() / np.sqrt(scale), np.abs(rows.T @ rows - S).max() / scale)
    outside = np.abs(constraints.nearest(rows) - rows).max() / np.sqrt(scale)
    return bool(max(wrong, outside) <= _EXACT)


def baseline(public: Sums, records: int, rng: np.random.Generator) -> Array:
    """Return the attacker's guess without the release: ``records`` rows of a public sample, drawn without repeats.

    Raises:
        DataError: the sample has fewer rows than that.
    """
    if records > len(public):
        raise DataError(f"the public sample has {len(public)} rows, fewer than the {records} asked for; give more")
    return np.asarray(public, dtype=np.float64)[rng.choice(len(public), records, replace=False)]


@dataclass(frozen=True, eq=False)
class _Orbit:
    """All matrices of n rows with the given sums: ``1 A^T / n + U R W`` with R of orthonormal columns or rows.

    Attributes:
        mean: ``A / n``, ``(d,)``.
        frame: U, an orthonormal basis of what is orthogonal to the ones, ``(n, n - 1)``.
        factor: W with ``W^T W = S - A A^T / n``, ``(k, d)`` for k at most n - 1.
        scale: the root of tr S.
        A, S: the sums, as they were given: noise leaves S of a rank that no n records have.
    """

    A: Array
    S: Array
    mean: Array
    frame: Array
    factor: Array
    scale: float

    @classmethod
    def of(cls, n: int, A: Array, S: Array) -> _Orbit:
        values, vectors = np.linalg.eigh(S - np.outer(A, A) / n)
        real = values[-(n - 1) :] > _RANK * max(float(values[-1]), 0.0) if n > 1 else np.zeros(0, dtype=bool)
        free = np.flatnonzero(real) + len(values) - len(real)
        factor = np.sqrt(values[free])[:, None] * vectors[:, free].T
        frame = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
        return cls(A, S, A / n, frame, factor, float(np.sqrt(max(float(np.trace(S)), np.finfo(np.float64).tiny))))

    def random(self, starts: int, rng: np.random.Generator) -> Array:
        """Members of the orbit under uniform rotations, ``(starts, n, d)``."""
        k, m = len(self.factor), self.frame.shape[1]
        turns = np.linalg.qr(rng.standard_normal((starts, m, k)))[0] if k else np.zeros((starts, m, 0))
        return np.asarray(self.frame @ turns @ self.factor + self.mean)

    def nearest(self, X: Array) -> Array:
        """The nearest member of the orbit to each ``(n, d)`` matrix (orthogonal Procrustes: one small SVD)."""
        if not len(self.factor):
            return np.broadcast_to(self.mean, X.shape).copy()
        left, _, right = np.linalg.svd(self.frame.T @ (X @ self.factor.T), full_matrices=False)
        return np.asarray(self.frame @ (left @ right) @ self.factor + self.mean)


def _better(best: Recovered, P: Array, orbit: _Orbit, constraints: Constraints, iteration: int) -> Recovered:
    """The best of what was found so far and the starts ``(starts, n, d)``, to the last digit where it is near."""
    gaps = np.linalg.norm(constraints.nearest(P) - P, axis=(1, 2)) / orbit.scale
    first = int(gaps.argmin())
    rows, gap = P[first].copy(), float(gaps[first])
    if gap < _POLISH_BELOW:
        for exact in _exact_near(rows, orbit, constraints):
            if certify(exact, orbit.A, orbit.S, constraints):
                return Recovered(exact, 0.0, True, iteration)
    return Recovered(rows, gap, False, iteration) if gap < best.gap else replace(best, iterations=iteration)


def _exact_near(rows: Array, orbit: _Orbit, constraints: Constraints) -> Iterator[Array]:
    """Candidates for the exact solution near ``rows``: rounded to the grid, and solved from the bounds they meet."""
    if constraints.spacing > 0:
        yield constraints.nearest(rows)
    solved = np.empty_like(rows)
    for i, row in enumerate(rows):
        exact = _from_bounds(row, orbit, constraints)
        if exact is None:
            return
        solved[i] = exact
    yield constraints.nearest(solved) if constraints.spacing > 0 else solved


def _from_bounds(row: Array, orbit: _Orbit, constraints: Constraints) -> Array | None:
    """The record that has exactly the bounds which ``row`` nearly meets, or None.

    Every record is ``A / n + w W`` with ``||w||^2 = 1 - 1/n``. As many bounds as w has entries give w by linear
    equations, which do not know of its length: a length that comes out right says that the bounds were.
    """
    k, n = len(orbit.factor), len(orbit.frame)
    for share in _AT_BOUND:
        at_lower, at_upper = constraints.bounds_met(row, share * orbit.scale / np.sqrt(n * len(row)))
        at = at_lower | at_upper
        if at.sum() < k:
            return None
        bound = np.where(at_lower, constraints.lower, constraints.upper)[at]
        weights = np.linalg.lstsq(orbit.factor[:, at].T, bound - orbit.mean[at], rcond=None)[0]
        excess = abs(float(weights @ weights) - 1 + 1 / n)
        if excess < _LENGTH:
            return orbit.mean + weights @ orbit.factor
        if excess < _NEARLY:  # a few entries were taken for bounds and are not: look again from nearer
            row = orbit.mean + weights @ orbit.factor
    return None
