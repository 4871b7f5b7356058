"""Read the requested columns of a file, values as written: what all kinds share, CSV and Parquet."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from privstats.errors import DataError
from privstats.files.arrays import MOST_BYTES
from privstats.intake.column_names import place_of
from privstats.intake.columns import with_zones
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.csv_lines import csv_header, csv_lines, first_misfit, line_of, lines_at_once, names_doubt
from privstats.intake.file_kinds import CONTROL
from privstats.intake.first_line import FIRST_RECORDS, doubt_of
from privstats.intake.sources import INT96_UNIT, Refusal, each_refusing, refusing
from privstats.optional_dependencies import load

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


@dataclass(frozen=True, repr=False)
class TableFile(ABC):
    """A file of one table, of one kind; nothing is read until needed.

    A new kind is a class with ``signs``, ``of`` and ``_each``, in ``table_sources.TABLE_FILES``. Its docstring states
    what it cannot promise.

    Attributes:
        names: the columns that have a name.
        signs: how a file of this kind begins.
        has_tables: whether a file may hold several tables, each named as ``FILE/TABLE``.
    """

    path: Path
    names: list[str]

    signs: ClassVar[re.Pattern[bytes]]
    has_tables: ClassVar[bool] = False

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Return whether a file is of this kind, by its first bytes."""
        return cls.signs.match(head) is not None

    @classmethod
    @abstractmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:
        """Open a file by its names; ``table`` is one of its tables, and ``dialect`` how a file of text is written."""

    @abstractmethod
    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        """Yield columns, some thousand records at a time; errors of its library are replaced by the caller."""

    @property
    def misfit(self) -> str:
        """Line and cause of the first record that does not fit the header; "" if all fit."""
        return ""

    @property
    def nameless(self) -> tuple[int, ...]:
        """Columns without a name, counted from 1."""
        return ()

    @property
    def doubt(self) -> str:
        """Why the names may be a record, in a sentence without its texts; "" where they are names."""
        return doubt_of(self.names, first_part(self.parts(self.names, gaps=True)), f"the row of names of {self.path}")

    @property
    def files(self) -> tuple[TableFile, ...]:
        """The file, as a table of several files has them."""
        return (self,)

    @property
    def copies(self) -> Iterator[tuple[Path, Path]]:
        """Pairs of files with equal bytes, whose records count twice."""
        return iter(())

    def lacking(self, name: str) -> str:  # noqa: ARG002
        """Return which file lacks a column that another one has, as a sentence; "" where none has it."""
        return ""

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"record {record + 1}"

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield some columns, some thousand records at a time; at least one part, which may be empty.

        Args:
            gaps, marks: as in :func:`~privstats.intake.csv_lines.csv_lines`; a file with types needs neither.
        """
        del gaps, marks
        columns, none = list(dict.fromkeys(wanted)), True
        for part in each_refusing(self._each(columns), refusal_of(self.path)):
            none = False
            yield part
        if none:
            yield {name: np.empty(0) for name in columns}

    def records(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a part's records that fit their header."""
        return part

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records that fit their header."""
        parts, records = list[Mapping[str, Any]](), 0
        for part in self.parts(wanted, gaps=True, marks=marks):
            parts.append(part)
            records += len(next(iter(part.values())))
            require_room(self.path, records, len(part))
        return Table({name: joined_values([part[name] for part in parts]) for name in dict.fromkeys(wanted)}, 0)


class TextFile(TableFile):
    """A file of text, whose values come in lists; a record that does not fit the table is None in each of them."""

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        yield from self.parts(wanted, gaps=True)

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records that fit the table."""
        columns: dict[str, list[Any]] = {name: [] for name in wanted}
        every = 0
        for part in self.parts(wanted, gaps=True, marks=marks):
            every += len(part[wanted[0]])
            for name, values in self.records(part).items():
                columns[name] += values
            require_room(self.path, every, len(columns))
        left_out = every - len(columns[wanted[0]])
        return Table(columns, left_out, self.misfit if left_out else "", self.nameless)

    def records(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a part's records that fit the table."""
        return fitting(part)


@dataclass(frozen=True, repr=False)
class Csv(TextFile):
    """A CSV file, which may be compressed. A file without the sign of another kind is read as one."""

    dialect: Dialect
    nameless: tuple[int, ...] = ()

    signs = re.compile(b"")

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:  # noqa: ARG003
        """Open a CSV file by its header."""
        header = csv_header(path, dialect)
        return cls(path, header.names, dialect, header.nameless)

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, list[Any]]]:
        """Yield some columns, some thousand records at a time."""
        return csv_lines(self.path, wanted, gaps=gaps, dialect=self.dialect, marks=marks)

    @property
    def misfit(self) -> str:
        """Line and cause of the first record that does not fit the header; "" if all fit."""
        return first_misfit(self.path, self.dialect)

    @property
    def doubt(self) -> str:
        """Why the first line may be a record, in a sentence without its texts; "" where it is a row of names."""
        return names_doubt(self.path, self.dialect)

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"line {line_of(self.path, self.dialect, record)}"


