"""From records to exact moments, in one call: the front of the room.

Arrays, files, tensors or an iterable of batches go in, frozen whole-number moments come out, or an error and nothing.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from privstats.moments.class_moments import ClassMoments
from privstats.moments.device_meter import DeviceMeter
from privstats.moments.door import check_features, count_of, dense, tiles, tiles_of_batches
from privstats.moments.grid import feature_grid
from privstats.moments.host_meter import HostMeter
from privstats.moments.progress import show_progress
from privstats.moments.ridge_moments import RidgeMoments
from privstats.moments.tensors import is_tensor
from privstats.schema import ClassSchema, RidgeSchema, Schema, require_schema
from privstats.transforms import apply

__all__ = ["measure", "quantize"]


@overload
def measure(schema: ClassSchema, X: Any, y: Any = None, *, progress: bool = False) -> ClassMoments: ...
@overload
def measure(schema: RidgeSchema, X: Any, y: Any = None, *, progress: bool = False) -> RidgeMoments: ...
def measure(schema: Schema, X: Any, y: Any = None, *, progress: bool = False) -> ClassMoments | RidgeMoments:
    """Exact moments of records: transformed, clipped, rounded to the grid and summed in whole numbers.

    The result does not depend on the order of the records, on how they are cut into batches, or on the container they
    come in, and moments of parts add up to the moments of the whole. The memory needed beside the result does not grow
    with the records. Why is in docs/moments.md.

    Args:
        schema: what to measure.
        X: records ``(n, features)`` (features before the transform), of any real dtype: a numpy array or memory map,
            the path of a .npy file, a scipy sparse matrix, a torch tensor on any device, nested lists. Without ``y``:
            an iterable of ``(X, y)`` batches of these, for example a generator or a torch ``DataLoader``.
        y: class labels ``(n,)``, whole numbers in 0..C-1; or regression targets ``(n,)`` or ``(n, targets)``.
        progress: show a progress bar on the terminal.

    Raises:
        DataError: records that do not fit the schema; nothing has been measured then.
        SchemaError: ``schema`` is not a schema, for example because it was left out.
    """
    require_schema(schema, "measure(schema, X, y)")
    parts = tiles_of_batches(schema, X) if y is None else tiles(schema, X, y)
    host, device = HostMeter(schema), DeviceMeter(schema)
    for rows, targets in show_progress(parts, count_of(X) if y is not None else None) if progress else parts:
        if is_tensor(rows):
            device.add(rows, targets)
        else:
            host.add(rows, targets)
    on_host: Any = host.moments()
    total: ClassMoments | RidgeMoments = on_host + device.moments() if device.used else on_host
    return total


def quantize(schema: Schema, X: Any) -> NDArray[np.int64]:
    """The grid vectors that :func:`measure` sums: int64 of shape ``(n, features)``, each of norm at most 2**grid_bits.

    Raises:
        DataError: rows that do not fit the schema.
        SchemaError: ``schema`` is not a schema.
    """
    require_schema(schema, "quantize(schema, X)")
    rows = check_features(schema, X)
    raw = dense(rows[0 : rows.shape[0]])
    grid = feature_grid(schema)
    if schema.transform:
        grid.require_finite(raw)
        raw = apply(schema.transform, raw.astype(np.float64))
    out = np.empty((len(raw), schema.features))
    grid.snap(raw, out)
    return out.astype(np.int64)
