"""Sums of grid vectors for a ridge schema: from chunks of whole-numbered rows and targets to RidgeMoments.

One pass, every product exact in float64 (see ``exact_sum``). Lives inside one ``measure``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.moments.clip_report import ClipReport
from privstats.moments.exact_sum import ExactSum, add_gram, require_known
from privstats.moments.folds import fold_of_key, key_weights
from privstats.moments.ridge_moments import RidgeMoments
from privstats.schema import RidgeSchema

__all__ = ["RidgeSums"]


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
