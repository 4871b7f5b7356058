"""Cut points of a study's own records, where its plan leaves them open.

A course finds them in noisy counts; a study is of records that may be looked at, and takes their quantiles, as a code
book would state them. What finding them costs, a rehearsal shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments.code_rows import cells_of
from privstats.moments.table import codes_of
from privstats.plan import Plan
from privstats.transforms.one_value import same

__all__ = ["open_columns", "with_told_cuts"]


def open_columns(plan: Plan) -> tuple[str, ...]:
    """Names of the declared columns whose cut points a course would find."""
    cells = cells_of(plan.schema)
    return () if cells is None else cells.open


def with_told_cuts(plan: Plan, X: Any) -> Plan:
    """The plan with the quantiles of these records as cut points of its open columns; others as they are.

    Args:
        plan: of declared columns, or of any other schema, which stays.
        X: the records, in any container.

    Raises:
        DataError: a declared column is missing or there twice.
    """
    cells = cells_of(plan.schema)
    if cells is None or not cells.open:
        return plan
    codes = codes_of(cells, X)
    levels = np.arange(1, cells.signs + 1) / (cells.signs + 1)
    edges = {
        column.name: _quantiles(codes[:, place], levels)
        for place, column in enumerate(cells.columns)
        if column.name in cells.open
    }
    maps = (cells.with_edges(edges), *plan.schema.transform[1:])
    return replace(plan, schema=replace(plan.schema, transform=maps))  # type: ignore[type-var]


def _quantiles(codes: NDArray[np.float64], levels: NDArray[np.float64]) -> Sequence[float]:
    given = codes[np.isfinite(codes)]
    return sorted(set(map(same, np.quantile(given, levels).tolist()))) if len(given) else (0.0,)
