"""Masks: AES-256 keystreams added to a ring vector in place, tile by tile while the tile is in cache.

A seed's stream for lane L, tile T (65,536 elements) is AES-256 in counter mode from the block
``uint32(L) || uint64(T) || uint32(2)``, big-endian: what AES-GCM produces over zeros, which is how it is computed
because OpenSSL's GCM is more than twice as fast as its CTR. Elements are little-endian. Not the noise's generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import RingVector
from privstats.encoding.ring import Lane

__all__ = ["TILE", "add_masks", "ctr_keystream", "reference_keystream"]

TILE = 1 << 16
_TAG_BYTES = 16


def add_masks(vector: RingVector, *, plus: Iterable[bytes] = (), minus: Iterable[bytes] = (), threads: int = 1) -> None:
    """Add the masks of the 32-byte seeds ``plus`` and subtract those of ``minus``, in place, modulo the lane width.

    Entries of segments narrower than their lane keep mask bits above their width until the vector is packed or lifted.
    Threads share the tiles out among them; both the cipher and numpy release the interpreter on tiles of this size.
    """
    adding, subtracting = [AESGCM(seed) for seed in plus], [AESGCM(seed) for seed in minus]
    tiles = [
        (lane[start : start + TILE], _nonce(number, tile))
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


def _mask_tiles(tiles: Sequence[tuple[Lane, bytes]], adding: Sequence[AESGCM], subtracting: Sequence[AESGCM]) -> None:
    """Mask one tile after another, through one scratch buffer of the size of the largest."""
    size = max((lane.nbytes for lane, _ in tiles), default=0)
    zeros, buffer = memoryview(bytes(size)), memoryview(bytearray(size + _TAG_BYTES))
    for lane, nonce in tiles:
        source, target = zeros[: lane.nbytes], buffer[: lane.nbytes + _TAG_BYTES]
        stream = np.frombuffer(buffer, _little(lane.dtype), len(lane))
        for cipher in adding:
            cipher.encrypt_into(nonce, source, None, target)
            np.add(lane, stream, out=lane)
        for cipher in subtracting:
            cipher.encrypt_into(nonce, source, None, target)
            np.subtract(lane, stream, out=lane)


def reference_keystream(seed: bytes, lane: int, tile: int, size: int) -> bytes:
    """The first ``size`` bytes of a tile's keystream by AES-CTR: what the fast path is tested against."""
    return ctr_keystream(seed, _nonce(lane, tile) + (2).to_bytes(4, "big"), size)


def ctr_keystream(key: bytes, counter: bytes, size: int) -> bytes:
    """``size`` bytes of AES-256 in counter mode (NIST SP 800-38A, 6.5) from a 16-byte initial counter block."""
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(size))


def _little(dtype: np.dtype[np.unsignedinteger[Any]]) -> np.dtype[np.unsignedinteger[Any]]:
    return dtype.newbyteorder("<")


def _nonce(lane: int, tile: int) -> bytes:
    return lane.to_bytes(4, "big") + tile.to_bytes(8, "big")
