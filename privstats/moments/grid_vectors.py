"""Return the grid vectors of records, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.intake.frames import in_memory
from privstats.moments.grid import feature_grid, through_maps
from privstats.records.containers import dense, feature_rows, fitting
from privstats.records.table import in_codes
from privstats.schema import Schema, require_schema

if TYPE_CHECKING:
    from privstats.intake.accepted import RecordsLike


def quantize(schema: Schema, X: RecordsLike) -> NDArray[np.int64]:
    """Return the grid vectors that :func:`measure` sums: int64 ``(n, features)``, each of norm at most 2**grid_bits.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=4)
        >>> ps.moments.quantize(schema, [[0.5, 0.0], [0.0, 3.0]]).tolist()
        [[8, 0], [0, 15]]
    """
    require_schema(schema, "quantize(schema, X)")
    if schema.appended or not schema.checks_records:  # the latter: of another package, with vectors of its own
        raise SchemaError(f"the vectors of a {type(schema).__name__} hold more than X; call measure(schema, X, y)")
    records = in_codes(schema.reading, in_memory(X), (), refuse=True)[0]
    rows = fitting(schema.reading, feature_rows(schema.reading, records))
    raw = dense(rows[0 : rows.shape[0]])
    grid = feature_grid(schema)
    if schema.transform:
        raw = through_maps(schema.reading, raw, grid)
    out = np.empty((len(raw), schema.features))
    grid.quantize(raw, out)
    return out.astype(np.int64)
