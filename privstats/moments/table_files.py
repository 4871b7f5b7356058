"""Tables in files: a CSV file by lines, or a Parquet file; every value as it stands, and no column unless it is wanted.

What a value says, ``transforms.reading`` says. ``record_files`` opens them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from privstats.errors import DataError
from privstats.moments.csv_lines import Dialect, csv_header, csv_lines
from privstats.optional_dependencies import load, require
from privstats.transforms.column_names import place_of
from privstats.transforms.reading import array_of

__all__ = ["Csv", "Parquet", "Table", "TableFile", "require_file", "table_file"]


@dataclass(frozen=True, repr=False)
class Table:
    """Columns of a file, every value as it stands there.

    Attributes:
        columns: the values by the file's own name of the column, each ``(n,)``.
        left_out: lines of another number of fields than the header, which are no records.
    """

    columns: Mapping[str, Any]
    left_out: int

    def values(self, name: str) -> Any:
        """Those of one column, in any case.

        Raises:
            DataError: it is not there.
        """
        place = place_of(name, list(self.columns))
        if place is None:
            raise DataError(f"the table has no column {name!r}; name one that it has")
        return list(self.columns.values())[place]


@dataclass(frozen=True)
class Csv:
    """A CSV file.

    Attributes:
        names: of its columns.
    """

    path: Path
    names: list[str]
    dialect: Dialect

    @classmethod
    def of(cls, path: Path, dialect: Dialect) -> Csv:
        """A CSV file by its header, of which no record is read."""
        require_file(path)
        return cls(path, csv_header(path, dialect), dialect)

    def parts(self, wanted: list[str], *, gaps: bool) -> Iterator[Mapping[str, list[Any]]]:
        """Some columns, some thousand lines at a time (``csv_lines``)."""
        return csv_lines(self.path, wanted, gaps=gaps, dialect=self.dialect)

    def whole(self, wanted: list[str]) -> Table:
        """All lines that are records."""
        columns: dict[str, list[Any]] = {name: [] for name in wanted}
        lines = 0
        for part in self.parts(wanted, gaps=True):
            lines += len(part[wanted[0]])
            for name, texts in self.records(part).items():
                columns[name] += texts
        return Table(columns, lines - len(columns[wanted[0]]))

    @staticmethod
    def records(part: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
        """The lines of a part that are records; a broken one is None throughout, which no field is."""
        if all(None not in texts for texts in part.values()):
            return part
        return {name: [text for text in texts if text is not None] for name, texts in part.items()}


@dataclass(frozen=True)
class Parquet:
    """A Parquet file."""

    path: Path
    dataset: Any

    @classmethod
    def of(cls, path: Path) -> Parquet:
        """A Parquet file by its schema, of which no record is read."""
        require("pyarrow", by="a .parquet file")
        parquet = load("pyarrow.parquet", by="a .parquet file")
        require_file(path)
        try:
            found = cls(path, parquet.ParquetDataset(path))
        except (OSError, ValueError):
            raise _no_table(path) from None
        if len(set(found.names)) < len(found.names):
            raise _no_table(path)
        return found

    @property
    def names(self) -> list[str]:
        """Of its columns, without an index of pandas."""
        index = (self.dataset.schema.pandas_metadata or {}).get("index_columns", [])
        return [name for name in self.dataset.schema.names if name not in index]

    def parts(self, wanted: list[str], *, gaps: bool) -> Iterator[Mapping[str, Any]]:
        """Some columns at once."""
        del gaps  # every record of a Parquet file has every column
        try:
            table = self.dataset.read(columns=list(dict.fromkeys(wanted)))
        except (OSError, ValueError):
            raise _no_table(self.path) from None
        yield {name: array_of(table.column(name)) for name in wanted}

    @staticmethod
    def records(part: Mapping[str, Any]) -> Mapping[str, Any]:
        """All of a part."""
        return part

    def whole(self, wanted: list[str]) -> Table:
        """All records."""
        (columns,) = self.parts(wanted, gaps=True)
        return Table(columns, 0)


def _no_table(path: Path) -> DataError:
    return DataError(f"cannot read {path} as a table with a column per feature")


TableFile: TypeAlias = Csv | Parquet


def table_file(path: Path, dialect: Dialect) -> TableFile:
    """A table by its file's name.

    Raises:
        DataError: it is missing, empty, or no table with names.
        MissingExtraError: a Parquet file, and pyarrow is not installed.
    """
    return Parquet.of(path) if path.suffix.lower() == ".parquet" else Csv.of(path, dialect)


def require_file(path: Path) -> None:
    """Refuse what is missing or empty, by its full path: it may have been meant from another folder."""
    if not path.exists():
        raise DataError(f"no such file {path.absolute()}: a path is read from the folder where you stand")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path.absolute()} is empty; give a file with records")
