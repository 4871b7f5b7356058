"""Turn a file's records into the X, y and persons that ``measure`` accepts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.records.reading import Reading

if TYPE_CHECKING:
    from privstats.intake.accepted import ColumnLike, RecordsLike, RowsLike, TargetsLike
    from privstats.intake.record_files import RecordFile
    from privstats.intake.table_parts import Requested
    from privstats.records.reading import Unreadable


def records_in(
    file: RecordFile, reading: Reading, unreadable: Unreadable, *, at_once: bool = False
) -> tuple[RecordsLike, TargetsLike | None]:
    """Return a file's X and y: named columns and None, ``(X, y)`` batches and None, or all records.

    The reading decides; ``at_once`` excludes batches.

    Raises:
        DataError: the file is unreadable, lacks a column, or is to be split although the plan has no target.
        RecordError: a record cannot be read; never with ``unreadable="leave out"``.
    """
    if reading.columns:
        return _columns_of(file, reading.columns), None
    if reading.batches and not at_once:
        return _FileBatches(file, reading.source, unreadable, reading.words), None
    records = file.read(reading.source, unreadable=unreadable, texts=True, words=reading.words)
    return records.X, records.y


@dataclass(frozen=True, repr=False)
class _FileBatches:
    file: RecordFile
    requested: Requested
    unreadable: Unreadable
    words: frozenset[str]

    def __iter__(self) -> Iterator[tuple[RowsLike, NDArray[Any]]]:
        return self.file.batches(self.requested, unreadable=self.unreadable, words=self.words)


def persons_in(
    file: RecordFile, reading: Reading, unreadable: Unreadable
) -> tuple[RecordsLike, TargetsLike | None, ColumnLike | None]:
    """Return X, y and person ids of a file, all records at once."""
    if file.persons is None:
        raise DataError("the plan's promise is per person: name the id column with --persons (in Python persons=)")
    if reading.columns:
        columns = _columns_of(file, (*reading.columns, file.persons))
        return columns, None, columns.pop(file.persons)
    records = file.read(reading.source, unreadable=unreadable, texts=True, words=reading.words)
    return records.X, records.y, records.persons


def _columns_of(file: RecordFile, named: tuple[str, ...]) -> dict[str, ColumnLike]:
    if file.split is not None:
        raise DataError(f"{file.path} cannot be split: the plan predicts nothing to score; omit split")
    table = file.table(named)
    if table.left_out:
        from privstats.intake.table_parts import misfits  # only files need it

        warnings.warn(
            misfits(table.left_out, table.first_left_out, f" of {file.path}"),
            UnreadableRecordsWarning,
            stacklevel=4,
        )
    return {name: table.values(name) for name in named}
