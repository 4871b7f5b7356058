"""The group of vectors whose reports carry a proof: the prime field, in wire steps.

A statement must read wire entries with coefficients of one, so every segment's whole grid steps are multiplied by a
factor of its own. Layout, noise, clip and releases stay in grid steps: only ``encode`` and ``lift`` know the factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import RingVector
from privstats.encoding.ring import Lanes
from privstats.secagg.upload.proof.field import BITS, Field, P, add, checked, lift, mul, subtract

__all__ = ["Prime", "words_in"]

_WORD = 8


@dataclass(frozen=True)
class Prime:
    """The vectors over the field of 2**61 - 1 elements, one word of 8 bytes an entry.

    Args:
        parts: ``(size, factor)`` per segment: wire steps in one grid step, at least 1.

    Guarantee:
        ``encode`` is a homomorphism, so noise and sums are whole multiples of the factors. Draw noise, clip and noise
        shares in grid steps, never in wire steps: the remainder of a total then depends on dishonest clients alone.

    Example:
        >>> from privstats.secagg.upload.proof.group import Prime
        >>> prime = Prime(((2, 16), (1, 1)))
        >>> prime.encode(np.array([1, -1, 200])).lift().tolist(), prime.wire_bytes
        ([1, -1, 200], 24)
    """

    parts: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for size, factor in self.parts:
            if size < 1 or not 1 <= factor < P // 2:
                raise ValueError(f"a segment needs size >= 1 and 1 <= factor < 2**60, got ({size}, {factor})")

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """``(size, bits)`` per segment: 61 bits everywhere."""
        return tuple((size, BITS) for size, _ in self.parts)

    @property
    def size(self) -> int:
        """Entries of a vector."""
        return sum(size for size, _ in self.parts)

    @property
    def wire_bytes(self) -> int:
        """Exact bytes of a packed vector."""
        return _WORD * self.size

    def zeros(self) -> RingVector:
        """The neutral element."""
        return self.of(np.zeros(self.size, np.uint64))

    def of(self, words: Field) -> RingVector:
        """The vector of these elements, ``(size,)``, whose lanes are views of them."""
        ends = list(accumulate(size for size, _ in self.parts))
        return RingVector(self, tuple(np.split(words, ends[:-1])))

    def encode(self, values: NDArray[np.int64]) -> RingVector:
        """Whole grid steps of shape ``(size,)`` as elements, in wire steps."""
        if values.shape != (self.size,) or values.dtype != np.int64:
            raise ValueError(f"encode needs int64 of shape ({self.size},), got {values.dtype} {values.shape}")
        vector = self.of((values % P).astype(np.uint64))
        for lane, (_, factor) in zip(vector.lanes, self.parts, strict=True):
            lane[:] = mul(lane, np.full(lane.size, factor, np.uint64))
        return vector

    def unpack(self, data: bytes | memoryview) -> RingVector:
        """Parse exactly ``wire_bytes`` bytes.

        Raises:
            ValueError: there are more or fewer, or a word of them is no element of the field.
        """
        if len(data) != self.wire_bytes:
            raise ValueError(f"a packed vector has {self.wire_bytes} bytes, got {len(data)}")
        return self.of(words_in(data))

    def add(self, lanes: Lanes, more: Lanes) -> None:
        """Add in place."""
        for lane, other in zip(lanes, more, strict=True):
            lane[:] = add(lane, other)

    def subtract(self, lanes: Lanes, less: Lanes) -> None:
        """Subtract in place."""
        for lane, other in zip(lanes, less, strict=True):
            lane[:] = subtract(lane, other)

    def write(self, lanes: Lanes, out: NDArray[np.uint8]) -> None:
        """Write the wire form, little-endian words, to ``wire_bytes`` bytes."""
        out.view("<u8")[:] = np.concatenate(lanes)

    def lift(self, lanes: Lanes) -> NDArray[np.int64]:
        """The centre lift of every entry, in whole grid steps, toward minus infinity."""
        parts = zip(lanes, self.parts, strict=True)
        return np.concatenate([lift(lane) // np.int64(factor) for lane, (_, factor) in parts])


def words_in(data: bytes | memoryview) -> Field:
    """Little-endian words as elements.

    Raises:
        ValueError: a word is no element of the field.
    """
    return checked(np.frombuffer(data, "<u8").astype(np.uint64))
