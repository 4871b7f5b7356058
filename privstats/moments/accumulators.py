"""Sum records exactly in host memory, tile by tile.

Dense sums need memory for one chunk and the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from privstats.intake.arrays import is_tensor
from privstats.moments.base import Moments
from privstats.moments.clip_report import ClipReport, no_records, norm_histogram
from privstats.moments.grid import GridChunk, exact_rows, feature_grid, quantized, target_grid, through_maps
from privstats.moments.input_validation import count_of, dense, tiles
from privstats.moments.record_sums import ClassSums, Product, RecordTerms, RidgeSums, Term, fold_of_key, grid_key
from privstats.progress import progress_bar
from privstats.schema import ClassSchema, RecordSchema, RidgeSchema, row_of
from privstats.schema.reading import Reading, Targets

# Bytes and rows of a chunk. At most 2**14 rows, so that a chunk of short rows stays in the last-level cache.
_CHUNK = 16 << 20, 1 << 14

# With S a chunk is larger, so that it holds enough rows of each class for a rank-k update.
_GROUPED_CHUNK = 64 << 20, 1 << 17


def chunk_rows(schema: RecordSchema) -> int:
    """Return the rows per chunk: 64 to 131,072, or fewer if float64 cannot sum 64 records exactly."""
    size, maximum = _GROUPED_CHUNK if "S" in schema.statistics else _CHUNK
    return min(max(64, size // (8 * schema.features)), maximum, exact_rows(schema.bound))


class CpuAccumulator:
    """Exact sums of records, added chunk by chunk to the schema's sums or to ``sums``."""

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

    def moments(self) -> Moments:
        """Return the exact moments and end the accumulator."""
        self._flush()
        counts, clipped = tuple(self._norm_counts.tolist()), self._targets_clipped
        report = ClipReport(sum(counts), self._clipped, clipped, counts, self._energy, self._schema.features)
        moments: Moments = self._sums.moments(report)
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
        targets, clipped = self._kind.integers(self._schema, self._targets[: self._filled])
        self._targets_clipped += clipped
        if self._filled:
            self._sums.add(self._rows[: self._filled], targets)
        self._filled = 0


class SparseAccumulator:
    """Exact sums of sparse rows, for schemas without a transform."""

    def __init__(self, schema: RecordSchema) -> None:
        self._schema = schema
        self._kind = row_of(_KINDS, schema, "sum over records")
        self._sums: Any = self._kind.sums(schema)
        self._report = no_records(schema.features)

    def add(self, rows: csr_array, targets: NDArray[Any]) -> None:
        """Add at most ``exact_rows(schema.bound)`` raw rows."""
        schema = self._schema
        grid, result = quantized(feature_grid(schema), rows)
        targets, clipped = self._kind.integers(schema, targets)
        counts = tuple(norm_histogram(result.norms, schema.steps).tolist())
        self._report += ClipReport(len(targets), result.clipped, clipped, counts, result.energy, schema.features)
        self._sums.add(grid, targets)

    def moments(self) -> Moments:
        """Return the exact moments."""
        moments: Moments = self._sums.moments(self._report)
        return moments


@dataclass(frozen=True)
class _Kind:
    # ``sums`` builds the object that adds up rows. ``empty`` allocates memory for targets. ``integers`` returns
    # integer targets and the number clipped.
    sums: Callable[[Any], Any]
    empty: Callable[[Any, int], NDArray[Any]]
    integers: Callable[[Any, NDArray[Any]], tuple[NDArray[Any], int]]


