"""The gadgets and signed sums, with perfect completeness and the soundness errors stated at each; p is 2**61 - 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.proofs.field import (
    Field,
    Integers,
    P,
    add,
    dot,
    matmul,
    mul,
    powers_of_two,
    reduced,
    subtract,
    total,
    totals,
)
from privstats.contrib.proofs.transcript import SIGN_BYTES

_BLOCK = 4096
_HALF = SIGN_BYTES // 2
_UNREDUCED = 6
_PART = 31  # bits: a block of such numbers times 0, 1 or 2 sums up exactly in doubles


@dataclass(frozen=True, eq=False)
class GramAnswer:
    """w = X'c + v z and q = c'Mc + 2 v c'(Xz) + v**2 z'z, of a share or in sum."""

    w: Field
    q: int


def gram_accepts(answer: GramAnswer) -> bool:
    """Return whether w'w = q.

    If M is not X X', the two differ by a nonzero quadratic form in (c, v), whatever z, Xz and z'z were sent: accepted
    with probability at most 2 / (p - 1) over a query sampled after them.
    """
    return dot(answer.w, answer.w) == answer.q


def projected(values: Integers, signs: bytes, tests: int) -> list[int]:
    """Return the signed sums <Z_l, values> for l = 0 .. tests - 1.

    Z has 0 with probability 1/2, 1 and -1 with 1/4 each: bit l of b plus bit l of b' minus 1.
    """
    small = int(np.abs(values).max(initial=0)) < 1 << _PART  # an honest client's values are small
    parts = [values] if small else [values & ((1 << _PART) - 1), values >> _PART]
    sums = np.zeros((len(parts), tests), np.float64)
    out = np.zeros((len(parts), tests), np.int64)
    for start in range(0, len(values), _BLOCK):
        coins = _coins(signs, len(values), slice(start, start + _BLOCK))[:, :tests]
        for k, part in enumerate(parts):
            chunk = part[start : start + _BLOCK].astype(np.float64)
            np.matmul(chunk, coins, out=sums[k])
            out[k] += sums[k].astype(np.int64) - int(part[start : start + _BLOCK].sum())
    return [sum(int(column[k]) << (_PART * k) for k in range(len(parts))) for column in out.T]


def _coins(signs: bytes, entries: int, where: slice) -> NDArray[np.float64]:
    table = np.frombuffer(signs, np.uint8).reshape(2, entries, _HALF)[:, where]
    bits = np.unpackbits(table, axis=2)
    return np.asarray((bits[0] + bits[1]).astype(np.float64))


def combined_signs(signs: bytes, entries: int, weights: Field) -> Field:
    """Return sum_l weights_l Z_l, each tested entry's coefficient."""
    tables = _tables(weights)
    table = np.frombuffer(signs, np.uint8).reshape(2 * entries, _HALF)
    sums = np.zeros(2 * entries, np.uint64)
    for place in range(_HALF):
        sums += tables[place][table[:, place]]
        if place % _UNREDUCED == _UNREDUCED - 1:
            sums = reduced(sums)
    sums = reduced(sums)
    everything = np.uint64(total(weights))
    return subtract(add(sums[:entries], sums[entries:]), np.full(entries, everything))


def _tables(weights: Field) -> Field:
    padded = np.zeros(8 * _HALF, np.uint64)
    padded[: len(weights)] = weights
    out = np.zeros((_HALF, 256), np.uint64)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    for bit, column in enumerate(padded.reshape(_HALF, 8).T):
        out = np.where(bits[:, bit], add(out, np.broadcast_to(column[:, None], out.shape)), out)
    return out


@dataclass(frozen=True, eq=False)
class Bits:
    """Rows of Q bits, each proved by one polynomial f of degree Q through them and a mask.

    f_l takes the mask at 0 and the bits at 1 .. Q. For three coins gamma per row the client sends h_r = sum_l
    gamma_(r,l) (f_l**2 - f_l) / V with V = (X - 1) .. (X - Q), by its values at Q + 1 .. 2 Q + 1.

    Args:
        count: Q.
    """

    count: int

    @property
    def first_point(self) -> int:
        """Smallest allowed query point: below it f reveals a mask or bits, or h was computed from f's values."""
        return 2 * self.count + 2

    def quotients(self, masks: Field, bits: Field, gamma: Field) -> Field:
        """Return h's values, ``(3, Q + 1)``, from masks ``(rows,)``, bits ``(rows, Q)`` and gamma ``(3, rows)``."""
        values = matmul(np.concatenate([masks[:, None], bits], axis=1), _onwards(self.count))
        gaps = subtract(mul(values, values), values)
        return mul(matmul(gamma, gaps), _inverse_zeros(self.count)[None, :])

    def answer(self, masks: Field, bits: Field, quotients: Field, point: int) -> tuple[Field, Field]:
        """Return each row's f, and h, at a point."""
        inner, outer = (_at(first, self.count + 1, point) for first in (0, self.count + 1))
        rows = np.concatenate([masks[:, None], bits], axis=1)
        return matmul(rows, inner[:, None]).ravel(), matmul(quotients, outer[:, None]).ravel()

    def accepts(self, values: Field, quotients: Field, gamma: Field, point: int) -> bool:
        """Return whether sum_l gamma_(r,l) (f_l(t)**2 - f_l(t)) = V(t) h_r(t) for all three r.

        An entry that is no bit survives all gamma with p**-3 for each hash that its maker computes, and the point with
        2 Q / p.
        """
        gaps = subtract(mul(values, values), values)
        sums = totals(mul(gamma, gaps[None, :]))
        return bool((sums == mul(quotients, np.full(3, _zero(self.count, point), np.uint64))).all())

    def rows_of(self, number: int, width: int) -> NDArray[np.uint64]:
        """Return a number's low ``width`` bits, lowest first."""
        rows = -(-width // self.count)
        bits = [(number >> k) & 1 if k < width else 0 for k in range(rows * self.count)]
        return np.array(bits, np.uint64).reshape(rows, self.count)

    def weights(self, width: int) -> Field:
        """Return a slack's bit weights 1, 2, 4, ..., padded with 0."""
        size = -(-width // self.count) * self.count
        out = np.zeros(size, np.uint64)
        out[:width] = powers_of_two(width)
        return out


@lru_cache(maxsize=16)
def _onwards(count: int) -> Field:
    """Return the matrix from values at 0 .. Q to those at Q + 1 .. 2 Q + 1."""
    return np.stack([_at(0, count + 1, point) for point in range(count + 1, 2 * count + 2)], axis=1)


@lru_cache(maxsize=16)
def _inverse_zeros(count: int) -> Field:
    return np.array([pow(_zero(count, point), -1, P) for point in range(count + 1, 2 * count + 2)], np.uint64)


def _zero(count: int, point: int) -> int:
    out = 1
    for k in range(1, count + 1):
        out = out * (point - k) % P
    return out


def _at(first: int, count: int, point: int) -> Field:
    """Return Lagrange coefficients of the value at a point other than the ``count`` nodes."""
    gaps = [(point - first - i) % P for i in range(count)]
    every = 1
    for gap in gaps:
        every = every * gap % P
    weights = zip(gaps, _lagrange(count), strict=True)
    return np.array([every * pow(gap * below, -1, P) % P for gap, below in weights], np.uint64)


@lru_cache(maxsize=64)
def _lagrange(count: int) -> tuple[int, ...]:
    return tuple((-1) ** (count - 1 - i) * factorial(i) * factorial(count - 1 - i) % P for i in range(count))
