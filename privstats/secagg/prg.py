"""Masks: AES-256 keystreams added to a ring vector in place, tile by tile while the tile is in cache.

A seed's stream for lane L, tile T (65,536 elements) is AES-256 in counter mode from the block
``uint32(L) || uint64(T) || uint32(2)``, big-endian: what AES-GCM produces over zeros, which is how it is computed
because OpenSSL's GCM is more than twice as fast as its CTR. Elements are little-endian. Packed vectors are masked and
added tile by tile too, so no second unpacked vector ever exists. Noise uses another generator (``randomness``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import RingVector
from privstats.encoding.ring import Group, Lane
from privstats.files.packing import TILE as PACKED_TILE
from privstats.files.packing import entries_of, pack_into, packed_bytes, unpack

TILE = 1 << 16
_TAG_BYTES = 16
Tile: TypeAlias = tuple[Lane, int, int]  # entries, number of their lane, number of the tile in it


def add_masks(vector: RingVector, *, plus: Iterable[bytes] = (), minus: Iterable[bytes] = (), threads: int = 1) -> None:
    """Add the masks of the 32-byte seeds ``plus`` and subtract those of ``minus``, in place, modulo the lane width.

    Entries of segments narrower than their lane keep mask bits above their width until the vector is packed or lifted.
    Threads share the tiles out among them; both the cipher and numpy release the interpreter on tiles of this size.
    """
    adding, subtracting = [AESGCM(seed) for seed in plus], [AESGCM(seed) for seed in minus]
    tiles = [
        (lane[start : start + TILE], number, tile)
        for number, lane in enumerate(vector.lanes)
        for tile, start in enumerate(range(0, len(lane), TILE))
    ]
    if threads <= 1 or len(tiles) == 1:
        _mask_tiles(tiles, adding, subtracting)
        return
    with ThreadPoolExecutor(threads) as pool:
        shares = [pool.submit(_mask_tiles, tiles[part::threads], adding, subtracting) for part in range(threads)]
        for share in shares:
            share.result()


class TileMasks:
    """The masks of some seeds, for one tile after another through one scratch buffer; in one thread.

    Args:
        plus: ciphers of the masks to add.
        minus: ciphers of the masks to subtract.
        size: bytes of the largest tile.
    """

    def __init__(self, plus: Sequence[AESGCM], minus: Sequence[AESGCM], size: int) -> None:
        self._plus, self._minus = plus, minus
        self._zeros, self._buffer = memoryview(bytes(size)), memoryview(bytearray(size + _TAG_BYTES))

    def apply(self, tile: Lane, lane: int, number: int) -> None:
        """Mask tile ``number`` of lane ``lane``, in place."""
        nonce, stream = _nonce(lane, number), np.frombuffer(self._buffer, tile.dtype.newbyteorder("<"), len(tile))
        source, target = self._zeros[: tile.nbytes], self._buffer[: tile.nbytes + _TAG_BYTES]
        for cipher in self._plus:
            cipher.encrypt_into(nonce, source, None, target)
            np.add(tile, stream, out=tile)
        for cipher in self._minus:
            cipher.encrypt_into(nonce, source, None, target)
            np.subtract(tile, stream, out=tile)


def _mask_tiles(tiles: Sequence[Tile], plus: Sequence[AESGCM], minus: Sequence[AESGCM]) -> None:
    masks = TileMasks(plus, minus, max((tile.nbytes for tile, _, _ in tiles), default=0))
    for tile, lane, number in tiles:
        masks.apply(tile, lane, number)


def reference_keystream(seed: bytes, lane: int, tile: int, size: int) -> bytes:
    """Return the first ``size`` bytes of a tile's keystream by AES-CTR: the reference for tests of the fast path."""
    return ctr_keystream(seed, _nonce(lane, tile) + (2).to_bytes(4, "big"), size)


def ctr_keystream(key: bytes, counter: bytes, size: int) -> bytes:
    """``size`` bytes of AES-256 in counter mode (NIST SP 800-38A, 6.5) from a 16-byte initial counter block."""
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(size))


def _nonce(lane: int, tile: int) -> bytes:
    return lane.to_bytes(4, "big") + tile.to_bytes(8, "big")


class _Tile(NamedTuple):
    lane: int
    number: int
    entries: slice
    bits: int
    wire: slice

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(self.entries.stop - self.entries.start)


def masked_tiles(vector: RingVector, *, minus: Sequence[bytes], threads: int = 1) -> Iterator[memoryview]:
    """Yield the packed bytes of ``vector`` minus the masks of these seeds, in pieces; the vector is left as it is.

    A piece is valid until the next one is requested.
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
    """Masks one tile after another in a buffer of its own: allocating memory costs as much as a mask."""

    def __init__(self, vector: RingVector, ciphers: Sequence[AESGCM], size: int) -> None:
        self._vector, self._masks = vector, TileMasks((), ciphers, size)
        self._entries, self._packed = np.empty(size, np.uint8), np.empty(size, np.uint8)

    def masked(self, tile: _Tile) -> memoryview:
        lane = self._vector.lanes[tile.lane][tile.entries]
        entries = self._entries[: lane.nbytes].view(lane.dtype)
        np.copyto(entries, lane)
        self._masks.apply(entries, tile.lane, tile.number)
        if tile.bits == 8 * lane.itemsize and lane.dtype == lane.dtype.newbyteorder("<"):
            return self._entries[: lane.nbytes].data  # its bytes are the packed form already
        packed = self._packed[: packed_bytes(tile.size, tile.bits)]
        pack_into(entries, tile.bits, packed)
        return packed.data


def add_masks_packed(ring: Group, packed: memoryview, *, plus: Sequence[bytes], threads: int = 1) -> None:
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


def _tiles(ring: Group) -> Iterator[_Tile]:
    """Yield every tile's entries in its lane and bytes on the wire, in the order of the wire."""
    start = 0
    for lane, (size, bits) in enumerate(ring.segments):
        for number, first in enumerate(range(0, size, TILE)):
            last = min(first + TILE, size)
            wire = slice(start + packed_bytes(first, bits), start + packed_bytes(last, bits))
            yield _Tile(lane, number, slice(first, last), bits, wire)
        start += packed_bytes(size, bits)


def add_packed(total: RingVector, *packed: memoryview) -> None:
    """Add vectors of exactly ``ring.wire_bytes`` packed bytes each to ``total``, in place.

    All vectors are added tile by tile, while the total's tile stays in cache.
    """
    start = 0
    for lane, (size, bits) in zip(total.lanes, total.ring.segments, strict=True):
        for first in range(0, size, PACKED_TILE):
            tile = lane[first : first + PACKED_TILE]
            end = start + packed_bytes(len(tile), bits)
            for each in packed:
                np.add(tile, entries_of(each[start:end], len(tile), bits), out=tile)
            start = end


def reduce(total: RingVector) -> None:
    """Clear the bits above each segment's width that carries and masks have set, in place."""
    for lane, (_, bits) in zip(total.lanes, total.ring.segments, strict=True):
        if bits < 8 * lane.itemsize:
            np.bitwise_and(lane, lane.dtype.type((1 << bits) - 1), out=lane)
