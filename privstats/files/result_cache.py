"""Store a long computation's results in a file, from which it continues."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from privstats.errors import DataError
from privstats.files.atomic import read_bounded
from privstats.files.decoding import from_json

_MAX_BYTES = 1 << 28
_Row = TypeVar("_Row")


class ResultCache(Generic[_Row]):
    """Finished rows by key, in a file, or in memory only without a path.

    Args:
        kind: the type of a row, which JSON must hold.

    Example:
        >>> from privstats.files.result_cache import ResultCache
        >>> rows = ResultCache(float, "rows.json")
        >>> rows.put("LDA at epsilon 1", [0.81, 0.83])
        >>> ResultCache(float, "rows.json").get("LDA at epsilon 1")  # after a restart
        (0.81, 0.83)
    """

    def __init__(self, kind: type[_Row], path: str | os.PathLike[str] | None) -> None:
        self._kind: type[tuple[str, tuple[_Row, ...]]] = tuple[str, tuple[kind, ...]]  # type: ignore[valid-type]
        self._path = None if path is None else Path(path)
        self._rows: dict[str, tuple[_Row, ...]] = {}
        if self._path is not None and self._path.exists():
            for line in _read(self._path).splitlines():
                self._load(line)

    def get(self, key: str) -> tuple[_Row, ...] | None:
        """Return the rows finished under this key, or None."""
        return self._rows.get(key)

    def put(self, key: str, rows: Sequence[_Row]) -> None:
        """Store finished rows; they are on disk when this returns."""
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

    def _load(self, line: bytes) -> None:
        try:
            key, rows = from_json(line, self._kind)
        except msgspec.DecodeError:
            return  # a truncated line, or a foreign one
        self._rows[key] = rows


def _read(path: Path) -> bytes:
    return read_bounded(path, DataError, "the same search", _MAX_BYTES)
