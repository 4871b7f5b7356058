"""Sum tensors exactly in int64 on their device, with the host's bits.

The host waits for the device once for each tile of records, and once for the sums. Tiles have one public size, so a
batch that does not fill a tile costs a copy on the device and no wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privstats.errors import RecordError
from privstats.moments.base import Moments, Summed, require_room
from privstats.moments.clip_report import NORM_BINS, NORM_EDGES, ClipReport
from privstats.moments.device_tiles import DeviceTiles, Exclude, state_position, without
from privstats.moments.grid import feature_grid
from privstats.moments.tensor_copy import copied
from privstats.moments.tensor_grid import GridTensor, Pending, RoundedRows, not_finite
from privstats.moments.tensor_products import Products, prefers_limbs, require_right, wrong_floats
from privstats.transforms.base import rows_to_sum

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray
    from torch import Tensor

    from privstats.moments.adders import Adder


class DeviceAccumulator:
    """Sums over the tensors seen so far, on the first one's device.

    Args:
        exclude: receives rows and labels or targets of unreadable records, in host memory; the sums are those of the
            others. None: an unreadable record raises RecordError.

    Guarantee:
        With ``exclude``, whether a record is excluded follows from that record and public values alone.
    """

    def __init__(self, schema: Summed, exclude: Exclude | None = None) -> None:
        self._exclude, self._schema = exclude, schema
        self._adder: Adder = schema.adder()
        self._grid = feature_grid(schema)
        self._records = self._summed = 0
        self._tiles: DeviceTiles | None = None

    def add(self, rows: Tensor, targets: NDArray[Any] | Tensor) -> None:
        """Add raw rows and their labels or targets.

        Labels or targets in host memory are copied to the device, for which the host waits.

        Raises:
            DataError: the device has no float64, or totals could reach 2**63.
            RecordError: a record in a tile is unreadable; it may be of an earlier call.
        """
        import torch

        # Batches of a generator may come under the caller's inference mode, and the last tile without it.
        with torch.inference_mode():
            self._add(torch, rows, torch.as_tensor(targets))

    def moments(self) -> Moments:
        """Return the exact moments, and end the accumulator.

        Raises:
            RecordError: a record is unreadable.
            PrivstatsError: the device computed a wrong product.
        """
        import torch

        with torch.inference_mode():
            return self._moments(torch)

    def _add(self, torch: ModuleType, rows: Tensor, targets: Tensor) -> None:
        if self._tiles is None:
            self._tiles = self._start(torch, rows)
        self._records += len(rows)
        require_room(self._records, self._schema.bound)
        for tile in self._tiles.add(rows, targets):
            self._flush(torch, *tile)

    def _moments(self, torch: ModuleType) -> Moments:
        for tile in () if self._tiles is None else self._tiles.rest():
            self._flush(torch, *tile)
        facts = {
            "wrong products": self._products.wrong,
            "escaped": self._escaped,
            "clipped": self._clipped,
            "targets clipped": self._targets_clipped,
            "energy": self._energy,
            "norms": self._norm_counts,
        }
        symmetric = frozenset(row.letter for row in self._schema.sent if row.symmetric)
        sums = copied(torch, {**facts, **self._totals}, symmetric)
        wrong, escaped, clipped, targets_clipped, energy, norms = (sums.pop(name) for name in facts)
        require_right(int(wrong))
        if escaped:
            raise self._grid.escaped()
        report = ClipReport(
            records=self._records,
            clipped=int(clipped),
            targets_clipped=int(targets_clipped),
            norm_counts=tuple(norms.tolist()),
            energy=int(energy),
            features=self._schema.features,
        )
        return self._schema.exact(sums, clip_report=report)

    def _start(self, torch: ModuleType, rows: Tensor) -> DeviceTiles:
        schema = self._schema
        tiles = DeviceTiles(torch, rows, self._adder.empty(0), bound=schema.bound, entries=schema.features)
        device = tiles.device
        shapes = {row.letter: row.shape(self._schema.sizes) for row in self._schema.sent}
        self._totals = {name: torch.zeros(shape, dtype=torch.int64, device=device) for name, shape in shapes.items()}
        zeros = torch.zeros(4, dtype=torch.int64, device=device)
        self._clipped, self._targets_clipped, self._escaped, self._energy = zeros.unbind()
        self._edges = torch.as_tensor(NORM_EDGES, device=device)
        self._norm_counts = torch.zeros(NORM_BINS, dtype=torch.int64, device=device)
        self._products = Products(torch, device, limbs=prefers_limbs(torch, device, self._schema.grid_bits))
        self._products.wrong += wrong_floats(torch, device, schema.features)
        return tiles

    def _flush(self, torch: ModuleType, rows: Tensor, targets: Tensor) -> None:
        """Sum a tile's records."""
        pending: tuple[Pending, Pending] = self._rounded(torch, rows), self._adder.round_tensors(torch, targets)
        # The tile's only wait, unless records are excluded.
        counts = torch.stack([each.counts for each in pending]).tolist()
        if self._exclude is not None and any(unreadable for unreadable, _ in counts):
            fine = torch.isfinite(rows).all(dim=1) & pending[0].readable & pending[1].readable
            rows, targets, gone = without(rows, targets, fine, self._exclude)
            self._records -= gone
            if not len(rows):
                return
            pending = self._rounded(torch, rows), self._adder.round_tensors(torch, targets)
            counts = torch.stack([each.counts for each in pending]).tolist()
        try:
            grid, goals = (each.settled(*read) for each, read in zip(pending, counts, strict=True))
        except RecordError as error:
            fine = torch.isfinite(rows).all(dim=1) & pending[0].readable & pending[1].readable
            state_position(error, fine, self._summed)
            raise
        self._summed += len(rows)
        self._report(torch, grid, goals)
        self._adder.add_tensors(self._products, self._totals, grid.integers, goals.integers)

    def _rounded(self, torch: ModuleType, rows: Tensor) -> RoundedRows:
        if not self._schema.transform:
            return RoundedRows.of(torch, self._grid, rows)
        finite = torch.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
        mapped = rows_to_sum(self._schema.transform, finite)
        return RoundedRows.of(torch, self._grid, mapped, not_finite(torch, rows))

    def _report(self, torch: ModuleType, grid: GridTensor, goals: GridTensor) -> None:
        """Add the clip's effect on a tile."""
        self._clipped += grid.clipped
        self._targets_clipped += goals.clipped
        self._escaped += grid.escaped + goals.escaped
        self._energy += grid.squares.to(torch.int64).sum()
        bins = torch.bucketize(grid.norms / self._schema.grid_steps, self._edges, right=False)
        self._norm_counts.index_add_(0, bins, torch.ones_like(bins))
