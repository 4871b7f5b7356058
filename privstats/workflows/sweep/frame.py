"""Rows of a study: as a frame, and in a file from which a stopped study goes on.

The file has one JSON line for each finished job. A line that the stop truncated is ignored, and its rows are computed
again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from privstats.errors import DataError
from privstats.printable import csv_text


@dataclass(frozen=True)
class Frame:
    """Rows of equal keys, in order.

    Attributes:
        columns: their names.
        rows: one tuple per row, as long as ``columns``.

    Example:
        >>> from privstats.workflows.sweep import Frame
        >>> frame = Frame(("head", "score"), (("LDA", 0.9), ("RDA", 0.95)))
        >>> frame.where(head="RDA").rows
        (('RDA', 0.95),)
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Frame:
        """Return a frame of mappings."""
        return cls(tuple(columns), tuple(tuple(row[name] for name in columns) for row in rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """Return a column's values.

        Raises:
            DataError: there is no such column.
        """
        place = self._place(column)
        return [row[place] for row in self.rows]

    def where(self, **values: Any) -> Frame:
        """Return the rows in which every named column has this value.

        Raises:
            DataError: there is no such column.
        """
        places = {self._place(name): value for name, value in values.items()}
        return Frame(self.columns, tuple(row for row in self.rows if all(row[at] == v for at, v in places.items())))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, as ``pandas.DataFrame`` takes them."""
        return {name: self[name] for name in self.columns}

    def to_csv(self) -> str:
        """Return the frame as comma-separated text: numbers with every digit, nothing for a missing value.

        A text that a spreadsheet would run as a formula has an apostrophe before it.
        """
        return csv_text([self.columns, *([_cell(value) for value in row] for row in self.rows)])

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise DataError(f"there is no column {column!r}; the columns are {', '.join(self.columns)}")
        return self.columns.index(column)


def _cell(value: Any) -> Any:
    missing = value is None or (isinstance(value, float) and not math.isfinite(value))
    return "" if missing else repr(value) if isinstance(value, float) else value


_MOST_BYTES = 1 << 28
_Row = TypeVar("_Row")


class ResultCache(Generic[_Row]):
    """Finished rows by key, in a file, or in memory only if there is no path.

    Args:
        kind: the type of a row, which JSON must hold.
        path: the file.

    Raises:
        DataError: the file cannot be read or written.

    Example:
        >>> from privstats.workflows.sweep.frame import ResultCache
        >>> rows = ResultCache(float, "rows.json")
        >>> rows.put("LDA at epsilon 1", [0.81, 0.83])
        >>> ResultCache(float, "rows.json").get("LDA at epsilon 1")  # after a restart
        (0.81, 0.83)
    """

    def __init__(self, kind: type[_Row], path: str | os.PathLike[str] | None) -> None:
        self._lines = msgspec.json.Decoder(tuple[str, tuple[kind, ...]])  # type: ignore[valid-type]
        self._path = None if path is None else Path(path)
        self._rows: dict[str, tuple[_Row, ...]] = {}
        if self._path is not None and self._path.exists():
            for line in _read(self._path).splitlines():
                self._take(line)

    def get(self, key: str) -> tuple[_Row, ...] | None:
        """Return the rows that were finished under this key, or None."""
        return self._rows.get(key)

    def put(self, key: str, rows: Sequence[_Row]) -> None:
        """Keep finished rows; they are on the disk when this returns."""
        if key in self._rows:
            return
        self._rows[key] = tuple(rows)
        if self._path is None:
            return
        line = b"\n" + msgspec.json.encode((key, tuple(rows))) + b"\n"  # begins a new line even after a truncated one
        try:
            with self._path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"cannot write results to {self._path}: {error.strerror}; name another file") from None

    def _take(self, line: bytes) -> None:
        try:
            key, rows = self._lines.decode(line)
        except msgspec.DecodeError:
            return  # a truncated line, or a foreign one
        self._rows[key] = rows


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{path} is too large for a results file; name another one")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read results from {path}: {error.strerror}; name another file") from None
