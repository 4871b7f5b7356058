"""Sets of client indices as bitmaps, least significant bit first: how a survivor list travels and is signed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["members", "to_bitmap"]


def to_bitmap(clients: Iterable[int], size: int) -> bytes:
    """The bitmap of ``clients`` out of ``size``, padded with zeros to whole bytes."""
    flags = np.zeros(size, bool)
    flags[list(clients)] = True
    return np.packbits(flags, bitorder="little").tobytes()


def members(bitmap: bytes, size: int) -> frozenset[int]:
    """The clients in a bitmap.

    Raises:
        ValueError: wrong length, or a padding bit is set, which would give one list two encodings.
    """
    if len(bitmap) != (size + 7) // 8:
        raise ValueError(f"a bitmap of {size} clients has {(size + 7) // 8} bytes, got {len(bitmap)}")
    flags = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    if flags[size:].any():
        raise ValueError("a bitmap's padding must be zero")
    return frozenset(np.flatnonzero(flags).tolist())
