"""Split a CSV file into the texts of its records, each by its own bytes alone.

A file is the serialisation of records. Where each quote is closed within its line, each line is a record, and a stray
quote costs its own line. Where a quoted text spans lines, RFC 4180 delimits records. That reading is safe only if the
exporting program doubles every quote within quotes. So such a file must be well-formed throughout, and its lines must
not pass for records of their own. Otherwise the file is refused before any record is used: docs/proofs/reading.md,
Records, not lines, has the argument.

Python's ``csv`` splits many records at once. No reader with types of its own is used, because those types follow from
all records together.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from privstats.errors import DataError
from privstats.intake.csv_dialect import SEPARATORS, Dialect, is_wide
from privstats.intake.file_kinds import opened

Misfit: TypeAlias = Callable[[str], str | None]
"""Why a record's text is no row of the table; None where it is one."""

_BLOCK = 1 << 20
_UTF_8 = ("utf-8", "utf-8-sig")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
LONGEST_RECORD = 1 << 24
"""Maximum bytes of a line, and characters of a record: 16 MiB."""

_BY_BYTE = re.compile(r"utf-8|ascii|iso8859-[0-9]+|cp125[0-9]|cp437|cp850")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?')
_FIRST_OF_TEXT = 4
_DOCUMENTS = {
    re.compile(
        rb'\s*(?:\{|\[\s*[\[{"0-9-])'
    ): "JSON, and no table: export its records as CSV with a row of names, or Parquet; if each line is one, name the "
    "file .ndjson",
    re.compile(
        rb"\s*<[?!/A-Za-z]"
    ): "XML or HTML, and no table: export its records as CSV with a row of names, or Parquet",
}
"""How files of text begin that hold no table: their first line is a record, or a part of one."""
_RECORDS = 1 << 13
_HEADER_LINES = 20
_ENDS = re.compile(rb'"|\r\n|\r|\n')
_ESCAPES = re.compile(rb'\\["\r\n]')
_QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
_LINES_OPTION = "pass --lines (in Python lines=True) if each line is one record"
_QUOTED_OPTION = "pass --quoted (in Python quoted=True) if the exporting program doubles quotes within quotes"


@dataclass(frozen=True)
class Layout:
    """How a file's lines form records.

    Attributes:
        end: the byte that ends a line: 10, after an optional 13, or 13 where it alone ends the header line.
        spans: whether quoted texts span lines.
    """

    end: bytes
    spans: bool


def fields_of(text: str, separator: str) -> list[str] | None:
    """Return one record's fields; None for a quote that is not closed, or is closed before the field's end.

    Example:
        >>> from privstats.intake.csv_records import fields_of
        >>> fields_of('5,"a ""b"", c",ward 5"', ","), fields_of('5,"a" b', ",")
        (['5', 'a "b", c', 'ward 5"'], None)
    """
    text = text.strip("\r\n")
    if '"' not in text:
        return text.split(separator)
    fields, place = [], 0
    while True:
        if text.startswith('"', place):
            end = text.find('"', place + 1)
            while end >= 0 and text.startswith('"', end + 1):
                end = text.find('"', end + 2)
            if end < 0:
                return None
            fields.append(text[place + 1 : end].replace('""', '"'))
            place = end + 1
        else:
            end = text.find(separator, place)
            end = len(text) if end < 0 else end
            fields.append(text[place:end])
            place = end
        if place == len(text):
            return fields
        if text[place] != separator:
            return None
        place += 1


def stray_column(text: str, separator: str) -> int:
    """Return the column of the first quote that RFC 4180 has nowhere, counted from 1; 0 where there is none.

    Such a quote is within an unquoted field, is not closed, or is closed before the field's end.

    Example:
        >>> from privstats.intake.csv_records import stray_column
        >>> stray_column('5,"a" b', ","), stray_column('5,"a ""b"" c"', ",")
        (2, 0)
    """
    field, text = re.compile(f'{_QUOTED}|[^"{re.escape(separator)}]*+'), text.strip("\r\n")
    place, column = 0, 1
    while (match := field.match(text, place)) and match.end() < len(text):
        if text[match.end()] != separator:
            return column
        place, column = match.end() + 1, column + 1
    return 0


