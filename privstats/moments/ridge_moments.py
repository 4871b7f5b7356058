"""The moments of a least-squares task as exact whole numbers, the same in real units, their sums and their folds.

Sums take one pass over chunks of whole-numbered rows and targets, every product exact in float64 (see ``exact_sum``). A
record's fold is a public hash of its own grid vectors. A fold by position would be no function of the record alone:
removing one record would move all later ones, and noise for one record would not hide that. Identical records share a
fold. ``encoding`` makes the sums a flat vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError
from privstats.moments.base import Moments, RealMoments
from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import ExactSum, add_gram, require_known
from privstats.schema import RidgeSchema, Schema

__all__ = ["RealRidgeMoments", "RidgeMoments", "RidgeSums", "fold_of_key", "grid_key", "key_weights"]

Rows: TypeAlias = NDArray[np.float64] | csr_array
_CACHED = 1 << 17  # entries of rows that stay in the second-level cache while they are brought together by fold
_RANKS = 16  # rows of a fold over features at least, so that a symmetric product costs more than its call
_MASK_64 = (1 << 64) - 1
_POSITIVE = (1 << 63) - 1
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@lru_cache(maxsize=64)
def key_weights(entries: int) -> NDArray[np.int64]:
    """Odd 64-bit weights of shape ``(entries,)``: a record's key is their product with its integers, modulo 2**64."""
    weights = np.array([_splitmix(i) | 1 for i in range(entries)], np.uint64).view(np.int64)
    weights.setflags(write=False)
    return weights


def grid_key(steps: int, *parts: Any) -> NDArray[np.int64]:
    """The keys of records whose grid vectors are these parts, side by side; products with parts of the weights.

    A part is ``(n, columns)``, whole-numbered float64 rows of norm at most ``steps``, dense or sparse. With weights cut
    to b bits every partial sum is at most 2**b times the sum of steps sqrt(columns) over parts, which is kept to 2**52,
    so float64 products are exact and go through BLAS; the cuts are put together modulo 2**64.
    """
    weights = key_weights(sum(part.shape[1] for part in parts)).view(np.uint64)
    bits = 52 - sum(steps * (math.isqrt(part.shape[1] - 1) + 1) for part in parts).bit_length()
    key = np.zeros(parts[0].shape[0], np.uint64)
    for shift in np.arange(0, 64, bits, dtype=np.uint64):
        cut = ((weights >> shift) & np.uint64((1 << bits) - 1)).astype(np.float64)
        sums, start = np.zeros(len(key)), 0
        for part in parts:
            sums += part.dot(cut[start : start + part.shape[1]])  # of one column ten times faster than @
            start += part.shape[1]
        key += sums.astype(np.int64).view(np.uint64) << shift
    return key.view(np.int64)


def fold_of_key(key: Any, folds: int) -> Any:
    """Fold numbers 0..folds-1 of int64 keys, numpy or torch; mixed first, because a weighted sum keeps low bits low."""
    for shift in (32, 29):
        key = (key ^ ((key >> shift) & (_POSITIVE >> (shift - 1)))) * _MIX
    return ((key >> 16) & _POSITIVE >> 16) % folds


def _splitmix(i: int) -> int:
    """The i-th output of splitmix64 (Steele, Lea and Flood 2014)."""
    z = ((i + 1) * 0x9E3779B97F4A7C15) & _MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)


@dataclass(frozen=True, eq=False)
class RealRidgeMoments(RealMoments):
    """Ridge moments in real units, float64, with noise or without.

    Attributes:
        G: sum of a a^T over all folds, ``(d, d)``.
        h: sum of a b^T over all folds, ``(d, targets)``.
        q: sum of ||b||^2 over all folds, a number.
        fold_G, fold_h, fold_q: the same per fold, ``(folds, d, d)``, ``(folds, d, targets)``, ``(folds,)``.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
        >>> real = ps.measure(schema, [[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0]).real()
        >>> np.linalg.solve(real.G, real.h).ravel().tolist()  # the least-squares weights
        [0.5, -0.5]
    """

    G: NDArray[np.float64]
    h: NDArray[np.float64]
    q: float
    fold_G: NDArray[np.float64]
    fold_h: NDArray[np.float64]
    fold_q: NDArray[np.float64]

    @classmethod
    def of_sums(cls, schema: Schema, sums: Mapping[str, Any]) -> Self:
        """From sums by letter and fold in wire steps."""
        folds = {f"fold_{letter}": array / schema.scale_of(letter) for letter, array in sums.items()}
        return cls(**{letter: array.sum(axis=0) / schema.scale_of(letter) for letter, array in sums.items()}, **folds)


