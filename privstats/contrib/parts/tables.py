"""Read parts of tables in this process: DuckDB relations, Arrow datasets, files, and tables one after another.

One part is in memory at a time; without persons, of a DuckDB relation or a file only one batch. With persons the ids
are read first, and the rows of persons in several parts are read once more, by about a million. Tables of an iterable
are then all in memory, because an iterator passes only once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.parts.partitioned import Partitioned, PartSum, Present, in_several_parts
from privstats.errors import DataError
from privstats.extend.records import is_frame
from privstats.extend.support import progress_bar
from privstats.intake.column_names import place_of
from privstats.intake.frames import is_of, opened_files
from privstats.moments import RecordFile

_RECORDS_OF_PART = 1_000_000
"""Records of a part that DuckDB makes by the id, on average."""


def summed(door: Partitioned, X: Any, y: Any, persons: Any, *, progress: bool) -> PartSum:
    """Return the sum of all parts of X."""
    _require_no_split(X)
    reading = door.schema.reading
    X, y, files = opened_files(X, y, reading.columns or reading.source, persons=persons)
    parts: Any = _parts(X, persons) if files is None else files
    groups, found = list[NDArray[np.uint64]](), list[Present]()
    if persons is not None:
        parts = list(parts)
        found = [door.present(part, persons=persons, part=name) for name, part in parts] if len(parts) > 1 else []
        groups = in_several_parts(found)
    total = door.zero
    with progress_bar("parts", None, at_once=progress) as advance:
        for name, part in parts:
            total += door.measure(part, y, persons=persons, part=name, shared=groups)
            advance(1)
        for group in groups:
            holding = [place for place, each in enumerate(found) if np.isin(group, each.persons).any()]
            total += door.measure_shared(
                door.rows_of(parts[place][1], y, persons=persons, chosen=group, part=parts[place][0])
                for place in holding
            )
    return total


def _parts(X: Any, persons: Any) -> Iterator[tuple[str, Any]]:
    for module, name, cut in _CONTAINERS:
        if is_of(module, name, X):
            return cut(X, persons)
    if is_frame(X) or hasattr(X, "shape") or not isinstance(X, Iterable):
        raise DataError(
            f"X must have parts, got {type(X).__name__}: pass an engine's collection, the path of a folder of files or "
            "a list of tables; what is in memory as a whole is privstats.measure's"
        )
    return ((str(place), part) for place, part in enumerate(X))


def _require_no_split(X: object) -> None:
    if isinstance(X, RecordFile) and X.split is not None:
        raise DataError(
            f"{X.path} has a split, which counts equal records over the whole file, and parts would count them apart: "
            "let one process read it, by privstats.measure of its batches(), or omit split"
        )


def _files(X: Any, _: Any) -> Iterator[tuple[str, Any]]:
    """Yield each file of a dataset as a dataset of its own; a dataset without files, or with a filter, as one part."""
    try:
        fragments = list(X.get_fragments())
    except ValueError:  # it has a filter
        fragments = []
    files = [each for each in fragments if getattr(each, "path", None)]
    if not files:
        yield "0", X
        return
    arrow = sys.modules["pyarrow.dataset"]
    for each in files:
        yield each.path, arrow.FileSystemDataset([each], X.schema, each.format, each.filesystem)


def _by_id(X: Any, persons: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a relation by a hash of the id; without ids the relation itself."""
    if persons is None:
        yield "0", X
        return
    names = list(X.columns)
    place = place_of(persons, names) if isinstance(persons, str) else None
    if place is None:
        raise DataError(f"persons={persons!r:.40} names no column of the relation; name the column of ids")
    column = '"' + names[place].replace('"', '""') + '"'
    ((records,),) = X.aggregate("count(*)").fetchall()
    parts = -(-records // _RECORDS_OF_PART) or 1
    for part in range(parts):
        yield str(part), X.filter(f"hash({column}) % {parts} = {part}")


_CONTAINERS: tuple[tuple[str, str, Callable[[Any, Any], Iterator[tuple[str, Any]]]], ...] = (
    ("duckdb", "DuckDBPyRelation", _by_id),
    ("pyarrow.dataset", "Dataset", _files),
)
"""By the module that has the class of the container, and its name there: what cuts it into named parts."""
