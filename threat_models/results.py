"""Finished rows in a file, one JSON line each, so that a stopped run goes on where it was.

A line that was cut off by the stop is ignored and measured again. Not a report: ``LeakageReport.to_json`` is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from privstats.errors import DataError
from threat_models.report import Row

__all__ = ["Results"]

_MOST_BYTES = 1 << 28


class _Line(msgspec.Struct, frozen=True):
    key: str
    rows: tuple[Row, ...]


class Results:
    """Rows by key; in memory only without a path.

    Raises:
        DataError: the file cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._rows: dict[str, tuple[Row, ...]] = {}
        if self._path is not None and self._path.exists():
            for line in _read(self._path).splitlines():
                self._take(line)

    def get(self, key: str) -> tuple[Row, ...] | None:
        """The rows that were finished under this key, or None."""
        return self._rows.get(key)

    def put(self, key: str, rows: Sequence[Row]) -> None:
        """Keep finished rows; they are on the disk when this returns."""
        if key in self._rows:
            return
        self._rows[key] = tuple(rows)
        if self._path is None:
            return
        line = b"\n" + msgspec.json.encode(_Line(key, tuple(rows))) + b"\n"  # begins a line even after a cut-off one
        try:
            with self._path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"cannot write results to {self._path}: {error.strerror}; name another file") from None

    def _take(self, line: bytes) -> None:
        try:
            found = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            return  # the line that the stop cut off, or no line of ours
        self._rows[found.key] = found.rows


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{path} is too large for a results file; name another one")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read results from {path}: {error.strerror}; name another file") from None
