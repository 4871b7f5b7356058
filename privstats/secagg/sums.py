"""The server's running sum: packed uploads are added tile by tile, so no second unpacked vector ever exists.

Arithmetic only; it neither knows whose vector it adds nor whether it is masked.
"""

from __future__ import annotations

import numpy as np

from privstats.encoding import RingVector
from privstats.encoding.packing import TILE, packed_bytes, unpack

__all__ = ["add_packed", "reduce"]


def add_packed(total: RingVector, packed: memoryview) -> None:
    """Add a vector of exactly ``ring.wire_bytes`` packed bytes to ``total``, in place."""
    start = 0
    for lane, (size, bits) in zip(total.lanes, total.ring.segments, strict=True):
        for first in range(0, size, TILE):
            tile = lane[first : first + TILE]
            end = start + packed_bytes(len(tile), bits)
            np.add(tile, unpack(packed[start:end], len(tile), bits), out=tile)
            start = end


def reduce(total: RingVector) -> None:
    """Clear what carries and masks left above each segment's width, in place."""
    for lane, (_, bits) in zip(total.lanes, total.ring.segments, strict=True):
        if bits < 8 * lane.itemsize:
            np.bitwise_and(lane, lane.dtype.type((1 << bits) - 1), out=lane)
