"""Records to exact sums: tiles of rows in, class or ridge moments out, in host memory.

Tiles are transformed and quantised into one reused chunk, and full chunks are summed, so memory is one chunk and the
result, for any number of records. Tensors are summed on their device (``device_sums``). Kinds of moments that are more
than sums of records have modules of their own. One ``measure`` call owns each accumulator.

A ridge record's fold is a hash of the record, not its position. By position, removing one record would move every
later record of its client to another fold, and no noise sized for one record hides that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from privstats.moments.arrays import is_tensor
from privstats.moments.class_moments import ClassMoments, ClassSums
from privstats.moments.clip_report import ClipReport, no_records, norm_histogram
from privstats.moments.code_rows import behind, cells_of
from privstats.moments.exact_sum import exact_rows
from privstats.moments.grid import GridChunk, feature_grid, target_grid
from privstats.moments.input_validation import count_of, tiles, tiles_of_batches
from privstats.moments.ridge_moments import RidgeMoments, RidgeSums
from privstats.progress import progress_bar
from privstats.schema import RecordSchema, RidgeSchema, row_of

__all__ = ["CpuAccumulator", "SparseAccumulator", "chunk_rows", "measured"]


_CHUNK = 16 << 20, 1 << 14  # bytes and rows: short rows then stay in the last cache until they are summed
_GROUPED_CHUNK = 64 << 20, 1 << 17  # with S, so that a chunk holds enough rows of each class for a rank-k update to pay


def chunk_rows(schema: RecordSchema) -> int:
    """Rows per chunk: a fixed amount of memory, 64 to 131,072 rows, never more than sum exactly in float64."""
    size, most = _GROUPED_CHUNK if "S" in schema.statistics else _CHUNK
    return min(max(64, size // (8 * schema.features)), most, exact_rows(schema.bound))


class CpuAccumulator:
    """Sums over the tiles seen so far, or what ``sums`` makes of the vectors on the grid."""

    def __init__(self, schema: RecordSchema, sums: Any = None) -> None:
        size = chunk_rows(schema)
        self._schema = schema
        self._grid = feature_grid(schema)
        self._kind = row_of(_KINDS, schema, "sum over records")
        self._sums: Any = self._kind.sums(schema) if sums is None else sums
        self._rows = np.empty((size, schema.features))
        self._targets = self._kind.empty(schema, size)
        self._chunk = GridChunk(self._grid, self._rows)
        self._filled = 0
        self._clipped = self._targets_clipped = self._energy = 0
        self._norm_counts = norm_histogram(np.empty(0), 1)

    def add(self, rows: NDArray[Any], targets: NDArray[Any]) -> None:
        """Add raw rows and their labels or targets.

        Raises:
            DataError: an entry is NaN or infinite.
        """
        if self._schema.transform:
            rows = behind(self._schema, rows, self._grid)
        taken = 0
        while taken < len(rows):
            count = min(len(rows) - taken, len(self._rows) - self._filled)
            self._fill(rows[taken : taken + count], targets[taken : taken + count])
            taken += count
            if self._filled == len(self._rows):
                self._flush()

    def moments(self) -> ClassMoments | RidgeMoments:
        """The exact moments of everything added; the accumulator cannot be used again."""
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
        self._chunk.fill(rows)
        with np.errstate(over="ignore"):
            self._targets[at] = targets.reshape(self._targets[at].shape)
        self._filled = at.stop

    def _flush(self) -> None:
        done = self._chunk.finish()
        self._clipped += done.clipped
        self._energy += done.energy
        self._norm_counts += norm_histogram(done.norms, self._schema.steps)
        targets, beside = self._kind.whole(self._schema, self._targets[: self._filled])
        self._targets_clipped += beside
        if self._filled:
            self._sums.add(self._rows[: self._filled], targets)
        self._filled = 0


class SparseAccumulator:
    """Sums over the sparse rows seen so far, by sparse products of their entries; no transform stands before them."""

    def __init__(self, schema: RecordSchema) -> None:
        self._schema = schema
        self._kind = row_of(_KINDS, schema, "sum over records")
        self._sums: Any = self._kind.sums(schema)
        self._report = no_records(schema.features)

    def add(self, rows: csr_array, targets: NDArray[Any]) -> None:
        """Add raw rows and their labels or targets, at most ``exact_rows(schema.bound)``.

        Raises:
            DataError: an entry is NaN or infinite.
        """
        from privstats.moments.sparse_grid import quantized

        schema = self._schema
        whole, found = quantized(feature_grid(schema), rows)
        targets, beside = self._kind.whole(schema, targets)
        counts = tuple(norm_histogram(found.norms, schema.steps).tolist())
        self._report += ClipReport(len(targets), found.clipped, beside, counts, found.energy, schema.features)
        self._sums.add(whole, targets)

    def moments(self) -> ClassMoments | RidgeMoments:
        """The exact moments of everything added; the accumulator cannot be used again."""
        moments: ClassMoments | RidgeMoments = self._sums.moments(self._report)
        return moments


@dataclass(frozen=True)
class _Kind:
    """A kind of plain sums over records.

    Attributes:
        sums: on the host, of a schema.
        empty: room for so many labels or targets.
        whole: labels as they are, or targets on their grid, and how many were clipped.
    """

    sums: Callable[[Any], Any]
    empty: Callable[[Any, int], NDArray[Any]]
    whole: Callable[[Any, NDArray[Any]], tuple[NDArray[Any], int]]


def _on_grid(schema: RidgeSchema, targets: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    raw = targets[:, None] if targets.ndim == 1 else targets
    whole = np.empty(raw.shape)
    return whole, target_grid(schema).quantize(raw, whole).clipped


_KINDS: Mapping[str, _Kind] = {
    "classes": _Kind(
        ClassSums,
        lambda _, size: np.empty(size, np.intp),
        lambda _, labels: (labels, 0),
    ),
    "ridge": _Kind(
        RidgeSums,
        lambda schema, size: np.empty((size, schema.targets)),
        _on_grid,
    ),
}
"""By the schema's task."""


def measured(schema: RecordSchema, X: Any, y: Any, progress: bool = False) -> ClassMoments | RidgeMoments:
    """The exact moments of records, as ``measure`` describes them.

    Raises:
        DataError: records that do not fit the schema.
    """
    parts = tiles_of_batches(schema, X) if y is None else tiles(schema, X, y, sparse=True)
    if getattr(schema, "missing", None) is not None:  # which few plans have
        from privstats.moments.observed import observed

        parts = (observed(schema, *part) for part in parts)
    used: dict[type[Any], Any] = {}
    counted = _counted(schema)
    with progress_bar("records", None if y is None else count_of(X), at_once=progress) as advance:
        for rows, targets in parts:
            kind = counted or _accumulator_of(rows)
            if kind not in used:
                used[kind] = kind(schema)
            used[kind].add(rows, targets)
            advance(rows.shape[0])
    found = [each.moments() for each in used.values()] or [CpuAccumulator(schema).moments()]
    total: ClassMoments | RidgeMoments = sum(found[1:], found[0])
    return total


def _counted(schema: RecordSchema) -> type[Any] | None:
    """The accumulator of declared columns, where counting sums them."""
    if cells_of(schema) is None:
        return None
    from privstats.moments.cell_sums import CellAccumulator, sums_by_cells

    return CellAccumulator if sums_by_cells(schema) else None


def _accumulator_of(rows: Any) -> type[Any]:
    if is_tensor(rows):
        from privstats.moments.device_sums import DeviceAccumulator

        return DeviceAccumulator
    return SparseAccumulator if issparse(rows) else CpuAccumulator
