"""Sum tensors exactly in int64 on their device, with the host's bits.

Most accelerators multiply 8-bit integers far faster than float64. With at most 13 grid bits an entry is x = 128 h + l,
with h and l in 8 bits, so

    X'X = 2^14 H'H + 2^7 (H'L + L'H) + L'L,

three products, summed in int32. Each is exact for up to 2^18 rows, since |h| and |l| are at most 64.

Some libraries computed wrong 8-bit products on some devices (pytorch/pytorch#106840). Each sum is therefore checked
with one vector v of ones and twos (Freivalds 1977): X'X v = X'(X v).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from privstats.errors import DataError, PrivstatsError
from privstats.moments.base import Moments, require_room
from privstats.moments.clip_report import NORM_EDGES, ClipReport
from privstats.moments.grid import Grid, exact_rows, feature_grid, require_known, target_grid
from privstats.moments.record_sums import fold_of_key, key_weights
from privstats.schema import RecordSchema, RidgeSchema, row_of
from privstats.schema.kinds import kind_of
from privstats.transforms import apply

_POWERS = {"A": 1, "D": 2, "T": 3, "F": 4}

# Largest grid_bits for which |h| <= 64.
_FINEST = 13
_ROWS = 1 << 18  # products of two limbs add up to at most 2^30
_FAST_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}  # P100, V100, A100, H100, H200, B200: half of float32's speed
_EIGHT_BIT = (7, 5)  # the first capability with products of 8-bit matrices
# Sizes that these products need: multiples of 8, and more than 16 rows.
_EIGHT, _MIN_ROWS = 8, 24


class DeviceAccumulator:
    """Sums over the tensors seen so far, on the first one's device."""

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

    def moments(self) -> Moments:
        """Return the exact moments."""
        report = ClipReport(
            records=self._records,
            clipped=self._clipped,
            targets_clipped=self._targets_clipped,
            norm_counts=tuple(self._norm_counts.tolist()),
            energy=self._energy,
            features=self._schema.features,
        )
        totals = {name: total.cpu().numpy() for name, total in self._totals.items()}
        moments: Moments = kind_of(self._schema).exact(self._schema, totals, clip_report=report)
        return moments

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
        self._kind.add(self, torch, grid, targets)

    def add_classes(self, torch: Any, grid: Any, targets: Any) -> None:
        """Add grid vectors of classes."""
        totals, labels = self._totals, targets.to(torch.int64)
        totals["N"] += torch.bincount(labels, minlength=len(totals["N"]))
        integers = grid.to(torch.int64)
        for letter, power in _POWERS.items():
            if letter in totals:
                totals[letter].index_add_(0, labels, integers**power)
        if "B" in totals:
            totals["B"] += gram(torch, grid, limbs=self._limbs)
        if "S" in totals:
            order = torch.argsort(labels, stable=True)
            present, counts = torch.unique_consecutive(labels[order], return_counts=True)
            for label, members in zip(present.tolist(), order.split(counts.tolist()), strict=True):
                totals["S"][label] += gram(torch, grid[members], limbs=self._limbs)

    def add_folds(self, torch: Any, grid: Any, targets: Any) -> None:
        """Add grid vectors and their targets by fold."""
        schema: Any = self._schema
        floats = targets.to(torch.float64)
        b, _, clipped = quantize_tensor(torch, target_grid(schema), floats[:, None] if floats.ndim == 1 else floats)
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
    letters: str
    add: Callable[[DeviceAccumulator, Any, Any, Any], None]


_KINDS: Mapping[str, _Kind] = {
    "classes": _Kind("NABSDTF", DeviceAccumulator.add_classes),
    "ridge": _Kind("Ghq", DeviceAccumulator.add_folds),
}
"""How to sum on a device, by the schema's task."""


