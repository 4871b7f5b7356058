"""A CSV file line by line: one line is one record, and no line decides how another one is read.

So a quotation mark that is never closed, a comma too many, or a byte of another encoding costs that line and no other.
``record_files`` reads through it, and the command line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from privstats.errors import DataError, RecordError

__all__ = ["Lines", "csv_header", "csv_lines"]

Lines = dict[str, list[str | None]]
"""The texts of some lines by column; None throughout a line that has another number of fields."""

_LINES = 1 << 13


def csv_header(path: Path) -> list[str]:
    """The names in the first line.

    Raises:
        DataError: the file cannot be read, or its first line has no names, or one twice.
    """
    try:
        with path.open("rb") as file:
            names = _fields(file.readline().decode("utf-8-sig"))
    except (OSError, UnicodeError):
        names = None
    if not names or len(set(names)) < len(names) or not all(name and name.isprintable() for name in names):
        raise DataError(f"cannot read {path} as a table with a row of names and a column per feature")
    return names


def csv_lines(path: Path, wanted: list[str], *, gaps: bool) -> Iterator[Lines]:
    """The texts of some columns, some thousand lines at a time; blank lines are passed over.

    Args:
        path: the file, whose first line is its header.
        wanted: columns.
        gaps: a line with another number of fields than the header is None throughout; else it is refused.

    Raises:
        DataError: as :func:`csv_header`.
        RecordError: without ``gaps``, a line has another number of fields.
    """
    names = csv_header(path)
    places = [(name, names.index(name)) for name in wanted]
    found: Lines = {name: [] for name in wanted}
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file, 2):
            text = line.decode("utf-8", "replace").strip("\r\n")
            if not text.strip():
                continue
            fields = _fields(text)
            if fields is None or len(fields) != len(names):
                if not gaps:
                    raise RecordError(
                        f"cannot read {path} as a table with a row of names and a column per feature: line {number} "
                        f"has not one field for each of the {len(names)} names; one line is one record"
                    )
                fields = None
            for name, place in places:
                found[name].append(None if fields is None else fields[place])
            if number % _LINES == 0:
                yield found
                found = {name: [] for name in wanted}
    yield found


def _fields(line: str) -> list[str] | None:
    """The fields of one line, stripped; None where it is none of CSV."""
    if '"' not in line:
        return [text.strip() for text in line.strip("\r\n").split(",")]
    try:
        (fields,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError):
        return None
    return [text.strip() for text in fields]
