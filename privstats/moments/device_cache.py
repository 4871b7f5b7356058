"""Cache a round's mapped rows on their device, for the later rounds of one course.

The course owns the memory: its :class:`~privstats.records.row_cache.RowCache` bounds it, and drops it at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.records.row_cache import MappedRows, RowCache

if TYPE_CHECKING:
    from types import ModuleType

    import torch as _torch
    from torch import Tensor

# Mapped rows of norm 2**13, twice as long for a margin, fit 16 bits.
_SHORT_BITS = 13
_MIX = (0x9E3779B97F4A7C15 - (1 << 64), 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))


@dataclass(frozen=True, eq=False)
class DeviceTile:
    """A tile's place in a cache.

    Attributes:
        stored: the tile's mapped rows in float64; None: not stored, or the records differ.
        store: stores the mapped rows of finite records, unless memory is full.
    """

    stored: MappedRows | None
    store: Callable[[MappedRows], None]


@dataclass(frozen=True, eq=False)
class DeviceCache:
    """A party's cached rows, as one round on a device stores and finds them.

    Attributes:
        rows: the party's, for all rounds of a course.
        map_: what decides the map; another one drops all earlier rows.
        grid_bits: f; mapped rows are at most 2**f long.
    """

    rows: RowCache
    map_: object
    grid_bits: int

    def tile(self, torch: ModuleType, index: int, records: Tensor) -> DeviceTile:
        """Find a tile; the host waits for its checksum.

        Args:
            records: float64 rows before the map, ``(n, d)``.
        """
        # The type follows from public values, because to ask for the largest entry is to wait.
        short = torch.int16 if self.grid_bits <= _SHORT_BITS else torch.int32
        place, mark = ("device", index), (str(records.device), tuple(records.shape), int(checksum(torch, records)))

        def store(mapped: MappedRows) -> None:
            grid = None if mapped.grid is None else mapped.grid.to(torch.int32)
            self.rows.store(place, mark, MappedRows(mapped.unit.to(short), grid, mapped.fine))

        packed = self.rows.stored(self.map_, place, mark)
        return DeviceTile(None if packed is None else packed.each(lambda each: each.to(torch.float64)), store)


def checksum(torch: ModuleType, records: Tensor) -> Tensor:
    """Return a weighted sum of the bits of float64 rows mod 2**64, int64 ``()``, in whatever order a device sums.

    It detects every change of one number to another, and other accidental changes: bits that change at random pass with
    a chance below 2**-32.
    """
    bits = records.view(torch.int64)
    # Small integers differ in their high bits alone, which no product would carry to the low ones. The shift keeps the
    # sign, so the sum is another one for any two finite numbers: an exclusive or would be the same for b and ~b.
    mixed = bits + (bits >> 32)
    # Rows and columns have weights of their own, else two entries could be exchanged across the diagonal.
    of_rows, of_columns = _weights(torch, sum(records.shape), records.device).split(list(records.shape))
    total: Tensor = ((mixed * of_columns).sum(dim=1) * of_rows).sum()
    return total


def _weights(torch: ModuleType, count: int, device: _torch.device) -> Any:
    """Return fixed odd 64-bit weights ``(count,)``, scattered as splitmix64 scatters them."""
    step, *factors = _MIX
    weights = torch.arange(1, count + 1, device=device) * step
    for shift, factor in zip((30, 27), factors, strict=True):
        weights = (weights ^ (weights >> shift)) * factor
    return (weights ^ (weights >> 31)) | 1
