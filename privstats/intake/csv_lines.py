"""Read a CSV file line by line: one line is one record, and no line decides how another one is read.

Encoding, separator and decimal mark are declared, because a guess would follow from all records together.
"""

from __future__ import annotations

import codecs
import csv
import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privstats.errors import DataError, RecordError
from privstats.intake.meaning import UNREADABLE, reading
from privstats.system import open_plain

Lines = dict[str, list[str | None]]
"""The texts of some lines by column; None throughout a line that has another number of fields."""

_LINES, _FIELDS = 1 << 13, 1 << 18
_ASCII = string.ascii_letters + string.digits + "\n\r\t ,;|.+-_\"' \\n \\u0041"
_SEPARATORS = ",;|:\t"
_BLANKS = " \t\n\v\f\r"  # others may be letters in the file's true encoding, which distinguish two ids
_DATE = re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}.*")


@dataclass(frozen=True)
class Dialect:
    """A CSV file's format, as its party declares it.

    Attributes:
        encoding: a Python codec name; lines must end with the byte 10.
        separator: ``, ; | :`` or a tab, also called "tab".
        decimal: a point or a comma. With a comma, "1.5" is no number: it may be one and a half or fifteen hundred.

    Example:
        >>> from privstats.intake.csv_lines import Dialect
        >>> Dialect("cp1252", ";", ",").read("3,5")
        '3.5'
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if not isinstance(self.encoding, str) or not _is_plain(self.encoding):
            raise DataError(
                f"encoding {self.encoding!r} has other line ends than ASCII, or is unknown; name one such as utf-8, "
                "cp1252 or latin-1, or write the file again as utf-8"
            )
        if not isinstance(self.separator, str) or len(self.separator) != 1 or self.separator not in _SEPARATORS:
            raise DataError(f"separator must be one of , ; | : or tab, got {self.separator!r}")
        if self.decimal not in (".", ","):
            raise DataError(f"decimal must be a point or a comma, got {self.decimal!r}")
        if self.decimal == self.separator:
            raise DataError("decimal and separator are both the comma; name the character that separates fields")

    def read(self, text: str) -> str:
        """Return a field with a decimal point, or UNREADABLE."""
        if self.decimal == "." or not text:
            return text
        if "," in text:
            pointed = text.replace(",", ".")
            return pointed if "." not in text and isinstance(reading(pointed), float) else text
        return UNREADABLE if "." in text and isinstance(reading(text), float) else text

    def fields(self, line: str) -> list[str] | None:
        """Return one line's fields without surrounding ASCII blanks; None where it is no CSV."""
        if '"' not in line:
            text = line.strip("\r\n")
            fields = text.split(self.separator)
            return fields if text.split(maxsplit=1) == [text] else [each.strip(_BLANKS) for each in fields]
        try:
            (fields,) = csv.reader([line], strict=True, delimiter=self.separator)
        except (csv.Error, ValueError):
            return None
        return [text.strip(_BLANKS) for text in fields]


def csv_header(path: Path, dialect: Dialect | None = None) -> list[str]:
    """Return the names in the first line, normalised (NFC).

    Raises:
        DataError: no readable row of names, or one name twice; none is shown, as the line may be a record.
    """
    how = dialect or Dialect()
    try:
        with open_plain(path) as file:
            names = how.fields(file.readline().removeprefix(codecs.BOM_UTF8).decode(how.encoding))
    except (OSError, UnicodeError):
        names = None
    names = None if names is None else [unicodedata.normalize("NFC", name.strip()) for name in names]
    if not names or not all(name and name.isprintable() for name in names):
        raise DataError(f"cannot read {path} as a table with a row of names and a column per feature{_hint(how)}")
    first = {name: place for place, name in reversed(list(enumerate(names, 1)))}
    if twice := [(first[name], place) for place, name in enumerate(names, 1) if first[name] < place]:
        one, other = twice[0]  # by position: without a row of names these are values
        raise DataError(
            f"cannot read {path} as a table with a row of names and a column per feature: columns {one} and {other} "
            "have one name; keep one of them"
        )
    return names


