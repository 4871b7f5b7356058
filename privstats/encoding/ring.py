"""Compute in the groups of masked vectors: Z_2**b by segment, and the interface that any group has.

Overflow wraps, as masking needs. The plan's widths bound an honest *sum*'s probability of wrapping by 2**-40
(``plan.cohort.headroom``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.files.packing import pack_into, packed_bytes, unpack

Lane: TypeAlias = NDArray[np.unsignedinteger[Any]]
Lanes: TypeAlias = tuple[Lane, ...]
"""The entries of a vector, one array for each segment."""


class Group(Protocol):
    """A group of masked vectors, immutable: a :class:`Ring`, or the prime field of reports with a proof."""

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """``(size, bits)`` per segment."""

    @property
    def size(self) -> int:
        """Number of entries of a vector."""

    @property
    def wire_bytes(self) -> int:
        """Exact number of bytes of a packed vector."""

    def zeros(self) -> RingVector:
        """Return the neutral element."""

    def encode(self, values: NDArray[np.int64]) -> RingVector:
        """Map a flat int64 vector of shape ``(size,)`` to its element; a homomorphism of addition."""

    def unpack(self, data: bytes | memoryview) -> RingVector:
        """Parse exactly ``wire_bytes`` bytes; ``ValueError`` for bytes that are no element."""

    def add(self, lanes: Lanes, more: Lanes) -> None:
        """Add in place."""

    def subtract(self, lanes: Lanes, less: Lanes) -> None:
        """Subtract in place."""

    def write(self, lanes: Lanes, out: NDArray[np.uint8]) -> None:
        """Write the wire form to ``wire_bytes`` bytes."""

    def lift(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return the vector nearest to zero that maps to this element."""


