"""The door: what the caller hands in becomes blocks of numeric rows and checked labels or targets.

Every complaint about data is raised here or at the grid, before any moment exists. Knows numpy, scipy sparse, batches;
files and tensors have rooms of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from privstats.errors import DataError, SchemaError
from privstats.schema import ClassSchema, RidgeSchema, Schema
from privstats.transforms import output_features

__all__ = ["Block", "Rows", "array_blocks", "batch_blocks", "check_features", "check_labels", "check_targets"]

Rows: TypeAlias = Any
"""A numpy array or csr_array of shape (n, inputs) of real numbers."""
Block: TypeAlias = tuple[NDArray[np.generic], NDArray[np.generic]]

_TILE_BYTES = 1 << 18  # a tile of float64 rows that stays in the second-level cache from the first pass to the last


def array_blocks(schema: Schema, X: Any, y: Any) -> Iterator[Block]:
    """Tiles ``(rows, labels)`` of one array of records, in order; rows are dense and numeric."""
    rows = check_features(schema, X)
    targets = check_labels(schema, y) if isinstance(schema, ClassSchema) else check_targets(schema, y)
    if rows.shape[0] != len(targets):
        raise DataError(f"X has {rows.shape[0]} rows but y has {len(targets)}; give one label or target per row")
    step = max(16, _TILE_BYTES // (8 * max(rows.shape[1], schema.features)))
    for start in range(0, rows.shape[0], step):
        tile = rows[start : start + step]
        yield (tile.toarray() if isinstance(tile, csr_array) else tile), targets[start : start + step]


def batch_blocks(schema: Schema, batches: Iterable[Any]) -> Iterator[Block]:
    """Tiles of an iterable of ``(X, y)`` batches, in order.

    Raises:
        DataError: the iterable yields nothing, something else than pairs, or batches that do not fit the schema.
    """
    empty = True
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise DataError("a batch iterable must yield (X, y) pairs; wrap other batches in a generator that does")
        empty = False
        yield from array_blocks(schema, *batch)
    if empty:
        raise DataError("the batch iterable yielded nothing; give at least one (X, y) batch, possibly of no rows")


def check_features(schema: Schema, X: Any) -> Rows:
    """``X`` as rows of real numbers that the schema accepts; nothing is copied that is numeric already."""
    rows = _sparse_rows(X) if issparse(X) else np.asarray(X)
    if rows.ndim != 2:
        raise DataError(f"X must have shape (records, features), got {rows.ndim} dimensions; reshape it")
    if rows.dtype.kind not in "fiub":
        raise DataError(f"X must hold real numbers, got dtype {rows.dtype}; convert it to float32 or float64")
    try:
        outputs = output_features(schema.transform, rows.shape[1])
    except SchemaError as error:
        raise DataError(f"X does not fit the transform: {error}") from None
    if outputs != schema.features:
        raise DataError(f"X gives {outputs} features but the schema says {schema.features}; measure the same features")
    return rows


def check_labels(schema: ClassSchema, y: Any) -> NDArray[np.intp]:
    """Labels as ``(n,)`` whole numbers in 0..C-1."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError(f"y must have shape (records,), got {labels.ndim} dimensions; give one class index per record")
    if labels.size and labels.dtype.kind not in "iub":
        raise DataError(f"y must hold whole numbers 0..classes-1, got dtype {labels.dtype}; encode the labels")
    if labels.size and not (labels.min() >= 0 and labels.max() < schema.classes):
        raise DataError(f"y has labels outside 0..{schema.classes - 1}; encode them, or raise classes in the schema")
    return labels.astype(np.intp, copy=False)


def check_targets(schema: RidgeSchema, y: Any) -> NDArray[np.generic]:
    """Targets as ``(n, targets)`` real numbers; ``(n,)`` is taken as one target."""
    targets = np.asarray(y)
    if targets.size and targets.dtype.kind not in "fiub":
        raise DataError(f"y must hold real numbers, got dtype {targets.dtype}; convert it to float64")
    if targets.ndim == 1:
        targets = targets[:, None]
    if targets.ndim != 2 or targets.shape[1] != schema.targets:
        raise DataError(f"y must have shape (records, {schema.targets}) under this schema; reshape it")
    return targets


def _sparse_rows(X: Any) -> csr_array:
    rows = csr_array(X)
    if rows.nnz and not (rows.indices.min() >= 0 and rows.indices.max() < rows.shape[1]):
        raise DataError("X is a sparse matrix with column indices outside its shape; rebuild it")
    # Adding up duplicates is a choice of order, and their owner may not know of them: refuse rather than guess.
    if not rows.has_canonical_format and _has_duplicates(rows):
        raise DataError("X is a sparse matrix with duplicate entries; call X.sum_duplicates() first")
    return rows


def _has_duplicates(rows: csr_array) -> bool:
    ordered = rows.sorted_indices()  # a copy: the caller's matrix stays as it is
    same_row = np.ones(ordered.nnz, bool)
    same_row[ordered.indptr[:-1][np.diff(ordered.indptr) > 0]] = False
    return bool((same_row[1:] & (np.diff(ordered.indices) == 0)).any())
