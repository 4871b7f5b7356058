"""Compute row sums that do not depend on the order of additions.

On a power-of-two grid products and sums are integers below 2**53, so float64 yields identical bits in any library.
Operations are exact or correctly rounded, except logarithm and hyperbolic tangent.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

_SHORT = 128  # columns below which one call of BLAS per row costs more than its products


class Arrays(Protocol):
    """Operations on float64 rows of numpy or torch."""

    def rint(self, rows: Any) -> Any:
        """Round to the nearest integer, ties to even."""

    def row_max(self, rows: Any) -> Any:
        """Return largest absolute values per row; 0 without columns."""

    def vecdot(self, left: Any, right: Any) -> Any:
        """Return row-wise inner products, in any order."""

    def integer_dots(self, left: Any, right: Any) -> Any:
        """Return inner products of integer rows, exact."""

    def sqrt(self, values: Any) -> Any:
        """Return the square root, correctly rounded."""

    def where(self, condition: Any, left: Any, right: Any) -> Any:
        """Choose elementwise."""

    def relu(self, rows: Any) -> Any:
        """Return max(rows, 0)."""

    def log1p(self, values: Any) -> Any:
        """Return log(1 + values)."""

    def tanh(self, values: Any) -> Any:
        """Return the hyperbolic tangent."""

    def append(self, rows: Any, value: float, columns: int) -> Any:
        """Append constant columns."""

    def some(self, mask: Any) -> bool:
        """Return whether any entry is true, or True where the answer is not known at once."""

    def hstack(self, left: Any, right: Any) -> Any:
        """Join columns."""

    def binary_exponent(self, values: Any) -> Any:
        """Return the int64 e with values = m 2**e and 1/2 <= m < 1; 0 for 0."""

    def power_of_two(self, exponents: Any) -> Any:
        """Return 2**exponents as float64, for int64 exponents in [-1022, 1023]."""

    def like(self, constant: Any, rows: Any) -> Any:
        """Convert a numpy constant to the rows' library and device."""

    def matmul(self, left: Any, right: Any, out: Any = None) -> Any:
        """Return the matrix product, in any order of additions."""

    def trunc(self, rows: Any, out: Any = None) -> Any:
        """Round toward zero."""

    def trunc_where(self, mask: Any, rows: Any, out: Any) -> Any:
        """Return ``out``, possibly in place, with the masked rows of ``rows`` rounded toward zero; mask ``(n,)``."""

    def floor(self, rows: Any, out: Any = None) -> Any:
        """Round down."""

    def largest(self, rows: Any) -> Any:
        """Return the largest entry of each row, ``(n, 1)``."""

    def at_least(self, rows: Any, minimum: float) -> Any:
        """Replace smaller entries by the minimum, possibly in place."""

    def ldexp(self, values: Any, exponents: Any) -> Any:
        """Return values times 2**exponents, possibly in place, for integer exponents in [-1022, 1023] as float64."""

    def full_like(self, rows: Any, value: float) -> Any:
        """Return an array of this shape, filled with one value."""

    def empty(self, *shape: int) -> Any:
        """Return memory for float64 entries."""

    def arange(self, count: int) -> Any:
        """Return the int64 indices 0 to count - 1."""


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
        return np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))

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

    matmul = staticmethod(np.matmul)
    trunc = staticmethod(np.trunc)
    floor = staticmethod(np.floor)

    @staticmethod
    def trunc_where(mask: Any, rows: Any, out: Any) -> Any:
        out[mask] = np.trunc(rows[mask])
        return out

    @staticmethod
    def full_like(rows: Any, value: float) -> Any:
        return np.full_like(rows, value)

    @staticmethod
    def arange(count: int) -> Any:
        return np.arange(count)

    @staticmethod
    def largest(rows: Any) -> Any:
        return rows.max(axis=1, keepdims=True)

    @staticmethod
    def at_least(rows: Any, minimum: float) -> Any:
        return np.maximum(rows, minimum, out=rows)

    @staticmethod
    def ldexp(values: Any, exponents: Any) -> Any:
        return np.ldexp(values, exponents.astype(np.intc), out=values)

    @staticmethod
    def empty(*shape: int) -> Any:
        return np.empty(shape)


