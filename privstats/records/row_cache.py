"""Cache mapped records for the rounds of one process.

No sum depends on the cache. It is never on disk and ends with the caller's run.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_BYTES = 1 << 29
"""Maximum size in bytes of the mapped rows that one process caches."""


@dataclass(frozen=True, eq=False, repr=False)
class MappedRows:
    """Records after a published map, in integers stored as float64.

    Attributes:
        unit: u, ``(n, width)``.
        grid: grid vectors, ``(n, d)``, where needed.
        fine: which records are finite, ``(n,)``; others are zero.
    """

    unit: NDArray[np.float64]
    grid: NDArray[np.float64] | None
    fine: NDArray[np.bool_]

    def part(self, where: slice) -> MappedRows:
        """Return consecutive records."""
        return MappedRows(self.unit[where], None if self.grid is None else self.grid[where], self.fine[where])


@dataclass(frozen=True, eq=False, repr=False)
class _Tile:
    mark: tuple[object, ...]
    rows: MappedRows

    @property
    def bytes(self) -> int:
        grid = self.rows.grid
        return self.rows.unit.nbytes + self.rows.fine.nbytes + (0 if grid is None else grid.nbytes)


class RowCache:
    """Mapped rows of one party's records, tile by tile.

    A tile is reused where index, map, shape and contents are unchanged.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._map: object = None
        self._tiles: dict[int, _Tile] = {}
        self._bytes = 0

    def mapped(self, map_: object, index: int, rows: NDArray[Any], form: Callable[[], MappedRows]) -> MappedRows:
        """Return a tile's mapped rows, cached or from ``form``; another map drops all earlier rows."""
        if map_ is not self._map and map_ != self._map:
            self._map, self._tiles, self._bytes = map_, {}, 0
        mark = _mark(rows)
        tile = self._tiles.get(index)
        if tile is not None and tile.mark == mark:
            return _integers(tile.rows, lambda packed: packed.astype(np.float64))
        result = form()
        if tile is not None:
            self._bytes -= self._tiles.pop(index).bytes
        entry = _Tile(mark, _integers(result, _packed))
        if self._bytes + entry.bytes <= self._max:
            self._tiles[index] = entry
            self._bytes += entry.bytes
        return result


def _integers(rows: MappedRows, form: Callable[[NDArray[Any]], NDArray[Any]]) -> MappedRows:
    return replace(rows, unit=form(rows.unit), grid=None if rows.grid is None else form(rows.grid))


def _packed(integers: NDArray[Any]) -> NDArray[Any]:
    low, high = float(integers.min(initial=0.0)), float(integers.max(initial=0.0))
    for kind in (np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return integers.astype(kind)
    return integers.copy()


def _mark(rows: NDArray[Any]) -> tuple[object, ...]:
    # The checksums detect accidental changes: bits that change at random pass both with a chance below 2**-32. No other
    # party chooses the rows.
    held = np.ascontiguousarray(rows).data
    return rows.shape, rows.dtype.str, zlib.crc32(held), zlib.adler32(held)