def split_records(texts: Sequence[str], separator: str) -> list[list[str] | None]:
    """Return the fields of many records, as :func:`fields_of` does for each alone.

    ``csv`` reads them at once. If every text is one row there, no row used another record's text.
    """
    try:
        rows: list[list[str] | None] = list(csv.reader(texts, strict=True, delimiter=separator))
    except csv.Error:
        rows = []
    if len(rows) == len(texts):
        return [[""] if row == [] else row for row in rows]
    return [fields_of(text, separator) for text in texts]


def header_of(path: Path, how: Dialect) -> tuple[str, int, bytes]:
    """Return the header's text, the number of its last line, and the byte that ends lines.

    Raises:
        DataError: the bytes are no text in this encoding, or a quote is not closed.
    """
    _require_text(path, how)
    head = _head(path, how.encoding)
    for beginning, what in _DOCUMENTS.items():
        if beginning.match(head):
            raise DataError(f"cannot read {path}: it is {what}")
    end, texts = _line_end(head), list[str]()
    for number, line in enumerate(head.split(end, _HEADER_LINES)[:_HEADER_LINES], 1):
        try:
            texts.append(line.decode(how.line_encoding))
        except UnicodeDecodeError as error:
            before = line[: error.start].decode(how.line_encoding, "replace")
            raise DataError(
                f"cannot read {path}: line {number}, column {before.count(how.separator) + 1} holds bytes that are no "
                f"{how.encoding}: set --encoding (in Python encoding=), such as cp1252"
            ) from None
        if number == 1 and (named := stated_separator(texts[0])):
            if named != how.separator:
                raise DataError(
                    f"cannot read {path}: its first line names the separator {named!r}: set --separator (in Python "
                    "separator=)"
                )
            texts = []
        elif how.lines or _all_closed(["\n".join(texts)], how.separator):
            return "\n".join(texts).strip("\r\n"), number, end
    column = stray_column("\n".join(texts), how.separator)
    raise DataError(
        f"cannot read {path}: in line {number - len(texts) + 1}, its row of names, a quote in column {column} is not "
        "closed: write names without quotes"
    )


def stated_separator(line: str) -> str | None:
    """Return the separator that Excel states in a line of its own, such as ``sep=;``.

    Example:
        >>> from privstats.intake.csv_records import stated_separator
        >>> stated_separator("sep=;"), stated_separator("age;sex")
        (';', None)
    """
    stated = _SEPARATOR_LINE.fullmatch(line.strip("\r\n"))
    return stated[1] if stated else None


def likely_separator(line: str) -> str:
    """Return the separator by which a first line has the largest number of fields.

    Example:
        >>> from privstats.intake.csv_records import likely_separator
        >>> likely_separator("age;sex"), likely_separator("age")
        (';', ',')
    """
    return max(SEPARATORS, key=lambda each: len(fields_of(line, each) or ()))


def wide_encoding(path: Path) -> str:
    """Return which UTF-16 a file is written in, by its mark or by zeros among its first bytes; "" for none."""
    with opened(path) as file:
        first = file.read(_FIRST_OF_TEXT)
    if (marked := _MARKS.get(first[:2])) is not None:
        return marked
    return "utf-16-le" if b"\0" in first[1::2] else "utf-16-be" if b"\0" in first else ""


def first_lines(path: Path, count: int, encoding: str) -> list[bytes]:
    """Return the first lines without their ends, those of UTF-16 in UTF-8; at most a mebibyte of them."""
    head = _head(path, encoding)
    return [line.strip(b"\r\n") for line in head.split(_line_end(head))[:count]]


