"""Sum a round over tensors on their device, with the host's integers.

Rows are read, clipped and rounded there as for other sums of a device, and a round's map has one code for arrays and
tensors. The host waits for the device once for each tile of records, and once for the sums; where a course caches
mapped rows, twice for each tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError
from privstats.moments.base import Summed, require_room
from privstats.moments.device_tiles import DeviceTiles, Exclude, state_position, without
from privstats.moments.grid import feature_grid
from privstats.moments.tensor_copy import copied
from privstats.moments.tensor_grid import Pending, RealTargets, RoundedRows
from privstats.moments.tensor_products import require_right, wrong_floats
from privstats.records.row_cache import MappedRows
from privstats.schema import Schema
from privstats.transforms.base import rows_to_sum

if TYPE_CHECKING:
    from types import ModuleType

    import torch as _torch
    from torch import Tensor

    from privstats.moments.adders import Adder
    from privstats.moments.device_cache import DeviceCache, DeviceTile
    from privstats.schema.public_values import Values


@dataclass(frozen=True, eq=False)
class DeviceValues:
    """A copy of :class:`~privstats.schema.public_values.Values` on a device.

    Attributes:
        integers, exponent: as published.
        floats: the integers as float64, on the device.
    """

    integers: NDArray[np.int64]
    exponent: int
    floats: Tensor

    @classmethod
    def of(cls, torch: ModuleType, device: _torch.device, values: Values) -> DeviceValues:
        """Copy published values to a device."""
        return cls(values.integers, values.exponent, torch.tensor(values.floats, device=device))


def unmapped(rows: Tensor, fine: Tensor, values: Mapping[str, DeviceValues]) -> MappedRows:  # noqa: ARG001 - a Form's
    """Return grid rows as they are."""
    return MappedRows(rows, None, fine)


@dataclass(frozen=True, eq=False)
class Form:
    """A round's two steps over a tile's records. A record that is not finite is zero in both, and must add nothing.

    Attributes:
        sums: returns sums by letter, exact integers in float64, from mapped rows, labels ``(n,)`` or targets on their
            grid ``(n, 1)``, which records are finite ``(n,)``, and the published values.
        behind: returns mapped rows, from grid rows ``(n, d)``, which records are finite, and the published values.
    """

    sums: Callable[[MappedRows, Tensor, Tensor, Mapping[str, DeviceValues]], Mapping[str, Tensor]]
    behind: Callable[[Tensor, Tensor, Mapping[str, DeviceValues]], MappedRows] = unmapped


class _Read(NamedTuple):
    """A tile's records before the host has read their counts.

    Attributes:
        mapped: returns mapped rows, given the counts as the host read them.
        goals: labels or targets.
        fine: which records are finite, ``(n,)``.
        counts: int64 ``(5,)``: records that are not finite; then of rows and of labels or targets how many are
            unreadable, and how many are outside their ball.
    """

    mapped: Callable[[list[int]], MappedRows]
    goals: Pending
    fine: Tensor
    counts: Tensor


class DeviceRound:
    """A round's sums over the tensors seen so far, on the first one's device.

    Args:
        schema: has the sums.
        read: reads the records, as the host's rounds read them.
        values: published and admitted.
        form: forms a tile's sums.
        cache: caches mapped rows; None: each round maps all rows.
        exclude: as in :class:`~privstats.moments.device_sums.DeviceAccumulator`. None: a record with NaN or infinite
            entries adds nothing, and a label outside the classes raises RecordError.
        rounds_targets: whether ``form`` receives targets on their grid; else in float64, with 0 for those not finite.

    Guarantee:
        What a record adds follows from that record and public values alone.
    """

    def __init__(
        self,
        schema: Schema,
        read: Summed,
        values: Mapping[str, Values],
        form: Form,
        exclude: Exclude | None,
        *,
        rounds_targets: bool = True,
        cache: DeviceCache | None = None,
    ) -> None:
        self._schema, self._read_by, self._values = schema, read, values
        self._rounds_targets, self._cache = rounds_targets, cache
        self._form, self._exclude = form, exclude
        self._adder: Adder = read.adder()
        self._grid = feature_grid(read)
        self._records = self._flushed = self._summed = 0
        self._tiles: DeviceTiles | None = None

    def add(self, rows: Tensor, targets: NDArray[Any] | Tensor) -> None:
        """Add raw rows and their labels or targets.

        Raises:
            DataError: the device has no float64, or totals could reach 2**63.
            RecordError: a label in a tile is no class; it may be of an earlier call.
        """
        import torch

        with torch.inference_mode():
            if self._tiles is None:
                self._tiles = self._start(torch, rows)
            self._records += len(rows)
            require_room(self._records, self._schema.bound)
            for tile in self._tiles.add(rows, torch.as_tensor(targets)):
                self._flush(torch, *tile)

    def result(self) -> tuple[dict[str, NDArray[np.int64]], int]:
        """Return the exact sums by letter, and the number of finite records; and end the round.

        Raises:
            PrivstatsError: the device computed a wrong product.
        """
        import torch

        with torch.inference_mode():
            for tile in () if self._tiles is None else self._tiles.rest():
                self._flush(torch, *tile)
            facts = {"wrong products": self._wrong, "escaped": self._escaped, "finite": self._finite}
            symmetric = frozenset(row.letter for row in self._schema.sent if row.symmetric)
            sums = copied(torch, {**facts, **self._totals}, symmetric)
        wrong, escaped, finite = (int(sums.pop(name)) for name in facts)
        if self._cache is not None and (wrong or escaped):
            self._cache.rows.clear()
        require_right(wrong)
        if escaped:
            raise self._grid.escaped()
        return sums, finite

    def _start(self, torch: ModuleType, rows: Tensor) -> DeviceTiles:
        schema, sizes = self._schema, self._schema.sizes
        entries = max(schema.features, *sizes.values())
        tiles = DeviceTiles(torch, rows, self._adder.empty(0), bound=schema.bound, entries=entries)
        shapes = {row.letter: row.shape(sizes) for row in schema.sent}
        self._totals = {
            name: torch.zeros(shape, dtype=torch.int64, device=tiles.device) for name, shape in shapes.items()
        }
        self._escaped, self._finite = torch.zeros(2, dtype=torch.int64, device=tiles.device).unbind()
        self._wrong = wrong_floats(torch, tiles.device, entries)
        self._copies = {name: DeviceValues.of(torch, tiles.device, each) for name, each in self._values.items()}
        return tiles

    def _flush(self, torch: ModuleType, rows: Tensor, targets: Tensor) -> None:
        """Sum a tile's records."""
        self._flushed += 1
        read = self._read(torch, rows, targets, self._cache)
        # The tile's only wait, unless mapped rows are cached or records are excluded.
        counts = read.counts.tolist()
        if self._exclude is not None and (counts[0] or counts[3]):
            rows, targets, gone = without(rows, targets, read.fine & read.goals.readable, self._exclude)
            self._records -= gone
            if not len(rows):
                return
            read = self._read(torch, rows, targets, None)
            counts = read.counts.tolist()
        try:
            goals = read.goals.settled(*counts[3:])
        except RecordError as error:
            state_position(error, read.goals.readable, self._summed)
            raise
        self._summed += len(rows)
        mapped = read.mapped(counts)
        self._escaped += goals.escaped
        self._finite += read.fine.sum()
        for letter, total in self._form.sums(mapped, goals.integers, read.fine, self._copies).items():
            self._totals[letter] += total.to(torch.int64)

    def _read(self, torch: ModuleType, rows: Tensor, targets: Tensor, cache: DeviceCache | None) -> _Read:
        tile = None if cache is None else cache.tile(torch, self._flushed, rows)
        stored = None if tile is None else tile.stored
        mapped: Callable[[list[int]], MappedRows]
        if stored is None:
            rounded, fine = self._rounded(torch, rows)
            mapped, of_rows = partial(self._mapped, rounded, fine, tile), rounded.counts
        else:
            fine, mapped = stored.fine, lambda _: stored
            of_rows = torch.zeros(2, dtype=torch.int64, device=rows.device)
        if targets.is_floating_point():
            finite = torch.isfinite(targets).all(dim=1)
            fine, targets = fine & finite, torch.where(finite[:, None], targets, 0.0)
        goals: Pending
        if targets.is_floating_point() and not self._rounds_targets:
            goals = RealTargets.of(torch, targets)
        else:
            goals = self._adder.round_tensors(torch, targets)
        return _Read(mapped, goals, fine, torch.cat([(~fine).sum()[None], of_rows, goals.counts]))

    def _rounded(self, torch: ModuleType, rows: Tensor) -> tuple[RoundedRows, Tensor]:
        """Return rounded rows, zero where they are not finite before or after the transform, and which are finite."""
        fine = torch.isfinite(rows).all(dim=1)
        if self._read_by.transform:
            rows = rows_to_sum(self._read_by.transform, torch.where(fine[:, None], rows, 0.0))
            fine = fine & torch.isfinite(rows).all(dim=1)
        return RoundedRows.of(torch, self._grid, torch.where(fine[:, None], rows, 0.0)), fine

    def _mapped(self, rounded: RoundedRows, fine: Tensor, tile: DeviceTile | None, counts: list[int]) -> MappedRows:
        """Return a tile's rows behind the map, which are cached if all records are finite."""
        grid = rounded.settled(*counts[1:3])
        self._escaped += grid.escaped
        mapped = self._form.behind(grid.integers, fine, self._copies)
        if tile is not None and not counts[0]:
            tile.store(mapped)
        return mapped
