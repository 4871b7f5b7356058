"""The moments of a least-squares task as exact whole numbers, the same in real units, their sums and their folds.

Sums take one pass over chunks of whole-numbered rows and targets, every product exact in float64 (see ``exact_sum``).
A record's fold is a public hash of its own grid vectors, not of its position: removing one record would then move all
later ones to other folds, and no noise for one record hides that. Identical records share a fold. How moments become a
flat vector is in ``encoding``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.base import Moments
from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import ExactSum, add_gram, require_known, require_room
from privstats.moments.readonly import equal_arrays, readonly_array
from privstats.schema import RidgeSchema
from privstats.schema.statistic import Statistic

__all__ = ["RealRidgeMoments", "RidgeMoments", "RidgeSums", "fold_of_key", "key_weights"]

_MASK_64 = (1 << 64) - 1
_POSITIVE = (1 << 63) - 1
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@lru_cache(maxsize=64)
def key_weights(entries: int) -> NDArray[np.int64]:
    """Odd 64-bit weights of shape ``(entries,)``: a record's key is their product with its integers, modulo 2**64."""
    weights = np.array([_splitmix(i) | 1 for i in range(entries)], np.uint64).view(np.int64)
    weights.setflags(write=False)
    return weights


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
class RealRidgeMoments:
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

    def __post_init__(self) -> None:
        for name in ("G", "h", "fold_G", "fold_h", "fold_q"):
            object.__setattr__(self, name, readonly_array(getattr(self, name), np.float64))
        object.__setattr__(self, "q", float(self.q))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RealRidgeMoments):
            return NotImplemented
        folds = ("fold_G", "fold_h", "fold_q")
        return all(equal_arrays(getattr(self, name), getattr(other, name)) for name in (*folds, "G", "h"))


@dataclass(frozen=True, eq=False)
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

    schema: RidgeSchema
    fold_G: NDArray[np.int64]
    fold_h: NDArray[np.int64]
    fold_q: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for row in self.schema.sent:
            name, shape = f"fold_{row.letter}", row.shape(self.schema.sizes)
            array = getattr(self, name)
            if array.shape != shape:
                raise DataError(f"{name} must have shape {shape} under this schema; build moments with measure()")
            object.__setattr__(self, name, readonly_array(array, np.int64))
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

    def sums(self, row: Statistic) -> NDArray[np.int64]:
        """The sums of one statistic, fold by fold."""
        array: NDArray[np.int64] = getattr(self, f"fold_{row.letter}")
        return array

    def __add__(self, other: RidgeMoments) -> RidgeMoments:
        """The moments of both sets of records together, fold by fold.

        Raises:
            DataError: the schemas differ, or the totals could pass 2**63. Where a record count is unknown, the sums
                themselves tell.
        """
        if not isinstance(other, RidgeMoments):
            return NotImplemented
        if other.schema != self.schema:
            raise DataError("moments of different schemas cannot be added; measure both with one schema")
        if self.records is not None and other.records is not None:
            require_room(self.records + other.records, self.schema.bound)
        elif self._reach() + other._reach() >= 1 << 63:
            raise DataError("the totals could pass 64 bits; lower grid_bits or add fewer moments together")
        reports = (self.clip_report, other.clip_report)
        report = None if None in reports else reports[0] + reports[1]  # type: ignore[operator]
        G, h, q = self.fold_G + other.fold_G, self.fold_h + other.fold_h, self.fold_q + other.fold_q
        return RidgeMoments(self.schema, G, h, q, report)

    def _reach(self) -> int:
        """How large any total over folds may be, in absolute value; exact, whatever the arrays hold."""
        arrays = (self.fold_G, self.fold_h, self.fold_q)
        return max(sum(max(int(fold.max()), -int(fold.min())) for fold in array) for array in arrays)

    def __radd__(self, other: int) -> RidgeMoments:
        """``sum(parts)`` starts from 0, and 0 is the sum of no moments."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RidgeMoments):
            return NotImplemented
        return self.schema == other.schema and all(
            equal_arrays(getattr(self, name), getattr(other, name)) for name in ("fold_G", "fold_h", "fold_q")
        )

    def __repr__(self) -> str:
        """What was measured, and none of it: a repr ends up in logs."""
        schema = self.schema
        return f"RidgeMoments(features={schema.features}, targets={schema.targets}, folds={schema.folds})"

    def real(self) -> RealRidgeMoments:
        """The same moments in real units, float64: every integer divided by its scale."""
        G, h, q = (self.schema.scale_of(name) for name in "Ghq")
        totals = (self.G / G, self.h / h, self.q / q)
        return RealRidgeMoments(*totals, self.fold_G / G, self.fold_h / h, self.fold_q / q)


class RidgeSums:
    """G, h, q per fold of the chunks seen so far."""

    def __init__(self, schema: RidgeSchema) -> None:
        self._schema = schema
        sums = {row.letter: ExactSum(row.shape(schema.sizes), schema.steps**row.degree) for row in schema.sent}
        require_known(sums, "Ghq")
        self._G, self._h, self._q = (sums[letter] for letter in "Ghq")

    def add(self, rows: NDArray[np.float64], targets: NDArray[np.float64]) -> None:
        """Add grid vectors ``(n, d)`` and grid targets ``(n, T)``, n at most ``exact_rows(4**f)``."""
        for total in (self._G, self._h, self._q):
            total.admit(len(rows))
        folds = self._folds_of(rows, targets)
        for fold in np.unique(folds):
            members = folds == fold
            a, b = (rows, targets) if members.all() else (rows[members], targets[members])
            add_gram(a, self._G.partial[fold])
            self._h.partial[fold] += a.T @ b
            self._q.partial[fold] += np.vecdot(b, b).sum()

    def _folds_of(self, rows: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.int64]:
        if self._schema.folds == 1:
            return np.zeros(len(rows), np.int64)
        weights = key_weights(rows.shape[1] + targets.shape[1])
        key = rows.astype(np.int64) @ weights[: rows.shape[1]] + targets.astype(np.int64) @ weights[rows.shape[1] :]
        folds: NDArray[np.int64] = fold_of_key(key, self._schema.folds)
        return folds

    def moments(self, report: ClipReport) -> RidgeMoments:
        """The exact moments; the sums are spent."""
        return RidgeMoments(self._schema, self._G.result(symmetric=True), self._h.result(), self._q.result(), report)
