"""Measure the blocks of a Ray data set.

A block's sum is a row; Ray keeps one result of each task, so a task that runs again counts once.
"""

from __future__ import annotations

from typing import Any

from privstats.contrib.parts.carried import FAN_IN, added_row, measured_row, require_names, total_of, unused_name
from privstats.contrib.parts.partitioned import Partitioned, PartSum, person_by_row
from privstats.errors import DataError
from privstats.extend.support import optional_dependencies
from privstats.intake.column_names import place_of

_BY = "contrib.parts.measure"
_BLOCKS = {"batch_format": "pyarrow", "batch_size": None, "zero_copy_batch": True}
"""Calls of ``map_batches`` that receive a block as it is."""


def summed(door: Partitioned, X: Any, y: Any, persons: Any, *, progress: bool) -> PartSum:
    """Return the sum of all blocks.

    Args:
        y, persons: names of columns; with ``persons`` Ray makes blocks by the person.
        progress: not used; Ray shows its own bars.

    Raises:
        DataError: no names, or records that do not fit.
        MissingExtraError: Ray is not installed.
    """
    del progress
    optional_dependencies.load("ray.data", by=_BY)
    require_names(y, persons, "Ray")
    if not hasattr(X, "map_batches"):
        raise DataError(f"X must be a data set of Ray, got {type(X).__name__}; pass a ray.data.Dataset")
    if persons is not None:
        names = X.columns() or []
        if (place := place_of(persons, names)) is None:
            raise DataError(f"persons={persons!r:.40} names no column of X; name the column of ids")
        key = unused_name(names)
        X = X.map_batches(_with_persons, fn_args=(names[place], key), **_BLOCKS).materialize()
        X = X.repartition(max(X.num_blocks(), 1), keys=[key]).drop_columns([key])
    sums = X.map_batches(_measured, fn_args=(door, y, persons), **_BLOCKS)
    added = sums.repartition(FAN_IN).map_batches(_added, fn_args=(door,), **_BLOCKS)
    return total_of(door, added.iter_rows())


def _with_persons(block: Any, ids: str, key: str) -> Any:
    return block.append_column(key, [person_by_row(block.column(ids))])


def _measured(block: Any, door: Partitioned, y: Any, persons: str | None) -> Any:
    arrow = optional_dependencies.load("pyarrow", by=_BY)
    return arrow.Table.from_batches([measured_row(door, [block], y, persons, "")])


def _added(block: Any, door: Partitioned) -> Any:
    arrow = optional_dependencies.load("pyarrow", by=_BY)
    return arrow.Table.from_batches([added_row(door, [block])])
