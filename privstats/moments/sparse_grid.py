"""Sparse rows on the grid, by their entries alone: the grid vectors, bit for bit, that their dense form would have.

A zero stays a zero on the grid, squared norms are sums of whole numbers, and the shrink reads a row's entries side by
side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.moments.grid import Grid, Quantized

__all__ = ["quantized", "windows"]

_WAITING = 1 << 17  # entries of rows to shrink at once
_ENTRIES = 1 << 21


def windows(rows: csr_array, most_rows: int) -> Iterator[slice]:
    """Windows of at most ``most_rows`` rows in order."""
    entries = _least_entries(rows.shape[1])
    start = 0
    while start < rows.shape[0]:
        last = min(int(rows.indptr[start]) + entries, int(rows.indptr[-1]))  # which its own integers can hold
        full = int(np.searchsorted(rows.indptr, rows.indptr.dtype.type(last), side="right")) - 1
        stop = min(max(full, start + 1), start + most_rows, rows.shape[0])
        yield slice(start, stop)
        start = stop


def _least_entries(columns: int) -> int:
    """Least number of entries of a window: at least a quarter of a second moment's, so that products dominate its
    cost."""
    return max(_ENTRIES, columns**2 // 4)


def quantized(grid: Grid, rows: csr_array) -> tuple[csr_array, Quantized]:
    """The grid vectors of rows ``(n, d)``, sparse float64, and the effect of quantizing them.

    Raises:
        DataError: an entry is NaN or infinite.
    """
    out = np.empty((rows.nnz, 1))
    entries = replace(grid, columns=1).rounded(rows.data[:, None], out)
    whole = csr_array((out[:, 0], rows.indices, rows.indptr), shape=rows.shape)
    squares = np.asarray(csr_array((entries, rows.indices, rows.indptr), shape=rows.shape) @ np.ones(rows.shape[1]))
    norms, clipped = np.sqrt(squares), 0
    for members in _batches(rows, grid.outside(squares)):
        place, there = _places(rows, members)
        raw = np.where(there, np.asarray(rows.data, np.float64)[place], 0.0)
        shrunk, squares[members], norms[members] = grid.shrink(raw)
        whole.data[place[there]] = shrunk[there]
        clipped += grid.longer(norms[members])
    return whole, Quantized(norms, clipped, int(squares.astype(np.int64).sum()))


def _batches(rows: csr_array, outside: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Rows grouped by number of entries, the longest first, so that padding wastes little memory."""
    counts = np.diff(rows.indptr)[outside]
    order = outside[np.argsort(-counts, kind="stable")]
    counts = -np.sort(-counts)
    start = 0
    while start < len(order):
        stop = start + max(1, _WAITING // int(counts[start]))
        yield order[start:stop]
        start = stop


def _places(rows: csr_array, members: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Indices of the members' entries in ``data``, one row per member, padded to the longest; and a mask of the real
    ones."""
    starts, ends = rows.indptr[members, None].astype(np.intp), rows.indptr[members + 1, None]
    place = starts + np.arange((ends - starts).max())
    there = place < ends
    return np.where(there, place, starts), there