def _folds_of(torch: Any, schema: RidgeSchema, grid: Any, targets: Any) -> Any:
    weights = torch.from_numpy(key_weights(grid.shape[1] + targets.shape[1]).copy()).to(grid.device)
    integers = torch.cat([grid, targets], dim=1).to(torch.int64)
    return fold_of_key((integers * weights).sum(dim=1), schema.folds)


def quantize_tensor(torch: Any, grid: Grid, rows: Any) -> tuple[Any, Any, int]:
    """Return grid vectors of float64 ``rows``, their norms before the clip in grid steps, and the number clipped.

    The bits equal those of :meth:`privstats.moments.grid.Grid.quantize`.
    """
    _require_finite(torch, grid, rows)
    out = torch.round((rows.clamp(min=0.0) if grid.nonnegative else rows) * grid.scale)
    squares = torch.linalg.vecdot(out, out)
    norms = squares.sqrt()
    outside = torch.nonzero(squares > float(grid.radius) ** 2)[:, 0]
    if not len(outside):
        return out, norms, 0
    out[outside], _, norms[outside] = grid.clip(rows[outside])
    return out, norms, grid.longer(norms[outside])


def _require_finite(torch: Any, grid: Grid, rows: Any) -> None:
    if not torch.isfinite(rows).all():
        raise grid.not_finite()


def prefers_limbs(torch: Any, device: Any, grid_bits: int) -> bool:
    """Return whether products of limbs are exact on this grid and faster on this device."""
    if device.type != "cuda" or grid_bits > _FINEST or not hasattr(torch, "_int_mm"):
        return False
    capability = torch.cuda.get_device_capability(device)
    return bool(capability >= _EIGHT_BIT and capability not in _FAST_FLOAT64)


def gram(torch: Any, rows: Any, *, limbs: bool) -> Any:
    """Sum x x' over rows, int64 ``(d, d)``, exact.

    Args:
        rows: integers as float64 ``(n, d)``; squared norms sum to at most 2**53; for limbs, entries of at most 2**13.
    """
    if not limbs:
        return (rows.T @ rows).to(torch.int64)
    d = rows.shape[1]
    total = torch.zeros((d, d), dtype=torch.int64, device=rows.device)
    for part in rows.split(_ROWS):
        high, low = _limbs(torch, part)
        mixed = torch._int_mm(high, low.T)[:d, :d].to(torch.int64)
        result = torch._int_mm(high, high.T)[:d, :d].to(torch.int64) << 14
        result += (mixed + mixed.T) << 7
        result += torch._int_mm(low, low.T)[:d, :d]
        _require_right(torch, part, result)
        total += result
    return total


def _require_right(torch: Any, rows: Any, gram: Any) -> None:
    """Raise where (X'X) v differs from X'(X v), which float64 computes exactly for up to 2**16 columns."""
    # The vector is fixed, so this finds a device's faults, and not errors that an attacker builds around it.
    vector = torch.from_numpy(1 + (key_weights(rows.shape[1]) >> 40 & 1)).to(rows.device)
    expected = rows.T @ (rows @ vector.to(torch.float64))
    if not torch.equal((gram * vector).sum(dim=1), expected.to(torch.int64)):
        raise PrivstatsError(
            "this device gave a wrong product of 8-bit numbers, so nothing was measured; measure on the host, with "
            "X.cpu(), and report the device and torch's version"
        )


def _limbs(torch: Any, rows: Any) -> tuple[Any, Any]:
    """Return h and l of ``x = 128 h + l`` as zero-padded int8 ``(columns, rows)``."""
    n, d = rows.shape
    size = max(_MIN_ROWS, -(-d // _EIGHT) * _EIGHT), max(_EIGHT, -(-n // _EIGHT) * _EIGHT)
    limbs = torch.zeros(size, dtype=torch.float32, device=rows.device)
    limbs[:d, :n] = rows.T  # float32 holds them exactly
    high = torch.round(limbs / 128)
    return high.to(torch.int8), (limbs - 128 * high).to(torch.int8)