@dataclass(frozen=True)
class Ring:
    """The group Z_2**b_1^n_1 x Z_2**b_2^n_2 x ... of masked vectors, 1 <= b <= 64.

    Example:
        >>> ring = ps.encoding.Ring(((2, 8), (3, 12)))
        >>> ring.size, ring.wire_bytes
        (5, 7)
        >>> ring.encode(np.array([1, -1, 200, 0, 5])).lift().tolist()
        [1, -1, 200, 0, 5]
    """

    segments: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for size, bits in self.segments:
            if size < 1 or not 1 <= bits <= 64:
                raise ValueError(f"a ring segment needs size >= 1 and 1 <= bits <= 64, got ({size}, {bits})")

    @property
    def size(self) -> int:
        """Number of entries of a vector."""
        return sum(self._sizes)

    @property
    def wire_bytes(self) -> int:
        """Bytes of a packed vector; each segment is padded to full bytes."""
        return sum(self._wire_sizes)

    @property
    def _sizes(self) -> list[int]:
        return [size for size, _ in self.segments]

    @property
    def _wire_sizes(self) -> list[int]:
        return [packed_bytes(size, bits) for size, bits in self.segments]

    def zeros(self) -> RingVector:
        """Return the neutral element."""
        return RingVector(self, tuple(np.zeros(size, _lane_dtype(bits)) for size, bits in self.segments))

    def encode(self, values: NDArray[np.int64]) -> RingVector:
        """Reduce a flat int64 vector of shape ``(size,)`` into the ring (two's complement)."""
        if values.shape != (self.size,) or values.dtype != np.int64:
            raise ValueError(f"encode needs int64 of shape ({self.size},), got {values.dtype} {values.shape}")
        parts = zip(_split(values.view(np.uint64), self._sizes), self.segments, strict=True)
        return RingVector(self, tuple(_reduce(part, bits) for part, (_, bits) in parts))

    def unpack(self, data: bytes | memoryview) -> RingVector:
        """Parse exactly ``wire_bytes`` bytes."""
        view = np.frombuffer(data, np.uint8)
        if view.size != self.wire_bytes:
            raise ValueError(f"a packed vector has {self.wire_bytes} bytes, got {view.size}")
        parts = zip(_split(view, self._wire_sizes), self.segments, strict=True)
        return RingVector(self, tuple(unpack(part, size, bits) for part, (size, bits) in parts))

    def add(self, lanes: Lanes, more: Lanes) -> None:
        """Add in place; bits above a segment's width are cleared only when packed or lifted."""
        for lane, other in zip(lanes, more, strict=True):
            np.add(lane, other, out=lane)

    def subtract(self, lanes: Lanes, less: Lanes) -> None:
        """Subtract in place."""
        for lane, other in zip(lanes, less, strict=True):
            np.subtract(lane, other, out=lane)

    def write(self, lanes: Lanes, out: NDArray[np.uint8]) -> None:
        """Write the wire form to ``wire_bytes`` bytes."""
        for lane, (_, bits), part in zip(lanes, self.segments, _split(out, self._wire_sizes), strict=True):
            pack_into(lane, bits, part)

    def lift(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return every entry as int64 in [-2**(b-1), 2**(b-1))."""
        out = np.empty(self.size, np.int64)
        for lane, (_, bits), part in zip(lanes, self.segments, _split(out, self._sizes), strict=True):
            shifted = lane.astype(np.uint64) << np.uint64(64 - bits)
            part[...] = shifted.view(np.int64) >> np.int64(64 - bits)
        return out


@dataclass(frozen=True, eq=False)
class RingVector:
    """One element of a group; ``lanes``, an array per segment, are mutable: masks are added without copies.

    ``reproducible``: some added vector holds noise from a generator that others may know.

    Example:
        >>> ring = ps.encoding.Ring(((2, 8),))
        >>> vector = ring.encode(np.array([100, -3]))
        >>> vector.add(ring.encode(np.array([100, 1])))
        >>> vector.lift().tolist()  # 200 wraps at 2**8: a plan makes that improbable for honest sums
        [-56, -2]
    """

    ring: Group
    lanes: Lanes
    reproducible: bool = False

    def __repr__(self) -> str:
        return f"RingVector(size={self.ring.size})"  # never the entries: they may be a party's own sums

    def add(self, other: RingVector) -> None:
        """Add ``other`` in place."""
        self.ring.add(self.lanes, _same_ring(self, other))
        if other.reproducible:
            object.__setattr__(self, "reproducible", True)

    def subtract(self, other: RingVector) -> None:
        """Subtract ``other`` in place."""
        self.ring.subtract(self.lanes, _same_ring(self, other))

    def pack(self) -> bytes:
        """Return the wire form."""
        out = np.empty(self.ring.wire_bytes, np.uint8)
        self.ring.write(self.lanes, out)
        return out.tobytes()

    def pack_into(self, buffer: NDArray[np.uint8] | bytearray | memoryview) -> None:
        """Write the wire form to a buffer of exactly ``ring.wire_bytes`` bytes."""
        out = np.frombuffer(buffer, np.uint8)
        if out.size != self.ring.wire_bytes:
            raise ValueError(f"a packed vector needs {self.ring.wire_bytes} bytes, the buffer has {out.size}")
        self.ring.write(self.lanes, out)

    def lift(self) -> NDArray[np.int64]:
        """Return every entry as the int64 nearest to zero that it represents."""
        return self.ring.lift(self.lanes)


def _same_ring(left: RingVector, right: RingVector) -> Lanes:
    if left.ring != right.ring:
        raise ValueError("the vectors have different rings: encode both with one plan's ring")
    return right.lanes


def _split(array: NDArray[Any], lengths: list[int]) -> list[NDArray[Any]]:
    # The parts share the array's memory.
    return np.split(array, np.cumsum(lengths)[:-1])


def _lane_dtype(bits: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype(np.uint32) if bits <= 32 else np.dtype(np.uint64)


def _reduce(values: NDArray[np.uint64], bits: int) -> Lane:
    if bits > 32:
        return values & np.uint64((1 << bits) - 1)
    lane = values.astype(np.uint32)
    return np.bitwise_and(lane, np.uint32((1 << bits) - 1), out=lane)