def _on_grid(schema: RidgeSchema, targets: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    raw = targets[:, None] if targets.ndim == 1 else targets
    grid = np.empty(raw.shape)
    return grid, target_grid(schema).quantize(raw, grid).clipped


_KINDS: Mapping[str, _Kind] = {
    "classes": _Kind(ClassSums, lambda _, size: np.empty(size, np.intp), lambda _, labels: (labels, 0)),
    "ridge": _Kind(RidgeSums, lambda schema, size: np.empty((size, schema.targets)), _on_grid),
}
"""How to sum, by the schema's task."""


def measured(
    schema: RecordSchema, X: Any, y: Any, progress: bool = False, *, reading: Reading | None = None
) -> Moments:
    """Return the exact moments of records.

    Args:
        reading: what is read of each record; None: the schema's. Without labels all records are of the first class.
    """
    grouped, thin = "S" in schema.statistics, exact_rows(schema.bound) if issparse(X) else None
    parts = tiles(reading or schema.reading, X, y, grouped=grouped, thin_rows=thin)
    if _may_lack_targets(schema):
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
    result = [each.moments() for each in used.values()] or [CpuAccumulator(schema).moments()]
    total: Moments = sum(result[1:], result[0])
    return total


def _counted(schema: RecordSchema) -> type[Any] | None:
    if schema.reading.cells is None:
        return None
    from privstats.moments.cell_sums import CellAccumulator, sums_by_cells

    return CellAccumulator if sums_by_cells(schema) else None


def _accumulator_of(rows: Any) -> type[Any]:
    if is_tensor(rows):
        from privstats.moments.device_sums import DeviceAccumulator

        return DeviceAccumulator
    return SparseAccumulator if issparse(rows) else CpuAccumulator


def observed(schema: RecordSchema, rows: Any, targets: Any) -> tuple[Any, Any]:
    """Return rows and targets of records with a target, or all where the schema excludes none.

    Raises:
        RecordError: a row without a target has an unreadable feature.
    """
    seen = seen_in(schema, targets)
    if seen.all():
        return rows, targets
    grid = feature_grid(schema)
    grid.require_finite(through_maps(schema.reading, np.asarray(dense(rows[_places(rows, ~seen)])), grid))
    return rows[_places(rows, seen)], targets[_places(targets, seen)]


def seen_in(schema: RecordSchema, targets: Any) -> NDArray[np.bool_]:
    """Return which records :func:`observed` returns, ``(n,)``."""
    if not _may_lack_targets(schema):
        return np.ones(len(targets), np.bool_)
    with np.errstate(over="ignore"):
        return np.isfinite(dense(targets).astype(np.float64).reshape(-1))


def _may_lack_targets(schema: RecordSchema) -> bool:
    return isinstance(schema.goal, Targets) and schema.goal.gaps


def _places(array: Any, chosen: Any) -> Any:
    places = np.flatnonzero(chosen)
    if not is_tensor(array):
        return places
    import torch

    return torch.as_tensor(places, device=array.device)


_POWERS = {"A": 1, "D": 2, "T": 3, "F": 4}


def terms_on_grid(schema: RecordSchema, X: Any, y: Any, *, reading: Reading | None = None) -> RecordTerms:
    """Return each record's contribution; all dense rows are in memory at once."""
    # Chunks of sums with S are larger.
    read: Any = replace(schema, statistics="NA") if isinstance(schema, ClassSchema) else schema
    collected, seen = _Collected(), []
    accumulator = CpuAccumulator(read, collected)
    for rows, targets in tiles(reading or schema.reading, X, y):
        seen.append(seen_in(schema, targets))
        accumulator.add(*map(dense, observed(schema, rows, targets)))
    report: Any = accumulator.moments()
    chunks = collected.rows
    grid = chunks[0] if len(chunks) == 1 else np.concatenate([np.empty((0, schema.features)), *chunks])
    others = np.concatenate(collected.others) if collected.others else np.empty((0, getattr(schema, "targets", 1)))
    terms = _of_folds(schema, grid, others) if isinstance(schema, RidgeSchema) else _of_classes(schema, grid, others)
    return RecordTerms(np.concatenate([np.empty(0, np.bool_), *seen]), tuple(terms), {"clip_report": report})


class _Collected:
    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.others: list[Any] = []

    def add(self, rows: NDArray[np.float64], others: NDArray[Any]) -> None:
        """Store copies, because the chunk's memory is reused."""
        self.rows.append(rows.copy())
        self.others.append(others.copy())

    def moments(self, report: ClipReport) -> ClipReport:
        return report


def _of_classes(schema: ClassSchema, rows: NDArray[np.float64], labels: NDArray[Any]) -> list[Term]:
    letters = {row.letter for row in schema.sent}
    by_class: dict[str, Product] = {"N": (np.ones((len(rows), 1)), None)}
    for letter, degree in _POWERS.items():
        if letter in letters:
            by_class[letter] = reduce(np.multiply, [rows] * degree), None
    if "S" in letters:
        by_class["S"] = rows, rows
    pooled = [Term({"B": (rows, rows)})] if "B" in letters else []
    return [Term(by_class, labels.reshape(-1).astype(np.intp)), *pooled]


def _of_folds(schema: RidgeSchema, rows: NDArray[np.float64], targets: NDArray[np.float64]) -> list[Term]:
    folds = None
    if schema.folds > 1:
        folds = np.asarray(fold_of_key(grid_key(schema.steps, rows, targets), schema.folds), np.intp)
    return [Term({"G": (rows, rows), "h": (rows, targets), "q": (np.vecdot(targets, targets)[:, None], None)}, folds)]
