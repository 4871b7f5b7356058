"""Read the requested columns of CSV and Parquet files, values as written."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from privstats.errors import DataError
from privstats.files.arrays import MOST_BYTES
from privstats.intake.column_names import place_of, same_names
from privstats.intake.columns import with_zones
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.csv_lines import csv_header, csv_lines, first_misfit, line_of, lines_at_once, names_doubt
from privstats.intake.first_line import FIRST_RECORDS, doubt_of
from privstats.intake.frames import Refusal, each_refusing, refusing
from privstats.optional_dependencies import load, require

_BUFFER = 1 << 16
_VALUE_BYTES = 8


@dataclass(frozen=True, repr=False)
class Table:
    """Columns of a file, every value as written.

    Attributes:
        columns: by the file's own column name, each ``(n,)``.
        left_out: records with a wrong number of fields.
        first_left_out: line and cause of the first of them.
        nameless: columns without a name, counted from 1, which are never read.
    """

    columns: Mapping[str, Any]
    left_out: int
    first_left_out: str = ""
    nameless: tuple[int, ...] = ()

    def values(self, name: str) -> Any:
        """Return one column's values, by its name in any case."""
        place = place_of(name, list(self.columns))
        if place is None:
            raise DataError(f"the table has no column {name!r}; name one that it has")
        return list(self.columns.values())[place]


@dataclass(frozen=True)
class Csv:
    """A CSV file."""

    path: Path
    names: list[str]
    dialect: Dialect
    nameless: tuple[int, ...] = ()

    @classmethod
    def of(cls, path: Path, dialect: Dialect) -> Csv:
        """Open a CSV file by its header."""
        require_file(path)
        header = csv_header(path, dialect)
        return cls(path, header.names, dialect, header.nameless)

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, list[Any]]]:
        """Yield some columns, some thousand records at a time."""
        return csv_lines(self.path, wanted, gaps=gaps, dialect=self.dialect, marks=marks)

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records that fit the header."""
        columns: dict[str, list[Any]] = {name: [] for name in wanted}
        every = 0
        for part in self.parts(wanted, gaps=True, marks=marks):
            every += len(part[wanted[0]])
            for name, texts in self.records(part).items():
                columns[name] += texts
        left_out = every - len(columns[wanted[0]])
        return Table(columns, left_out, self.misfit if left_out else "", self.nameless)

    @property
    def misfit(self) -> str:
        """Line and cause of the first record that does not fit the header; "" if all fit."""
        return first_misfit(self.path, self.dialect)

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"line {line_of(self.path, self.dialect, record)}"

    @property
    def doubt(self) -> str:
        """Why the first line may be a record, in a sentence without its texts; "" where it is a row of names."""
        return names_doubt(self.path, self.dialect)

    @staticmethod
    def records(part: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
        """Return a part's records; one that is no row is None throughout, which no field is."""
        if all(None not in texts for texts in part.values()):
            return part
        return {name: [text for text in texts if text is not None] for name, texts in part.items()}


@dataclass(frozen=True)
class Parquet:
    """A Parquet file, or a folder of them.

    Each file is read with its own types: a cast would let one record decide how others are read.
    """

    path: Path
    names: list[str]
    misfit: str = ""
    nameless: tuple[int, ...] = ()

    @classmethod
    def of(cls, path: Path) -> Parquet:
        """Open a Parquet file by its schema; refuse a column's name written in two ways."""
        require("pyarrow", by="a .parquet file")
        require_file(path)
        files = _files(path)
        names = list(dict.fromkeys(name for file in files for name in (*file.columns, *file.keys)))
        if len(files) > 1 and (two := same_names(names)):
            raise DataError(f"the files of {path} have the columns {two[0]!r} and {two[1]!r}; write one of the names")
        return cls(path, names)

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield some columns, some thousand records at a time."""
        del gaps, marks  # a column that a file lacks is a gap, and a file with types has no marks
        columns, step = list(dict.fromkeys(wanted)), lines_at_once(len(wanted))
        none = True
        for file in _files(self.path):
            for part in file.parts(columns, step):
                none = False
                yield part
        if none:
            yield {name: np.empty(0) for name in columns}

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"record {record + 1}"

    @property
    def doubt(self) -> str:
        """Why the names may be a record, as a file without a row of names yields them; "" where they are names."""
        return doubt_of(self.names, first_part(self.parts(self.names, gaps=True)), f"the row of names of {self.path}")

    @staticmethod
    def records(part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part."""
        return part

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:  # noqa: ARG002
        """Load all records; raises ``DataError`` above 16 GiB of values, which a compressed kilobyte can hold."""
        files, columns = _files(self.path), list(dict.fromkeys(wanted))
        least = sum(file.records for file in files) * len(columns) * _VALUE_BYTES
        if least > MOST_BYTES:
            problem = f"{len(columns)} columns hold {least:,} bytes, and at most {MOST_BYTES:,} are read"
            raise DataError(f"{self.path}: {problem}: pass fewer records or columns")
        parts = [file.load(columns) for file in files]
        return Table({name: joined_values([part[name] for part in parts]) for name in wanted}, 0)


