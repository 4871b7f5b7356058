"""Open one table from what a path names: a file, a folder or pattern of files, or a table of a DuckDB file.

A party's records are often in many files. Opened as one table they are read in order, file by file, so every command
that reads a file reads them alike, and warns once for all. The rows of one person may be in several files: they are
clipped together, as in one file. ``contrib.parts.measure`` sees each file by itself, and refuses such a person.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from privstats.errors import DataError
from privstats.files.arrays import MOST_BYTES
from privstats.intake.column_names import place_of, places_in, require_records
from privstats.intake.columns import with_zones
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.csv_lines import lines_at_once
from privstats.intake.first_line import doubt_of
from privstats.intake.frames import each_refusing, refusing
from privstats.intake.table_files import Csv, Parquet, Table, first_part, joined_values, refusal_of, require_file
from privstats.optional_dependencies import load

_CSV, _PARQUET, _DUCKDB = (".csv", ".txt", ".tsv", ".tab"), ".parquet", ".duckdb"
_TABLES = (*_CSV, _PARQUET)
_SIGNS = frozenset("*?[")
_VALUE_BYTES = 8


@dataclass(frozen=True)
class Several:
    """Files with the same columns, read one after another.

    Attributes:
        names: as the first file has them.
    """

    path: Path
    files: tuple[Csv | Parquet, ...]
    names: list[str]

    @classmethod
    def of(cls, path: Path, places: Sequence[Path], dialect: Dialect) -> Several:
        """Open files; refuse one whose columns differ from those of the first."""
        files = tuple(_file(each, dialect) for each in places)
        names = files[0].names
        for file in files[1:]:
            lacking = [name for name in names if place_of(name, file.names) is None]
            more = [name for name in file.names if place_of(name, names) is None]
            if lacking or more:
                if doubt := files[0].doubt or file.doubt:
                    raise DataError(doubt)
                raise DataError(
                    f"{file.path} {'lacks' if lacking else 'also has'} the column {(lacking or more)[0]!r}, unlike "
                    f"{files[0].path}: files that are read together must have the same columns"
                )
        return cls(path, files, names)

    @property
    def nameless(self) -> tuple[int, ...]:
        """Columns without a name in any of the files, counted from 1."""
        return tuple(sorted({place for file in self.files for place in file.nameless}))

    @property
    def misfit(self) -> str:
        """Place of the first record that does not fit its file's header; "" if all fit."""
        return next((f"{file.path.name}, {why}" for file in self.files if (why := file.misfit)), "")

    @property
    def doubt(self) -> str:
        """Why the first line of a file may be a record; "" where all are rows of names."""
        return next((doubt for file in self.files if (doubt := file.doubt)), "")

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"record {record + 1} of all files"

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield some columns, some thousand records at a time."""
        for file in self.files:
            own = self._own(file, wanted)
            its_marks = None if marks is None else {own[name]: mark for name, mark in marks.items() if name in own}
            for part in file.parts(list(own.values()), gaps=gaps, marks=its_marks):
                yield {name: part[its] for name, its in own.items()}

    def records(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a part's records that fit their header."""
        return self.files[0].records(part)

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records that fit their header."""
        tables = []
        for file in self.files:
            own = self._own(file, wanted)
            its_marks = {own[name]: mark for name, mark in (marks or {}).items() if name in own}
            table = file.load(list(own.values()), its_marks)
            columns = {name: table.values(its) for name, its in own.items()}
            tables.append(Table(columns, table.left_out, table.first_left_out))
        columns = {name: joined_values([table.columns[name] for table in tables]) for name in dict.fromkeys(wanted)}
        left_out = sum(table.left_out for table in tables)
        return Table(columns, left_out, self.misfit if left_out else "", self.nameless)

    @staticmethod
    def _own(file: Csv | Parquet, wanted: Sequence[str]) -> dict[str, str]:
        """Return the file's own spelling of each wanted name."""
        places = places_in(list(dict.fromkeys(wanted)), file.names)
        return {name: file.names[place or 0] for name, place in zip(dict.fromkeys(wanted), places, strict=True)}


