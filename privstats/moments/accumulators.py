"""Records to exact sums: tiles of rows in, class or ridge moments out, in host memory or on a device.

On the host, tiles are transformed and quantised into one reused chunk, and full chunks are summed, so memory is one
chunk and the result, for any number of records. Tensors stay on their device: the same arithmetic in whole numbers,
hence the same bits, with sums in int64; torch is imported only for a tensor. Kinds of moments that are more than sums
of records have modules of their own. One ``measure`` call owns each accumulator.

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

from privstats.errors import DataError
from privstats.moments.arrays import is_tensor
from privstats.moments.cell_sums import CellAccumulator, sums_by_cells
from privstats.moments.class_moments import ClassMoments, ClassSums
from privstats.moments.clip_report import NORM_EDGES, ClipReport, no_records, norm_histogram
from privstats.moments.code_rows import behind
from privstats.moments.device_gram import gram, prefers_limbs
from privstats.moments.exact_sum import exact_rows, require_known, require_room
from privstats.moments.grid import Grid, GridChunk, feature_grid, target_grid
from privstats.moments.input_validation import count_of, tiles, tiles_of_batches
from privstats.moments.ridge_moments import RidgeMoments, RidgeSums, fold_of_key, key_weights
from privstats.moments.sparse_grid import quantized
from privstats.progress import progress_bar
from privstats.schema import RecordSchema, RidgeSchema, row_of
from privstats.transforms import apply

__all__ = ["CpuAccumulator", "DeviceAccumulator", "SparseAccumulator", "chunk_rows", "measured"]


_CHUNK = 16 << 20, 1 << 14  # bytes and rows: short rows then stay in the last cache until they are summed
_GROUPED_CHUNK = 64 << 20, 1 << 17  # with S, so that a chunk holds enough rows of each class for a rank-k update to pay

_POWERS = {"A": 1, "D": 2, "T": 3, "F": 4}


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


class DeviceAccumulator:
    """Sums over the tensors seen so far, on the device of the first one."""

    def __init__(self, schema: RecordSchema) -> None:
        self._started = False
        self._schema = schema
        self._kind = row_of(_KINDS, schema, "sum over records")
        self._grid = feature_grid(schema)
        self._records = self._clipped = self._targets_clipped = self._energy = 0

    def add(self, rows: Any, targets: Any) -> None:
        """Add raw rows and their labels or targets.

        Raises:
            DataError: an entry is NaN or infinite, or the device has no float64.
        """
        import torch

        if not self._started:
            self._start(torch, rows.device)
        targets = torch.as_tensor(targets, device=self._device)
        step = exact_rows(self._schema.bound)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            self._add(torch, rows[part].to(self._device, torch.float64), targets[part])

    def moments(self) -> ClassMoments | RidgeMoments:
        """The exact moments of everything added."""
        report = ClipReport(
            records=self._records,
            clipped=self._clipped,
            targets_clipped=self._targets_clipped,
            norm_counts=tuple(self._norm_counts.tolist()),
            energy=self._energy,
            features=self._schema.features,
        )
        totals = {name: total.cpu().numpy() for name, total in self._totals.items()}
        return self._kind.moments(self._schema, totals, report)

    def _start(self, torch: Any, device: Any) -> None:
        if device.type == "mps":
            raise DataError("X is on a device without 64-bit floats; move it to the host with X.cpu()")
        sent = self._schema.sent
        require_known([row.letter for row in sent], self._kind.letters)
        shapes = {row.letter: row.shape(self._schema.sizes) for row in sent}
        self._totals = {name: torch.zeros(shape, dtype=torch.int64, device=device) for name, shape in shapes.items()}
        self._edges = torch.as_tensor(NORM_EDGES, device=device)
        self._norm_counts = torch.zeros(NORM_EDGES.size + 1, dtype=torch.int64, device=device)
        self._limbs = prefers_limbs(torch, device, self._schema.grid_bits)
        self._device, self._started = device, True

    def _add(self, torch: Any, rows: Any, targets: Any) -> None:
        require_room(self._records + len(rows), self._schema.bound)
        if self._schema.transform:
            _require_finite(torch, self._grid, rows)
            rows = apply(self._schema.transform, rows)
        grid, norms, clipped = quantize_tensor(torch, self._grid, rows)
        self._records += len(rows)
        self._clipped += clipped
        self._energy += int(torch.linalg.vecdot(grid, grid).to(torch.int64).sum())
        bins = torch.bucketize(norms / self._schema.steps, self._edges, right=False)
        self._norm_counts += torch.bincount(bins, minlength=len(self._norm_counts))
        self._kind.on_device(self, torch, grid, targets)

    def add_classes(self, torch: Any, grid: Any, targets: Any) -> None:
        """Add grid vectors of classes."""
        totals, labels = self._totals, targets.to(torch.int64)
        totals["N"] += torch.bincount(labels, minlength=len(totals["N"]))
        whole = grid.to(torch.int64)
        for letter, power in _POWERS.items():
            if letter in totals:
                totals[letter].index_add_(0, labels, whole**power)
        if "B" in totals:
            totals["B"] += gram(torch, grid, limbs=self._limbs)
        if "S" in totals:
            order = torch.argsort(labels, stable=True)
            present, counts = torch.unique_consecutive(labels[order], return_counts=True)
            for label, members in zip(present.tolist(), order.split(counts.tolist()), strict=True):
                totals["S"][label] += gram(torch, grid[members], limbs=self._limbs)

    def add_folds(self, torch: Any, grid: Any, targets: Any) -> None:
        """Add grid vectors and their targets, fold by fold."""
        schema: Any = self._schema
        wide = targets.to(torch.float64)
        b, _, clipped = quantize_tensor(torch, target_grid(schema), wide[:, None] if wide.ndim == 1 else wide)
        self._targets_clipped += clipped
        folds = _folds_of(torch, schema, grid, b)
        for fold in torch.unique(folds).tolist():
            members = folds == fold
            rows, values = grid[members], b[members]
            self._totals["G"][fold] += gram(torch, rows, limbs=self._limbs)
            self._totals["h"][fold] += (rows.T @ values).to(torch.int64)
            self._totals["q"][fold] += values.square().sum().to(torch.int64)


@dataclass(frozen=True)
class _Kind:
    """A kind of plain sums over records.

    Attributes:
        sums: on the host, of a schema.
        empty: room for so many labels or targets.
        whole: labels as they are, or targets on their grid, and how many were clipped.
        moments: from the schema, sums by letter and the report.
        letters: statistics that a device sums.
        on_device: adds grid vectors and what stands beside them to an accumulator there.
    """

    sums: Callable[[Any], Any]
    empty: Callable[[Any, int], NDArray[Any]]
    whole: Callable[[Any, NDArray[Any]], tuple[NDArray[Any], int]]
    moments: Callable[[Any, dict[str, NDArray[np.int64]], ClipReport], ClassMoments | RidgeMoments]
    letters: str
    on_device: Callable[[DeviceAccumulator, Any, Any, Any], None]


def _on_grid(schema: RidgeSchema, targets: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    raw = targets[:, None] if targets.ndim == 1 else targets
    whole = np.empty(raw.shape)
    return whole, target_grid(schema).quantize(raw, whole).clipped


_KINDS: Mapping[str, _Kind] = {
    "classes": _Kind(
        ClassSums,
        lambda _, size: np.empty(size, np.intp),
        lambda _, labels: (labels, 0),
        lambda schema, sums, report: ClassMoments(schema, **sums, clip_report=report),
        "NABSDTF",
        DeviceAccumulator.add_classes,
    ),
    "ridge": _Kind(
        RidgeSums,
        lambda schema, size: np.empty((size, schema.targets)),
        _on_grid,
        lambda schema, sums, report: RidgeMoments(schema, sums["G"], sums["h"], sums["q"], report),
        "Ghq",
        DeviceAccumulator.add_folds,
    ),
}
"""By the schema's task."""


