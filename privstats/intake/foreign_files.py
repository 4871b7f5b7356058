"""Read tables of databases, spreadsheets and statistics programs, values as they store them.

Each kind has a library, which is imported when such a file is opened.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
import zipfile
from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import quote

import numpy as np

from privstats.errors import DataError
from privstats.intake.columns import with_zones
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.csv_lines import lines_at_once
from privstats.intake.file_kinds import CONTROL
from privstats.intake.sources import refusing
from privstats.intake.table_files import Table, TableFile, no_table, refusal_of, require_room
from privstats.optional_dependencies import load
from privstats.system import open_plain

_MAX_SHOWN = 8
_MOST_OF_WORKBOOK = 4 << 30
_CARD, _DATA_SET = 80, re.compile(rb"HEADER RECORD\*{7}MEMB(ER|V8) +HEADER RECORD!{7}")
"""Bytes of a line of a transport file of SAS, and how its data sets begin."""
_ROWS_AT_ONCE = 1 << 18
"""Rows of a statistics program's file that are read at once; each reading begins at the first row."""


@dataclass(frozen=True, repr=False)
class Tables(TableFile):
    """A file of several tables, of which one is read."""

    table: str

    has_tables = True

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:  # noqa: ARG003
        """Open a table; without a name the only one."""
        with refusing(refusal_of(path)), cls._base(path) as base:
            tables = cls._tables(base)
            names = {each: cls._names(base, each) for each in tables if table in (None, each)}
        if len(names) != 1:
            which = f"has no table {table!r}" if table else f"has {len(tables)} tables"
            shown = ", ".join(map(repr, tables[:_MAX_SHOWN]))
            raise DataError(f"{path} {which}; name one of its own as {path}/TABLE, such as {shown or 'a new one'}")
        ((name, columns),) = names.items()
        return cls(path, columns, name)

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"record {record + 1} of table {self.table}"

    @classmethod
    @abstractmethod
    def _base(cls, path: Path) -> Any:
        """Return the opened file, as a context."""

    @classmethod
    @abstractmethod
    def _tables(cls, base: Any) -> list[str]:
        """Return the names of its tables."""

    @classmethod
    @abstractmethod
    def _names(cls, base: Any, table: str) -> list[str]:
        """Return the names of a table's columns."""