@dataclass(frozen=True)
class _ParquetFile:
    """One Parquet file, by its own schema; ``keys`` are values in folder names, such as ``year=2026``."""

    path: Path
    columns: tuple[str, ...]
    stored: tuple[str, ...]
    keys: Mapping[str, str | None]
    records: int

    @classmethod
    def of(cls, path: Path, keys: Mapping[str, str | None]) -> _ParquetFile:
        with refusing(refusal_of(path)):
            opened = _opened(path)
            schema = opened.schema_arrow
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            columns = tuple(name for name in schema.names if name not in index)
            result = cls(path, columns, tuple(schema.names), keys, opened.metadata.num_rows)
        if len(set(result.stored)) < len(result.stored):
            raise no_table(path)
        return result

    def parts(self, columns: Sequence[str], step: int) -> Iterator[Mapping[str, Any]]:
        """Yield pages as needed, never a full row group."""
        yield from each_refusing(self._each(columns, step), refusal_of(self.path))

    def _each(self, columns: Sequence[str], step: int) -> Generator[Any]:
        batches = _opened(self.path).iter_batches(batch_size=step, columns=self._own(columns), use_threads=False)
        yield from (self._part(batch, columns) for batch in batches)

    def load(self, columns: Sequence[str]) -> Mapping[str, Any]:
        with refusing(refusal_of(self.path)):
            return self._part(_opened(self.path).read(columns=self._own(columns)), columns)

    def _own(self, columns: Sequence[str]) -> list[str]:
        return [name for name in columns if name in self.stored]

    def _part(self, table: Any, columns: Sequence[str]) -> dict[str, Any]:
        own = set(self._own(columns))
        return {
            name: with_zones(table.column(name))
            if name in own
            else np.full(table.num_rows, self.keys.get(name), object)
            for name in columns
        }


def _opened(path: Path) -> Any:
    return load("pyarrow.parquet", by="a .parquet file").ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)


def _files(path: Path) -> list[_ParquetFile]:
    """Open all files but hidden ones, in the order of names."""
    if path.is_file():
        return [_ParquetFile.of(path, {})]
    places = sorted(each.relative_to(path) for each in path.rglob("*") if each.is_file())
    files = [place for place in places if not any(part.startswith((".", "_")) for part in place.parts)]
    if not files:
        raise DataError(f"{path} holds no Parquet file; name a file, or a folder of files")
    return [_ParquetFile.of(path / place, _keys(place.parent)) for place in files]


def _keys(folders: Path) -> dict[str, str | None]:
    pairs = [folder.split("=", 1) for folder in folders.parts if "=" in folder]
    return {unquote(name): None if text == _NO_KEY else unquote(text) for name, text in pairs}


_NO_KEY = "__HIVE_DEFAULT_PARTITION__"


def joined_values(parts: Sequence[Any]) -> Any:
    """Join the values of one column of several files, each as its file has it."""
    if all(isinstance(part, list) for part in parts):
        return list(chain(*parts))
    if len({part.dtype for part in parts}) == 1:
        return np.concatenate(parts)
    return np.fromiter(chain(*parts), object, sum(map(len, parts)))


def first_part(parts: Iterator[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the first records of a table by column."""
    return {name: values[:FIRST_RECORDS] for name, values in next(parts, {}).items()}


def refusal_of(path: Path) -> Refusal:
    """Return the sentence about a file that is no table."""
    return lambda kind: no_table(path, f" ({kind})")


def no_table(path: Path, why: str = "") -> DataError:
    """Return the error about a file that is no table."""
    return DataError(f"cannot read {path} as a table with a column per feature{why}")


def require_file(path: Path) -> None:
    """Refuse a missing or empty file, by its full path."""
    if not path.exists():
        raise DataError(f"no such file {path.absolute()}: paths are relative to the current folder")
    if not path.is_file() and not path.is_dir():
        raise DataError(f"{path.absolute()} is not a plain file; name a file with records")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path.absolute()} is empty; name a file with records")
