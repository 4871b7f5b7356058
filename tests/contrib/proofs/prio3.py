"""Prio3Count and Prio3Histogram of draft-irtf-cfrg-vdaf (its version 18), written from the draft, for comparison only.

Sharding, verification, and the proof of a circuit whose one gadget is a sum of products of pairs: Mul is the sum of
one. Polynomials are kept by their values at roots of unity, as they travel. Nothing here is fast or hides its timing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

SEED_BYTES = 32
_VERSION, _RATE = 18, 168
_MEASUREMENT, _PROOF, _JOINT, _PROVE, _QUERY, _JOINT_SEED, _JOINT_PART = range(1, 8)
Values = list[int]


class RefusedError(Exception):
    """The aggregators do not take a report."""


# --- TurboSHAKE128, RFC 9861 ---

_MASK = (1 << 64) - 1


def _round_constants() -> Iterator[int]:
    """Of all 24 rounds, by the linear feedback of FIPS 202."""
    state = 1
    for _ in range(24):
        constant = 0
        for j in range(7):
            constant |= (state & 1) << ((1 << j) - 1)
            state = (state << 1) ^ (0x171 if state >> 7 else 0)
        yield constant


def _offsets() -> dict[tuple[int, int], int]:
    x, y, found = 1, 0, {(0, 0): 0}
    for t in range(24):
        found[x, y] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return found


_LAST_ROUNDS, _OFFSETS = tuple(_round_constants())[12:], _offsets()


def _turned(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK


def _permuted(a: Values) -> Values:
    """Keccak-p[1600, 12] of 25 words, word (x, y) at x + 5 y."""
    for constant in _LAST_ROUNDS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[x - 1] ^ _turned(c[(x + 1) % 5], 1) for x in range(5)]
        b = [0] * 25
        for (x, y), offset in _OFFSETS.items():
            b[y + 5 * ((2 * x + 3 * y) % 5)] = _turned(a[x + 5 * y] ^ d[x], offset)
        a = [b[i] ^ (~b[i - i % 5 + (i + 1) % 5] & b[i - i % 5 + (i + 2) % 5]) for i in range(25)]
        a[0] ^= constant
    return a


def turboshake128(message: bytes) -> Iterator[bytes]:
    """The output, in blocks of 168 bytes without an end, under domain byte 1."""
    padded = bytearray(message + b"\x01")
    padded += bytes(-len(padded) % _RATE)
    padded[-1] ^= 0x80
    state = [0] * 25
    for start in range(0, len(padded), _RATE):
        for i in range(_RATE // 8):
            state[i] ^= int.from_bytes(padded[start + 8 * i : start + 8 * i + 8], "little")
        state = _permuted(state)
    while True:
        yield b"".join(word.to_bytes(8, "little") for word in state[: _RATE // 8])
        state = _permuted(state)


def stretched(seed: bytes, tag: bytes, binder: bytes) -> Iterator[int]:
    """The bytes of the draft's XofTurboShake128."""
    for block in turboshake128(len(tag).to_bytes(2, "little") + tag + bytes([len(seed)]) + seed + binder):
        yield from block


def seed_of(seed: bytes, tag: bytes, binder: bytes) -> bytes:
    """A seed from a seed."""
    found = stretched(seed, tag, binder)
    return bytes(next(found) for _ in range(SEED_BYTES))


# --- fields, and polynomials by their values at roots of unity ---


