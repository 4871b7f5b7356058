"""Tables in files: a CSV file by lines, or a Parquet file; values as written, of the requested columns alone.

``transforms.reading`` says what a value means; ``record_files`` opens the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from privstats.errors import DataError
from privstats.files.arrays import MOST_BYTES
from privstats.intake.csv_lines import Dialect, csv_header, csv_lines, lines_at_once
from privstats.optional_dependencies import load, require
from privstats.transforms.column_names import place_of
from privstats.transforms.reading import array_of

_BUFFER = 1 << 16
_VALUE_BYTES = 8


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
        """The values of one column, by its name in any case.

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

    def parts(self, wanted: Sequence[str], *, gaps: bool) -> Iterator[Mapping[str, list[Any]]]:
        """Some columns, some thousand lines at a time (``csv_lines``)."""
        return csv_lines(self.path, wanted, gaps=gaps, dialect=self.dialect)

    def whole(self, wanted: Sequence[str]) -> Table:
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
    """A Parquet file, or a folder of them.

    Attributes:
        names: of its columns, without an index of pandas.
    """

    path: Path
    names: list[str]

    @classmethod
    def of(cls, path: Path) -> Parquet:
        """A Parquet file by its schema, of which no record is read."""
        require("pyarrow", by="a .parquet file")
        parquet = load("pyarrow.parquet", by="a .parquet file")
        require_file(path)
        try:
            schema = parquet.ParquetDataset(path).schema
        except (OSError, ValueError):
            raise _no_table(path) from None
        if len(set(schema.names)) < len(schema.names):
            raise _no_table(path)
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        return cls(path, [name for name in schema.names if name not in index])

    def parts(self, wanted: Sequence[str], *, gaps: bool) -> Iterator[Mapping[str, Any]]:
        """Some columns, some thousand records at a time, whatever the file's groups of rows."""
        del gaps  # every record of a Parquet file has every column
        columns, step = list(dict.fromkeys(wanted)), lines_at_once(len(wanted))
        try:
            none = True
            for batch in _batches(self.path, columns, step):
                none = False
                yield {name: array_of(batch.column(name)) for name in columns}
            if none:
                yield {name: np.empty(0) for name in columns}
        except (OSError, ValueError):
            raise _no_table(self.path) from None

    @staticmethod
    def records(part: Mapping[str, Any]) -> Mapping[str, Any]:
        """All of a part."""
        return part

    def whole(self, wanted: Sequence[str]) -> Table:
        """All records; raises ``DataError`` where their values are more than 16 GiB, which a kilobyte can repeat."""
        parquet, columns = load("pyarrow.parquet", by="a .parquet file"), list(dict.fromkeys(wanted))
        try:
            held = parquet.ParquetDataset(self.path)
            least = sum(each.metadata.num_rows for each in held.fragments) * len(columns) * _VALUE_BYTES
            if least > MOST_BYTES:
                problem = f"{len(columns)} columns hold {least:,} bytes, and at most {MOST_BYTES:,} are read"
                raise DataError(f"{self.path}: {problem}: give fewer records or columns")
            table = held.read(columns=columns)
        except DataError:
            raise
        except (OSError, ValueError):
            raise _no_table(self.path) from None
        return Table({name: array_of(table.column(name)) for name in wanted}, 0)


def _batches(path: Path, columns: list[str], step: int) -> Iterator[Any]:
    """A file's pages as they are needed, and no group of rows at once; of a folder one file after the other."""
    if path.is_file():
        file = load("pyarrow.parquet", by="a .parquet file").ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
        yield from file.iter_batches(batch_size=step, columns=columns, use_threads=False)
        return
    dataset = load("pyarrow.dataset", by="a .parquet file")
    options = dataset.ParquetFragmentScanOptions(use_buffered_stream=True, buffer_size=_BUFFER, pre_buffer=False)
    read = dataset.dataset(path, format="parquet", partitioning="hive").to_batches
    yield from read(
        columns=columns,
        batch_size=step,
        batch_readahead=0,
        fragment_readahead=1,
        use_threads=False,
        fragment_scan_options=options,
    )


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
        raise DataError(f"no such file {path.absolute()}: paths are relative to the current folder")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path.absolute()} is empty; give a file with records")