def layout_of(path: Path, how: Dialect, end: bytes, skip: int, width: int, misfit: Misfit) -> Layout:
    """Return how the lines after the header form records.

    Args:
        skip: lines of the header.
        width: number of fields of the shortest record.

    Raises:
        DataError: two readings of the quotes are possible, or a quoted text does not end.
    """
    if not how.lines and not how.quoted:
        _require_no_escapes(path, how, end, skip)
    if how.lines or all(
        b'"' not in chunk or _all_closed(_decoded(chunk, how.line_encoding, end), how.separator)
        for chunk in _chunks(path, how.encoding, end)
    ):
        return Layout(end, spans=False)
    stray: tuple[int, str] | None = None
    spanning: tuple[int, int] | None = None
    unclear: tuple[int, int] | None = None
    clear = False
    for record in _grouped(path, how, end, skip):
        if record.several and not (record.closed and record.sound):
            raise _unclosed(path, record, how.separator)
        if not record.sound:
            stray = stray or (record.first, f"has a stray quote in column {stray_column(record.text, how.separator)}")
        elif stray is None and not how.quoted and not is_blank(record.text, how.separator):
            why = misfit(record.text)
            stray = None if why is None else (record.first, why)
        if record.several:
            spanning = spanning or (record.first, record.last)
            if record.may_be_lines(how.separator, width):
                unclear = unclear or (record.first, record.last)
            else:
                clear = True
    if spanning and stray:
        raise DataError(
            f"cannot read {path}: a quoted text goes from line {spanning[0]} to line {spanning[1]}, and line "
            f"{stray[0]} {stray[1]}, so which quotes belong together is not sure: correct line {stray[0]}, or "
            f"{_LINES_OPTION}"
        )
    if unclear and not clear and not how.quoted:
        raise DataError(
            f"cannot read {path}: lines {unclear[0]} to {unclear[1]} are one record with line breaks in quotes, or "
            f"records of their own with stray quotes: {_QUOTED_OPTION}, as Excel, pandas and R's write.csv do; or "
            f"{_LINES_OPTION}"
        )
    return Layout(end, spans=spanning is not None)


