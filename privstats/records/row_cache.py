"""Cache mapped records for the rounds of one process, in host memory or on the records' device.

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
"""Maximum size in bytes of the mapped rows that one process caches, in host memory and on devices together."""


@dataclass(frozen=True, eq=False, repr=False)
class MappedRows:
    """Records after a published map, in integers stored as float64; arrays, or tensors of one device.

    Attributes:
        unit: u, ``(n, width)``.
        grid: grid vectors, ``(n, d)``, where needed.
        fine: which records are finite, ``(n,)``; others are zero.
    """

    unit: Any
    grid: Any
    fine: Any

    def part(self, where: slice) -> MappedRows:
        """Return consecutive records."""
        return MappedRows(self.unit[where], None if self.grid is None else self.grid[where], self.fine[where])

    def each(self, form: Callable[[Any], Any]) -> MappedRows:
        """Return the records with integers of another type."""
        return replace(self, unit=form(self.unit), grid=None if self.grid is None else form(self.grid))


@dataclass(frozen=True, eq=False, repr=False)
class _Tile:
    mark: tuple[object, ...]
    rows: MappedRows

    @property
    def bytes(self) -> int:
        grid = self.rows.grid
        return int(self.rows.unit.nbytes + self.rows.fine.nbytes + (0 if grid is None else grid.nbytes))


class RowCache:
    """Mapped rows of one party's records, tile by tile.

    A tile is reused where index, map, shape and contents are unchanged. Tiles of a device have indices of their own.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._map: object = None
        self._tiles: dict[object, _Tile] = {}
        self._bytes = 0

    def mapped(self, map_: object, index: int, rows: NDArray[Any], form: Callable[[], MappedRows]) -> MappedRows:
        """Return a tile's mapped rows of host memory, cached or from ``form``; another map drops all earlier rows."""
        mark = _mark(rows)
        stored = self.stored(map_, index, mark)
        if stored is not None:
            return stored.each(lambda packed: packed.astype(np.float64))
        result = form()
        self.store(index, mark, result.each(_packed))
        return result

    def stored(self, map_: object, index: object, mark: tuple[object, ...]) -> MappedRows | None:
        """Return a tile as it was stored, or None; another map drops all earlier rows.

        Args:
            map_: what decides the map.
            index: the tile's index among the party's records.
            mark: shape and checksums of the tile's records before the map.
        """
        if map_ is not self._map and map_ != self._map:
            self._map = map_
            self.clear()
        tile = self._tiles.get(index)
        return tile.rows if tile is not None and tile.mark == mark else None

    def store(self, index: object, mark: tuple[object, ...], packed: MappedRows) -> None:
        """Store a tile after the map of the latest :meth:`stored`, unless memory is full."""
        if index in self._tiles:
            self._bytes -= self._tiles.pop(index).bytes
        entry = _Tile(mark, packed)
        if self._bytes + entry.bytes <= self._max:
            self._tiles[index] = entry
            self._bytes += entry.bytes

    def clear(self) -> None:
        """Drop all rows."""
        self._tiles, self._bytes = {}, 0


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
