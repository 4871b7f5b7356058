"""Cache of records mapped by a published map that is the same in every round, for the rounds of one process.

Mapping rows is most of a round's arithmetic, and gives the same whole numbers in every round of a course. A
caller that measures the same records again stores them, in as few bits as hold them, for as long as its call runs. No
module and no disk stores them. Stored integers equal those that would be computed again, so no sum depends on them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from privstats.moments.gradient_map import MappedRows

MOST_BYTES = 1 << 29
"""Of mapped rows that are kept in one process."""


@dataclass(frozen=True, eq=False, repr=False)
class _Tile:
    """A tile of records as it came, by its mark, and what it became, in few bits."""

    mark: tuple[Any, ...]
    rows: MappedRows

    @property
    def bytes(self) -> int:
        grid = self.rows.grid
        return self.rows.unit.nbytes + self.rows.fine.nbytes + (0 if grid is None else grid.nbytes)


class KeptRows:
    """Mapped rows of one party's records, tile by tile.

    A tile is used again where place, map, shape and contents are those of the round before: rows that were changed in
    place, or that batches bring in another order, are mapped anew. What exceeds ``most_bytes`` is not kept.

    Args:
        most_bytes: held at once.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._map: object = None
        self._tiles: dict[int, _Tile] = {}
        self._bytes = 0

    def behind(self, map_: object) -> KeptRows:
        """Return the cache for a map; rows cached for another map, by ``==``, are dropped."""
        if map_ != self._map:
            self._map, self._tiles, self._bytes = map_, {}, 0
        return self

    def mapped(self, place: int, rows: NDArray[Any], form: Callable[[], MappedRows]) -> MappedRows:
        """The rows of a tile behind the map, formed where they are not kept.

        Args:
            place: of the tile among those of the records.
            rows: as they came.
            form: maps them.
        """
        mark = _mark(rows)
        tile = self._tiles.get(place)
        if tile is not None and tile.mark == mark:
            return _integers(tile.rows, lambda packed: packed.astype(np.float64))
        result = form()
        if tile is not None:
            self._bytes -= self._tiles.pop(place).bytes
        entry = _Tile(mark, _integers(result, _packed))
        if self._bytes + entry.bytes <= self._most:
            self._tiles[place] = entry
            self._bytes += entry.bytes
        return result


def _integers(rows: MappedRows, form: Callable[[NDArray[Any]], NDArray[Any]]) -> MappedRows:
    """Return the rows with their whole numbers in another form."""
    return replace(rows, unit=form(rows.unit), grid=None if rows.grid is None else form(rows.grid))


def _packed(integers: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the fewest bits of a type that hold them."""
    low, high = float(integers.min(initial=0.0)), float(integers.max(initial=0.0))
    for kind in (np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return integers.astype(kind)
    return integers.copy()


def _mark(rows: NDArray[Any]) -> tuple[Any, ...]:
    """Shape, type, and two checksums of the bytes: rows that change within a call do so by accident."""
    held = np.ascontiguousarray(rows).data
    return rows.shape, rows.dtype.str, zlib.crc32(held), zlib.adler32(held)
