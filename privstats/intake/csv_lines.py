"""Read a CSV file's header and its columns as texts; :mod:`privstats.intake.csv_records` splits it into records."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from privstats.errors import DataError, RecordError
from privstats.intake.column_names import place_of
from privstats.intake.csv_dialect import SEPARATORS, Dialect, Marks
from privstats.intake.csv_records import (
    fields_of,
    first_lines,
    first_records,
    header_of,
    is_blank,
    layout_of,
    likely_separator,
    record_texts,
    split_records,
    stray_column,
)
from privstats.intake.first_line import FIRST_RECORDS, doubt_of

Lines = dict[str, list[str | None]]
"""The texts of some records by column; None throughout a record that has another number of fields."""

_TITLE_LINES = 20
_LINES, _FIELDS = 1 << 13, 1 << 18
_BLANKS = " \t\n\v\f\r"  # others may be letters in the file's true encoding, which distinguish two ids
_HAS_BLANK = re.compile(f"[{_BLANKS}]")


@dataclass(frozen=True)
class Header:
    """A file's row of names.

    A column without a name is never read: a plan names its columns. Programs write one for row numbers (pandas, R), or
    with a separator at the end of each line.

    Attributes:
        text: the row as it is written.
        every: each column's name, normalised (NFC), or "".
        lines: number of the line that it ends with.
        end: the byte that ends lines.
    """

    text: str
    every: tuple[str, ...]
    lines: int
    end: bytes

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns that have one."""
        return [name for name in self.every if name]

    @property
    def nameless(self) -> tuple[int, ...]:
        """The columns without a name, counted from 1."""
        return tuple(place for place, name in enumerate(self.every, 1) if not name)

    @cached_property
    def least(self) -> int:
        """Number of fields up to the last named column."""
        return max(place for place, name in enumerate(self.every, 1) if name)

    @cached_property
    def repeats(self) -> frozenset[str]:
        """Records' texts that repeat the row of names, as files have that were written one behind the other."""
        return frozenset(f"{mark}{self.text}{end}" for mark in ("", "\ufeff") for end in ("", "\r"))

    def row(self, fields: Sequence[str] | None) -> Sequence[str] | None:
        """Return a record's fields, as many as columns; None where their number differs.

        Empty fields at the end, beyond the last name, are no fields.
        """
        width = len(self.every)
        if fields is None or len(fields) == width:
            return fields
        if len(fields) < self.least or any(text.strip(_BLANKS) for text in fields[width:]):
            return None
        return [*fields[:width], *[""] * (width - len(fields))]

    def why_none(self, text: str, separator: str) -> str | None:
        """Return why a record's text is no record; None where it is one."""
        return "repeats the row of names" if text in self.repeats else self.misfit(text, separator)

    def misfit(self, text: str, separator: str) -> str | None:
        """Return why a record's text is no row; None where it is one."""
        fields = fields_of(text, separator)
        if self.row(fields) is not None:
            return None
        if fields is None:
            why = ", behind a backslash: export quotes doubled" if '\\"' in text else ""
            return f"has a stray quote in column {stray_column(text, separator)}{why}"
        named = f"for {len(self.every)} columns" if self.nameless else f"for {len(self.every)} names"
        return f"has {len(fields)} {'fields' if len(fields) > 1 else 'field'} {named}"


def csv_header(path: Path, dialect: Dialect | None = None) -> Header:
    """Return the row of names.

    Raises:
        DataError: no readable row of names, or one name twice; none is shown, as the line may be a record.
    """
    how = dialect or Dialect()
    try:
        text, lines, end = header_of(path, how)
    except OSError:
        raise DataError(f"cannot read {path}: pass a file that you may read") from None
    fields = fields_of(text, how.separator)
    if fields is None:
        raise DataError(
            f"cannot read {path}: in line {lines}, its row of names, column {stray_column(text, how.separator)} has a "
            "stray quote: write names without quotes"
        )
    if unclosed := [place for place, name in enumerate(fields, 1) if how.separator in name and "\n" in name]:
        line = lines - text.count("\n")  # the text may hold records, so none of it is shown
        raise DataError(
            f"cannot read {path}: in line {line}, its row of names, a quote in column {unclosed[0]} is not closed: "
            "write names without quotes"
        )
    names = [unicodedata.normalize("NFC", _in_one_line(name)) for name in fields]
    if not any(names):
        raise DataError(f"cannot read {path}: line {lines} is no row of names: write one there{_hint(how)}")
    if odd := [place for place, name in enumerate(names, 1) if not (name or "-").isprintable()]:
        raise DataError(
            f"cannot read {path}: in line {lines}, the row of names, column {odd[0]} has a character that cannot be "
            f"printed: rename it{_hint(how)}"
        )
    places = {name: place for place, name in reversed(list(enumerate(names, 1)))}
    if twice := [(places[name], place) for place, name in enumerate(names, 1) if name and places[name] < place]:
        one, other = twice[0]  # by position: without a row of names these are values
        raise DataError(
            f"cannot read {path} as a table with a row of names and a column per feature: in line {lines}, columns "
            f"{one} and {other} have one name; keep one of them"
        )
    return Header(text, tuple(names), lines, end)


