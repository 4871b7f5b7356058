"""Compute with scalars, Shamir's shares and codewords modulo the order of Curve25519.

Any prime of this size would do; this one has a standard encoding in 32 bytes. Arithmetic on Python's integers does not
run in constant time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

ORDER = 2**252 + 27742317777372353535851937790883648493
SCALAR_BYTES = 32
WIDE_BYTES = 64
"""Number of uniform bytes reduced to one scalar, which is uniform up to a statistical distance of 2^-259."""


def uniform(stream: bytes) -> list[int]:
    """Return one scalar from each :data:`WIDE_BYTES` bytes of the stream."""
    return [int.from_bytes(stream[at : at + WIDE_BYTES], "little") % ORDER for at in range(0, len(stream), WIDE_BYTES)]


def to_bytes(scalar: int) -> bytes:
    """Encode a scalar in 32 bytes, little-endian."""
    return scalar.to_bytes(SCALAR_BYTES, "little")


def scalar_of(data: bytes) -> int:
    """Decode 32 bytes; ``ValueError`` unless below ORDER, for a unique encoding."""
    scalar = int.from_bytes(data, "little")
    if scalar >= ORDER:
        raise ValueError("the number is not below the order of the curve")
    return scalar


MAX_HOLDERS = 255


def split(polynomials: Sequence[Sequence[int]], holders: int) -> NDArray[np.object_]:
    """Return the values of polynomials at x = 1 .. ``holders``: Python's integers, ``(holders, polynomials)``.

    Any t values of a polynomial with t coefficients determine the one at 0; fewer are independent of it if the other
    coefficients are uniform.

    Args:
        polynomials: equally many coefficients each; the secret, the value at 0, first.
        holders: at most 255.

    Source: Shamir 1979, evaluated by Horner's rule.
    """
    if not 1 <= holders <= MAX_HOLDERS or not polynomials or not polynomials[0]:
        raise ValueError(f"sharing needs 1 to {MAX_HOLDERS} holders and a threshold of at least 1")
    points = np.arange(1, holders + 1).astype(object)[:, None]
    rows = np.array(polynomials, object).T
    values = np.zeros((holders, len(polynomials)), object)
    for row in rows[::-1]:
        values = values * points + row
    reduced: NDArray[np.object_] = values % ORDER
    return reduced


def combine(points: Sequence[int], values: Sequence[int], at: int = 0) -> int:
    """Interpolate at ``at`` the polynomial through values at distinct points in 1 to 255 (Lagrange)."""
    if at in points:  # no session interpolates at one of its points; attacks do
        return values[points.index(at)] % ORDER
    shifted = tuple(point - at for point in points)
    return sum(weight * value for weight, value in zip(_at_zero(shifted), values, strict=True)) % ORDER


def checks(holders: int, coefficients: Sequence[int], first: int = 0) -> list[int]:
    """Return weights at x = ``first`` .. ``holders`` under which a low-degree polynomial's values sum to zero.

    Low means at most ``holders - first - len(coefficients)``. If the coefficients are uniform and unknown to the party
    that chose the values, other values sum to zero with probability 1 in 2^252.

    Source: the dual of a Reed-Solomon code, as in SCRAPE (Cascudo and David 2017, lemma 1).
    """
    places = range(first, holders + 1)
    masks = [sum(c * x**power for power, c in enumerate(coefficients)) for x in places]
    between = (prod(x - y for y in places if y != x) for x in places)
    return [mask * pow(gaps, -1, ORDER) % ORDER for mask, gaps in zip(masks, between, strict=True)]


@lru_cache(maxsize=256)
def _at_zero(points: tuple[int, ...]) -> list[int]:
    product = prod(points)
    gaps = (x * prod(y - x for y in points if y != x) for x in points)
    return [product * pow(gap, -1, ORDER) % ORDER for gap in gaps]
