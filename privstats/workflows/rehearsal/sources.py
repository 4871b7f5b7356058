"""Read a party's records in a rehearsal from a file or from a table in memory."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar, TypeAlias

from privstats.errors import DataError
from privstats.intake.column_names import places_in
from privstats.intake.csv_lines import Dialect
from privstats.intake.frames import in_memory
from privstats.intake.table_files import Table
from privstats.intake.tables import names_of_columns
from privstats.moments import RecordFile
from privstats.system import open_plain


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
_SEPARATORS = ",;\t|:"  # on a tie the first one
_NAMES = ("encoding", "separator", "decimal")
_COMMA, _POINT = re.compile(r"[+-]?[0-9]+,[0-9]+"), re.compile(r"[+-]?[0-9]+\.[0-9]+")


def written_as(file: RecordFile, settings: Sequence[str | None]) -> RecordFile:
    """Return the file with its encoding, separator and decimal mark."""
    path = Path(file.path)
    if path.suffix.lower() == ".parquet" or not path.is_file():  # the reader refuses it
        stated: Any = {name: each for name, each in zip(_NAMES, settings, strict=True) if each is not None}
        return replace(file, **stated)
    dialect = detect_dialect(path)
    usual = (dialect.encoding, dialect.separator, dialect.decimal)
    chosen: Any = {name: each or other for name, each, other in zip(_NAMES, settings, usual, strict=True)}
    if chosen["decimal"] == chosen["separator"] and settings[2] is None:
        chosen["decimal"] = "."
    return replace(file, **chosen)


def detect_dialect(path: Path) -> Dialect:
    """Return a file's separator, decimal mark and encoding.

    The separator yields the largest number of names; the encoding is UTF-8 if valid.
    """
    with open_plain(path) as file:
        lines = [line.rstrip(b"\r\n") for line in islice(file, _LINES)]
    text = b"\n".join(lines).removeprefix(codecs.BOM_UTF8)
    try:
        shown, encoding = text.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        shown, encoding = text.decode("cp1252", "replace"), "cp1252"
    header, *rows = shown.split("\n")
    separator = max(_SEPARATORS, key=lambda each: len(Dialect(encoding, each).fields(header) or ()))
    fields = [field for row in rows for field in row.split(separator)]
    commas, points = (sum(map(bool, map(mark.fullmatch, map(str.strip, fields)))) for mark in (_COMMA, _POINT))
    return Dialect(encoding, separator, "," if separator != "," and commas > points else ".")


def options_of(file: Source) -> str:
    """Return the command options for an unusual dialect."""
    usual, dialect = Dialect(), file.dialect
    options = {"encoding": dialect.encoding, "separator": {"\t": "tab"}.get(dialect.separator, dialect.separator)}
    options["decimal"] = dialect.decimal
    return "".join(f" --{name} {quote(each)}" for name, each in options.items() if each != getattr(usual, name))
