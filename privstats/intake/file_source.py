"""Read tables in files as tables that are not in memory, wherever a lazy frame is accepted."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.intake.csv_dialect import Dialect
from privstats.intake.sources import Source
from privstats.intake.table_parts import misfits, warn_of_copies
from privstats.intake.table_sources import Several, is_table, table_file
from privstats.intake.tables import Columns


class FileSource(Source):
    """A table in files; a CSV file is read in the dialect of ``Dialect()``.

    Args:
        table: what :func:`~privstats.intake.table_sources.table_file` returns.
    """

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.table.names)

    def batches(self, names: list[str]) -> Generator[Any]:
        """Yield columns, some thousand records at a time."""
        warn_of_copies(self.table)
        broken = 0
        for part in self.table.parts(names, gaps=True):
            records = self.table.records(part)
            broken += len(part[names[0]]) - len(records[names[0]])
            yield Columns(records)
        self._warn(broken, self.table.misfit if broken else "")

    def load(self, names: list[str]) -> Any:
        """Load columns of all records."""
        warn_of_copies(self.table)
        table = self.table.load(names)
        self._warn(table.left_out, table.first_left_out)
        return Columns(table.columns)

    def files(self, wanted: Iterable[str]) -> Iterator[tuple[str, FileSource]]:
        """Yield each file by its path, as a table of its own with the columns that all files have.

        Args:
            wanted: columns that are read.

        Raises:
            DataError: a file lacks one of them.
        """
        table = self.table
        warn_of_copies(table)
        if lacking := next(filter(None, map(table.lacking, wanted)), ""):
            raise DataError(lacking)
        if len(table.files) == 1:
            yield str(table.path), self
            return
        for file in table.files:
            yield str(file.path), FileSource(Several(file.path, (file,), tuple(table.names)))

    def lacking(self, name: str) -> str:
        """Return which file lacks a column that another one has."""
        return str(self.table.lacking(name))

    def _warn(self, broken: int, first: str) -> None:
        if broken:
            warnings.warn(misfits(broken, first, f" of {self.table.path}"), UnreadableRecordsWarning, stacklevel=6)


def file_source(path: Path, declared: Sequence[str] | None = None) -> FileSource | None:
    """Return the table that a path names, as :func:`~privstats.intake.table_sources.table_file` opens it.

    None for a file of arrays.
    """
    return FileSource(table_file(path, Dialect(), declared)) if is_table(path) else None
