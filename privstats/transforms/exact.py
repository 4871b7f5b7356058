"""Reproducible row arithmetic: sums over a row that do not depend on the order of the additions.

Rows are put on a power-of-two grid fine enough that products and sums are whole numbers below 2**53, so float64 gives
the same bits from numpy, torch, any BLAS and any SIMD width. The transforms and the clip use it.

Arrays are of numpy, of torch or recorded in a graph; the few operations that transforms, clip and rules need of them
are exact or correctly rounded in float64, all but the logarithm and the hyperbolic tangent.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

_SHORT = 128  # columns below which one call of BLAS per row costs more than its products


class Arrays(Protocol):
    """Operations on float64 rows; ``Any`` is an array of numpy or of torch."""

    def rint(self, rows: Any) -> Any:
        """Round to the nearest whole number, ties to even."""

    def row_max(self, rows: Any) -> Any:
        """Largest absolute value of each row; 0 for rows of no columns."""

    def vecdot(self, left: Any, right: Any) -> Any:
        """Row by row inner products, in no particular order of addition."""

    def integer_dots(self, left: Any, right: Any) -> Any:
        """Return the inner product of each pair of integer rows; its sums are exact, so their order is the fastest."""

    def sqrt(self, values: Any) -> Any:
        """Square root, correctly rounded."""

    def where(self, condition: Any, left: Any, right: Any) -> Any:
        """Elementwise choice."""

    def relu(self, rows: Any) -> Any:
        """max(rows, 0)."""

    def log1p(self, values: Any) -> Any:
        """log(1 + values)."""

    def tanh(self, values: Any) -> Any:
        """Hyperbolic tangent."""

    def append(self, rows: Any, value: float, columns: int) -> Any:
        """``rows`` with ``columns`` more columns of ``value`` on the right, ``(n, d + columns)``."""

    def some(self, mask: Any) -> bool:
        """Whether any entry is true; always True while a graph is recorded, where no entry is known yet."""

    def hstack(self, left: Any, right: Any) -> Any:
        """Columns of both, side by side."""

    def binary_exponent(self, values: Any) -> Any:
        """The int64 e with values = m 2**e and 1/2 <= m < 1; 0 for 0."""

    def power_of_two(self, exponents: Any) -> Any:
        """2**exponents as float64, for int64 exponents between -1022 and 1023."""

    def like(self, constant: Any, rows: Any) -> Any:
        """A numpy constant as an array of the library and on the device of ``rows``."""


def _integer_dots(left: Any, right: Any) -> Any:
    if left.shape[1] == 1:
        return left[:, 0] * right[:, 0]
    return np.einsum("ij,ij->i", left, right) if left.shape[1] < _SHORT else np.vecdot(left, right)


class _Numpy:
    rint = staticmethod(np.rint)
    vecdot = staticmethod(np.vecdot)
    integer_dots = staticmethod(_integer_dots)
    sqrt = staticmethod(np.sqrt)
    where = staticmethod(np.where)
    log1p = staticmethod(np.log1p)
    tanh = staticmethod(np.tanh)

    @staticmethod
    def append(rows: Any, value: float, columns: int) -> Any:
        return np.hstack([rows, np.full((len(rows), columns), value)])

    @staticmethod
    def some(mask: Any) -> bool:
        return bool(mask.any())

    @staticmethod
    def row_max(rows: Any) -> Any:
        return np.abs(rows).max(axis=1, initial=0.0)

    @staticmethod
    def relu(rows: Any) -> Any:
        return np.maximum(rows, 0.0)

    @staticmethod
    def hstack(left: Any, right: Any) -> Any:
        return np.hstack([left, right])

    @staticmethod
    def binary_exponent(values: Any) -> Any:
        return np.frexp(values)[1].astype(np.int64)

    @staticmethod
    def power_of_two(exponents: Any) -> Any:
        return np.ldexp(1.0, exponents)

    @staticmethod
    def like(constant: Any, rows: Any) -> Any:  # noqa: ARG004 - the signature of Arrays
        return constant


def arrays_of(rows: Any) -> Arrays:
    """The operations for ``rows``: its own, torch's for a torch tensor, numpy's otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rows, torch.Tensor):
        from privstats.transforms.tensors import TorchArrays

        return TorchArrays(torch, rows)
    own: Arrays | None = getattr(rows, "operations", None)
    return _Numpy() if own is None else own