@dataclass(frozen=True, repr=False)
class Parquet(TableFile):
    """A Parquet file, by its own schema: a cast would let one record decide how others are read.

    Attributes:
        keys: columns of one value each, from the names of folders such as ``year=2026`` or from a log.
    """

    keys: Mapping[str, Any] = field(default_factory=dict)

    signs = re.compile(b"PAR1" + CONTROL)

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:  # noqa: ARG003
        """Open a Parquet file by its schema."""
        return cls.with_keys(path, {})

    @classmethod
    def with_keys(cls, path: Path, keys: Mapping[str, Any]) -> Self:
        """Open a file whose place states further columns."""
        with refusing(refusal_of(path)):
            schema = _parquet(path).schema_arrow
            index = (schema.pandas_metadata or {}).get("index_columns", [])
        if len(set(schema.names)) < len(schema.names):
            raise no_table(path)
        more = {name: value for name, value in keys.items() if name not in schema.names}
        return cls(path, [*(name for name in schema.names if name not in index), *more], more)

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:  # noqa: ARG002
        """Load all records; raises ``DataError`` above 16 GiB of values, which a compressed kilobyte can hold."""
        columns = list(dict.fromkeys(wanted))
        with refusing(refusal_of(self.path)):
            file = _parquet(self.path)
            require_room(self.path, file.metadata.num_rows, len(columns))
            return Table(self._part(file.read(columns=self._own(columns)), columns), 0)

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        """Yield pages as needed, never a full row group."""
        at_once, own = lines_at_once(len(wanted)), self._own(wanted)
        for batch in _parquet(self.path).iter_batches(batch_size=at_once, columns=own, use_threads=False):
            yield self._part(batch, wanted)

    def _own(self, columns: Sequence[str]) -> list[str]:
        return [name for name in columns if name not in self.keys]

    def _part(self, table: Any, columns: Sequence[str]) -> dict[str, Any]:
        def values(name: str) -> Any:
            if name in self.keys:
                return np.full(table.num_rows, self.keys[name], object)
            return with_zones(table.column(name))

        return {name: values(name) for name in columns}


def _parquet(path: Path) -> Any:
    how: Any = {"pre_buffer": False, "buffer_size": _BUFFER, "coerce_int96_timestamp_unit": INT96_UNIT}
    return load("pyarrow.parquet", by="a Parquet file").ParquetFile(path, **how)


def fitting(part: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
    """Return the records of a part of a file of text; one that is no row is None throughout, which no value is."""
    if all(None not in texts for texts in part.values()):
        return part
    return {name: [text for text in texts if text is not None] for name, texts in part.items()}


def joined_values(parts: Sequence[Any]) -> Any:
    """Join the values of one column of several files, each as its file has it."""
    kinds = {getattr(part, "dtype", list) for part in parts}
    if kinds == {list}:
        return list(chain(*parts))
    return np.concatenate(parts) if len(kinds) == 1 else np.fromiter(chain(*parts), object, sum(map(len, parts)))


def first_part(parts: Iterator[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the first records of a table by column."""
    return {name: values[:FIRST_RECORDS] for name, values in next(parts, {}).items()}


def refusal_of(path: Path) -> Refusal:
    """Return the sentence about a file that is no table."""
    return lambda kind: no_table(path, f" ({kind})")


def no_table(path: Path, why: str = "") -> DataError:
    """Return the error about a file that is no table."""
    return DataError(f"cannot read {path} as a table with a column per feature{why}")


def require_room(path: Path, records: int, columns: int) -> None:
    """Refuse to load more values than fit, which a compressed kilobyte can hold."""
    if (size := records * columns * _VALUE_BYTES) > MOST_BYTES:
        problem = f"{columns} columns hold {size:,} bytes, and at most {MOST_BYTES:,} are read"
        raise DataError(f"{path}: {problem}: pass fewer records or columns")


def require_file(path: Path) -> None:
    """Refuse a missing or empty file, by its full path."""
    if not path.exists():
        raise DataError(f"no such file {path.absolute()}: paths are relative to the current folder")
    if not path.is_file() and not path.is_dir():
        raise DataError(f"{path.absolute()} is not a plain file; name a file with records")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path.absolute()} is empty; name a file with records")
