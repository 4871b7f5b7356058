"""The moments of a classification task as exact whole numbers, and the same in real units.

Values only: how records become moments is in ``class_sums``, how moments become a flat vector in ``encoding``.
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
from privstats.schema import CLASS_STATISTICS, ClassSchema
from privstats.statistic import CLASS_TABLE

__all__ = ["ClassMoments", "RealClassMoments"]


@dataclass(frozen=True, eq=False)
class RealClassMoments:
    """Class moments in real units, float64, with noise or without; statistics that were not measured are None.

    Attributes:
        N: counts, ``(C,)``.
        A: per-class sums, ``(C, d)``.
        B: second moments over all classes, ``(d, d)``.
        S: per-class second moments, ``(C, d, d)``.
        D: per-class diagonals of the second moments, ``(C, d)``.
    """

    N: NDArray[np.float64]
    A: NDArray[np.float64]
    B: NDArray[np.float64] | None = None
    S: NDArray[np.float64] | None = None
    D: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for name in CLASS_STATISTICS:
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RealClassMoments):
            return NotImplemented
        return all(equal_arrays(getattr(self, name), getattr(other, name)) for name in CLASS_STATISTICS)


@dataclass(frozen=True, eq=False)
class ClassMoments(Moments):
    """Exact class moments on the grid, int64: N in records, A in grid steps, B, S and D in squared grid steps.

    N_c = #{y = c}, A_c = sum x, B = sum x x^T, S_c = sum x x^T, D_c = sum x * x over the clipped, rounded records
    (docs/moments.md). Two sets of records measured apart and added are equal, bit for bit, to both measured together.

    Attributes:
        schema: what was measured.
        N, A, B, S, D: as in :class:`RealClassMoments`; B and D follow from S when S was measured; the rest is None.
        clip_report: what the clip did; stays with the client and is ignored by ``==``.

    Raises:
        DataError: an array that the schema asks for is missing or has another shape, or no records have these counts.
    """

    schema: ClassSchema
    N: NDArray[np.int64]
    A: NDArray[np.int64]
    B: NDArray[np.int64] | None = None
    S: NDArray[np.int64] | None = None
    D: NDArray[np.int64] | None = None
    clip_report: ClipReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for row in self.schema.sent:
            array, shape = getattr(self, row.letter), row.shape(self.schema.sizes)
            if array is None or array.shape != shape:
                raise DataError(f"{row.letter} must have shape {shape} under this schema; build moments with measure()")
        if self.S is not None:
            derived = {"B": self.S.sum(axis=0), "D": np.diagonal(self.S, axis1=1, axis2=2).copy()}
            for name, array in derived.items():
                object.__setattr__(self, name, array)
        for name in CLASS_STATISTICS:
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.int64))
        self._check_counts()

    def _check_counts(self) -> None:
        """Counts that are negative, or wrap when added up, would pass every limit on records."""
        if self.N.min() < 0:
            raise DataError("N must hold counts of at least 0, and some are negative; build moments with measure()")
        require_room(int(self.N.sum(dtype=np.float64)), self.schema.steps**2)

    @property
    def records(self) -> int:
        """Records measured. Private: it is N summed."""
        return int(self.N.sum())

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """The moments of both sets of records together.

        Raises:
            DataError: the schemas differ, or the totals could pass 2**63.
        """
        if not isinstance(other, ClassMoments):
            return NotImplemented
        if other.schema != self.schema:
            raise DataError("moments of different schemas cannot be added; measure both with one schema")
        require_room(self.records + other.records, self.schema.bound)
        total = {name: getattr(self, name) + getattr(other, name) for name in self.schema.statistics}
        reports = (self.clip_report, other.clip_report)
        report = None if None in reports else reports[0] + reports[1]  # type: ignore[operator]
        return ClassMoments(self.schema, **total, clip_report=report)

    def __radd__(self, other: int) -> ClassMoments:
        """``sum(parts)`` starts from 0, and 0 is the sum of no moments."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassMoments):
            return NotImplemented
        return self.schema == other.schema and all(
            equal_arrays(getattr(self, name), getattr(other, name)) for name in self.schema.statistics
        )

    def __repr__(self) -> str:
        """What was measured, and none of it: a repr ends up in logs."""
        schema = self.schema
        return f"ClassMoments(statistics={schema.statistics!r}, classes={schema.classes}, features={schema.features})"

    def real(self) -> RealClassMoments:
        """The same moments in real units, float64: every integer divided by its scale."""
        rows = [row for row in CLASS_TABLE if getattr(self, row.letter) is not None]
        scales = {row.letter: self.schema.scale_of(row.letter) / row.resolution for row in rows}
        return RealClassMoments(**{name: getattr(self, name) / scale for name, scale in scales.items()})
