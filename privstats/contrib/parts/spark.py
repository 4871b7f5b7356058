"""Measure the partitions of a Spark frame, classic or over Spark Connect.

A partition's sum is a row, which ``mapInArrow`` yields and a second ``mapInArrow`` adds: Connect has no RDDs. A retried
or speculative task replaces its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from privstats.contrib.parts.carried import (
    SPARK_COLUMNS,
    added_row,
    measured_row,
    require_names,
    total_of,
    unused_name,
)
from privstats.contrib.parts.partitioned import Partitioned, PartSum
from privstats.errors import DataError
from privstats.extend.support import optional_dependencies
from privstats.intake.column_names import place_of
from privstats.intake.person_ids import fingerprints_by_row

_BY = "contrib.parts.measure"


def summed(door: Partitioned, X: Any, y: Any, persons: Any, *, progress: bool) -> PartSum:
    """Return the sum of all partitions.

    Args:
        y, persons: names of columns; with ``persons`` Spark makes partitions by the person.
        progress: not used; Spark shows its own bar.

    Raises:
        DataError: no names, or records that do not fit; the message names the partition.
        MissingExtraError: pyspark is not installed.
    """
    del progress
    functions = optional_dependencies.load("pyspark.sql.functions", by=_BY)
    require_names(y, persons, "Spark")
    if not hasattr(X, "mapInArrow"):
        raise DataError(f"X must be a Spark frame, got {type(X).__name__}; pass a DataFrame with the column of y")
    if persons is not None:
        if (place := place_of(persons, X.columns)) is None:
            raise DataError(f"persons={persons!r:.40} names no column of X; name the column of ids")
        key, ids = unused_name(X.columns), functions.col(f"`{X.columns[place]}`")
        # Only the ids pass to Python. Spark's own hash would part 007 from 7.
        X = X.withColumn(key, functions.udf(_person, "bigint")(ids)).repartition(key).drop(key)
    sums = X.mapInArrow(partial(_measured, door, y, persons), SPARK_COLUMNS)
    # Without a number of partitions Spark joins small ones: sums of a few kilobytes are added by one task.
    added = sums.repartition("part").mapInArrow(partial(_added, door), SPARK_COLUMNS)
    return total_of(door, added.collect())


def _person(value: Any) -> int | None:
    (bits, _) = fingerprints_by_row([value])
    return int(bits.view(np.int64)[0]) if len(bits) else None


def _measured(door: Partitioned, y: Any, persons: str | None, batches: Iterable[Any]) -> Iterator[Any]:
    context = optional_dependencies.load("pyspark", by=_BY).TaskContext.get()
    yield measured_row(door, batches, y, persons, str(context.partitionId()))


def _added(door: Partitioned, batches: Iterable[Any]) -> Iterator[Any]:
    yield added_row(door, batches)