def lines_at_once(columns: int) -> int:
    """Return the number of records read at a time."""
    return max(1, min(_LINES, _FIELDS // max(columns, 1)))


def csv_lines(path: Path, wanted: Sequence[str], *, gaps: bool, dialect: Dialect | None = None) -> Iterator[Lines]:
    """Yield the texts of some columns, some thousand lines at a time.

    A blank line is skipped; a line with a separator is a record.

    Args:
        gaps: a line with a wrong number of fields is None throughout; else it is refused.
        dialect: None means UTF-8, commas, decimal points.
    """
    how = dialect or Dialect()
    names = csv_header(path, how)
    of = {name: place for place, name in enumerate(names)}
    places = {name: of[name] for name in wanted}
    nothing, rows = (None,) * len(names), list[Sequence[str | None]]()
    step, none = lines_at_once(len(names)), True
    with open_plain(path) as file:
        file.readline()
        for number, line in enumerate(file, 2):
            text = line.decode(how.encoding, "replace").strip("\r\n")
            if not (text.strip() or how.separator in text):
                continue
            fields = how.fields(text)
            if fields is None or len(fields) != len(names):
                if not gaps:
                    raise RecordError(
                        f"cannot read {path} as a table with a row of names and a column per feature: line {number} "
                        f"does not have one field for each of the {len(names)} names; one line is one record"
                    )
                fields = None
            rows.append(nothing if fields is None else fields)
            if len(rows) == step:
                yield _by_column(rows, places, how)
                rows, none = [], False
    if rows or none:
        yield _by_column(rows, places, how)


def _by_column(rows: Sequence[Sequence[str | None]], places: Mapping[str, int], how: Dialect) -> Lines:
    columns = list(zip(*rows, strict=True)) or [()] * (max(places.values(), default=0) + 1)
    if how.decimal == ".":
        return {name: list(columns[place]) for name, place in places.items()}
    return {
        name: [text if text is None else how.read(text) for text in columns[place]] for name, place in places.items()
    }


def like_a_record(names: Sequence[str]) -> bool:
    """Return whether a first line may be a record: it repeats a text, or holds a number, date or gap.

    Example:
        >>> from privstats.intake.csv_lines import like_a_record
        >>> like_a_record(["age", "sex"]), like_a_record(["51", "f"])
        (False, True)
    """
    readings = [reading(name) for name in names]
    return len(set(names)) < len(names) or any(not isinstance(each, str) or _DATE.fullmatch(each) for each in readings)


def quoted_names(names: Sequence[str]) -> str:
    """Return a header's names for an error; none where it may be a record.

    Example:
        >>> from privstats.intake.csv_lines import quoted_names
        >>> quoted_names(["age", "sex"]), quoted_names(["51", "f"])
        ('age, sex', 'no row of names, or names that are numbers')
    """
    return "no row of names, or names that are numbers" if like_a_record(names) else ", ".join(names)


def other_separator(names: Sequence[str], separator: str) -> str:
    """Return a hint where a header is one name with another separator.

    Example:
        >>> from privstats.intake.csv_lines import other_separator
        >>> other_separator(["age;sex"], ","), other_separator(["age", "sex"], ",")
        (" (its first line is one name with ';' in it: set --separator, in Python separator=)", '')
    """
    if len(names) > 1:
        return ""
    others = [each for each in _SEPARATORS if each != separator and each in names[0]]
    return (
        f" (its first line is one name with {others[0]!r} in it: set --separator, in Python separator=)"
        if others
        else ""
    )


def _is_plain(encoding: str) -> bool:
    """Return whether ASCII bytes, and so line ends, keep their meaning in an encoding."""
    try:
        return _ASCII.encode("ascii").decode(encoding, "replace") == _ASCII
    except (LookupError, UnicodeError, ValueError):
        return False


def _hint(how: Dialect) -> str:
    return (
        f" of {how.encoding}, separated by {how.separator!r}: set --encoding and --separator (in Python encoding=, "
        "separator=)"
    )
