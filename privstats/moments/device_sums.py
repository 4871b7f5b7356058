"""Sum tensors exactly in int64 on their device, with the host's bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privstats.errors import DataError
from privstats.moments.base import Moments, Summed, require_room
from privstats.moments.clip_report import NORM_BINS, NORM_EDGES, ClipReport
from privstats.moments.grid import exact_rows, feature_grid
from privstats.moments.tensor_grid import prefers_limbs, quantize_tensor, require_finite
from privstats.transforms import apply

if TYPE_CHECKING:
    from types import ModuleType

    import torch as _torch
    from numpy.typing import NDArray
    from torch import Tensor

    from privstats.moments.adders import Adder


class DeviceAccumulator:
    """Sums over the tensors seen so far, on the first one's device."""

    def __init__(self, schema: Summed) -> None:
        self._started = False
        self._schema = schema
        self._adder: Adder = schema.adder()
        self._grid = feature_grid(schema)
        self._records = self._clipped = self._targets_clipped = self._energy = 0

    def add(self, rows: Tensor, targets: NDArray[Any] | Tensor) -> None:
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
        return self._schema.exact(totals, clip_report=report)

    def _start(self, torch: ModuleType, device: _torch.device) -> None:
        if device.type == "mps":
            raise DataError("X is on a device without 64-bit floats; move it to the host with X.cpu()")
        shapes = {row.letter: row.shape(self._schema.sizes) for row in self._schema.sent}
        self._totals = {name: torch.zeros(shape, dtype=torch.int64, device=device) for name, shape in shapes.items()}
        self._edges = torch.as_tensor(NORM_EDGES, device=device)
        self._norm_counts = torch.zeros(NORM_BINS, dtype=torch.int64, device=device)
        self._limbs = prefers_limbs(torch, device, self._schema.grid_bits)
        self._device, self._started = device, True

    def _add(self, torch: ModuleType, rows: Tensor, targets: Tensor) -> None:
        require_room(self._records + len(rows), self._schema.bound)
        if self._schema.transform:
            require_finite(torch, self._grid, rows)
            rows = apply(self._schema.transform, rows)
        grid, norms, clipped = quantize_tensor(torch, self._grid, rows)
        self._records += len(rows)
        self._clipped += clipped
        self._energy += int(torch.linalg.vecdot(grid, grid).to(torch.int64).sum())
        bins = torch.bucketize(norms / self._schema.steps, self._edges, right=False)
        self._norm_counts += torch.bincount(bins, minlength=len(self._norm_counts))
        self._targets_clipped += self._adder.add_tensors(torch, self._totals, grid, targets, limbs=self._limbs)