def _folds_of(torch: Any, schema: RidgeSchema, grid: Any, targets: Any) -> Any:
    weights = torch.from_numpy(key_weights(grid.shape[1] + targets.shape[1]).copy()).to(grid.device)
    whole = torch.cat([grid, targets], dim=1).to(torch.int64)
    return fold_of_key((whole * weights).sum(dim=1), schema.folds)


def quantize_tensor(torch: Any, grid: Grid, rows: Any) -> tuple[Any, Any, int]:
    """Grid vectors of float64 ``rows``, their norms before the clip in grid steps, and how many were clipped.

    The same decisions and the same bits as :meth:`privstats.moments.grid.Grid.quantize`.

    Raises:
        DataError: an entry is NaN or infinite.
    """
    _require_finite(torch, grid, rows)
    out = torch.round((rows.clamp(min=0.0) if grid.nonnegative else rows) * grid.scale)
    squares = torch.linalg.vecdot(out, out)
    norms = squares.sqrt()
    outside = torch.nonzero(squares > float(grid.radius) ** 2)[:, 0]
    if not len(outside):
        return out, norms, 0
    out[outside], _, norms[outside] = grid.shrink(rows[outside])
    return out, norms, grid.longer(norms[outside])


def _require_finite(torch: Any, grid: Grid, rows: Any) -> None:
    if not torch.isfinite(rows).all():
        raise grid.not_finite()


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
    counted = sums_by_cells(schema)
    with progress_bar("records", None if y is None else count_of(X), at_once=progress) as advance:
        for rows, targets in parts:
            kind: type[Any] = CellAccumulator if counted else _accumulator_of(rows)
            if kind not in used:
                used[kind] = kind(schema)
            used[kind].add(rows, targets)
            advance(rows.shape[0])
    found = [each.moments() for each in used.values()] or [CpuAccumulator(schema).moments()]
    total: ClassMoments | RidgeMoments = sum(found[1:], found[0])
    return total


def _accumulator_of(rows: Any) -> type[Any]:
    if is_tensor(rows):
        return DeviceAccumulator
    return SparseAccumulator if issparse(rows) else CpuAccumulator
