"""What records of classes and regressions add, each by itself: their vectors on the grid, as the sums take them."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments.accumulators import CpuAccumulator
from privstats.moments.clip_report import ClipReport
from privstats.moments.input_validation import dense, tiles, tiles_of_batches
from privstats.moments.observed import observed, seen_in
from privstats.moments.record_terms import Product, RecordTerms, Term
from privstats.moments.ridge_moments import fold_of_key, grid_key
from privstats.schema import ClassSchema, RecordSchema, RidgeSchema

__all__ = ["terms_on_grid"]

_POWERS = {"A": 1, "D": 2, "T": 3, "F": 4}


def terms_on_grid(schema: RecordSchema, X: Any, y: Any, *_: Any) -> RecordTerms:
    """What each of these records adds, whatever their container: their dense rows are in memory at once.

    Raises:
        DataError: records that do not fit the schema.
    """
    read: Any = replace(schema, statistics="NA") if isinstance(schema, ClassSchema) else schema  # of S rows are sorted
    kept, seen = _Kept(), []
    accumulator = CpuAccumulator(read, kept)
    for rows, targets in tiles_of_batches(read, X) if y is None else tiles(read, X, y):
        seen.append(seen_in(schema, targets))
        accumulator.add(*map(dense, observed(schema, rows, targets)))
    report: Any = accumulator.moments()
    whole = np.concatenate([np.empty((0, schema.features)), *kept.rows])
    beside = np.concatenate(kept.beside) if kept.beside else np.empty((0, getattr(schema, "targets", 1)))
    terms = _of_folds(schema, whole, beside) if isinstance(schema, RidgeSchema) else _of_classes(schema, whole, beside)
    return RecordTerms(np.concatenate([np.empty(0, np.bool_), *seen]), tuple(terms), {"clip_report": report})


class _Kept:
    """In place of sums: the vectors on the grid, and labels or targets beside them."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.beside: list[Any] = []

    def add(self, rows: NDArray[np.float64], beside: NDArray[Any]) -> None:
        """Keep a chunk, which is used up."""
        self.rows.append(rows.copy())
        self.beside.append(beside.copy())

    def moments(self, report: ClipReport) -> ClipReport:
        """The report."""
        return report


def _of_classes(schema: ClassSchema, rows: NDArray[np.float64], labels: NDArray[Any]) -> list[Term]:
    letters = {row.letter for row in schema.sent}
    by_class: dict[str, Product] = {"N": (np.ones((len(rows), 1)), None)}
    for letter, degree in _POWERS.items():
        if letter in letters:
            by_class[letter] = reduce(np.multiply, [rows] * degree), None
    if "S" in letters:
        by_class["S"] = rows, rows
    pooled = [Term({"B": (rows, rows)})] if "B" in letters else []
    return [Term(by_class, labels.reshape(-1).astype(np.intp)), *pooled]


def _of_folds(schema: RidgeSchema, rows: NDArray[np.float64], targets: NDArray[np.float64]) -> list[Term]:
    folds = None
    if schema.folds > 1:
        folds = np.asarray(fold_of_key(grid_key(schema.steps, rows, targets), schema.folds), np.intp)
    return [Term({"G": (rows, rows), "h": (rows, targets), "q": (np.vecdot(targets, targets)[:, None], None)}, folds)]
