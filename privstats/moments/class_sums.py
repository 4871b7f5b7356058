"""Sums of grid vectors for a class schema: from chunks of whole-numbered rows to ClassMoments.

One pass, every product exact in float64 (see ``exact_sum``), no loop over records. Lives inside one ``measure``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from privstats.moments.class_moments import ClassMoments
from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import ExactSum, add_gram, require_known
from privstats.schema import ClassSchema

__all__ = ["ClassSums"]

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
