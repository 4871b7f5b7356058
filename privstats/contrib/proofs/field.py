"""Arithmetic modulo p = 2**61 - 1 on arrays, and the group of vectors with proofs in their reports.

Elements are uint64 below p. Multiply only with ``mul``, ``matmul`` and ``dot``; add at most six elements before a
reduction; check received words with :func:`checked`. No function runs in constant time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import RingVector
from privstats.extend.plans import Lanes
from privstats.secagg.prg import ctr_keystream

BITS = 61
P = (1 << BITS) - 1

Field = NDArray[np.uint64]
Integers = NDArray[np.int64]

_P = np.uint64(P)
_LOW29, _LOW32 = np.uint64((1 << 29) - 1), np.uint64((1 << 32) - 1)
_CUTS = (21, 20, 20)  # bits of the limbs: a sum of 2,048 products of two is below 2**53, exact in a double
_PLACES = (0, 21, 41)
_INNER = 2048
_WORD = 8


def reduced(values: Field) -> Field:
    """Return any words as elements."""
    folded = (values & _P) + (values >> np.uint64(BITS))
    return np.minimum(folded, folded - _P)  # numbers below p wrap to larger ones


def checked(values: Field) -> Field:
    """Return received words; raise ``ValueError`` for a word of p or more."""
    if values.dtype != np.uint64 or bool((values >= _P).any()):
        raise ValueError("words of a field vector are below 2**61 - 1, and one of these is not")
    return values


def element(value: int) -> np.uint64:
    """Return an integer modulo p."""
    return np.uint64(value % P)


def elements(values: Integers) -> Field:
    """Return integers between -p/2 and p/2 as elements."""
    return (values + (values >> 63 & P)).astype(np.uint64)


def lift(values: Field) -> Integers:
    """Return elements as integers between -p/2 and p/2."""
    signed = values.astype(np.int64)
    return np.asarray(np.where(values > _P >> np.uint64(1), signed - np.int64(P), signed))


def add(a: Field, b: Field) -> Field:
    """Return a + b."""
    out = a + b
    least: Field = np.minimum(out, out - _P)
    return least


def subtract(a: Field, b: Field) -> Field:
    """Return a - b."""
    out = a + (_P - b)
    return np.minimum(out, out - _P)


def negative(a: Field) -> Field:
    """Return -a."""
    out: Field = np.where(a == 0, a, _P - a)
    return out


def mul(a: Field, b: Field) -> Field:
    """Return a b, by halves: a b = (a1 b1) 2**64 + (a1 b0 + a0 b1) 2**32 + a0 b0, and 2**61 = 1."""
    a0, a1 = a & _LOW32, a >> np.uint64(32)
    b0, b1 = b & _LOW32, b >> np.uint64(32)
    low, middle, high = a0 * b0, a1 * b0 + a0 * b1, a1 * b1  # below 2**64, 2**62, 2**58
    out = (high << np.uint64(3)) + (low & _P) + (low >> np.uint64(BITS))
    out += (middle >> np.uint64(29)) + ((middle & _LOW29) << np.uint64(32))
    return reduced(out)


def total(values: Field) -> int:
    """Sum at most 2**31 elements."""
    return (int(np.sum(values & _LOW32)) + (int(np.sum(values >> np.uint64(32))) << 32)) % P


def totals(values: Field) -> Field:
    """Sum rows of at most 2**31 elements."""
    return _joined(np.sum(values & _LOW32, axis=1), np.sum(values >> np.uint64(32), axis=1))


def grouped(values: Field, starts: NDArray[np.intp]) -> Field:
    """Return sums of nonempty runs beginning at ``starts``."""
    low = np.add.reduceat(values & _LOW32, starts)
    high = np.add.reduceat(values >> np.uint64(32), starts)
    return _joined(low, high)


def _joined(low: Field, high: Field) -> Field:
    low, high = reduced(low), reduced(high)
    return add(low, reduced((high >> np.uint64(29)) + ((high & _LOW29) << np.uint64(32))))


def dot(a: Field, b: Field) -> int:
    """Return the sum of a b."""
    return total(mul(a, b))


def matmul(a: Field, b: Field) -> Field:
    """Return the product of two matrices, exact in doubles."""
    out = np.zeros((a.shape[0], b.shape[1]), np.uint64)
    for start in range(0, a.shape[1], _INNER):
        left, right = _limbs(a[:, start : start + _INNER], 0), _limbs(b[start : start + _INNER], 1)
        products = (left @ right).astype(np.uint64).reshape(3, a.shape[0], 3, b.shape[1])
        for i, j in np.ndindex(3, 3):
            out = add(out, _shifted(products[i, :, j], _PLACES[i] + _PLACES[j]))
    return out


def _limbs(values: Field, axis: int) -> NDArray[np.float64]:
    parts = [
        ((values >> np.uint64(place)) & np.uint64((1 << bits) - 1)).astype(np.float64)
        for place, bits in zip(_PLACES, _CUTS, strict=True)
    ]
    return np.concatenate(parts, axis=axis)


def _shifted(values: Field, places: int) -> Field:
    """Rotate by places modulo 61; values are at most 2**53."""
    turn = places % BITS
    if not turn:
        return reduced(values)
    low_bits = np.uint64((1 << (BITS - turn)) - 1)
    return reduced(((values & low_bits) << np.uint64(turn)) + (values >> np.uint64(BITS - turn)))


def powers_of_two(count: int) -> Field:
    """Return 1, 2, 4, ... as elements."""
    return np.array([pow(2, k, P) for k in range(count)], np.uint64)


def stream(key: bytes, size: int) -> Field:
    """Return ``size`` uniform elements: AES-256 in counter mode from zero, the high 61 bits of little-endian words.

    The k-th word equal to p is replaced by the k-th word after the first ``size`` that is not p.
    """
    counter = bytes(16)
    words = _words(key, counter, size)
    missing = int((words == _P).sum())
    return words if not missing else without_p(words, _words(key, counter, size + 64 + 2 * missing)[size:])


def without_p(words: Field, further: Field) -> Field:
    """Replace each p among 61-bit words by the next further word that is not p."""
    places = np.flatnonzero(words == _P)
    out = words.copy()
    out[places] = further[further != _P][: places.size]
    return out


def _words(key: bytes, counter: bytes, size: int) -> Field:
    raw = np.frombuffer(ctr_keystream(key, counter, 8 * size), "<u8")
    return (raw >> np.uint64(3)).astype(np.uint64)


@dataclass(frozen=True)
class Prime:
    """Vectors over the field of 2**61 - 1 elements, with one 8-byte word per entry.

    Args:
        parts: ``(size, factor)`` per segment: field steps in one wire step, at least 1.

    Guarantee:
        ``encode`` is a homomorphism, so noise and sums are integer multiples of the factors. Sample noise, clip and
        noise shares in wire steps, never in field steps: the remainder of a total then depends on dishonest clients
        alone.

    Example:
        >>> from privstats.contrib.proofs.field import Prime
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
        """``(size, 61)`` per segment."""
        return tuple((size, BITS) for size, _ in self.parts)

    @property
    def size(self) -> int:
        """Number of entries."""
        return sum(size for size, _ in self.parts)

    @property
    def wire_bytes(self) -> int:
        """Bytes of a packed vector."""
        return _WORD * self.size

    def zeros(self) -> RingVector:
        """Return the neutral element."""
        return self.of(np.zeros(self.size, np.uint64))

    def of(self, words: Field) -> RingVector:
        """Return the vector of these elements, ``(size,)``, as views."""
        ends = list(accumulate(size for size, _ in self.parts))
        return RingVector(self, tuple(np.split(words, ends[:-1])))

    def encode(self, values: NDArray[np.int64]) -> RingVector:
        """Return integer wire steps of shape ``(size,)`` as elements, in field steps."""
        if values.shape != (self.size,) or values.dtype != np.int64:
            raise ValueError(f"encode needs int64 of shape ({self.size},), got {values.dtype} {values.shape}")
        vector = self.of((values % P).astype(np.uint64))
        for lane, (_, factor) in zip(vector.lanes, self.parts, strict=True):
            lane[:] = mul(lane, np.full(lane.size, factor, np.uint64))
        return vector

    def unpack(self, data: bytes | memoryview) -> RingVector:
        """Parse exactly ``wire_bytes`` bytes; raise ``ValueError`` for another length, or a word of p or more."""
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
        """Write little-endian words."""
        out.view("<u8")[:] = np.concatenate(lanes)

    def lift(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return each entry's centre lift in integer wire steps, toward minus infinity."""
        parts = zip(lanes, self.parts, strict=True)
        return np.concatenate([lift(lane) // np.int64(factor) for lane, (_, factor) in parts])


def words_in(data: bytes | memoryview) -> Field:
    """Return little-endian words as elements; raise ``ValueError`` for a word of p or more."""
    return checked(np.frombuffer(data, "<u8").astype(np.uint64))