class DuckDb(Tables):
    """A table or view of a DuckDB file, opened read-only."""

    signs = re.compile(rb".{8}DUCK..\0{6}", re.DOTALL)

    @classmethod
    def _base(cls, path: Path) -> Any:
        return load("duckdb", by="a DuckDB file").connect(str(path), read_only=True)

    @classmethod
    def _tables(cls, base: Any) -> list[str]:
        return sorted(cls._places(base))

    @classmethod
    def _places(cls, base: Any) -> dict[str, str]:
        """Return each table's place in SQL by its name, which begins with its schema where that is not the main one."""
        query = (  # the tables of other attached files are none of this one
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = current_database() ORDER BY table_schema = 'main'"
        )
        return {
            name if schema == "main" else f"{schema}.{name}": f"{_quoted(schema)}.{_quoted(name)}"
            for schema, name in base.execute(query).fetchall()
        }

    @classmethod
    def _names(cls, base: Any, table: str) -> list[str]:
        return [name for name, *_ in base.execute(f"DESCRIBE {cls._places(base)[table]}").fetchall()]

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        with self._base(self.path) as base:
            query = _select(self._places(base)[self.table], wanted)
            for batch in base.sql(query).to_arrow_reader(lines_at_once(len(wanted))):
                yield _arrays(batch, wanted)

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records."""
        del marks
        columns = list(dict.fromkeys(wanted))
        with refusing(refusal_of(self.path)), self._base(self.path) as base:
            place = self._places(base)[self.table]
            ((records,),) = base.execute(f"SELECT count(*) FROM {place}").fetchall()  # noqa: S608 - quoted
            require_room(self.path, records, len(columns))
            return Table(_arrays(base.sql(_select(place, columns)).to_arrow_table(), columns), 0)


class Sqlite(Tables):
    """A table or view of an SQLite file, opened read-only. Every value has its own type; damaged UTF-8 is replaced."""

    signs = re.compile(rb"SQLite format 3\0")

    @classmethod
    @contextmanager
    def _base(cls, path: Path) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as base:
            base.text_factory = lambda text: text.decode("utf-8", "replace")
            yield base

    @classmethod
    def _tables(cls, base: sqlite3.Connection) -> list[str]:
        of = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        return [name for (name,) in base.execute(of) if not name.lower().startswith("sqlite_")]

    @classmethod
    def _names(cls, base: sqlite3.Connection, table: str) -> list[str]:
        columns = base.execute(f"PRAGMA table_xinfo({_quoted(table)})")
        return [name for _, name, *_, hidden in columns if hidden != 1]

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        with self._base(self.path) as base:
            yield from _of_rows(base.execute(_select(_quoted(self.table), wanted)), wanted)


class Excel(Tables):
    """A sheet of a workbook of Excel (.xlsx), read whole.

    The first row that is not empty has the names, and an empty row is no record. An error such as ``#DIV/0!`` is a gap.
    Hidden rows are read. Of merged cells the first alone has the value. A formula has the value that was last stored.
    """

    signs = re.compile(rb"PK\x03\x04.{26}(\[Content_Types\]\.xml|_rels/|docProps/|xl/|customXml/)", re.DOTALL)

    @classmethod
    @contextmanager
    def _base(cls, path: Path) -> Iterator[Any]:
        with zipfile.ZipFile(path) as archive:
            if sum(each.file_size for each in archive.infolist()) > _MOST_OF_WORKBOOK:
                raise DataError(
                    f"cannot read {path}: the workbook unpacks to more than {_MOST_OF_WORKBOOK:,} bytes: save its "
                    "sheet as CSV"
                )
        library = load("python_calamine", by="a workbook of Excel")
        with open_plain(path) as file, library.CalamineWorkbook.from_filelike(file) as book:  # a path's ending decides
            yield book

    @classmethod
    def _tables(cls, base: Any) -> list[str]:
        return list(base.sheet_names)

    @classmethod
    def _names(cls, base: Any, table: str) -> list[str]:
        return [name for name in cls._header(base, table)[1] if name]

    @classmethod
    def _header(cls, base: Any, table: str) -> tuple[Iterator[list[Any]], list[str]]:
        """Return the rows below the names, and each column's name or ""."""
        rows = (row for row in base.get_sheet_by_name(table).iter_rows() if any(cell != "" for cell in row))
        return rows, [unicodedata.normalize("NFC", str(cell)).strip() for cell in next(rows, [])]

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        with self._base(self.path) as base:
            rows, names = self._header(base, self.table)
            places = [names.index(name) for name in wanted]
            yield from _of_rows(([row[place] for place in places] for row in rows), wanted)


