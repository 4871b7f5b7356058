"""The moments of a least-squares task as exact whole numbers, and the same in real units.

Values only: how records become moments is in ``ridge_sums``, how moments become a flat vector in ``encoding``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.base import Moments
from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import require_room
from privstats.moments.frozen import equal_arrays, frozen_array
from privstats.schema import RidgeSchema
from privstats.statistic import Statistic

__all__ = ["RealRidgeMoments", "RidgeMoments"]


@dataclass(frozen=True, eq=False)
class RealRidgeMoments:
    """Ridge moments in real units, float64, with noise or without.

    Attributes:
        G: sum of a a^T over all folds, ``(d, d)``.
        h: sum of a b^T over all folds, ``(d, targets)``.
        q: sum of ||b||^2 over all folds, a number.
        fold_G, fold_h, fold_q: the same per fold, ``(folds, d, d)``, ``(folds, d, targets)``, ``(folds,)``.
    """

    G: NDArray[np.float64]
    h: NDArray[np.float64]
    q: float
    fold_G: NDArray[np.float64]
    fold_h: NDArray[np.float64]
    fold_q: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("G", "h", "fold_G", "fold_h", "fold_q"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64))
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
            object.__setattr__(self, name, frozen_array(array, np.int64))
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