@dataclass(frozen=True)
class Field:
    """A prime field with 2**twos roots of unity."""

    modulus: int
    size: int
    twos: int

    def root(self, order: int) -> int:
        """The principal root of unity of an order that is a power of two."""
        generator = pow(7, self.modulus >> self.twos, self.modulus)
        return pow(generator, (1 << self.twos) // order, self.modulus)

    def inverse(self, value: int) -> int:
        """1 / value."""
        return pow(value, -1, self.modulus)

    def drawn(self, count: int, seed: bytes, tag: bytes, binder: bytes) -> Values:
        """So many elements of a stream."""
        bits, stream, found = self.modulus.bit_length(), stretched(seed, tag, binder), Values()
        while len(found) < count:
            value = int.from_bytes(bytes(next(stream) for _ in range(self.size)), "little") & ((1 << bits) - 1)
            found += [value] if value < self.modulus else []
        return found

    def encoded(self, values: Sequence[int]) -> bytes:
        """Little-endian."""
        return b"".join(value.to_bytes(self.size, "little") for value in values)

    def decoded(self, data: bytes) -> Values:
        """The elements in these bytes."""
        found = [int.from_bytes(data[at : at + self.size], "little") for at in range(0, len(data), self.size)]
        if len(data) % self.size or any(value >= self.modulus for value in found):
            raise RefusedError
        return found

    def at(self, values: Sequence[int], point: int) -> int:
        """The polynomial with these values at the powers of a root of unity, at another point: barycentric."""
        p, order = self.modulus, len(values)
        root, power, total = self.root(order), 1, 0
        for value in values:
            total += value * power * self.inverse((point - power) % p)
            power = power * root % p
        return total * (pow(point, order, p) - 1) * self.inverse(order) % p

    def with_last(self, values: Sequence[int]) -> Values:
        """One more value, of a polynomial whose degree is below the number of those given: its top term is zero."""
        p, root, order = self.modulus, self.root(len(values) + 1), len(values) + 1
        total = sum(value * pow(root, k, p) for k, value in enumerate(values))
        return [*values, -total * self.inverse(pow(root, order - 1, p)) % p]


FIELD64 = Field(2**32 * 4294967295 + 1, 8, 32)
FIELD128 = Field(2**66 * 4611686018427387897 + 1, 16, 66)


# --- the proof ---


class Share(NamedTuple):
    """What one aggregator works on."""

    measurement: Values
    proof: Values
    blind: bytes


@dataclass(frozen=True)
class Prio3:
    """One of the two variants: cells that are 0 or 1, and for a histogram 1 in all.

    Args:
        field: that the draft names.
        algorithm: its number.
        shares: aggregators.
        cells: 1 for a counter.
        chunk: cells that one call of the gadget checks.
        joint: there is joint randomness, and the cells must add up to 1.
    """

    field: Field
    algorithm: int
    shares: int
    cells: int
    chunk: int
    joint: bool

    @cached_property
    def calls(self) -> int:
        """Of the gadget."""
        return -(-self.cells // self.chunk)

    @cached_property
    def wire(self) -> int:
        """Values of a wire's polynomial: a seed, the calls, zeros up to a power of two."""
        return 1 << self.calls.bit_length()

    @property
    def proof_size(self) -> int:
        """Seeds of the wires, and the gadget's polynomial without its last value."""
        return 2 * self.chunk + 2 * self.wire - 1

    def encode(self, measurement: int) -> Values:
        """A counter's bit, or the one cell of a histogram."""
        return [int(cell == measurement) for cell in range(self.cells)] if self.joint else [measurement]

    def _inputs(self, cells: Values, joint: Values, shares: int) -> list[Values]:
        """What goes into each call: in pairs, one cell times a power of its randomness, and the cell minus 1."""
        p = self.field.modulus
        if not self.joint:
            return [[cells[0], cells[0]]]
        one, found = self.field.inverse(shares), []
        for call in range(self.calls):
            inputs, power = Values(), joint[call]
            for cell in range(call * self.chunk, (call + 1) * self.chunk):
                value = cells[cell] if cell < self.cells else 0
                inputs += [power * value % p, (value - one) % p]
                power = power * joint[call] % p
            found.append(inputs)
        return found

    def _wires(self, seeds: Values, inputs: list[Values]) -> list[Values]:
        rows = [seeds, *inputs, *[[0] * len(seeds)] * (self.wire - 1 - self.calls)]
        return [list(wire) for wire in zip(*rows, strict=True)]

    def _gadget(self, inputs: Sequence[int]) -> int:
        return sum(left * right for left, right in zip(inputs[::2], inputs[1::2], strict=True)) % self.field.modulus

    def prove(self, cells: Values, seeds: Values, joint: Values) -> Values:
        """The proof of an honest client, or of one that proves something else."""
        wires = self._wires(seeds, self._inputs(cells, joint, 1))
        root, p = self.field.root(2 * self.wire), self.field.modulus
        values = Values()
        for k in range(2 * self.wire - 1):
            point = pow(root, k, p)
            values.append(self._gadget([w[k // 2] if k % 2 == 0 else self.field.at(w, point) for w in wires]))
        return [*seeds, *values]

    def query(self, share: Share, coins: Values, joint: Values) -> Values:
        """A share of the verifier: the circuit's output, every wire and the gadget at a random point."""
        p, seeds = self.field.modulus, share.proof[: 2 * self.chunk]
        values = self.field.with_last(share.proof[2 * self.chunk :])
        outputs = [values[2 * (call + 1)] for call in range(self.calls)]
        if self.joint:
            *weights, point = coins
            left = (sum(share.measurement) - self.field.inverse(self.shares)) % p
            output = (weights[0] * sum(outputs) + weights[1] * left) % p
        else:
            (point,) = coins
            output = (outputs[0] - share.measurement[0]) % p
        if pow(point, self.wire, p) == 1:
            raise RefusedError
        wires = self._wires(seeds, self._inputs(share.measurement, joint, self.shares))
        return [output, *(self.field.at(wire, point) for wire in wires), self.field.at(values, point)]

    def accepts(self, verifier: Values) -> bool:
        """The decision on the sum of all shares."""
        output, *wires, gadget = verifier
        return output == 0 and self._gadget(wires) == gadget

    # --- reports ---

    def _tag(self, usage: int, context: bytes) -> bytes:
        return bytes([_VERSION, 0]) + self.algorithm.to_bytes(4, "big") + usage.to_bytes(2, "big") + context

    def _helper(self, context: bytes, place: int, seed: bytes) -> tuple[Values, Values]:
        field, who = self.field, bytes([place])
        cells = field.drawn(self.cells, seed, self._tag(_MEASUREMENT, context), who)
        return cells, field.drawn(self.proof_size, seed, self._tag(_PROOF, context), b"\x01" + who)

    def _part(self, context: bytes, place: int, blind: bytes, cells: Values, nonce: bytes) -> bytes:
        binder = bytes([place]) + nonce + self.field.encoded(cells)
        return seed_of(blind, self._tag(_JOINT_PART, context), binder)

    def _joint_seed(self, context: bytes, parts: Sequence[bytes]) -> bytes:
        return seed_of(bytes(SEED_BYTES), self._tag(_JOINT_SEED, context), b"".join(parts))

    def _joint(self, context: bytes, seed: bytes) -> Values:
        return self.field.drawn(self.calls, seed, self._tag(_JOINT, context), b"\x01")

    def shard(self, context: bytes, cells: Values, nonce: bytes, drawn: bytes) -> tuple[list[bytes], list[bytes]]:
        """The public share by its parts, and the input shares; ``cells`` are any elements, as a liar chooses them."""
        seeds = [drawn[at : at + SEED_BYTES] for at in range(0, len(drawn), SEED_BYTES)]
        step = 2 if self.joint else 1
        helpers, blinds = seeds[: step * (self.shares - 1) : step], seeds[1 : step * (self.shares - 1) : step]
        own, proof, parts = list(cells), [0] * self.proof_size, list[bytes]()
        for place, seed in enumerate(helpers, start=1):
            share, masks = self._helper(context, place, seed)
            own, proof = self._minus(own, share), self._minus(proof, masks)
            parts += [self._part(context, place, blinds[place - 1], share, nonce)] if self.joint else []
        joint, blind = Values(), b""
        if self.joint:
            blind = seeds[-2]
            parts.insert(0, self._part(context, 0, blind, own, nonce))
            joint = self._joint(context, self._joint_seed(context, parts))
        wires = self.field.drawn(2 * self.chunk, seeds[-1], self._tag(_PROVE, context), b"\x01")
        whole = self.prove([cell % self.field.modulus for cell in cells], wires, joint)
        proof = self._minus(whole, [-each for each in proof])
        leader = self.field.encoded(own) + self.field.encoded(proof) + blind
        others = [seed + (blinds[place] if self.joint else b"") for place, seed in enumerate(helpers)]
        return parts, [leader, *others]

    def _minus(self, left: Sequence[int], right: Sequence[int]) -> Values:
        return [(a - b) % self.field.modulus for a, b in zip(left, right, strict=True)]

    def _share(self, context: bytes, place: int, data: bytes) -> Share:
        if place:
            return Share(*self._helper(context, place, data[:SEED_BYTES]), data[SEED_BYTES:])
        end = self.field.size * (self.cells + self.proof_size)
        values = self.field.decoded(data[:end])
        return Share(values[: self.cells], values[self.cells :], data[end:])

    def begin(
        self, key: bytes, context: bytes, place: int, nonce: bytes, parts: Sequence[bytes], data: bytes
    ) -> tuple[Values, bytes, bytes]:
        """Output share, the joint seed that this aggregator corrects, and its verifier share."""
        share, seed, part, joint = self._share(context, place, data), b"", b"", Values()
        if self.joint:
            part = self._part(context, place, share.blind, share.measurement, nonce)
            seed = self._joint_seed(context, [*parts[:place], part, *parts[place + 1 :]])
            joint = self._joint(context, seed)
        coins = self.field.drawn(3 if self.joint else 1, key, self._tag(_QUERY, context), b"\x01" + nonce)
        return share.measurement, seed, self.field.encoded(self.query(share, coins, joint)) + part

    def joined(self, context: bytes, shares: Sequence[bytes]) -> bytes:
        """The verifier message; raises ``RefusedError`` if the proof is none."""
        end = self.field.size * (2 * self.chunk + 2)
        columns = zip(*(self.field.decoded(share[:end]) for share in shares), strict=True)
        if not self.accepts([sum(column) % self.field.modulus for column in columns]):
            raise RefusedError
        return self._joint_seed(context, [share[end:] for share in shares]) if self.joint else b""

    def finish(self, output: Values, seed: bytes, message: bytes) -> Values:
        """The output share; raises ``RefusedError`` if the client's joint randomness was another."""
        if message != seed:
            raise RefusedError
        return output


def count(shares: int = 2) -> Prio3:
    """Prio3Count."""
    return Prio3(FIELD64, 1, shares, 1, 1, joint=False)


def histogram(length: int, chunk: int, shares: int = 2) -> Prio3:
    """Prio3Histogram."""
    return Prio3(FIELD128, 4, shares, length, chunk, joint=True)
