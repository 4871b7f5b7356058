"""From records to exact moments, in one call: the front of the room.

Arrays or an iterable of batches go in, frozen whole-number moments come out, or an error and nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.chunks import GridChunks
from privstats.moments.class_moments import ClassMoments
from privstats.moments.class_sums import ClassSums
from privstats.moments.door import Block, array_blocks, batch_blocks, check_features
from privstats.moments.grid import feature_grid
from privstats.moments.progress import show_progress
from privstats.moments.ridge_moments import RidgeMoments
from privstats.moments.ridge_sums import RidgeSums
from privstats.schema import ClassSchema, RidgeSchema, Schema
from privstats.transforms import apply

__all__ = ["measure", "quantize"]


@overload
def measure(schema: ClassSchema, X: Any, y: Any = None, *, progress: bool = False) -> ClassMoments: ...
@overload
def measure(schema: RidgeSchema, X: Any, y: Any = None, *, progress: bool = False) -> RidgeMoments: ...
def measure(schema: Schema, X: Any, y: Any = None, *, progress: bool = False) -> ClassMoments | RidgeMoments:
    """Exact moments of records: transformed, clipped, rounded to the grid and summed in whole numbers (MATH 1).

    The result does not depend on the order of the records, on how they are cut into batches, or on the container they
    come in; only the folds of a ridge schema depend on a record's position.

    Args:
        schema: what to measure.
        X: records ``(n, features)`` (features before the transform), of any real dtype; numpy, scipy sparse or
            nested lists. Without ``y``: an iterable of ``(X, y)`` batches, for example a generator.
        y: class labels ``(n,)``, whole numbers in 0..C-1; or regression targets ``(n,)`` or ``(n, targets)``.
        progress: show a progress bar on the terminal.

    Raises:
        DataError: records that do not fit the schema; nothing has been measured then.
    """
    blocks = array_blocks(schema, X, y) if y is not None else batch_blocks(schema, _batches(X))
    return _sum(schema, show_progress(blocks, X) if progress else blocks)


def quantize(schema: Schema, X: Any) -> NDArray[np.int64]:
    """The grid vectors that :func:`measure` sums: int64 of shape ``(n, features)``, each of norm at most 2**grid_bits.

    Raises:
        DataError: rows that do not fit the schema.
    """
    rows = check_features(schema, X)
    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    grid = feature_grid(schema)
    if schema.transform:
        grid.require_finite(dense)
        dense = apply(schema.transform, dense.astype(np.float64))
    out = np.empty((len(dense), schema.features))
    grid.snap(dense, out)
    return out.astype(np.int64)


def _sum(schema: Schema, blocks: Iterable[Block]) -> ClassMoments | RidgeMoments:
    chunks = GridChunks(schema, blocks)
    sums: Any = ClassSums(schema) if isinstance(schema, ClassSchema) else RidgeSums(schema)
    for rows, targets in chunks:
        sums.add(rows, targets)
    moments: ClassMoments | RidgeMoments = sums.moments(chunks.report)
    return moments


def _batches(X: Any) -> Iterable[Any]:
    if hasattr(X, "ndim") or isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise DataError("y is missing; give labels or targets beside X, or an iterable of (X, y) batches as X")
    return X
