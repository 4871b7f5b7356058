"""Add masks, AES-256 keystreams, to a ring vector in place, tile by tile.

A seed's stream for lane L, tile T (65,536 elements) is AES-256 in counter mode from the block
``uint32(L) || uint64(T) || uint32(2)``, big-endian. AES-GCM over zeros produces it. Elements are little-endian. Noise
uses another generator (``randomness``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import RingVector
from privstats.encoding.ring import Lane
from privstats.files.packing import TILE as PACKED_TILE
from privstats.files.packing import entries_of, packed_bytes

TILE = 1 << 16
_TAG_BYTES = 16
Tile: TypeAlias = tuple[Lane, int, int]  # entries, number of their lane, number of the tile in it


def add_masks(vector: RingVector, *, plus: Iterable[bytes] = (), minus: Iterable[bytes] = (), threads: int = 1) -> None:
    """Add the masks of 32-byte seeds ``plus`` and subtract those of ``minus``, in place, modulo the lane width.

    Narrow segments keep mask bits above their width until the vector is packed or lifted.
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
    """Masks that are added to one tile at a time, through one thread's buffer.

    Args:
        plus, minus: ciphers of the masks to add and subtract.
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


def keystream(seed: bytes, lane: int, tile: int, size: int) -> bytes:
    """Return a tile's first keystream bytes by AES-CTR, equal to the masks' fast path.

    Graphs, shared polynomials and test weights are sampled from it.
    """
    return ctr_keystream(seed, _nonce(lane, tile) + (2).to_bytes(4, "big"), size)


def ctr_keystream(key: bytes, counter: bytes, size: int) -> bytes:
    """Return AES-256 counter-mode bytes (NIST SP 800-38A, 6.5) from a 16-byte initial block."""
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(size))


def _nonce(lane: int, tile: int) -> bytes:
    return lane.to_bytes(4, "big") + tile.to_bytes(8, "big")


def add_packed(total: RingVector, *packed: memoryview) -> None:
    """Add packed vectors of ``ring.wire_bytes`` bytes to ``total``, in place."""
    start = 0
    for lane, (size, bits) in zip(total.lanes, total.ring.segments, strict=True):
        for first in range(0, size, PACKED_TILE):
            tile = lane[first : first + PACKED_TILE]
            end = start + packed_bytes(len(tile), bits)
            for each in packed:
                np.add(tile, entries_of(each[start:end], len(tile), bits), out=tile)
            start = end


def reduce(total: RingVector) -> None:
    """Clear the bits above each segment's width, in place."""
    for lane, (_, bits) in zip(total.lanes, total.ring.segments, strict=True):
        if bits < 8 * lane.itemsize:
            np.bitwise_and(lane, lane.dtype.type((1 << bits) - 1), out=lane)
