"""Sparse matrices at the door: looked through before scipy's compiled code walks along their indices.

A matrix that was damaged after it was built would end there in a bare error, a wrong sum or a crash. Part of the door.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array

from privstats.errors import DataError

__all__ = ["densified", "sparse_rows"]

_COMPRESSED = {"csr": csr_array, "csc": csc_array, "bsr": bsr_array}


def sparse_rows(array: Any, field: str) -> csr_array:
    """A sparse matrix of any format by rows; the caller's stays as it is.

    Raises:
        DataError: its parts contradict each other.
    """
    try:
        return _by_rows(array)
    except (ValueError, TypeError, AttributeError, IndexError):
        raise DataError(
            f"{field} is a sparse matrix with indices outside its shape or parts that contradict each other; rebuild it"
        ) from None


def densified(tile: csr_array) -> NDArray[np.generic]:
    """Rows as a dense array.

    Raises:
        DataError: an entry is there twice. Adding up duplicates is a choice of order, and their owner may not know of
            them: refuse rather than guess.
    """
    if not tile.has_canonical_format:
        rows = np.repeat(np.arange(tile.shape[0]), np.diff(tile.indptr))
        if len(np.unique(rows * tile.shape[1] + tile.indices)) < tile.nnz:
            raise DataError("X is a sparse matrix with duplicate entries; call X.sum_duplicates() first")
    return tile.toarray()


def _by_rows(array: Any) -> csr_array:
    """Checked before the conversion, which trusts every index, and after it, for what was no index before."""
    if array.format in _COMPRESSED:
        _require_whole(array.indices, array.indptr)
        fresh = _COMPRESSED[array.format]((array.data, array.indices, array.indptr), shape=array.shape)  # shares memory
        fresh.check_format(full_check=True)
        array = fresh
    elif array.format == "coo":
        _require_whole(*array.coords)
        for index, size in zip(array.coords, array.shape, strict=True):
            if index.size and (index.min() < 0 or index.max() >= size):
                raise IndexError("an index lies outside the shape")
    rows = csr_array(array)
    rows.check_format(full_check=True)
    return rows


def _require_whole(*indices: NDArray[np.generic]) -> None:
    if any(index.dtype.kind not in "iu" for index in indices):
        raise TypeError("indices must be whole numbers")
