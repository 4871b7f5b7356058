"""Tables in memory as a rehearsal takes them, in the place of files: the same columns, read value by value."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from privstats.errors import DataError
from privstats.moments import RecordFile
from privstats.moments.arrays import columns_of
from privstats.moments.csv_lines import Dialect
from privstats.moments.frames import in_memory
from privstats.moments.table_files import Table
from privstats.transforms.column_names import places_in

__all__ = ["HeldTable", "Source", "file_of", "name_of"]


@dataclass(frozen=True, repr=False, eq=False)
class HeldTable:
    """One party's table.

    Attributes:
        path: the party's name.
        data: a frame, a table of Arrow, a relation, or a mapping of columns.
    """

    separator: ClassVar[str] = ","
    dialect: ClassVar[Dialect] = Dialect()

    path: str
    data: Any

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns.

        Raises:
            DataError: it is no table, or a column has no name.
        """
        names = list(self.data) if isinstance(self.data, Mapping) else columns_of(self.data)
        if not names or not all(isinstance(name, str) for name in names):
            raise DataError(
                f"{self.path} is no table whose columns have names: give a frame of pandas or polars, a table of "
                "Arrow, a mapping of columns, or the path of a file"
            )
        return tuple(names)

    def table(self, names: Sequence[str]) -> Table:
        """Some columns, in any case, as they stand.

        Raises:
            DataError: it cannot be read, or columns have different lengths.
        """
        own, data = self.columns, in_memory(self.data)
        columns = {own[place]: data[own[place]] for place in places_in(names, own) if place is not None}
        if len({len(values) for values in columns.values()}) > 1:
            raise DataError(f"the columns of {self.path} have different lengths; give one value per record in each")
        return Table(columns, 0)


Source: TypeAlias = RecordFile | HeldTable
"""What one party brings: a file, or a table in memory."""


def name_of(source: Source) -> str:
    """What a party is called: a file's name without its ending, or a table's own."""
    return source.path if isinstance(source, HeldTable) else Path(source.path).stem


def file_of(source: Source) -> str:
    """The file that a study's commands name: of a table in memory the CSV file of its name."""
    return f"{source.path}.csv" if isinstance(source, HeldTable) else os.fspath(source.path)
