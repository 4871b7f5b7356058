"""Sum records exactly in host memory, tile by tile.

Dense sums need memory for one chunk and the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from privstats.intake.arrays import is_tensor
from privstats.moments.base import Moments, Summed
from privstats.moments.clip_report import ClipReport, ClipTally
from privstats.moments.grid import GridChunk, exact_rows, feature_grid, quantized, through_maps
from privstats.moments.record_sums import RecordTerms
from privstats.records.containers import dense
from privstats.records.reading import Reading

if TYPE_CHECKING:
    from privstats.moments.adders import Adder
    from privstats.records.containers import Loaded
    from privstats.records.opened import Opened
    from privstats.records.tiles import Tile

# Bytes and rows of a chunk. At most 2**14 rows, so that a chunk of short rows stays in the last-level cache.
_CHUNK = 16 << 20, 1 << 14

# With S a chunk is larger, so that it holds enough rows of each class for a rank-k update.
_GROUPED_CHUNK = 64 << 20, 1 << 17


def chunk_rows(schema: Summed) -> int:
    """Return the rows per chunk: 64 to 131,072, or fewer if float64 cannot sum 64 records exactly."""
    size, maximum = _GROUPED_CHUNK if "S" in schema.statistics else _CHUNK
    return min(max(64, size // (8 * schema.features)), maximum, exact_rows(schema.bound))


class CpuAccumulator:
    """Exact sums of records, added chunk by chunk.

    Args:
        add: receives grid vectors and labels or targets, in memory that is reused; None: they are summed.
    """

    def __init__(self, schema: Summed, add: Callable[[NDArray[np.float64], NDArray[Any]], None] | None = None) -> None:
        size = chunk_rows(schema)
        self._schema = schema
        self._adder: Adder = schema.adder()
        self._add: Callable[[NDArray[np.float64], NDArray[Any]], None] = self._adder.add if add is None else add
        self._grid = feature_grid(schema)
        self._rows = np.empty((size, schema.features))
        self._targets = self._adder.empty(size)
        self._chunk = GridChunk(self._grid, self._rows)
        self._filled = 0
        self._tally = ClipTally(schema.features, schema.grid_steps)

    def add(self, rows: NDArray[Any], targets: NDArray[Any]) -> None:
        """Add raw rows and their labels or targets."""
        if self._schema.transform:
            rows = through_maps(self._schema.reading, rows, self._grid)
        consumed = 0
        while consumed < len(rows):
            count = min(len(rows) - consumed, len(self._rows) - self._filled)
            self._fill(rows[consumed : consumed + count], targets[consumed : consumed + count])
            consumed += count
            if self._filled == len(self._rows):
                self._flush()

    def report(self) -> ClipReport:
        """Return the clip's effect on all records, and end the accumulator."""
        self._flush()
        return self._tally.report()

    def moments(self) -> Moments:
        """Return the exact moments, and end the accumulator."""
        report = self.report()
        return self._schema.exact(self._adder.totals(), clip_report=report)

    def _fill(self, rows: NDArray[Any], targets: NDArray[Any]) -> None:
        at = slice(self._filled, self._filled + len(rows))
        self._chunk.fill(rows)
        with np.errstate(over="ignore"):
            self._targets[at] = targets.reshape(self._targets[at].shape)
        self._filled = at.stop

    def _flush(self) -> None:
        done = self._chunk.finish()
        targets, cut = self._adder.integers(self._targets[: self._filled])
        self._tally.add(done.norms, clipped=done.clipped, energy=done.energy, targets_clipped=cut)
        if self._filled:
            self._add(self._rows[: self._filled], targets)
        self._filled = 0


class SparseAccumulator:
    """Exact sums of sparse rows, for schemas without a transform."""

    def __init__(self, schema: Summed) -> None:
        self._schema = schema
        self._adder: Adder = schema.adder()
        self._tally = ClipTally(schema.features, schema.grid_steps)

    def add(self, rows: csr_array, targets: NDArray[Any]) -> None:
        """Add at most ``exact_rows(schema.bound)`` raw rows."""
        grid, done = quantized(feature_grid(self._schema), rows)
        targets, cut = self._adder.integers(targets)
        self._tally.add(done.norms, clipped=done.clipped, energy=done.energy, targets_clipped=cut)
        self._adder.add(grid, targets)

    def moments(self) -> Moments:
        """Return the exact moments."""
        return self._schema.exact(self._adder.totals(), clip_report=self._tally.report())


def measured(schema: Summed, records: Opened, *, reading: Reading | None = None) -> Moments:
    """Return the exact moments of records.

    Args:
        reading: what is read of each record; None: the schema's. Without labels all records are of the first class.
    """
    counted, excluded = _counted(schema), records.excluded
    tiles = records.tiles(
        reading or schema.reading,
        grouped="S" in schema.statistics,
        sparse_rows=exact_rows(schema.bound),
        device_labels=counted is None,  # DeviceAccumulator checks them, and other entries where records are excluded
    )
    used: dict[type[Any], Any] = {}  # an accumulator adds only tiles of its own kind
    for tile in tiles:
        _require_readable(schema, tile)
        kind = counted or _accumulator_of(tile.rows)
        if kind not in used:
            unchecked = excluded is not None and counted is None and is_tensor(tile.rows)
            used[kind] = kind(schema, excluded.exclude) if excluded and unchecked else kind(schema)
        used[kind].add(tile.rows, tile.targets)
    result = [each.moments() for each in used.values()] or [CpuAccumulator(schema).moments()]
    total: Moments = sum(result[1:], result[0])
    return total


def _counted(schema: Summed) -> type[Any] | None:
    if schema.reading.declaration is None:
        return None
    from privstats.moments.cell_sums import CellAccumulator, sums_by_cells

    return CellAccumulator if sums_by_cells(schema) else None


def _accumulator_of(rows: Loaded) -> type[Any]:
    if isinstance(rows, np.ndarray):
        return CpuAccumulator
    if issparse(rows):
        return SparseAccumulator
    from privstats.moments.device_sums import DeviceAccumulator

    return DeviceAccumulator


def _require_readable(schema: Summed, tile: Tile) -> None:
    """Refuse an unreadable feature of a record that lacks its target."""
    if tile.gone is not None:
        grid = feature_grid(schema)
        grid.require_finite(through_maps(schema.reading, tile.gone, grid))


def terms_on_grid(schema: Summed, records: Opened, *, reading: Reading | None = None) -> RecordTerms:
    """Return each record's contribution; all dense rows are in memory at once."""
    adder, seen = schema.adder(), [np.empty(0, np.bool_)]
    chunks, others = [np.empty((0, schema.features))], [adder.empty(0)]

    def collect(rows: NDArray[np.float64], targets: NDArray[Any]) -> None:
        chunks.append(rows.copy())
        others.append(targets.copy())

    accumulator = CpuAccumulator(schema, collect)
    for tile in records.tiles(reading or schema.reading):
        _require_readable(schema, tile)
        seen.append(np.ones(tile.rows.shape[0], np.bool_) if tile.seen is None else tile.seen)
        accumulator.add(*map(dense, (tile.rows, tile.targets)))
    report = accumulator.report()
    grid = chunks[1] if len(chunks) == 2 else np.concatenate(chunks)
    return RecordTerms(np.concatenate(seen), adder.terms(grid, np.concatenate(others)), {"clip_report": report})
