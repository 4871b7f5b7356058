"""Pack b-bit unsigned integers into ceil(size b / 8) wire bytes, at about the speed of a copy.

A vector is packed in tiles of ``TILE`` entries, one after another. Wire form of a tile of n entries of b = 8 k + r
bits: for each m of 8, 4, 2, 1 in the binary form of k, the entries' next m bytes as one little-endian array; then the
top r bits: for every full group of eight entries an 8 r-bit word, written as r planes of one byte per group (lowest
byte first); then the last n mod 8 entries as one word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

TILE = 1 << 16
"""Entries that are packed as a unit, so that a vector can be read tile by tile; a multiple of 8."""

Lane: TypeAlias = NDArray[np.unsignedinteger[Any]]
Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]


def packed_bytes(size: int, bits: int) -> int:
    """Return the bytes of ``size`` entries of ``bits`` bits, padded to a full byte once."""
    return (size * bits + 7) // 8


def pack_into(lane: Lane, bits: int, out: Bytes) -> None:
    """Write the low ``bits`` bits of every entry to ``out``, of ``packed_bytes`` bytes."""
    little = np.ascontiguousarray(lane).astype(lane.dtype.newbyteorder("<"), copy=False)
    for entries, where in _tiles(little.size, bits):
        _pack_tile(little[entries], bits, out[where])


def pack(lane: Lane, bits: int) -> bytes:
    """Return the low ``bits`` bits of every entry as ``packed_bytes`` bytes."""
    out = np.empty(packed_bytes(lane.size, bits), np.uint8)
    pack_into(lane, bits, out)
    return out.tobytes()


def unpack(data: bytes | memoryview | Bytes, size: int, bits: int) -> Lane:
    """Invert :func:`pack_into`: uint32 (bits <= 32) or uint64 entries, shape ``(size,)``."""
    little = np.zeros(size, "<u4" if bits <= 32 else "<u8")
    wire = np.frombuffer(data, np.uint8, packed_bytes(size, bits))
    for entries, where in _tiles(size, bits):
        _unpack_tile(wire[where], bits, little[entries])
    return little.astype(little.dtype.newbyteorder("="), copy=False)


def entries_of(data: bytes | memoryview | Bytes, size: int, bits: int) -> Lane:
    """Return :func:`unpack`'s entries, read-only; without a copy where possible."""
    return np.frombuffer(data, f"<u{bits // 8}", size) if bits in (32, 64) else unpack(data, size, bits)


def _tiles(size: int, bits: int) -> Iterator[tuple[slice, slice]]:
    for start in range(0, size, TILE):
        stop = min(start + TILE, size)
        yield slice(start, stop), slice(packed_bytes(start, bits), packed_bytes(stop, bits))


def _pack_tile(little: Lane, bits: int, out: Bytes) -> None:
    for plane, column in _pieces(little, bits, out):
        plane[...] = column
    if not bits % 8:
        return
    top, planes, last = _top(little, bits, out)
    words = _gather_bits(top[: 8 * planes.shape[1]], bits % 8)
    planes[...] = words.view(np.uint8).reshape(-1, 8)[:, : bits % 8].T
    if tail := top.size % 8:
        word = _gather_bits(np.concatenate([top[-tail:], np.zeros(8 - tail, np.uint8)]), bits % 8)
        last[...] = word.view(np.uint8)[: last.size]


def _unpack_tile(wire: Bytes, bits: int, little: Lane) -> None:
    for plane, column in _pieces(little, bits, wire):
        column[...] = plane
    if not bits % 8:
        return
    top, planes, last = _top(little, bits, wire)
    words = np.zeros(planes.shape[1], "<u8")
    words.view(np.uint8).reshape(-1, 8)[:, : bits % 8] = planes.T
    top[: 8 * words.size] = _spread_bits(words, bits % 8)
    if tail := top.size % 8:
        word = np.zeros(8, np.uint8)
        word[: last.size] = last
        top[-tail:] = _spread_bits(word.view("<u8"), bits % 8)[:tail]


def _pieces(little: Lane, bits: int, wire: Bytes) -> Iterator[tuple[Lane, Lane]]:
    """Yield (plane on the wire, column of the lane) for an entry's full bytes, widest first."""
    column = start = 0
    for width in (8, 4, 2, 1):
        if bits // 8 & width:
            stop = start + width * little.size
            yield _unaligned(wire[start:stop], width), _column(little, width, column)
            column, start = column + width, stop


def _top(little: Lane, bits: int, wire: Bytes) -> tuple[Lane, Bytes, Bytes]:
    """Return the column of the top bits, their byte planes ``(bits % 8, groups of eight)``, and the rest."""
    groups = little.size // 8
    start = bits // 8 * little.size
    stop = start + bits % 8 * groups
    return _column(little, 1, bits // 8), wire[start:stop].reshape(bits % 8, groups), wire[stop:]


def _unaligned(wire: Bytes, width: int) -> Lane:
    return np.ndarray(len(wire) // width, f"<u{width}", wire.data)


def _column(little: Lane, width: int, column: int) -> Lane:
    return little.view(f"<u{width}")[column // width :: little.dtype.itemsize // width]


def _gather_bits(eight: Lane, bits: int) -> Words:
    words = np.ascontiguousarray(eight).view("<u8") & _every(8, (1 << bits) - 1)
    for field, filled in ((8, bits), (16, 2 * bits), (32, 4 * bits)):
        upper = words & _every(2 * field, ((1 << filled) - 1) << field)
        np.bitwise_xor(words, upper, out=words)
        np.right_shift(upper, np.uint64(field - filled), out=upper)
        np.bitwise_or(words, upper, out=words)
    return words


def _spread_bits(words: Words, bits: int) -> Bytes:
    for field, filled in ((32, 4 * bits), (16, 2 * bits), (8, bits)):
        upper = words & _every(2 * field, ((1 << filled) - 1) << filled)
        words = words ^ upper | upper << np.uint64(field - filled)
    return words.view(np.uint8)


def _every(field: int, pattern: int) -> np.uint64:
    return np.uint64(sum(pattern << shift for shift in range(0, 64, field)))


def little_endian(tensor: NDArray[Any]) -> bytes:
    """Return a tensor's bytes as in the file, on every machine."""
    return tensor.astype(tensor.dtype.newbyteorder("<"), copy=False).tobytes()