_ROW_NUMBERS = " (R's write.table leaves out the name of its row numbers: use write.csv)"


def lines_at_once(columns: int) -> int:
    """Return the number of records read at a time."""
    return max(1, min(_LINES, _FIELDS // max(columns, 1)))


def csv_lines(
    path: Path,
    wanted: Sequence[str],
    *,
    gaps: bool,
    dialect: Dialect | None = None,
    marks: Mapping[str, Marks] | None = None,
) -> Iterator[Lines]:
    """Yield the texts of some columns, some thousand records at a time.

    A blank line is skipped; a line with a separator is a record.

    Args:
        gaps: a record with a wrong number of fields is None throughout; else it is refused.
        dialect: None means UTF-8, commas, decimal points.
        marks: by column, what its declaration lets a field be; a number if omitted.

    Raises:
        DataError: quotes can be read in two ways; nothing is yielded then.
    """
    how = dialect or Dialect()
    header = csv_header(path, how)
    of = {name: place for place, name in enumerate(header.every)}
    places = {name: of[name] for name in wanted}
    at_once, none = lines_at_once(len(header.every)), True
    for numbers, texts in _records(path, how, header):
        for start in range(0, len(texts), at_once):
            part = texts[start : start + at_once]
            rows = _rows(part, header, how.separator)
            if not gaps and None in rows:
                number, why = next(_misfits(numbers[start:], part, header, how.separator))
                raise RecordError(
                    f"cannot read {path} as a table with a row of names and a column per feature: line {number} {why}"
                )
            if rows:
                yield _by_column(rows, places, header, how, marks or {})
                none = False
    if none:
        yield {name: [] for name in wanted}


def first_misfit(path: Path, dialect: Dialect) -> str:
    """Return the line and the cause of the first record that is no row; "" where all are rows."""
    header = csv_header(path, dialect)
    parts = _records(path, dialect, header)
    every = chain.from_iterable(_misfits(numbers, texts, header, dialect.separator) for numbers, texts in parts)
    number, why = next(every, (0, ""))
    if not number:
        return ""
    unnamed = why.startswith(f"has {len(header.every) + 1} fields") and number == header.lines + 1
    return f"line {number} {why}{_ROW_NUMBERS if unnamed else ''}"


def line_of(path: Path, dialect: Dialect, record: int) -> int:
    """Return the line that a record begins in, of the records that :func:`csv_lines` yields, counted from 0.

    Example:
        >>> from pathlib import Path
        >>> from privstats.intake.csv_dialect import Dialect
        >>> from privstats.intake.csv_lines import line_of
        >>> _ = Path("lines.csv").write_text("age,ill\\n50,no\\n\\n60,yes\\n")
        >>> line_of(Path("lines.csv"), Dialect(), 1)
        4
    """
    parts = _records(path, dialect, csv_header(path, dialect))
    every = (
        number
        for numbers, texts in parts
        for number, text in zip(numbers, texts, strict=False)
        if not is_blank(text, dialect.separator)
    )
    return next(islice(every, record, None))


def _records(path: Path, how: Dialect, header: Header) -> Iterator[tuple[Sequence[int], list[str]]]:
    fits = lambda text: header.misfit(text, how.separator)  # noqa: E731
    layout = layout_of(path, how, header.end, header.lines, header.least, fits)
    return record_texts(path, how, layout, header.lines)


def _rows(texts: Sequence[str], header: Header, separator: str) -> list[Sequence[str] | None]:
    """Return the fields of records, without blank lines; None for one that is no record."""
    rows: list[Sequence[str] | None]
    repeated = not header.repeats.isdisjoint(texts)
    if any('"' in text for text in texts):
        rows = [*split_records(texts, separator)]
    else:
        rows = [text.split(separator) for text in texts]
    if repeated:
        rows = [None if text in header.repeats else row for row, text in zip(rows, texts, strict=True)]
    if len(header.every) > 1 and {-1 if row is None else len(row) for row in rows} == {len(header.every)}:
        return rows
    return [header.row(row) for row, text in zip(rows, texts, strict=True) if not is_blank(text, separator)]


def _misfits(numbers: Sequence[int], texts: Sequence[str], header: Header, separator: str) -> Iterator[tuple[int, str]]:
    for number, text in zip(numbers, texts, strict=False):
        if not is_blank(text, separator) and (why := header.why_none(text, separator)) is not None:
            yield number, why


def _by_column(
    rows: Sequence[Sequence[str] | None],
    places: Mapping[str, int],
    header: Header,
    how: Dialect,
    marks: Mapping[str, Marks],
) -> Lines:
    nothing = (None,) * len(header.every)
    columns = list(zip(*[nothing if row is None else row for row in rows], strict=True))
    texts = {name: _stripped(columns[place]) for name, place in places.items()}
    if how.is_plain:
        return texts
    return {
        name: [text if text is None else how.read(text, marks.get(name, "number")) for text in column]
        for name, column in texts.items()
    }


def _stripped(texts: Sequence[str | None]) -> list[str | None]:
    try:
        blank = _HAS_BLANK.search("".join(texts))  # type: ignore[arg-type]
    except TypeError:  # None, of a record that is no row
        return [text if text is None else text.strip(_BLANKS) for text in texts]
    return [text.strip(_BLANKS) for text in texts if text is not None] if blank else list(texts)


def _in_one_line(name: str) -> str:
    """Return a name without outer blanks; a line break within it is a space."""
    return re.sub(r"\s*[\r\n]\s*", " ", name.strip())


def names_doubt(path: Path, dialect: Dialect) -> str:
    """Return why a file's first line may be a record, as a sentence without its texts; "" where it is a row of names.

    Only the first records are read, and none is refused.

    Example:
        >>> from pathlib import Path
        >>> from privstats.intake.csv_dialect import Dialect
        >>> from privstats.intake.csv_lines import names_doubt
        >>> _ = Path("exported.csv").write_text("anna,no\\nbert,no\\ncarl,yes\\n")
        >>> names_doubt(Path("exported.csv"), Dialect()).partition(", for")[0]
        'the first line of exported.csv may be a record'
    """
    header, of = csv_header(path, dialect), f"the first line of {path}"
    hint = other_separator(header.names, dialect.separator)
    count = min(FIRST_RECORDS, lines_at_once(len(header.every)))
    texts = first_records(path, dialect, header.end, header.lines, count)
    rows = [row for row in _rows(texts, header, dialect.separator) if row is not None]
    if not rows and any(map(str.strip, texts)):
        return f"{of} may be a record, for no line below fits it: {first_misfit(path, dialect)}{hint}"
    if doubt := doubt_of(header.every, _columns_of(header.every, rows), of, hint):
        return doubt
    other = likely_separator(header.text)
    names = [*map(_in_one_line, fields_of(header.text, other) or ())]
    if len(names) <= len(header.every):
        return ""
    rows = [row for text in texts if len(row := fields_of(text, other) or ()) == len(names)]
    return doubt_of(names, _columns_of(names, rows), of, hint) if rows or not texts else ""


def _columns_of(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    columns = zip(*rows, strict=True) if rows else ()
    return {name: column for name, column in zip(names, columns, strict=False) if name}


def other_separator(names: Sequence[str], separator: str) -> str:
    """Return a hint where a header is one name with another separator.

    Example:
        >>> from privstats.intake.csv_lines import other_separator
        >>> other_separator(["age;sex"], ","), other_separator(["age", "sex"], ",")
        (" (its first line is one name with ';' in it: set --separator, in Python separator=)", '')
    """
    if len(names) > 1:
        return ""
    others = [each for each in SEPARATORS if each != separator and each in names[0]]
    return (
        f" (its first line is one name with {others[0]!r} in it: set --separator, in Python separator=)"
        if others
        else ""
    )


def names_below(path: Path, dialect: Dialect, name: str) -> str:
    """Return a hint where a line below the first one holds a column's name: a report's title is above the table.

    Example:
        >>> from pathlib import Path
        >>> from privstats.intake.csv_dialect import Dialect
        >>> from privstats.intake.csv_lines import names_below
        >>> _ = Path("report.csv").write_text("Patients of 2019\\n\\nage,ill\\n50,no\\n")
        >>> names_below(Path("report.csv"), Dialect(), "ill")
        ' (its line 3 names it: delete the lines above)'
    """
    lines = first_lines(path, _TITLE_LINES, dialect.encoding)
    for number, line in enumerate(lines[1:], 2):
        fields = fields_of(line.decode(dialect.line_encoding, "replace"), dialect.separator) or ()
        if len(fields) > 1 and place_of(name, [*map(_in_one_line, fields)]) is not None:
            return f" (its line {number} names it: delete the lines above)"
    return ""


def _hint(how: Dialect) -> str:
    return (
        f". It was read as {how.encoding}, separated by {how.separator!r}: other files need --encoding and --separator "
        "(in Python encoding=, separator=)"
    )
