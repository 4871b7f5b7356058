"""The moments of a classification task as exact whole numbers, the same in real units, and their sums.

Sums take one pass over chunks of whole-numbered rows, every product exact in float64 (see ``exact_sum``), without a
loop over records. ``encoding`` makes them a flat vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse

from privstats.moments.base import Moments, RealMoments, readonly_array
from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import ExactSum, add_gram, require_known, require_room
from privstats.schema import CLASS_STATISTICS, ClassSchema, Schema

__all__ = ["ClassMoments", "ClassSums", "RealClassMoments"]

_CACHED = 1 << 16  # entries of a pooled sum that stay cached while classes are added up


@dataclass(frozen=True, eq=False)
class RealClassMoments(RealMoments):
    """Class moments in real units, float64, with noise or without; statistics that were not measured are None.

    Attributes:
        N: counts, ``(C,)``.
        A: per-class sums, ``(C, d)``.
        B: second moments over all classes, ``(d, d)``.
        S: per-class second moments, ``(C, d, d)``.
        D: per-class diagonals of the second moments, ``(C, d)``.
        T, F: per-class sums of third and fourth powers, ``(C, d)``.

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
    T: NDArray[np.float64] | None = None
    F: NDArray[np.float64] | None = None

    @classmethod
    def of_sums(cls, schema: Schema, sums: Mapping[str, Any]) -> Self:
        """From sums by letter in wire steps; B and D follow from S."""
        return super().of_sums(schema, {**sums, **_derived(sums.get("S"))})


@dataclass(frozen=True, eq=False, repr=False)
class ClassMoments(Moments):
    """Exact class moments on the grid, int64: N in records, the others in grid steps to the power of their degree.

    N_c = #{y = c}, A_c = sum x, B = sum x x^T, S_c = sum x x^T, and entry by entry D_c = sum x^2, T_c = sum x^3, F_c =
    sum x^4 over the clipped, rounded records (docs/moments.md).

    Attributes:
        schema: what was measured.
        N, A, B, S, D, T, F: as in :class:`RealClassMoments`; B and D follow from S when S was measured; the rest is
            None.
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

    shown: ClassVar[tuple[str, ...]] = ("statistics", "classes", "features")

    schema: ClassSchema
    N: NDArray[np.int64]
    A: NDArray[np.int64]
    B: NDArray[np.int64] | None = None
    S: NDArray[np.int64] | None = None
    D: NDArray[np.int64] | None = None
    T: NDArray[np.int64] | None = None
    F: NDArray[np.int64] | None = None
    clip_report: ClipReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        unsent = {name: getattr(self, name) for name in CLASS_STATISTICS if name not in self.schema.statistics}
        for name, array in {**unsent, **_derived(self.S)}.items():
            object.__setattr__(self, name, readonly_array(array, np.int64))
        require_room(int(self.N.sum(dtype=np.float64)), self.schema.bound)  # counts that wrap would pass every limit

    @property
    def records(self) -> int:
        """Records measured. Private: it is N summed."""
        return int(self.N.sum())

    def real(self) -> RealClassMoments:
        """The same moments in real units, float64: every integer divided by its scale."""
        return RealClassMoments.of_sums(self.schema, self.wire())


def _derived(S: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """The statistics that follow from second moments by class: pooled, and their diagonals."""
    if S is None:
        return {}
    pooled, step = np.empty_like(S[0]), max(1, _CACHED // S.shape[2])
    for start in range(0, len(pooled), step):
        S[:, start : start + step].sum(axis=0, out=pooled[start : start + step])
    return {"B": pooled, "D": np.diagonal(S, axis1=1, axis2=2).copy()}


Rows: TypeAlias = NDArray[np.float64] | csr_array
_Adder: TypeAlias = Callable[[Rows, NDArray[np.intp], NDArray[np.float64]], None]


class ClassSums:
    """The statistics of the chunks seen so far, as far as the schema sends them."""

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
            "T": partial(self._add_powers, 3),
            "F": partial(self._add_powers, 4),
            "D": self._add_squares,
        }
        require_known(self._sums, self._adders)

    def add(self, rows: Rows, labels: NDArray[np.intp]) -> None:
        """Add grid vectors ``(n, d)``, dense or sparse, of classes ``labels``; ``rows`` is used up.

        At most ``exact_rows(schema.bound)`` rows at once.
        """
        self._counts += np.bincount(labels, minlength=self._schema.classes)
        for letter, add in self._adders.items():  # in this order, because squares use the rows up
            if letter in self._sums:
                self._sums[letter].admit(len(labels))
                add(rows, labels, self._sums[letter].partial)

    def moments(self, report: ClipReport) -> ClassMoments:
        """The exact moments; the sums cannot be used again."""
        totals = {letter: total.result(symmetric=letter in self._symmetric) for letter, total in self._sums.items()}
        return ClassMoments(self._schema, N=self._counts, **totals, clip_report=report)

    def _add_rows(self, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        into += self._by_class(rows, labels)

    def _add_squares(self, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        entries = rows.data if isinstance(rows, csr_array) else rows
        np.square(entries, out=entries)
        into += self._by_class(rows, labels)

    def _add_powers(self, power: int, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        """By products of whole numbers up to 2**53, which are exact; ``pow`` promises that on no platform."""
        raised = rows.copy()
        entries, factors = (each.data if isinstance(each, csr_array) else each for each in (raised, rows))
        for _ in range(power - 1):
            np.multiply(entries, factors, out=entries)
        into += self._by_class(raised, labels)

    def _by_class(self, rows: Rows, labels: NDArray[np.intp]) -> NDArray[np.float64]:
        """Per-class sums of rows, as one sparse product: every row is added once, where it belongs."""
        shape = (self._schema.classes, len(labels))
        membership = csc_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=shape)
        sums = membership @ rows
        return np.asarray(sums.toarray() if issparse(sums) else sums)

    def _add_class_grams(self, rows: Rows, labels: NDArray[np.intp], into: NDArray[np.float64]) -> None:
        """One rank-k update per class, over the rows of that class brought together by a sort."""
        order = np.argsort(labels, kind="stable")
        present, starts = np.unique(labels[order], return_index=True)
        for label, members in zip(present, np.split(order, starts[1:]), strict=True):
            contiguous = members[-1] - members[0] + 1 == len(members)  # as in chunks that come class by class
            block = rows[members[0] : members[-1] + 1] if contiguous else rows[members]
            add_gram(block, into[label])
