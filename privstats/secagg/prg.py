"""Masks: AES-256 keystreams added to a ring vector in place, tile by tile while the tile is in cache.

A seed's stream for lane L, tile T (65,536 elements) is AES-256 in counter mode from the block
``uint32(L) || uint64(T) || uint32(2)``, big-endian: what AES-GCM produces over zeros, which is how it is computed
because OpenSSL's GCM is more than twice as fast as its CTR. Elements are little-endian. Not the noise's generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import RingVector
from privstats.encoding.ring import Lane

__all__ = ["TILE", "add_masks", "reference_keystream"]

TILE = 1 << 16
_TAG_BYTES = 16


def add_masks(vector: RingVector, *, plus: Iterable[bytes] = (), minus: Iterable[bytes] = ()) -> None:
    """Add the masks of the 32-byte seeds ``plus`` and subtract those of ``minus``, in place, modulo the lane width.

    Entries of segments narrower than their lane keep mask bits above their width until :func:`reduce` or ``pack``.
    """
    adding, subtracting = [AESGCM(seed) for seed in plus], [AESGCM(seed) for seed in minus]
    for number, lane in enumerate(vector.lanes):
        scratch = _Scratch(min(TILE, len(lane)), lane.dtype)
        for tile, start in enumerate(range(0, len(lane), TILE)):
            _mask_tile(lane[start : start + TILE], _nonce(number, tile), adding, subtracting, scratch)


class _Scratch:
    """Zeros to encrypt and the room for the keystream and its unused tag: one tile, reused for every mask."""

    def __init__(self, elements: int, dtype: np.dtype[np.unsignedinteger[Any]]) -> None:
        size = elements * dtype.itemsize
        self.zeros = memoryview(bytes(size))
        self.buffer = memoryview(bytearray(size + _TAG_BYTES))
        self.itemsize = dtype.itemsize
        self.stream = np.frombuffer(self.buffer, dtype.newbyteorder("<"), elements)


def _mask_tile(
    lane: Lane, nonce: bytes, adding: Sequence[AESGCM], subtracting: Sequence[AESGCM], scratch: _Scratch
) -> None:
    size = len(lane) * scratch.itemsize
    zeros, buffer, stream = scratch.zeros[:size], scratch.buffer[: size + _TAG_BYTES], scratch.stream[: len(lane)]
    for cipher in adding:
        cipher.encrypt_into(nonce, zeros, None, buffer)
        np.add(lane, stream, out=lane)
    for cipher in subtracting:
        cipher.encrypt_into(nonce, zeros, None, buffer)
        np.subtract(lane, stream, out=lane)


def reference_keystream(seed: bytes, lane: int, tile: int, size: int) -> bytes:
    """The first ``size`` bytes of a tile's keystream by AES-CTR: what the fast path is tested against."""
    counter = _nonce(lane, tile) + (2).to_bytes(4, "big")
    return Cipher(algorithms.AES256(seed), modes.CTR(counter)).encryptor().update(bytes(size))


def _nonce(lane: int, tile: int) -> bytes:
    return lane.to_bytes(4, "big") + tile.to_bytes(8, "big")
