"""Shamir secret sharing over the whole numbers modulo the order of Curve25519, for whole neighbourhoods at once.

This module does not verify shares: the dealings do. The arithmetic does not run in constant time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from privstats.secagg.scalars import ORDER

__all__ = ["MAX_HOLDERS", "checks", "combine", "split"]

MAX_HOLDERS = 255


def split(polynomials: Sequence[Sequence[int]], holders: int) -> NDArray[np.object_]:
    """The values of polynomials at x = 1 .. ``holders``: Python's whole numbers, shape ``(holders, polynomials)``.

    Any t values of a polynomial with t coefficients determine the one at 0; fewer are independent of it if the other
    coefficients are uniform.

    Args:
        polynomials: their coefficients, equally many of each; the secret, which is the value at 0, first.
        holders: the number of values, at most 255.

    Raises:
        ValueError: more than 255 holders, or no coefficients.

    Source: Shamir 1979, evaluated by Horner's rule for all holders and polynomials together.
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


def combine(points: Sequence[int], values: Sequence[int]) -> int:
    """The value at 0 of the polynomial of least degree through the values at different points from 1 to 255.

    Source: Lagrange.
    """
    return sum(weight * value for weight, value in zip(_at_zero(tuple(points)), values, strict=True)) % ORDER


def checks(holders: int, coefficients: Sequence[int]) -> list[int]:
    """Weights at x = 0 .. ``holders`` of a random test for low degree: polynomials of low degree sum to zero.

    Low means at most ``holders - len(coefficients)``. If the coefficients are uniform and unknown to the party that
    chose the values, other values sum to zero with a probability of 1 in 2^252.

    Source: the dual of a Reed-Solomon code, as in SCRAPE (Cascudo and David 2017, lemma 1).
    """
    places = range(holders + 1)
    masks = [sum(c * x**power for power, c in enumerate(coefficients)) for x in places]
    between = (prod(x - y for y in places if y != x) for x in places)
    return [mask * pow(gaps, -1, ORDER) % ORDER for mask, gaps in zip(masks, between, strict=True)]


@lru_cache(maxsize=256)
def _at_zero(points: tuple[int, ...]) -> list[int]:
    """By point, what its value counts at 0."""
    whole = prod(points)
    gaps = (x * prod(y - x for y in points if y != x) for x in points)
    return [whole * pow(gap, -1, ORDER) % ORDER for gap in gaps]
