"""The moments of a classification task as exact whole numbers, the same in real units, and their sums.

Sums take one pass over chunks of whole-numbered rows, every product exact in float64 (see ``exact_sum``), without a
loop over records. How moments become a flat vector is in ``encoding``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from privstats.errors import DataError
from privstats.moments.base import Moments
from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import ExactSum, add_gram, require_known, require_room
from privstats.moments.readonly import equal_arrays, readonly_array
from privstats.schema import CLASS_STATISTICS, ClassSchema
from privstats.schema.statistic import CLASS_TABLE

__all__ = ["ClassMoments", "ClassSums", "RealClassMoments"]


@dataclass(frozen=True, eq=False)
class RealClassMoments:
    """Class moments in real units, float64, with noise or without; statistics that were not measured are None.

    Attributes:
        N: counts, ``(C,)``.
        A: per-class sums, ``(C, d)``.
        B: second moments over all classes, ``(d, d)``.
        S: per-class second moments, ``(C, d, d)``.
        D: per-class diagonals of the second moments, ``(C, d)``.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> real = ps.measure(schema, [[0.5, 0.0], [0.0, 0.25]], [0, 1]).real()
        >>> real.N.tolist(), real.A.tolist(), real.B is None
        ([1.0, 1.0], [[0.5, 0.0], [0.0, 0.25]], True)
    """

    N: NDArray[np.float64]
    A: NDArray[np.float64]
    B: NDArray[np.float64] | None = None
    S: NDArray[np.float64] | None = None
    D: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for name in CLASS_STATISTICS:
            object.__setattr__(self, name, readonly_array(getattr(self, name), np.float64))

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

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, grid_bits=4)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1])
        >>> moments.N.tolist(), moments.A.tolist()  # records, and grid steps: 16 to the clip norm
        ([1, 1], [[16, 0], [0, 8]])
        >>> moments.real().A.tolist()
        [[1.0, 0.0], [0.0, 0.5]]
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
            object.__setattr__(self, name, readonly_array(getattr(self, name), np.int64))
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


_Adder: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]], None]


class ClassSums:
    """N, A, B, S, D of the chunks seen so far, as far as the schema sends them."""

    def __init__(self, schema: ClassSchema) -> None:
        self._schema = schema
        self._counts = np.zeros(schema.classes, np.int64)
        summed = [row for row in schema.sent if row.degree]
        self._sums = {row.letter: ExactSum(row.shape(schema.sizes), schema.steps**row.degree) for row in summed}
        self._symmetric = {row.letter for row in summed if row.symmetric}
        self._adders: dict[str, _Adder] = {
            "A": self._add_rows,
            "B": lambda rows, _, into: add_gram(rows, into),
            "S": self._add_class_grams,
            "D": self._add_squares,
        }
        require_known(self._sums, self._adders)

    def add(self, rows: NDArray[np.float64], labels: NDArray[np.intp]) -> None:
        """Add grid vectors ``(n, d)``, n at most ``exact_rows(4**f)``, of classes ``labels``; ``rows`` is used up."""
        self._counts += np.bincount(labels, minlength=self._schema.classes)
        for letter, add in self._adders.items():  # in this order, because squares use the rows up
            if letter in self._sums:
                self._sums[letter].admit(len(rows))
                add(rows, labels, self._sums[letter].partial)

    def moments(self, report: ClipReport) -> ClassMoments:
        """The exact moments; the sums are spent."""
        totals = {letter: total.result(symmetric=letter in self._symmetric) for letter, total in self._sums.items()}
        return ClassMoments(self._schema, N=self._counts, **totals, clip_report=report)

    def _add_rows(self, rows: NDArray[np.float64], labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        into += self._by_class(rows, labels)

    def _add_squares(self, rows: NDArray[np.float64], labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        into += self._by_class(np.square(rows, out=rows), labels)

    def _by_class(self, rows: NDArray[np.float64], labels: NDArray[np.intp]) -> NDArray[np.float64]:
        """Per-class sums of rows, as one sparse product: every row is added once, where it belongs."""
        shape = (self._schema.classes, len(rows))
        membership = csc_array((np.ones(len(rows)), labels, np.arange(len(rows) + 1)), shape=shape)
        return np.asarray(membership @ rows)

    def _add_class_grams(self, rows: NDArray[np.float64], labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        """One rank-k update per class, over the rows of that class brought together by a sort."""
        order = np.argsort(labels, kind="stable")
        present, starts = np.unique(labels[order], return_index=True)
        for label, members in zip(present, np.split(order, starts[1:]), strict=True):
            contiguous = members[-1] - members[0] + 1 == len(members)  # as in chunks that come class by class
            block = rows[members[0] : members[-1] + 1] if contiguous else rows[members]
            add_gram(block, into[label])
