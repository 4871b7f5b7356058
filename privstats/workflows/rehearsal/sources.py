"""Read a party's records in a rehearsal from a file or from a table in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar, TypeAlias

from privstats.errors import DataError
from privstats.intake.column_names import places_in
from privstats.intake.csv_dialect import SEPARATORS, Dialect
from privstats.intake.csv_records import fields_of, first_lines, stated_separator
from privstats.intake.frames import in_memory
from privstats.intake.table_files import Table
from privstats.intake.tables import names_of_columns
from privstats.moments import RecordFile


@dataclass(frozen=True, repr=False, eq=False)
class HeldTable:
    """One party's table.

    Attributes:
        path: the party's name.
        data: frame, Arrow table, relation, or mapping of columns.
    """

    separator: ClassVar[str] = ","
    dialect: ClassVar[Dialect] = Dialect()

    path: str
    data: Any

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names; raises ``DataError`` for no table or an unnamed column."""
        names = names_of_columns(self.data)
        if not names or not all(isinstance(name, str) for name in names):
            raise DataError(
                f"{self.path} is no table with named columns: pass a frame of pandas or polars, a table of Arrow, a "
                "mapping of columns, or the path of a file"
            )
        return tuple(names)

    def table(self, names: Sequence[str]) -> Table:
        """Return the named columns, in upper or lower case.

        Raises:
            DataError: unreadable, or columns of different lengths.
        """
        own, data = self.columns, in_memory(self.data)
        columns = {own[place]: data[own[place]] for place in places_in(names, own) if place is not None}
        if len({len(values) for values in columns.values()}) > 1:
            raise DataError(f"the columns of {self.path} have different lengths; give one value per record in each")
        return Table(columns, 0)


Source: TypeAlias = RecordFile | HeldTable
"""One party's records: a file, or a table in memory."""


def name_of(source: Source) -> str:
    """Return a party's name."""
    return source.path if isinstance(source, HeldTable) else Path(source.path).stem


def file_of(source: Source) -> str:
    """Return the file that a study's commands name."""
    return f"{source.path}.csv" if isinstance(source, HeldTable) else os.fspath(source.path)


_LINES = 1 << 12
_COMMA, _POINT = re.compile(r"[+-]?[0-9]+,[0-9]+"), re.compile(r"[+-]?[0-9]+\.[0-9]+")


def written_as(file: RecordFile, settings: Mapping[str, Any]) -> RecordFile:
    """Return the file with its dialect: the settings that are not None, and detected ones for the rest."""
    stated: Any = {name: each for name, each in settings.items() if each is not None}
    path = Path(file.path)
    if path.suffix.lower() == ".parquet" or not path.is_file():  # the reader refuses it
        return replace(file, **stated)
    dialect = detect_dialect(path)
    chosen: Any = {"encoding": dialect.encoding, "separator": dialect.separator, "decimal": dialect.decimal} | stated
    if chosen["decimal"] == chosen["separator"] and "decimal" not in stated:
        chosen["decimal"] = "."
    return replace(file, **chosen)


def detect_dialect(path: Path) -> Dialect:
    """Return a file's separator, decimal mark and encoding.

    The first line states the separator (``sep=;``), or it yields the largest number of names. The encoding is UTF-8 if
    valid.
    """
    lines = first_lines(path, _LINES)
    text = b"\n".join(lines)
    try:
        shown, encoding = text.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        shown, encoding = text.decode("cp1252", "replace"), "cp1252"
    header, *rows = shown.split("\n")
    separator = stated_separator(header) or max(SEPARATORS, key=lambda each: len(fields_of(header, each) or ()))
    fields = [field for row in rows for field in fields_of(row, separator) or ()]
    commas, points = (sum(map(bool, map(mark.fullmatch, map(str.strip, fields)))) for mark in (_COMMA, _POINT))
    return Dialect(encoding, separator, "," if separator != "," and commas > points else ".")


def options_of(file: Source) -> str:
    """Return the command options for an unusual dialect."""
    usual, dialect = Dialect(), file.dialect
    options = {name: each for name, each in vars(dialect).items() if each != getattr(usual, name)}
    shown = {name: "tab" if each == "\t" else each for name, each in options.items()}
    return "".join(f" --{name}" if each is True else f" --{name} {quote(each)}" for name, each in shown.items())