def record_texts(path: Path, how: Dialect, layout: Layout, skip: int) -> Iterator[tuple[Sequence[int], list[str]]]:
    """Yield the texts of some records, each with the number of its first line; blank lines are included.

    Raises:
        DataError: a line is longer than 16 MiB, or the file changed since its layout was read.
    """
    if layout.spans:
        numbers, texts = list[int](), list[str]()
        for record in _grouped(path, how, layout.end, skip):
            if not record.closed:
                raise _unclosed(path, record, how.separator)
            numbers.append(record.first)
            texts.append(record.text)
            if len(texts) == _RECORDS:
                yield numbers, texts
                numbers, texts = [], []
        yield numbers, texts
        return
    number = 1
    for chunk in _chunks(path, how.encoding, layout.end):
        lines = _decoded(chunk, how.line_encoding, layout.end)
        start = max(skip + 1 - number, 0)
        yield range(number + start, number + len(lines)), lines[start:]
        number += len(lines)


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file in UTF-8; bytes that are no text are replaced, within their own line.

    Raises:
        DataError: a line is longer than 16 MiB.

    Example:
        >>> from pathlib import Path
        >>> from privstats.intake.csv_records import text_lines
        >>> _ = Path("lines.ndjson").write_text('{"age": 50}\\n{"age": 60}\\n')
        >>> list(text_lines(Path("lines.ndjson")))
        ['{"age": 50}', '{"age": 60}']
    """
    for chunk in _chunks(path, "utf-8", b"\n"):
        yield from _decoded(chunk, "utf-8", b"\n")


def first_records(path: Path, how: Dialect, end: bytes, skip: int, count: int) -> list[str]:
    """Return the texts of the first records below the header's lines; the rest of the file is not read.

    Args:
        end: the byte that ends lines.
        skip: lines of the header.
    """
    if how.lines:
        _, texts = next(record_texts(path, how, Layout(end, spans=False), skip), ((), []))
        return texts[:count]
    return [record.text for record in islice(_grouped(path, how, end, skip), count)]


@dataclass(frozen=True)
class _Record:
    """One record's text, with the numbers of its lines.

    Attributes:
        closed: no quote is open at its end.
        sound: each quote opens a field, closes it or is doubled.
    """

    text: str
    first: int
    last: int
    closed: bool
    sound: bool

    @property
    def several(self) -> bool:
        return self.last > self.first or not self.closed

    def may_be_lines(self, separator: str, width: int) -> bool:
        """Return whether its first and last line could each be a record written without quotes."""
        first, _, rest = self.text.partition("\n")
        last = rest.rpartition("\n")[2]
        return min(first.count(separator), last.count(separator)) + 1 >= width


def _grouped(path: Path, how: Dialect, end: bytes, skip: int) -> Iterator[_Record]:
    """Yield records by RFC 4180; the last one may be open."""
    separator, held, first, size = how.separator, list[str](), 0, 0
    inside, sound, number = False, True, 0
    for chunk in _chunks(path, how.encoding, end):
        for line in _decoded(chunk, how.line_encoding, end):
            number += 1
            if number <= skip:
                continue
            if not inside and '"' not in line:
                yield _Record(line, number, number, closed=True, sound=True)
                continue
            first = first if inside else number
            inside, fine = _quotes(line, separator, inside=inside)
            held.append(line)
            sound, size = sound and fine, size + len(line)
            if not inside or not sound or size > LONGEST_RECORD:
                yield _Record("\n".join(held), first, number, closed=not inside, sound=sound)
                held, inside, sound, size = [], False, True, 0
    if held:
        yield _Record("\n".join(held), first, number, closed=False, sound=sound)


def _quotes(line: str, separator: str, *, inside: bool) -> tuple[bool, bool]:
    """Return whether a quoted text is open after a line, and whether each quote is where RFC 4180 has one."""
    line, place, sound = line.strip("\r\n"), 0, True
    while True:
        if inside or line.startswith('"', place):
            end = line.find('"', place if inside else place + 1)
            while end >= 0 and line.startswith('"', end + 1):
                end = line.find('"', end + 2)
            if end < 0:
                return True, sound
            inside, place = False, end + 1
            if line[place : place + 1] not in ("", separator):
                sound, place = False, _end_of_field(line, separator, place)
        else:
            end = _end_of_field(line, separator, place)
            sound, place = sound and '"' not in line[place:end], end
        if place >= len(line):
            return False, sound
        place += 1


def _end_of_field(line: str, separator: str, place: int) -> int:
    end = line.find(separator, place)
    return len(line) if end < 0 else end


def _all_closed(lines: Sequence[str], separator: str) -> bool:
    """Return whether no line ends within quotes."""
    try:
        return sum(1 for _ in csv.reader(lines, strict=True, delimiter=separator)) == len(lines)
    except csv.Error:
        return not any('"' in line and _quotes(line, separator, inside=False)[0] for line in lines)


def _require_no_escapes(path: Path, how: Dialect, end: bytes, skip: int) -> None:
    """Refuse a file whose records end elsewhere if a backslash escapes a quote (Spark) or a line's end (MySQL)."""
    if not any(_ESCAPES.search(chunk) for chunk in _chunks(path, how.encoding, end)):
        return
    inside, number = False, 0
    for chunk in _chunks(path, how.encoding, end):
        for line in _decoded(chunk, how.line_encoding, end):
            number += 1
            if number <= skip:
                continue
            before, inside = inside, _is_open(line, how.separator, inside=inside)
            if '\\"' in line and any(_is_open(each, how.separator, inside=before) != inside for each in _escaped(line)):
                raise DataError(
                    f"cannot read {path}: line {number} has a backslash before a quote, so where its text ends is not "
                    f"sure: {_QUOTED_OPTION} (in Spark, option escape '\"'); or {_LINES_OPTION}"
                )
            if not inside and _ends_in_backslash(line):
                raise DataError(
                    f"cannot read {path}: line {number} ends in a backslash, as MySQL writes a line break within a "
                    f"text: {_QUOTED_OPTION}; or {_LINES_OPTION}"
                )


def _is_open(line: str, separator: str, *, inside: bool) -> bool:
    """Return whether a quoted text is open after a line."""
    return _quotes(line, separator, inside=inside)[0] if inside or '"' in line else False


def _escaped(line: str) -> tuple[str, str]:
    """Return a line without escaped quotes, by two kinds of programs: the second one escapes backslashes, too."""
    return line.replace('\\"', "xx"), re.sub(r"\\.", "xx", line)


def _ends_in_backslash(line: str) -> bool:
    text = line.rstrip("\r")
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _chunks(path: Path, encoding: str, end: bytes) -> Iterator[bytes]:
    """Yield a file's bytes, as :func:`_blocks` does, in pieces that end with a line."""
    blocks, rest = _blocks(path, encoding), b""
    last = next(blocks)
    for block in blocks:
        if cut := last.rfind(end) + 1:
            yield rest + last[:cut]
            rest = last[cut:]
        else:
            rest += last
        if len(rest) > LONGEST_RECORD:
            raise DataError(f"cannot read {path}: a line has more than {LONGEST_RECORD:,} bytes: end records by lines")
        last = block
    if rest := rest + last:
        yield rest


