"""Recovering one or two records from their own sums.

From three records on the sums determine records only up to a rotation, see ``rotation``. Works on grid integers, where
the answer is exact, and on real or noisy sums, where it is the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

Array: TypeAlias = NDArray[np.float64]
Sums: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The values of two records in every coordinate, without saying which record has which.

    Attributes:
        low, high: the smaller and the larger value, ``(d,)`` each.
    """

    low: Array
    high: Array

    def found(self, records: Sums, tolerance: float) -> float:
        """Share of coordinates whose unordered pair is that of ``records``, ``(2, d)``, up to ``tolerance``."""
        truth = np.sort(np.asarray(records, dtype=np.float64), axis=0)
        error = np.maximum(np.abs(truth[0] - self.low), np.abs(truth[1] - self.high))
        return float((error <= tolerance).mean())


def one_record(A: Sums) -> Array:
    """The record of a class that holds one, ``(1, d)``: its sum is the record."""
    return np.asarray(A, dtype=np.float64)[None, :].copy()


def pair_from_moments(A: Sums, S: Sums) -> Array:
    """Recover both records of a class that holds two, ``(2, d)``, in either order.

    ``2 S - A A^T = delta delta^T`` with delta their difference, so ``x = (A +- delta) / 2``. Integers are never
    rounded: delta is the column under the largest diagonal entry, divided by that entry's root. Of real or noisy
    sums it is the leading eigenvector, the closest rank one.

    Args:
        A: sum of the two records, ``(d,)``, in grid steps (integers) or real units.
        S: their second moment, ``(d, d)``, in the same units squared; integers as exact as they are below 2**61.

    Raises:
        DataError: integers that are not the sums of two integer records.
    """
    if _integers(A) and _integers(S):
        return _exact_pair(np.asarray(A, dtype=np.int64), np.asarray(S, dtype=np.int64))
    A, S = np.asarray(A, dtype=np.float64), np.asarray(S, dtype=np.float64)
    values, vectors = np.linalg.eigh(2 * S - np.outer(A, A))
    delta = np.sqrt(max(float(values[-1]), 0.0)) * vectors[:, -1]
    return np.stack([A + delta, A - delta]) / 2


def pair_from_squares(A: Sums, D: Sums) -> Pairs:
    """The unordered pair of values in each coordinate of a class of two, from sums and sums of squares.

    ``x_j = A_j / 2 +- sqrt(2 D_j - A_j^2) / 2``. Which record has the larger value stays open: 2^(d-1) choices.

    Args:
        A, D: ``(d,)`` each, in grid steps (integers: then exact) or real units; noise below 0 under the root reads 0.
    """
    exact = _integers(A) and _integers(D)
    kind = np.int64 if exact else np.float64
    A, D = np.asarray(A, dtype=kind), np.asarray(D, dtype=kind)
    gap = np.sqrt(np.maximum(2 * D - A * A, 0).astype(np.float64))
    if exact:
        gap = np.rint(gap)
    return Pairs((A - gap) / 2, (A + gap) / 2)


def baseline(public: Sums, records: int) -> Array:
    """Return the attacker's guess without the release: the mean of a public sample ``(m, d)``, for every record."""
    return np.tile(np.asarray(public, dtype=np.float64).mean(axis=0), (records, 1))


def _integers(sums: Sums) -> bool:
    return np.issubdtype(np.asarray(sums).dtype, np.integer)


def _exact_pair(A: NDArray[np.int64], S: NDArray[np.int64]) -> Array:
    """``pair_from_moments`` in integers, checked against both sums."""
    outer = 2 * S - np.outer(A, A)
    widest = int(np.argmax(np.diagonal(outer)))
    square = int(outer[widest, widest])
    root = round(max(square, 0) ** 0.5)
    delta = np.zeros_like(A) if root == 0 else outer[widest] // root
    if not np.array_equal(np.outer(delta, delta), outer) or ((A + delta) % 2).any():
        raise DataError("A and S are not the sums of two integer records; pass noisy or real sums as floats")
    return np.stack([(A + delta) // 2, (A - delta) // 2]).astype(np.float64)
