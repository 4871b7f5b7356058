"""Rows that an engine of tables carries: each is a part's sum as bytes, or the sentence that refuses its records.

An exception inside a worker would reach the caller as a text with a traceback, so a refusal travels as a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from privstats import errors
from privstats.contrib.parts.partitioned import Partitioned, PartSum
from privstats.errors import DataError, PrivstatsError
from privstats.extend.support import optional_dependencies

COLUMNS = ("part", "sums", "refusal")
"""Columns of such rows: the part's name, its sum's bytes (empty: no part), and a refusal (empty: none)."""
SPARK_COLUMNS = "part string, sums binary, refusal string"
FAN_IN = 16
"""Tasks that add the parts' sums; the caller adds the results of these tasks."""


def measured_row(door: Partitioned, tables: Iterable[Any], y: Any, persons: str | None, part: str) -> Any:
    """Return one part's row, as an Arrow batch."""
    try:
        return _row(part, door, door.measure_tables(tables, y, persons=persons, part=part))
    except PrivstatsError as error:
        return _batch(part, b"", f"{type(error).__name__}: {error}")


def added_row(door: Partitioned, batches: Iterable[Any]) -> Any:
    """Return the row of several rows' sum, as an Arrow batch."""
    rows = [row for batch in batches for row in _rows(batch)]
    part = "+".join(sorted(row["part"] for row in rows))
    if refused := [row["refusal"] for row in rows if row["refusal"]]:
        return _batch(part, b"", refused[0])
    try:
        return _row(part, door, door.added([door.decode(row["sums"]) for row in rows if row["sums"]]))
    except PrivstatsError as error:
        return _batch(part, b"", f"{type(error).__name__}: {error}")


def total_of(door: Partitioned, rows: Iterable[Any]) -> PartSum:
    """Return the sum of all rows, which have COLUMNS by name; raise the first refusal."""
    sums = []
    for row in rows:
        if row["refusal"]:
            raise _refusal(row["refusal"])
        sums += [door.decode(bytes(row["sums"]))] if row["sums"] else []
    return door.added(sums)


def _row(part: str, door: Partitioned, sums: PartSum) -> Any:
    return _batch(part, b"" if sums == door.zero else door.encode(sums), "")


def _batch(part: str, sums: bytes, refusal: str) -> Any:
    arrow = optional_dependencies.load("pyarrow", by="contrib.parts.measure")
    values = zip(COLUMNS, (part, sums, refusal), strict=True)
    return arrow.RecordBatch.from_pydict({name: [value] for name, value in values})


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    columns = batch.to_pydict()
    yield from (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _refusal(sentence: str) -> PrivstatsError:
    name, _, message = sentence.partition(": ")
    kind = getattr(errors, name, DataError)
    return kind(message)


def require_names(y: Any, persons: Any, engine: str) -> None:
    """Refuse labels or ids that are no columns' names: another collection's rows have another order.

    Raises:
        DataError: ``y`` or ``persons`` is neither None nor names.
    """
    names = [y] if isinstance(y, str) else y
    texts = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if y is not None and not texts:
        raise DataError(f"y must name columns of the {engine} table, got {type(y).__name__}; join the labels to it")
    if persons is not None and not isinstance(persons, str):
        raise DataError(
            f"persons must name a column of the {engine} table, got {type(persons).__name__}; join the ids to it"
        )


def unused_name(names: Iterable[str]) -> str:
    """Return a name of no column, for the column by which an engine groups rows."""
    name = "privstats_person"
    while any(each.casefold() == name for each in names):
        name += "_"
    return name