@dataclass(frozen=True)
class DuckDb:
    """A table or view of a DuckDB file, opened read-only."""

    path: Path
    table: str
    names: list[str]

    misfit: str = ""
    nameless: tuple[int, ...] = ()

    @classmethod
    def of(cls, path: Path, table: str | None) -> DuckDb:
        """Open a table; without a name the only one."""
        require_file(path)
        with refusing(lambda kind: DataError(f"cannot read {path} as a file of DuckDB ({kind})")), _base(path) as base:
            # The tables of other attached files are none of this one.
            tables = [name for (name,) in base.execute(_TABLES_OF).fetchall()]
            names = {each: _columns(base, each) for each in tables if table in (None, each)}
        if len(names) != 1:
            which = f"has no table {table!r}" if table else f"has {len(tables)} tables"
            shown = ", ".join(map(repr, tables[:_MAX_SHOWN]))
            raise DataError(f"{path} {which}; name one of its own as {path}/TABLE, such as {shown or 'a new one'}")
        ((name, columns),) = names.items()
        return cls(path, name, columns)

    @property
    def doubt(self) -> str:
        """Why the names may be a record, as a file without a row of names yields them; "" where they are names."""
        return doubt_of(self.names, first_part(self.parts(self.names, gaps=True)), f"the row of names of {self.path}")

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"record {record + 1} of table {self.table}"

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield some columns, some thousand records at a time."""
        del gaps, marks  # a table with types has no marks
        yield from each_refusing(self._each(list(dict.fromkeys(wanted))), refusal_of(self.path))

    def _each(self, wanted: Sequence[str]) -> Generator[Any]:
        none = True
        with _base(self.path) as base:
            for batch in base.sql(self._query(wanted)).to_arrow_reader(lines_at_once(len(wanted))):
                none = False
                yield _arrays(batch, wanted)
        if none:
            yield {name: np.empty(0) for name in wanted}

    def records(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part."""
        return part

    def load(self, wanted: Sequence[str], marks: Mapping[str, Marks] | None = None) -> Table:
        """Load all records."""
        del marks
        columns = list(dict.fromkeys(wanted))
        with refusing(refusal_of(self.path)), _base(self.path) as base:
            ((records,),) = base.execute(f"SELECT count(*) FROM {_quoted(self.table)}").fetchall()  # noqa: S608
            if records * len(columns) * _VALUE_BYTES > MOST_BYTES:
                raise DataError(
                    f"{self.path}: {records:,} records of {len(columns)} columns exceed {MOST_BYTES:,} bytes"
                )
            return Table(_arrays(base.sql(self._query(columns)).to_arrow_table(), columns), 0)

    def _query(self, wanted: Sequence[str]) -> str:
        return f"SELECT {', '.join(map(_quoted, wanted))} FROM {_quoted(self.table)}"  # noqa: S608 - quoted


_MAX_SHOWN = 8
_TABLES_OF = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"


def _base(path: Path) -> Any:
    return load("duckdb", by="a .duckdb file").connect(str(path), read_only=True)


def _columns(base: Any, table: str) -> list[str]:
    return [name for name, *_ in base.execute(f"DESCRIBE {_quoted(table)}").fetchall()]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _arrays(table: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: with_zones(table.column(place)) for place, name in enumerate(names)}


TableFile: TypeAlias = Csv | Parquet | Several | DuckDb


def table_file(path: Path, dialect: Dialect) -> TableFile:
    """Open a table by what its path names.

    Args:
        path: a CSV or Parquet file; a folder of files of one kind; a pattern such as ``parts/2024-*.csv``; or
            ``base.duckdb/TABLE``, where the table may be omitted if it is the only one.
    """
    file = _opened(path, dialect)
    require_records(file.names)
    return file


def _opened(path: Path, dialect: Dialect) -> TableFile:
    if (named := _in_duckdb(path)) is not None:
        return DuckDb.of(*named)
    if not path.is_dir() and not _is_pattern(path):
        return _file(path, dialect)
    if path.is_dir() and path.suffix.lower() == _PARQUET:
        return Parquet.of(path)
    files = _files_of(path)
    if not files:
        raise DataError(f"{path} names no CSV or Parquet file; name a file, or a folder or pattern of files")
    kinds = {each.suffix.lower() == _PARQUET for each in files}
    if len(kinds) > 1:
        raise DataError(f"{path} names CSV and Parquet files; name files of one kind, such as {path.name}/*.parquet")
    if path.is_dir() and kinds == {True}:
        return Parquet.of(path)
    return Several.of(path, files, dialect)


def _file(path: Path, dialect: Dialect) -> Csv | Parquet:
    return Parquet.of(path) if path.suffix.lower() == _PARQUET else Csv.of(path, dialect)


def is_table(path: Path) -> bool:
    """Return whether a path names a table, and not an archive of arrays."""
    return path.suffix.lower() in _TABLES or _in_duckdb(path) is not None or path.is_dir() or _is_pattern(path)


def stored_at(path: Path) -> Path:
    """Return the file or folder that holds a path's table: for a pattern, the last folder above its first sign."""
    named = _in_duckdb(path)
    return named[0] if named is not None else _folder_above(path) if _is_pattern(path) else path


def csv_files(path: Path) -> list[Path]:
    """Return the CSV files that a path names; none where it names another table or no file."""
    if _in_duckdb(path) is not None or path.suffix.lower() == _PARQUET:
        return []
    files = _files_of(path) if path.is_dir() or _is_pattern(path) else [path] if path.is_file() else []
    return [each for each in files if each.suffix.lower() != _PARQUET]


def _in_duckdb(path: Path) -> tuple[Path, str | None] | None:
    """Return a DuckDB file and its table's name; None for another path."""
    if path.suffix.lower() == _DUCKDB and not path.is_dir():
        return path, None
    above = path.parent
    return (above, path.name) if above.suffix.lower() == _DUCKDB and above.is_file() else None


def _is_pattern(path: Path) -> bool:
    return not path.exists() and not _SIGNS.isdisjoint(str(path))


def _files_of(path: Path) -> list[Path]:
    """Return the files of a folder and its folders, or of a pattern, in the order of names; no hidden ones."""
    if path.is_dir():
        start, matching = path, path.rglob("*")
    else:
        start = _folder_above(path)
        matching = start.glob(str(path.relative_to(start)))
    return sorted(each for each in matching if each.suffix.lower() in _TABLES and not _is_hidden(each, start))


def _folder_above(pattern: Path) -> Path:
    return next(above for above in pattern.parents if above.is_dir())


def _is_hidden(path: Path, start: Path) -> bool:
    return not path.is_file() or any(part.startswith((".", "_")) for part in path.relative_to(start).parts)