class _Statistics(TableFile):
    """A file of a statistics program.

    Its values are codes, not their labels. Codes that it declares missing are gaps, and numbers are floats.
    """

    reader: ClassVar[str]

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:  # noqa: ARG003
        """Open a file by the names of its variables."""
        with refusing(refusal_of(path)):
            _, meta = cls._read(path, metadataonly=True)
        return cls(path, list(meta.column_names))

    @classmethod
    def _read(cls, path: Path, **how: Any) -> Any:
        library = load("pyreadstat", by="a file of SPSS, Stata or SAS")
        return getattr(library, cls.reader)(str(path), output_format="dict", **how)

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        start = 0
        while True:
            columns = self._rows(wanted, start, _ROWS_AT_ONCE)
            if not (count := len(columns.get(wanted[0], ()))):
                return
            yield {name: np.fromiter(columns[name], object, count) for name in wanted}
            start += count

    def _rows(self, wanted: Sequence[str], start: int, count: int) -> Mapping[str, Sequence[Any]]:
        """Return some rows; a date outside the years 1 to 9999, at which the library stops, is a gap."""
        rows: dict[str, Any] = {"usecols": list(wanted), "row_offset": start, "row_limit": count}
        try:
            columns: Mapping[str, Sequence[Any]] = self._read(self.path, **rows)[0]
        except Exception as error:  # of the library's own class, where bytes are no text
            if len(wanted) > 1:
                return {name: self._rows([name], start, count)[name] for name in wanted}
            (name,) = wanted
            if not isinstance(error, OverflowError | ValueError) or isinstance(error, UnicodeError):
                return {name: self._decoded(self._read(self.path, encoding="ISO-8859-1", **rows)[0][name])}
            if count == 1:
                return {name: [None]}
            halves = ((start, count // 2), (start + count // 2, count - count // 2))
            return {name: [*chain(*(self._rows(wanted, *half)[name] for half in halves))]}
        return columns

    def _decoded(self, texts: Sequence[Any]) -> list[Any]:
        """Return texts of bytes, each a character, in the file's encoding; bytes that are no text are replaced."""
        encoding = self._read(self.path, metadataonly=True)[1].file_encoding or "utf-8"
        return [text.encode("latin-1").decode(encoding, "replace") if isinstance(text, str) else text for text in texts]


class Spss(_Statistics):
    """A file of SPSS (.sav, .zsav); as :class:`_Statistics`."""

    signs, reader = re.compile(rb"\$FL[23]@\(#\)"), "read_sav"


class Stata(_Statistics):
    """A file of Stata (.dta); as :class:`_Statistics`."""

    signs, reader = re.compile(rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\0"), "read_dta"


class SasTransport(_Statistics):
    """A transport file of SAS (.xpt) with one data set; as :class:`_Statistics`."""

    signs, reader = re.compile(rb"HEADER RECORD\*{7}LIB(RARY|V8 +)\s*HEADER RECORD!{7}"), "read_xport"

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:
        """Open a file by the names of its variables; its library reads the first data set of several."""
        with open_plain(path) as file:
            blocks = iter(lambda: file.read(_CARD << 13), b"")
            places = (match.start() for block in blocks for match in _DATA_SET.finditer(block))
            if sum(place % _CARD == 0 for place in places) > 1:
                raise DataError(f"cannot read {path}: it holds several data sets: write each to a file of its own")
        return super().of(path, dialect, table)


class SasData(_Statistics):
    """A data set of SAS (.sas7bdat); as :class:`_Statistics`."""

    signs = re.compile(rb"\0{12}\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0\x09\xc7\x31\x8c\x18\x1f\x10\x11")
    reader = "read_sas7bdat"


class _ArrowFile(TableFile):
    """A file of Arrow's or ORC's columns, read by its own schema."""

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:  # noqa: ARG003
        """Open a file by its schema."""
        with refusing(refusal_of(path)), open_file(path) as file:
            names = list(cls._opened(file).schema.names)
        if len(set(names)) < len(names):
            raise no_table(path)
        return cls(path, names)

    @staticmethod
    @abstractmethod
    def _opened(file: Any) -> Any:
        """Return the library's reader."""


def open_file(path: Path) -> Any:
    """Open a file by Arrow without a memory map, behind which a truncated file kills the process."""
    return load("pyarrow", by="a Feather or ORC file").OSFile(str(path), "rb")


class Feather(_ArrowFile):
    """A file of Arrow (Feather of version 2)."""

    signs = re.compile(rb"ARROW1\0\0")

    @staticmethod
    def _opened(file: Any) -> Any:
        return load("pyarrow.ipc", by="a Feather file").open_file(file)

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        at_once = lines_at_once(len(wanted))
        with open_file(self.path) as file:
            reader = self._opened(file)
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place).select(list(wanted))
                for start in range(0, batch.num_rows, at_once):
                    yield _arrays(batch.slice(start, at_once), wanted)


class Orc(_ArrowFile):
    """An ORC file.

    Arrow reads ORC's time stamps in nanoseconds and ends at one outside the years 1677 to 2262, so a column of them is
    refused: one record must not refuse the others.
    """

    signs = re.compile(rb"ORC([^\n\r]{0,16}" + CONTROL + rb"|\n[\0-\x08])")

    @staticmethod
    def _opened(file: Any) -> Any:
        return load("pyarrow.orc", by="an ORC file").ORCFile(file)

    def _each(self, wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
        with open_file(self.path) as file:
            reader, at_once = self._opened(file), lines_at_once(len(wanted))
            if stamps := [name for name in wanted if "timestamp" in str(reader.schema.field(name).type)]:
                raise DataError(
                    f"cannot read {self.path}: {stamps[0]!r} holds time stamps, which are not read from ORC: write "
                    "dates, or Parquet"
                )
            for stripe in range(reader.nstripes):
                batch = reader.read_stripe(stripe, columns=list(wanted))
                for start in range(0, batch.num_rows, at_once):
                    yield _arrays(batch.slice(start, at_once).select(list(wanted)), wanted)


def _of_rows(rows: Iterator[Sequence[Any]], wanted: Sequence[str]) -> Generator[Mapping[str, Any]]:
    at_once, rows = lines_at_once(len(wanted)), iter(rows)
    while part := list(islice(rows, at_once)):
        columns = zip(*part, strict=True)
        yield {name: np.fromiter(column, object, len(part)) for name, column in zip(wanted, columns, strict=True)}


def _select(table: str, wanted: Sequence[str]) -> str:
    return f"SELECT {', '.join(map(_quoted, wanted))} FROM {table}"  # noqa: S608 - quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _arrays(table: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: with_zones(table.column(place)) for place, name in enumerate(names)}
