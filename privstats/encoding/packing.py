"""b-bit unsigned integers as wire bytes, little-endian, least significant bit first.

Widths of whole bytes are byte copies; other widths go through a bit matrix in tiles. Used by the ring only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack", "packed_bytes", "unpack"]

_TILE = 1 << 15


def packed_bytes(size: int, bits: int) -> int:
    """Bytes of ``size`` entries of ``bits`` bits, padded to a whole byte."""
    return (size * bits + 7) // 8


def pack(lane: NDArray[np.unsignedinteger[Any]], bits: int) -> bytes:
    """Pack the low ``bits`` bits of every entry; higher bits are ignored."""
    little = np.ascontiguousarray(lane).astype(lane.dtype.newbyteorder("<"), copy=False)
    raw = little.view(np.uint8).reshape(len(lane), lane.dtype.itemsize)
    if bits % 8 == 0:
        return raw[:, : bits // 8].tobytes()
    out = bytearray()
    for start in range(0, len(lane), _TILE):  # a tile is a multiple of 8 entries, so it ends on a byte
        table = np.unpackbits(raw[start : start + _TILE], axis=1, count=bits, bitorder="little")
        out += np.packbits(table, bitorder="little").tobytes()
    return bytes(out)


def unpack(data: bytes | memoryview, size: int, bits: int) -> NDArray[np.unsignedinteger[Any]]:
    """Inverse of :func:`pack` into uint32 (bits <= 32) or uint64 entries."""
    dtype = np.dtype("<u4") if bits <= 32 else np.dtype("<u8")
    raw = np.zeros((size, dtype.itemsize), np.uint8)
    source = np.frombuffer(data, np.uint8)
    if bits % 8 == 0:
        raw[:, : bits // 8] = source.reshape(size, bits // 8)
    else:
        for start in range(0, size, _TILE):
            count = min(_TILE, size - start)
            chunk = source[start * bits // 8 : (start * bits + count * bits + 7) // 8]
            table = np.unpackbits(chunk, count=count * bits, bitorder="little").reshape(count, bits)
            raw[start : start + count, : (bits + 7) // 8] = np.packbits(table, axis=1, bitorder="little")
    return raw.view(dtype)[:, 0].astype(np.uint32 if bits <= 32 else np.uint64, copy=False)
