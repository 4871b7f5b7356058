"""Exact sums of a course over the same records again and again, with what is common to its rounds worked out once.

Not another sum: the integers are those of ``privstats.measure``, bit for bit (a test compares them). Kept are the first
release's sums, the rows on the grid, and u(x) for as long as M stays the same, which it does within a course.

The library keeps u(x) between the rounds of one call (``records/row_cache.py``); this keeps it over draws by the
hundred.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from privstats.kinds import GradientSchema
from privstats.kinds.gradients import GradientMoments
from privstats.moments import Moments, quantize
from privstats.moments.gradient_map import softmax_of_units, unit_rows
from privstats.schema.public_values import Values

__all__ = ["Records"]

_ROWS = 2048


class Records:
    """The records of several clients, dealt to them in turn.

    Args:
        X: all clients' rows, ``(n, d)``.
        y: their labels or targets, ``(n,)``.
        clients: client k has rows k, k + clients, ...
    """

    def __init__(self, X: NDArray[Any], y: NDArray[Any], clients: int) -> None:
        self._parts = [(X[k::clients], y[k::clients]) for k in range(clients)]
        self._first: dict[tuple[str, int], Any] = {}
        self._grid: dict[int, NDArray[np.float64]] = {}
        self._units: dict[int, NDArray[np.float64]] = {}
        self._map: Values | None = None

    def measured(self, plan: ps.Plan, k: int) -> Any:
        """Client k's exact sums under a plan."""
        X, y = self._parts[k]
        if plan.published is None:
            key = (repr(plan.schema), k)
            if key not in self._first:
                self._first[key] = ps.measure(plan.schema, X, y)
            return self._first[key]
        values = plan.published.read()
        if not isinstance(plan.schema, GradientSchema) or "W" not in values:  # not of a linear softmax
            return ps.measure(plan.schema, X, y, published=plan.published)
        return self._gradient(plan.schema, k, values["M"], values["W"], plan.published.sha256)

    def _gradient(self, schema: GradientSchema, k: int, M: Values, W: Values, published: str) -> Moments:
        units, y = self._unit(schema, k, M), self._parts[k][1]
        g, kappa = np.zeros((W.integers.shape[0], units.shape[1])), 0.0
        for part in _parts(len(units)):  # integers, sums far below 2**53: exact in any order
            mapped = softmax_of_units(schema, units[part], y[part], W)
            g += mapped.residuals.T @ mapped.rows
            kappa += float(mapped.kappa.sum())
        return GradientMoments(schema, g.astype(np.int64), int(kappa), len(units), published)

    def _unit(self, schema: GradientSchema, k: int, M: Values) -> NDArray[np.float64]:
        same = self._map is not None and self._map.exponent == M.exponent
        if not (same and self._map is not None and np.array_equal(self._map.integers, M.integers)):
            self._map = M
            self._units.clear()
        if k not in self._units:
            if k not in self._grid:
                self._grid[k] = quantize(schema.rows, self._parts[k][0]).astype(np.float64)
            rows = self._grid[k]
            self._units[k] = np.concatenate([unit_rows(schema, rows[part], M) for part in _parts(len(rows))])
        return self._units[k]


def _parts(rows: int) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, rows, _ROWS)]
