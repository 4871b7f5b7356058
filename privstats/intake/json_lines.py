"""Read JSON lines by declared columns: each line is a record, and no record may name the columns that are read."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

from privstats.errors import DataError, RecordError
from privstats.intake.column_names import SYNTHETIC_MARK, place_of, same_names
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.csv_lines import lines_at_once
from privstats.intake.csv_records import text_lines
from privstats.intake.file_kinds import head_of
from privstats.intake.meaning import UNREADABLE
from privstats.intake.table_files import TextFile

_NAMED = re.compile(r".+\.(ndjson|jsonl)(\.(gz|bz2|xz|zst))?", re.IGNORECASE)
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECODER = json.JSONDecoder(object_pairs_hook=tuple)
_KEYS = 1 << 12
"""Number of different keys whose column is stored."""


class JsonLines(TextFile):
    """A file of JSON lines in UTF-8, which may be compressed. Its name ends in .ndjson or .jsonl.

    Its first bytes are a record. So its name decides its kind, and a plan's declared columns are its names. A key that
    a line lacks is a gap, as null is. A list or an object in a declared column is a value that cannot be read. A line
    that is no object, or has a declared key twice, is no record.
    """

    @classmethod
    def fits(cls, path: Path, head: bytes) -> bool:  # noqa: ARG003
        """Return whether the file's name is one of JSON lines."""
        return _NAMED.fullmatch(path.name) is not None

    @classmethod
    def of(cls, path: Path, dialect: Dialect, table: str | None = None) -> Self:  # noqa: ARG003
        """Refuse a file that no plan's declared columns name."""
        raise DataError(
            f"cannot read {path}: in JSON lines only records name columns, and no record may decide what is read: use "
            "a plan that declares its columns, or export the records as CSV with a row of names, or Parquet"
        )

    @classmethod
    def declared(cls, path: Path, names: Sequence[str]) -> Self:
        """Open a file by declared columns.

        Raises:
            DataError: two names could mean one column, or the file is marked as UTF-16.
        """
        if twins := same_names(names):
            raise DataError(f"cannot read {path} by the columns {twins[0]!r} and {twins[1]!r}: rename one of them")
        if head_of(path).startswith(_WIDE):
            raise DataError(f"cannot read {path}: it is written as UTF-16: write JSON lines in UTF-8")
        return cls(path, list(names))

    def parts(
        self, wanted: Sequence[str], *, gaps: bool, marks: Mapping[str, Marks] | None = None
    ) -> Iterator[Mapping[str, list[Any]]]:
        """Yield some columns, some thousand records at a time."""
        del marks
        rows, nothing, none = self._rows(), (None,) * len(self.names), True
        places = {name: self.names.index(name) for name in wanted}
        while part := list(islice(rows, lines_at_once(len(self.names)))):
            if not gaps and (first := next((f"{number} {row}" for number, row in part if isinstance(row, str)), "")):
                raise RecordError(f"cannot read {self.path} as JSON lines: line {first}")
            columns = list(zip(*(nothing if isinstance(row, str) else row for _, row in part), strict=True))
            yield {name: list(columns[place]) for name, place in places.items()}
            none = False
        if none:
            yield {name: [] for name in places}

    @property
    def misfit(self) -> str:
        """Line and cause of the first line that is no record; "" if all are."""
        return next((f"line {number} {row}" for number, row in self._rows() if isinstance(row, str)), "")

    @property
    def doubt(self) -> str:
        """Declared names are no record."""
        return ""

    def place(self, record: int) -> str:
        """Return where a record is, counted from 0."""
        return f"line {next(islice((number for number, _ in self._rows()), record, None))}"

    def _rows(self) -> Iterator[tuple[int, Sequence[Any] | str]]:
        """Yield the number of each line that is not blank, and its values or the reason why it is no record."""
        row_of = _reader(self.names)
        return ((number, row_of(text)) for number, text in enumerate(text_lines(self.path), 1) if text.strip())


def _reader(names: Sequence[str]) -> Callable[[str], Sequence[Any] | str]:
    """Return the function that maps a line to its values, "" for a gap; or to the reason why it is no record."""
    place = lru_cache(_KEYS)(lambda key: place_of(key, names))

    def row(text: str) -> Sequence[Any] | str:
        try:
            pairs = _DECODER.decode(text)
        except (ValueError, RecursionError):
            return "is no JSON object"
        if not isinstance(pairs, tuple):
            return "is no JSON object"
        values: list[Any] = [None] * len(names)
        for key, value in pairs:
            if key == SYNTHETIC_MARK:
                return "holds a synthetic row"
            if (at := place(key)) is None:
                continue
            if values[at] is not None:
                return f"holds the key {names[at]!r} twice"
            values[at] = "" if value is None else UNREADABLE if isinstance(value, list | tuple) else value
        return ["" if value is None else value for value in values]

    return row
