"""Float64 accumulators that BLAS adds into and that stay exact.

A whole-number sum of terms bounded by M is exact in float64 while rows * M <= 2**53, in any order and with fused
multiply-adds, because every partial sum is a whole number of at most that size. Before a sum could pass that bound, the
accumulator is emptied into an int64 total. One ``measure`` call owns each accumulator.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array

from privstats.errors import DataError, SchemaError

__all__ = ["ExactSum", "add_gram", "exact_rows", "require_known", "require_room"]

_TILE = 1 << 16
_STRIP = 1 << 21  # entries of a strip of a sparse product
_STRIPS = 6  # at least where rows are long, so that much of the lower triangle is not formed
_LONG = 8  # entries of a row from which on that pays for taking columns out
_SHORT = 256  # columns up to which numpy's symmetric product takes less time than scipy's
_SIDE = 64  # rows that are cast and copied onto their columns while they are cached


def exact_rows(bound: int) -> int:
    """Most rows whose terms, each at most ``bound`` in absolute value, sum exactly in float64: floor(2**53 / bound).

    For second moments of grid vectors the bound is 4**f: sum |x_i x_j| <= sum ||x||^2 <= rows 4**f.
    """
    return (1 << 53) // bound


def require_room(records: int, bound: int) -> None:
    """Raise DataError where ``records`` terms of at most ``bound`` could pass 2**63."""
    if records * bound >= 1 << 63:
        most = ((1 << 63) - 1) // bound
        raise DataError(f"at most {most} records fit 64-bit totals on this grid; lower grid_bits or measure fewer")


def require_known(asked: Collection[str], known: Collection[str]) -> None:
    """Raise SchemaError for a statistic that no code here sums; without this check it would stay zero."""
    unknown = [letter for letter in asked if letter not in known]
    if unknown:
        raise SchemaError(f"measure forms no sum for statistic {', '.join(unknown)}; leave it out of the schema")


class ExactSum:
    """A sum over records of arrays of one shape, each entry at most ``bound`` per record.

    Attributes:
        partial: float64 accumulator; add into it in place after :meth:`admit`.
    """

    def __init__(self, shape: tuple[int, ...], bound: int) -> None:
        self.partial = np.empty(shape)  # numpy asks for large pages here, and not where the system zeroes them
        self.partial.fill(0.0)
        self._total: NDArray[np.int64] | None = None
        self._bound = bound
        self._pending = self._records = 0

    def admit(self, rows: int) -> None:
        """Announce ``rows`` more records, at most ``exact_rows(bound)``, before they are added to ``partial``.

        Raises:
            DataError: the totals could pass 2**63.
        """
        if self._pending + rows > exact_rows(self._bound):
            self._empty()
        self._pending += rows
        self._records += rows
        require_room(self._records, self._bound)

    def result(self, *, symmetric: bool = False) -> NDArray[np.int64]:
        """The sum as int64; it takes over the accumulator's memory, so the accumulator cannot be used again.

        Args:
            symmetric: of the last two axes only the lower triangles count; each is copied above its diagonal.
        """
        if self._total is not None:
            self._empty()
        source = self.partial if self._total is None else self._total
        whole = source.view(np.int64)
        if symmetric:
            d = whole.shape[-1]
            for lower, block in zip(source.reshape(-1, d, d), whole.reshape(-1, d, d), strict=True):
                _mirror(lower, block)
        elif self._total is None:
            _cast_in_place(self.partial.reshape(-1), whole.reshape(-1))
        return whole

    def _empty(self) -> None:
        if self._total is None:
            self._total = np.zeros(self.partial.shape, np.int64)
        flat, total = self.partial.reshape(-1), self._total.reshape(-1)
        for start in range(0, flat.size, _TILE):
            total[start : start + _TILE] += flat[start : start + _TILE].astype(np.int64)
        flat[:] = 0.0
        self._pending = 0


def add_gram(rows: NDArray[np.float64] | csr_array, into: NDArray[np.float64]) -> None:
    """Add rows^T rows into the C-ordered ``(d, d)`` array ``into``, dense or sparse; at least its lower triangle.

    Short rows are multiplied by numpy, which knows that a product with the own transpose is symmetric, and whose BLAS
    may be newer than scipy's; of longer ones scipy adds the lower triangle in place.
    """
    if isinstance(rows, csr_array):
        _add_sparse_gram(rows, into)
    elif len(into) <= _SHORT:
        into += rows.T @ rows
    else:
        dsyrk(1.0, np.ascontiguousarray(rows).T, beta=1.0, c=into.T, overwrite_c=1)


def _add_sparse_gram(rows: csr_array, into: NDArray[np.float64]) -> None:
    """The same of sparse rows, by strips of the triangle: each leaves the columns behind it out."""
    d = len(into)
    turned = rows.T.tocsr()
    strips = _STRIPS if rows.nnz > _LONG * rows.shape[0] else 1
    step = max(1, min(_STRIP // d, -(-d // strips)))
    for start in range(0, d, step):
        end = min(start + step, d)
        strip = (turned[start:end] @ rows[:, :end]).toarray()
        into[start:end, :start] += strip[:, :start]
        into[start:end, start:end] += np.tril(strip[:, start:])


def _cast_in_place(floats: NDArray[np.float64], whole: NDArray[np.int64]) -> None:
    """Cast between two views of one memory, in tiles, because numpy would copy all of an overlapping cast first."""
    for start in range(0, floats.size, _TILE):
        whole[start : start + _TILE] = floats[start : start + _TILE].copy()


def _mirror(lower: NDArray[np.generic], whole: NDArray[np.int64]) -> None:
    """Write the lower triangle of ``(d, d)`` into ``whole``, on both sides of the diagonal; both may be one memory."""
    for start in range(0, len(lower), _SIDE):
        end = start + _SIDE
        strip = lower[start:end, :end].astype(np.int64)
        whole[:start, start:end] = strip[:, :start].T
        corner = np.tril(strip[:, start:])
        strip[:, start:] = corner + np.tril(corner, -1).T
        whole[start:end, :end] = strip