@dataclass(frozen=True, eq=False, repr=False)
class RidgeMoments(Moments):
    """Exact ridge moments on the grid, int64, fold by fold: G = sum a a^T, h = sum a b^T, q = sum ||b||^2.

    A record's fold is a public hash of its own grid vectors (see ``folds``), so that one record more or less leaves all
    others where they are: the sensitivity of the fold-wise sums rests on that.

    Attributes:
        schema: what was measured.
        fold_G, fold_h, fold_q: per fold, ``(folds, d, d)``, ``(folds, d, targets)``, ``(folds,)``.
        clip_report: what the clip did, and how many records there were; stays with the client, ignored by ``==``.

    Raises:
        DataError: an array has another shape than the schema says, or the clip report a negative number of records.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0, grid_bits=4)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0])
        >>> moments.G.tolist(), moments.real().G.tolist()  # squared grid steps of 2 / 16, and real units
        ([[64, 0], [0, 256]], [[1.0, 0.0], [0.0, 4.0]])
    """

    prefix: ClassVar[str] = "fold_"
    shown: ClassVar[tuple[str, ...]] = ("features", "targets", "folds")

    schema: RidgeSchema
    fold_G: NDArray[np.int64]
    fold_h: NDArray[np.int64]
    fold_q: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.records is not None and self.records < 0:
            raise DataError("clip_report.records must be at least 0, got a negative number; keep what measure() gave")

    @property
    def G(self) -> NDArray[np.int64]:
        """sum a a^T over all folds, ``(d, d)``, in squared grid steps."""
        return np.asarray(self.fold_G.sum(axis=0))

    @property
    def h(self) -> NDArray[np.int64]:
        """sum a b^T over all folds, ``(d, targets)``, in feature steps times target steps."""
        return np.asarray(self.fold_h.sum(axis=0))

    @property
    def q(self) -> int:
        """sum ||b||^2 over all folds, in squared target steps."""
        return int(self.fold_q.sum())

    @property
    def records(self) -> int | None:
        """Records measured, from the clip report; None where that is unknown. Private, and never sent."""
        return None if self.clip_report is None else self.clip_report.records

    def real(self) -> RealRidgeMoments:
        """The same moments in real units, float64: every integer divided by its scale."""
        return RealRidgeMoments.of_sums(self.schema, self.wire())


class RidgeSums:
    """G, h, q per fold of the chunks seen so far."""

    def __init__(self, schema: RidgeSchema) -> None:
        self._schema = schema
        sums = {row.letter: ExactSum(row.shape(schema.sizes), schema.steps**row.degree) for row in schema.sent}
        require_known(sums, "Ghq")
        self._G, self._h, self._q = (sums[letter] for letter in "Ghq")
        self._step = max(_CACHED // schema.features, _RANKS * schema.features * schema.folds)

    def add(self, rows: Rows, targets: NDArray[np.float64]) -> None:
        """Add grid vectors ``(n, d)``, dense or sparse, and grid targets ``(n, T)``, n at most ``exact_rows(4**f)``."""
        for total in (self._G, self._h, self._q):
            total.admit(len(targets))
        size = max(1, len(targets)) if isinstance(rows, csr_array) else self._step
        for start in range(0, len(targets), size):
            part = slice(start, start + size)
            for fold, (a, b) in self._by_fold(rows[part], targets[part]):
                add_gram(a, self._G.partial[fold])
                self._h.partial[fold] += a.T @ b
                self._q.partial[fold] += np.vdot(b, b)

    def _by_fold(
        self, rows: Rows, targets: NDArray[np.float64]
    ) -> Iterator[tuple[int, tuple[Rows, NDArray[np.float64]]]]:
        """Rows and targets of each fold that is there, brought together by one sort."""
        if self._schema.folds == 1:
            yield 0, (rows, targets)
            return
        folds = fold_of_key(grid_key(self._schema.steps, rows, targets), self._schema.folds)
        order = np.argsort(folds.astype(np.min_scalar_type(self._schema.folds)), kind="stable")
        ends = np.cumsum(np.bincount(folds, minlength=self._schema.folds))
        rows = rows[order] if isinstance(rows, csr_array) else np.take(rows, order, axis=0)
        targets = np.take(targets, order, axis=0)
        for fold, (start, end) in enumerate(zip((0, *ends[:-1]), ends, strict=True)):
            if start < end:
                yield fold, (rows[start:end], targets[start:end])

    def moments(self, report: ClipReport) -> RidgeMoments:
        """The exact moments; the sums cannot be used again."""
        return RidgeMoments(self._schema, self._G.result(symmetric=True), self._h.result(), self._q.result(), report)
