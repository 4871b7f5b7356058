"""Row arithmetic with one answer: sums over a row that do not depend on the order of the additions.

Rows are put on a power-of-two grid fine enough that products and sums are whole numbers below 2**53, so float64 gives
the same bits from numpy, torch, any BLAS and any SIMD width. Not a transform; used by the transforms and by the clip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowNorms", "limb_bits", "power_of_two_rows", "row_norms", "row_sums"]

_LIFT = 600


@dataclass(frozen=True)
class RowNorms:
    """Rows brought to a common size and their norms there.

    Attributes:
        rows: the rows times a power of two each, shape ``(n, d)``; the largest entry of a row is about 2**limb_bits(d).
        norms: Euclidean norms of ``rows``, shape ``(n,)``, within ``error`` of the true ones.
        error: absolute bound on the error of ``norms``, rounding included.
        exponents: ``rows`` is the input times 2**exponents, shape ``(n,)``.
    """

    rows: NDArray[np.float64]
    norms: NDArray[np.float64]
    error: float
    exponents: NDArray[np.int64]


def limb_bits(columns: int) -> int:
    """Largest b such that ``columns`` products of two numbers of at most 2**b sum to at most 2**53."""
    return (53 - (columns - 1).bit_length()) // 2


def power_of_two_rows(rows: NDArray[np.float64], bits: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scale every finite row by a power of two so that its largest entry lies in [2**(bits-1), 2**bits).

    Returns:
        The scaled rows and the exponents, ``rows * 2**exponents``, exact but for entries that underflow beside a far
        larger one. Zero rows stay zero.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    _, size = np.frexp(largest)
    exponents = (bits - size).astype(np.int64)
    lift = np.where(exponents > _LIFT, _LIFT, 0)  # two factors, for 2**exponents alone may overflow
    if lift.any():
        rows = rows * np.ldexp(1.0, lift)[:, None]
    return rows * np.ldexp(1.0, exponents - lift)[:, None], exponents


def row_norms(rows: NDArray[np.float64]) -> RowNorms:
    """Euclidean norms of finite rows of shape ``(n, d)``, to about 11 digits and independent of summation order.

    Each scaled entry is split as hi + lo 2**-b with whole hi and lo, so that the three sums hi.hi, hi.lo and lo.lo are
    exact; what the split drops is below 2**-(b+1) per entry.
    """
    columns = rows.shape[1]
    bits = limb_bits(columns)
    scaled, exponents = power_of_two_rows(rows, bits)
    high = np.rint(scaled)
    low = scaled - high
    np.rint(np.multiply(low, 2.0**bits, out=low), out=low)
    squares = np.vecdot(high, high) + (
        np.vecdot(high, low) * 2.0 ** (1 - bits) + np.vecdot(low, low) * 2.0 ** (-2 * bits)
    )
    norms = np.sqrt(squares)
    dropped = math.sqrt(columns) * 2.0 ** -(bits + 1)
    return RowNorms(scaled, norms, dropped + 2.0 ** (bits - 48) * math.sqrt(columns), exponents)


def row_sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of finite rows of shape ``(n, d)``, independent of the order, to 2**-(51 - log2 d) of the largest entry."""
    bits = 52 - (rows.shape[1] - 1).bit_length()
    scaled, exponents = power_of_two_rows(rows, bits)
    return np.asarray(np.ldexp(np.rint(scaled, out=scaled).sum(axis=1), -exponents))
