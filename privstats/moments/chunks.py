"""Blocks of raw rows become chunks of grid vectors, as large as BLAS likes and as exactness allows.

Transforms and snaps tile by tile into one reused buffer, so the memory is one chunk however many records come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments.clip_report import ClipReport, norm_histogram
from privstats.moments.door import Block
from privstats.moments.exact_sum import exact_rows
from privstats.moments.grid import feature_grid, target_grid
from privstats.schema import RidgeSchema, Schema
from privstats.transforms import apply

__all__ = ["GridChunks", "chunk_rows"]

_CHUNK_BYTES = 16 << 20
_GROUPED_CHUNK_BYTES = 64 << 20  # with S, so that a chunk holds enough rows of each class for a rank-k update to pay


def chunk_rows(schema: Schema) -> int:
    """Rows per chunk: a fixed amount of memory, at least 64 rows, never more than sum exactly in float64."""
    target = _GROUPED_CHUNK_BYTES if "S" in schema.statistics else _CHUNK_BYTES
    return min(max(64, target // (8 * schema.features)), exact_rows(schema.steps**2))


class GridChunks:
    """An iterator of ``(grid rows, labels or grid targets)``; both are views of buffers that the next step overwrites.

    Attributes:
        report: what the clip did to the rows handed out so far.
    """

    def __init__(self, schema: Schema, blocks: Iterable[Block]) -> None:
        size = chunk_rows(schema)
        self._schema, self._blocks = schema, blocks
        self._grid = feature_grid(schema)
        self._target_grid = target_grid(schema) if isinstance(schema, RidgeSchema) else None
        self._rows = np.empty((size, schema.features))
        self._norms = np.empty(size)
        wide = (schema.targets,) if isinstance(schema, RidgeSchema) else ()
        self._targets: NDArray[Any] = np.empty((size, *wide), np.float64 if wide else np.intp)
        self.report = ClipReport(0, 0, 0, (0,) * norm_histogram(np.empty(0), 1).size, 0, schema.features)

    def __iter__(self) -> Iterator[tuple[NDArray[np.float64], NDArray[Any]]]:
        filled = 0
        for rows, targets in self._blocks:
            taken = 0
            while taken < len(rows):
                count = min(len(rows) - taken, len(self._rows) - filled)
                self._fill(slice(filled, filled + count), rows[taken : taken + count], targets[taken : taken + count])
                taken, filled = taken + count, filled + count
                if filled == len(self._rows):
                    yield self._finish(filled)
                    filled = 0
        if filled:
            yield self._finish(filled)

    def _fill(self, at: slice, rows: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
        if self._schema.transform:
            wide = rows.astype(np.float64)
            self._grid.require_finite(wide)
            rows = apply(self._schema.transform, wide)
        snapped = self._grid.snap(rows, self._rows[at])
        self._norms[at] = snapped.norms
        targets_clipped = 0
        if self._target_grid is None:
            self._targets[at] = targets
        else:
            targets_clipped = self._target_grid.snap(targets, self._targets[at]).clipped
        self.report = replace(
            self.report,
            clipped=self.report.clipped + snapped.clipped,
            targets_clipped=self.report.targets_clipped + targets_clipped,
            energy=self.report.energy + snapped.energy,
        )

    def _finish(self, count: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
        bins = norm_histogram(self._norms[:count], self._schema.steps)
        counts = tuple(int(a) + int(b) for a, b in zip(self.report.norm_counts, bins, strict=True))
        self.report = replace(self.report, records=self.report.records + count, norm_counts=counts)
        return self._rows[:count], self._targets[:count]