Rows: TypeAlias = Any
"""Finite float64 rows, shape ``(n, d)``: a numpy array or a torch tensor."""

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

    rows: Any
    norms: Any
    error: float
    exponents: Any


def limb_bits(columns: int) -> int:
    """Largest b such that ``columns`` products of two numbers of at most 2**b sum to at most 2**53."""
    return (53 - (columns - 1).bit_length()) // 2


def scaled_rows(rows: Rows, bits: int) -> tuple[Any, Any]:
    """Scale every row by a power of two so that its largest entry is in [2**(bits-1), 2**bits).

    Returns:
        The scaled rows and the exponents, ``rows * 2**exponents``, exact except for entries that underflow next to a
        far larger one. Zero rows stay zero.
    """
    xp = arrays_of(rows)
    exponents = bits - xp.binary_exponent(xp.row_max(rows))
    lift = (exponents > _LIFT) * _LIFT  # in two factors, for 2**exponents alone may overflow
    if xp.some(lift):
        rows = rows * xp.power_of_two(lift)[:, None]
    return rows * xp.power_of_two(exponents - lift)[:, None], exponents


def unscaled(values: Any, exponents: Any) -> Any:
    """``values * 2**-exponents``, the way back from :func:`scaled_rows`; exact but for underflow and overflow."""
    xp = arrays_of(values)
    lift = (exponents > _LIFT) * _LIFT
    back = values * xp.power_of_two(lift - exponents).reshape(-1, *[1] * (values.ndim - 1))
    return back * xp.power_of_two(-lift).reshape(-1, *[1] * (values.ndim - 1))


def row_norms(rows: Rows, columns: int | None = None) -> RowNorms:
    """Euclidean norms of rows, to about 11 digits and independent of the order of summation.

    ``columns`` is the width of rows that come without some of their zeros; the bits are those of the whole rows.

    Each scaled entry is split as hi + lo 2**-b with whole hi and lo, so that the three sums hi.hi, hi.lo and lo.lo are
    exact; what the split drops is below 2**-(b+1) per entry.
    """
    xp = arrays_of(rows)
    columns = int(rows.shape[1]) if columns is None else columns  # a tensor while torch.jit traces
    bits = limb_bits(columns)
    scaled, exponents = scaled_rows(rows, bits)
    high = xp.rint(scaled)
    low = scaled - high
    low *= math.ldexp(1.0, bits)  # in memory that is cached
    low = xp.rint(low)
    rest = xp.integer_dots(high, low) * math.ldexp(1.0, 1 - bits) + xp.integer_dots(low, low) * math.ldexp(
        1.0, -2 * bits
    )
    norms = xp.sqrt(xp.integer_dots(high, high) + rest)
    dropped, rounding = math.ldexp(math.sqrt(columns), -(bits + 1)), math.ldexp(math.sqrt(columns), bits - 48)
    return RowNorms(scaled, norms, dropped + rounding, exponents)


def row_sums(rows: Rows) -> Any:
    """Sums of rows, independent of the order, to 2**-(51 - log2 d) of the largest entry; shape ``(n,)``."""
    scaled, exponents = scaled_rows(rows, 52 - (int(rows.shape[1]) - 1).bit_length())
    return unscaled(arrays_of(rows).rint(scaled).sum(1), exponents)


def product(rows: Rows, matrix: Any, matrix_bits: int) -> Any:
    """rows @ matrix for a whole-numbered ``(d, outputs)`` matrix of entries up to 2**matrix_bits; same bits everywhere.

    The rows are rounded to 2**-(52 - log2 d - matrix_bits) of their largest entry first (28 bits and more for up to
    4096 features and 12-bit matrices), after which every product and partial sum is exact.
    """
    scaled, exponents = scaled_rows(rows, 52 - (int(rows.shape[1]) - 1).bit_length() - matrix_bits)
    return unscaled(arrays_of(rows).rint(scaled) @ matrix, exponents)
