"""Masks on packed vectors, tile by tile while a tile is in cache: nothing as large as a vector is made on the way.

Arithmetic only, between ``prg``, which makes the masks, and the wire form of ``encoding``; it knows no protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import Ring, RingVector
from privstats.encoding.packing import pack_into, packed_bytes, unpack
from privstats.secagg.prg import TILE, TileMasks

__all__ = ["add_masks_packed", "masked_tiles"]


class _Tile(NamedTuple):
    lane: int
    number: int
    entries: slice
    bits: int
    wire: slice

    @property
    def size(self) -> int:
        """How many entries it has."""
        return int(self.entries.stop - self.entries.start)


def masked_tiles(vector: RingVector, *, minus: Sequence[bytes], threads: int = 1) -> Iterator[memoryview]:
    """The packed bytes of ``vector`` minus the masks of these seeds, in pieces; the vector is left as it is.

    A piece is good until the next one is asked for.
    """
    ciphers = [AESGCM(seed) for seed in minus]
    tiles = list(_tiles(vector.ring))
    if threads <= 1 or len(tiles) == 1:
        masker = _Masker(vector, ciphers, _largest(tiles))
        yield from map(masker.masked, tiles)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda tile: _Masker(vector, ciphers, _largest([tile])).masked(tile), tiles)


class _Masker:
    """What masks one tile after another in memory of its own: fresh memory costs as much as a mask."""

    def __init__(self, vector: RingVector, ciphers: Sequence[AESGCM], size: int) -> None:
        self._vector, self._masks = vector, TileMasks((), ciphers, size)
        self._entries, self._packed = np.empty(size, np.uint8), np.empty(size, np.uint8)

    def masked(self, tile: _Tile) -> memoryview:
        lane = self._vector.lanes[tile.lane][tile.entries]
        entries = self._entries[: lane.nbytes].view(lane.dtype)
        np.copyto(entries, lane)
        self._masks.apply(entries, tile.lane, tile.number)
        if tile.bits == 8 * lane.itemsize and lane.dtype == lane.dtype.newbyteorder("<"):
            return self._entries[: lane.nbytes].data  # it is packed as it lies
        packed = self._packed[: packed_bytes(tile.size, tile.bits)]
        pack_into(entries, tile.bits, packed)
        return packed.data


def add_masks_packed(ring: Ring, packed: memoryview, *, plus: Sequence[bytes], threads: int = 1) -> None:
    """Add the masks of these seeds to a packed vector, in place."""
    ciphers, tiles = [AESGCM(seed) for seed in plus], list(_tiles(ring))
    if threads <= 1 or len(tiles) == 1:
        _add(packed, tiles, ciphers)
        return
    with ThreadPoolExecutor(threads) as pool:
        shares = [pool.submit(_add, packed, tiles[part::threads], ciphers) for part in range(threads)]
        for share in shares:
            share.result()


def _add(packed: memoryview, tiles: Sequence[_Tile], ciphers: Sequence[AESGCM]) -> None:
    masks = TileMasks(ciphers, (), _largest(tiles))
    for tile in tiles:
        there = packed[tile.wire]
        entries = unpack(there, tile.size, tile.bits)
        masks.apply(entries, tile.lane, tile.number)
        pack_into(entries, tile.bits, np.frombuffer(there, np.uint8))


def _largest(tiles: Sequence[_Tile]) -> int:
    """Bytes of the largest tile's entries."""
    return max((tile.size * (4 if tile.bits <= 32 else 8) for tile in tiles), default=0)


def _tiles(ring: Ring) -> Iterator[_Tile]:
    """Every tile's entries in its lane and bytes on the wire, in the order of the wire."""
    start = 0
    for lane, (size, bits) in enumerate(ring.segments):
        for number, first in enumerate(range(0, size, TILE)):
            last = min(first + TILE, size)
            wire = slice(start + packed_bytes(first, bits), start + packed_bytes(last, bits))
            yield _Tile(lane, number, slice(first, last), bits, wire)
        start += packed_bytes(size, bits)
