"""Read a party's records in a rehearsal from a file or from a table in memory."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from privstats.errors import DataError
from privstats.intake.column_names import places_in
from privstats.intake.columns import values_of
from privstats.intake.csv_dialect import THOUSANDS, Dialect, Marks
from privstats.intake.csv_records import (
    fields_of,
    first_lines,
    is_marked,
    likely_separator,
    stated_separator,
    wide_encoding,
)
from privstats.intake.first_line import FIRST_RECORDS, doubt_of
from privstats.intake.frames import in_memory
from privstats.intake.table_files import Table
from privstats.intake.table_sources import csv_files
from privstats.intake.tables import names_of_columns
from privstats.moments import RecordFile
from privstats.workflows.forms import bare_number


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

    @property
    def doubt(self) -> str:
        """Why the names may be a record, as ``RecordFile.doubt`` states it; "" where they are names."""
        names, data = self.columns, in_memory(self.data)
        columns = {name: values_of(data[name])[:FIRST_RECORDS] for name in names}
        return doubt_of(names, columns, f"the row of names of {self.path}")

    def table(self, names: Sequence[str], marks: Sequence[Marks] = ()) -> Table:  # noqa: ARG002 - of files
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


_LINES, _LEAST_LINES = 1 << 12, 1 << 6
"""Lines that a detection reads, of all files together, and at least of each."""
_LONGEST_TEXT = 32
"""Lines of a quoted text that a detection reads; more than that follow a stray quote."""
_DECIMAL = {mark: re.compile(rf"[+-]?[0-9]+{form}[0-9]+") for mark, form in ((",", ","), (".", "[.]"))}
_GROUPED = {
    (sign, mark): re.compile(rf"[+-]?[0-9]{{1,3}}(?:(?:{form}[0-9]{{3}})+[{mark}][0-9]+|(?:{form}[0-9]{{3}}){{2,}})")
    for sign, form in THOUSANDS.items()
    for mark in ".,"
    if mark != sign
}
_ONE_GROUP = {sign: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}{form}[0-9]{{3}}") for sign, form in THOUSANDS.items()}


def written_as(file: RecordFile, settings: Mapping[str, Any]) -> RecordFile:
    """Return the file with its dialect: the settings that are not None, and detected ones for the rest."""
    stated: Any = {name: each for name, each in settings.items() if each is not None}
    files = csv_files(Path(file.path))
    if not files:  # it has types, or the reader refuses it
        return replace(file, **stated)
    dialect = detect_dialect(files)
    names = ("encoding", "separator", "decimal", "thousands")
    chosen: Any = {name: getattr(dialect, name) for name in names} | stated
    if chosen["decimal"] == chosen["thousands"]:
        chosen["thousands"] = stated.get("thousands", "")
    return replace(file, **chosen)


def detect_dialect(paths: Sequence[Path]) -> Dialect:
    """Return the separator, decimal mark and encoding of files that are written alike.

    The first line states the separator (``sep=;``), or it yields the largest number of names. The encoding is that of
    the first file's mark, or UTF-8 if at most half of the letters beyond ASCII are none. Marks may be in any of the
    files.

    Raises:
        DataError: one file has letters in UTF-8, and another has bytes that are no UTF-8.
    """
    encoding = wide_encoding(paths[0]) or "utf-8"
    count = max(_LINES // len(paths), _LEAST_LINES)
    texts = [b"\n".join(first_lines(path, count, encoding)) for path in paths]
    marked = list(map(is_marked, paths))
    in_utf_8 = [mark or _is_utf_8(text) for mark, text in zip(marked, texts, strict=True)]
    letters = [mark or (each and not text.isascii()) for mark, each, text in zip(marked, in_utf_8, texts, strict=True)]
    if not all(in_utf_8) and any(letters):
        one, other = paths[letters.index(True)], paths[in_utf_8.index(False)]
        raise DataError(f"{one} is written in UTF-8 and {other} is not: write both in UTF-8")
    encoding = encoding if all(in_utf_8) else "cp1252"
    shown = [text.decode("utf-8" if all(in_utf_8) else "cp1252", "replace") for text in texts]
    tables = [text.split("\n") for text in shown]
    first = tables[0][0]
    separator = stated_separator(first) or likely_separator(first)
    rows = (field for _, *lines in tables for field in _fields_in(lines, separator))
    fields = Counter(bare_number(field.strip()) for field in rows)
    return Dialect(encoding, separator, *_marks_in(fields, separator))


def _is_utf_8(text: bytes) -> bool:
    """Return whether letters beyond ASCII are in UTF-8, but for damaged ones, which no other encoding repairs."""
    decoded = text.decode("utf-8", "replace")
    return 2 * decoded.count("\ufffd") <= len(decoded) - len(decoded.encode("ascii", "ignore"))


def _fields_in(lines: Sequence[str], separator: str) -> Iterator[str]:
    """Yield the fields of records, whose quoted texts may span lines."""
    held: list[str] = []
    for line in lines:
        held.append(line)
        if (fields := fields_of("\n".join(held), separator)) is not None:
            yield from fields
        elif len(held) < _LONGEST_TEXT:
            continue
        else:  # a stray quote
            yield from (field for each in held for field in fields_of(each, separator) or ())
        held = []
    yield from (field for each in held for field in fields_of(each, separator) or ())


def _marks_in(fields: Mapping[str, int], separator: str) -> tuple[str, str]:
    """Return the decimal and the thousands sign that fit most fields.

    One group of three digits, as in 1,299, decides nothing about the decimal mark.
    """

    def like(form: re.Pattern[str]) -> int:
        return sum(count for field, count in fields.items() if form.fullmatch(field))

    grouped = {pair: like(form) for pair, form in _GROUPED.items()}
    single = {sign: like(form) for sign, form in _ONE_GROUP.items()}
    decimals = {mark: like(form) - single[mark] for mark, form in _DECIMAL.items()}
    for (_, mark), count in grouped.items():
        decimals[mark] += count
    decimal = "," if decimals[","] > decimals["."] else "."
    if not any(decimals.values()) and single[","]:
        return (".", ",") if separator == "," else (",", "")
    evidence = {sign: count + single[sign] for (sign, mark), count in grouped.items() if mark == decimal}
    thousands = max(evidence, key=lambda sign: evidence[sign])
    clear = grouped[thousands, decimal] > 0 or (single[thousands] > 0 and thousands != " ")
    return decimal, thousands if clear and not decimals.get(thousands) else ""


def unusual(dialect: Dialect) -> dict[str, Any]:
    """Return the settings of a dialect that differ from the usual ones, as options of a command by name.

    Example:
        >>> from privstats.intake.csv_dialect import Dialect
        >>> from privstats.workflows.rehearsal.sources import unusual
        >>> unusual(Dialect(separator="tab", decimal=","))
        {'separator': 'tab', 'decimal': ','}
    """
    usual = Dialect()
    options = {name: each for name, each in asdict(dialect).items() if each != getattr(usual, name)}
    return {name: "tab" if each == "\t" else each for name, each in options.items()}
