"""Records whose target is there, of a schema that leaves the others out of its sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments.arrays import is_tensor
from privstats.moments.code_rows import behind
from privstats.moments.grid import feature_grid
from privstats.moments.input_validation import dense
from privstats.schema import RecordSchema, RidgeSchema

__all__ = ["observed", "seen_in"]


def observed(schema: RecordSchema, rows: Any, targets: Any) -> tuple[Any, Any]:
    """The rows and targets of records that have one; all of them where the schema has none left out.

    Args:
        schema: of the sums.
        rows: numpy, sparse, or a tensor, of ``(n, inputs)``.
        targets: ``(n,)`` or ``(n, 1)``; NaN or infinite where one is missing.

    Raises:
        RecordError: a row without a target that could not be read with one: it is refused alike in every session.
    """
    seen = seen_in(schema, targets)
    if seen.all():
        return rows, targets
    grid = feature_grid(schema)
    grid.require_finite(behind(schema, np.asarray(dense(rows[_places(rows, ~seen)])), grid))
    return rows[_places(rows, seen)], targets[_places(targets, seen)]


def seen_in(schema: RecordSchema, targets: Any) -> NDArray[np.bool_]:
    """Which records count by their targets, ``(n,)``: those that have one, where the schema leaves others out."""
    if not isinstance(schema, RidgeSchema) or schema.missing is None:
        return np.ones(len(targets), np.bool_)
    with np.errstate(over="ignore"):
        return np.isfinite(dense(targets).astype(np.float64).reshape(-1))


def _places(array: Any, chosen: Any) -> Any:
    places = np.flatnonzero(chosen)
    if not is_tensor(array):
        return places
    import torch

    return torch.as_tensor(places, device=array.device)
