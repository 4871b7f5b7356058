"""Records through the meters: tiles of rows on the host or on a device, to class or ridge moments.

The sums of records as such. Kinds of moments that are more than that (a map by published values, a function of one
party's sums) have rooms of their own beside it.
"""

from __future__ import annotations

from typing import Any

from privstats.moments.class_moments import ClassMoments
from privstats.moments.device_meter import DeviceMeter
from privstats.moments.door import count_of, tiles, tiles_of_batches
from privstats.moments.host_meter import HostMeter
from privstats.moments.progress import show_progress
from privstats.moments.ridge_moments import RidgeMoments
from privstats.moments.tensors import is_tensor
from privstats.schema import ClassSchema, RidgeSchema

__all__ = ["measured"]


def measured(schema: ClassSchema | RidgeSchema, X: Any, y: Any, progress: bool = False) -> ClassMoments | RidgeMoments:
    """The exact moments of records, as ``measure`` describes them.

    Raises:
        DataError: records that do not fit the schema.
    """
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
