"""Read which files of a Delta table are current, by the library that reads its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from privstats.errors import DataError
from privstats.intake.sources import refusing
from privstats.intake.table_files import refusal_of
from privstats.optional_dependencies import load

_UNREAD = {"deletionVectors": "deletion vectors", "columnMapping": "column mapping"}


def files_of_log(path: Path) -> tuple[tuple[str, ...], list[tuple[Path, dict[str, Any]]]]:
    """Return a Delta table's columns, and its current files with the columns that their places state.

    Raises:
        DataError: the log cannot be read, or the table uses deletion vectors or column mapping: Parquet files alone do
            not state the records then.
    """
    library = load("deltalake", by="a Delta table")
    with refusing(refusal_of(path)):
        table = library.DeltaTable(str(path))
        features = set(table.protocol().reader_features or ())
        columns = tuple(field.name for field in table.schema().fields)
        added = load("pyarrow", by="a Delta table").table(table.get_add_actions(flatten=True)).to_pylist()
        mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    features |= {"columnMapping"} if mapped else set()
    if used := [what for feature, what in _UNREAD.items() if feature in features]:
        raise DataError(
            f"{path} is a Delta table with {used[0]}, which are not read here: rewrite it without them, or export its "
            "records as Parquet"
        )
    if not added:
        raise DataError(f"{path} is a Delta table without a file of records")
    mark = "partition."
    return columns, sorted(
        (path / unquote(each["path"]), {name.removeprefix(mark): each[name] for name in each if name.startswith(mark)})
        for each in added
    )
