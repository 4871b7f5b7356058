"""The measuring instrument for records in host memory: tiles of raw rows in, exact moments out.

Tiles are transformed and snapped into one reused chunk, and full chunks are summed, so the memory is one chunk and the
result however many records come. Lives inside one ``measure``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments.class_moments import ClassMoments
from privstats.moments.class_sums import ClassSums
from privstats.moments.clip_report import ClipReport, norm_histogram
from privstats.moments.exact_sum import exact_rows
from privstats.moments.grid import feature_grid, target_grid
from privstats.moments.ridge_moments import RidgeMoments
from privstats.moments.ridge_sums import RidgeSums
from privstats.schema import ClassSchema, RecordSchema
from privstats.transforms import apply

__all__ = ["HostMeter", "chunk_rows"]

_CHUNK_BYTES = 16 << 20
_GROUPED_CHUNK_BYTES = 64 << 20  # with S, so that a chunk holds enough rows of each class for a rank-k update to pay

_MOST_ROWS = 1 << 17


def chunk_rows(schema: RecordSchema) -> int:
    """Rows per chunk: a fixed amount of memory, 64 to 131,072 rows, never more than sum exactly in float64."""
    target = _GROUPED_CHUNK_BYTES if "S" in schema.statistics else _CHUNK_BYTES
    return min(max(64, target // (8 * schema.features)), _MOST_ROWS, exact_rows(schema.bound))


class HostMeter:
    """Sums over the tiles seen so far."""

    def __init__(self, schema: RecordSchema) -> None:
        size = chunk_rows(schema)
        self._schema = schema
        self._grid = feature_grid(schema)
        self._target_grid = None if isinstance(schema, ClassSchema) else target_grid(schema)
        self._sums: Any = ClassSums(schema) if isinstance(schema, ClassSchema) else RidgeSums(schema)
        self._rows = np.empty((size, schema.features))
        self._targets: NDArray[Any] = (
            np.empty(size, np.intp) if isinstance(schema, ClassSchema) else np.empty((size, schema.targets))
        )
        self._norms = np.empty(size)
        self._filled = 0
        self._clipped = self._targets_clipped = self._energy = 0
        self._norm_counts = norm_histogram(np.empty(0), 1)

    def add(self, rows: NDArray[Any], targets: NDArray[Any]) -> None:
        """Add raw rows and their labels or targets.

        Raises:
            DataError: an entry is NaN or infinite.
        """
        if self._schema.transform:
            wide = rows.astype(np.float64)
            self._grid.require_finite(wide)
            rows = apply(self._schema.transform, wide)
        taken = 0
        while taken < len(rows):
            count = min(len(rows) - taken, len(self._rows) - self._filled)
            self._fill(rows[taken : taken + count], targets[taken : taken + count])
            taken += count
            if self._filled == len(self._rows):
                self._flush()

    def moments(self) -> ClassMoments | RidgeMoments:
        """The exact moments of everything added; the meter is spent."""
        self._flush()
        report = ClipReport(
            records=int(self._norm_counts.sum()),
            clipped=self._clipped,
            targets_clipped=self._targets_clipped,
            norm_counts=tuple(self._norm_counts.tolist()),
            energy=self._energy,
            features=self._schema.features,
        )
        moments: ClassMoments | RidgeMoments = self._sums.moments(report)
        return moments

    def _fill(self, rows: NDArray[Any], targets: NDArray[Any]) -> None:
        at = slice(self._filled, self._filled + len(rows))
        snapped = self._grid.snap(rows, self._rows[at])
        self._norms[at] = snapped.norms
        self._clipped += snapped.clipped
        self._energy += snapped.energy
        if self._target_grid is None:
            self._targets[at] = targets
        else:
            matrix = targets[:, None] if targets.ndim == 1 else targets
            self._targets_clipped += self._target_grid.snap(matrix, self._targets[at]).clipped
        self._filled = at.stop

    def _flush(self) -> None:
        chunk = slice(0, self._filled)
        self._norm_counts += norm_histogram(self._norms[chunk], self._schema.steps)
        if self._filled:
            self._sums.add(self._rows[chunk], self._targets[chunk])
        self._filled = 0
