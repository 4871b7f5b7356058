"""The number of records that an attack recovered: its rows matched with the true ones in the best order.

Only the game uses this; an attack never sees the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matching:
    """True rows and the recovered rows that were taken for them.

    Attributes:
        order: for each true row the recovered row, ``(n,)``; -1 where there are fewer recovered rows.
        errors: relative error ``||x - found|| / ||x||`` of each true row, infinite where nothing was recovered.
    """

    order: NDArray[np.intp]
    errors: Array

    def within(self, tolerance: float = 0.05) -> float:
        """Share of true rows recovered up to a relative error."""
        return float((self.errors <= tolerance).mean())


def match(truth: Array, rows: Array) -> Matching:
    """Match rows ``(m, d)`` to true ones ``(n, d)``, one to one, with as many close ones as possible.

    An error counts as 1 at most, so that one row that is far off does not turn others around.
    """
    lengths = np.maximum(np.linalg.norm(truth, axis=1), np.finfo(np.float64).tiny)
    errors = cdist(truth, rows) / lengths[:, None]
    mine, theirs = linear_sum_assignment(np.minimum(errors, 1.0))
    order = np.full(len(truth), -1, dtype=np.intp)
    best = np.full(len(truth), np.inf)
    order[mine], best[mine] = theirs, errors[mine, theirs]
    return Matching(order, best)