_NUMPY = _Numpy()


def arrays_of(rows: Any) -> Arrays:
    """Return the operations for these rows."""
    if type(rows) is np.ndarray:  # small batches would notice the questions below
        return _NUMPY
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rows, torch.Tensor):
        from privstats.transforms.tensors import TorchArrays

        return TorchArrays(torch, rows)
    own: Arrays | None = getattr(rows, "operations", None)
    return _NUMPY if own is None else own


Rows: TypeAlias = Any
"""Finite float64 rows, shape ``(n, d)``: a numpy array or a torch tensor."""

_LIFT = 600


@dataclass(frozen=True)
class RowNorms:
    """Rows scaled to a common size, and their norms there.

    Attributes:
        rows, exponents: the input times 2**exponents; largest entries are about 2**limb_bits(d).
        norms, error: Euclidean norms of ``rows``, and a bound on their absolute error (:func:`row_norms`).
    """

    rows: Any
    norms: Any
    error: float
    exponents: Any


def limb_bits(columns: int) -> int:
    """Return the largest b such that ``columns`` products of numbers up to 2**b sum to at most 2**53."""
    return (53 - (columns - 1).bit_length()) // 2


def scaled_rows(rows: Rows, bits: int) -> tuple[Any, Any]:
    """Scale every row by a power of two so that its largest entry is in [2**(bits-1), 2**bits).

    Returns rows and exponents; exact except for underflow next to a far larger entry. Zero rows stay zero.
    """
    xp = arrays_of(rows)
    exponents = bits - xp.binary_exponent(xp.row_max(rows))
    lift = (exponents > _LIFT) * _LIFT  # in two factors, for 2**exponents alone may overflow
    if xp.some(lift):
        rows = rows * xp.power_of_two(lift)[:, None]
    return rows * xp.power_of_two(exponents - lift)[:, None], exponents


def unscaled(values: Any, exponents: Any) -> Any:
    """Return ``values * 2**-exponents``, exact except for underflow and overflow."""
    xp = arrays_of(values)
    lift = (exponents > _LIFT) * _LIFT
    back = values * xp.power_of_two(lift - exponents).reshape(-1, *[1] * (values.ndim - 1))
    return back * xp.power_of_two(-lift).reshape(-1, *[1] * (values.ndim - 1))


def row_norms(rows: Rows, columns: int | None = None) -> RowNorms:
    """Return Euclidean norms of rows to within ``error``, independent of the order of summation.

    ``columns`` is the full width d of rows that omit zeros. An entry is split into integers, hi + lo 2**-b. The error
    is at most 2**-(b+1), which moves a norm by at most sqrt(d) 2**-(b+1). Products of the integers are exact. Later
    roundings move a norm by at most sqrt(d) 2**(b-48).
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
    """Return sums of rows ``(n,)``, independent of the order.

    Rows are first rounded to 2**-(52 - log2 d) of their largest entry; then every partial sum is exact.
    """
    scaled, exponents = scaled_rows(rows, 52 - (int(rows.shape[1]) - 1).bit_length())
    return unscaled(arrays_of(rows).rint(scaled).sum(1), exponents)


def product(rows: Rows, matrix: Any, matrix_bits: int) -> Any:
    """Return rows @ matrix for an integer ``(d, outputs)`` matrix of entries up to 2**matrix_bits, with identical bits.

    Rows are first rounded to 2**-(52 - log2 d - matrix_bits) of their largest entry; then every partial sum is exact.
    """
    scaled, exponents = scaled_rows(rows, 52 - (int(rows.shape[1]) - 1).bit_length() - matrix_bits)
    return unscaled(arrays_of(rows).rint(scaled) @ matrix, exponents)