def _blocks(path: Path, encoding: str) -> Iterator[bytes]:
    """Yield a file's bytes without a byte order mark; UTF-16 as UTF-8, with U+FFFD for half a pair of surrogates."""
    with opened(path) as file:
        start = file.read(len(codecs.BOM_UTF8))
        if not is_wide(encoding):
            yield start.removeprefix(codecs.BOM_UTF8)
            yield from iter(lambda: file.read(_BLOCK), b"")
            return
        name = codecs.lookup(encoding).name
        order = _MARKS.get(start[:2], "utf-16-le") if name == "utf-16" else name
        decoder = codecs.getincrementaldecoder(order)("replace")
        yield decoder.decode(start).removeprefix("\ufeff").encode()
        while block := file.read(_BLOCK):
            yield decoder.decode(block).encode()
        if half := decoder.decode(b"", final=True):
            yield half.encode()


def _decoded(chunk: bytes, encoding: str, end: bytes) -> list[str]:
    """Return a chunk's lines as texts; bytes that are no text are replaced, within their own line."""
    if _is_by_byte(encoding):
        lines = chunk.decode(encoding, "replace").split(end.decode())
    else:
        lines = [line.decode(encoding, "replace") for line in chunk.split(end)]
    if lines[-1] == "":
        lines.pop()
    return lines


@lru_cache
def _is_by_byte(encoding: str) -> bool:
    """Return whether lines may be decoded together: no byte changes how another line is decoded."""
    return _BY_BYTE.fullmatch(codecs.lookup(encoding).name) is not None


def _head(path: Path, encoding: str) -> bytes:
    return b"".join(islice(_blocks(path, encoding), 2))


def _require_text(path: Path, how: Dialect) -> None:
    """Refuse a file of UTF-16 that is declared otherwise, and the reverse; and UTF-8's mark under another encoding."""
    wide = wide_encoding(path)
    if codecs.lookup(how.line_encoding).name not in _UTF_8 and is_marked(path):
        raise DataError(f"cannot read {path}: it is marked as UTF-8: set --encoding utf-8 (in Python encoding='utf-8')")
    if wide and not is_wide(how.encoding):
        raise DataError(
            f"cannot read {path}: it is written as UTF-16: set --encoding {wide} (in Python encoding={wide!r})"
        )
    if is_wide(how.encoding) and not wide and b"\0" not in _head(path, "latin-1"):
        raise DataError(f"cannot read {path}: it is not written as UTF-16: set --encoding (in Python encoding=)")


def is_marked(path: Path) -> bool:
    """Return whether a file begins with the mark of UTF-8, as Excel writes it."""
    with opened(path) as file:
        return file.read(_FIRST_OF_TEXT).startswith(codecs.BOM_UTF8)


def _line_end(head: bytes) -> bytes:
    """Return the byte that ends the header line, outside of quotes."""
    inside = False
    for mark in _ENDS.finditer(head):
        if mark[0] == b'"':
            inside = not inside
        elif not inside:
            return b"\r" if mark[0] == b"\r" else b"\n"
    return b"\n"


def is_blank(text: str, separator: str) -> bool:
    """Return whether a line is blank, which is no record.

    Example:
        >>> from privstats.intake.csv_records import is_blank
        >>> is_blank("  ", ","), is_blank(" , ", ",")
        (True, False)
    """
    return separator not in text and not text.strip()


def _unclosed(path: Path, record: _Record, separator: str) -> DataError:
    why = "is followed by a stray quote" if record.closed or not record.sound else "does not end"
    if len(record.text) > LONGEST_RECORD:
        why = f"has more than {LONGEST_RECORD:,} characters"
    return DataError(
        f"cannot read {path}: a quoted text begins in line {record.first} and {why}, in column "
        f"{stray_column(record.text, separator)}: correct the quotes of this line, or {_LINES_OPTION}"
    )
