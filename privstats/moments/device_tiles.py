"""Gather records of a device there, in tiles of one public size.

A batch that does not fill a tile costs a copy on the device, and no wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from privstats.errors import DataError, RecordError
from privstats.moments.grid import exact_rows

if TYPE_CHECKING:
    from types import ModuleType

    import torch as _torch
    from numpy.typing import NDArray
    from torch import Tensor

Gathered: TypeAlias = "tuple[Tensor, Tensor]"
"""Rows in float64, and labels or targets, in memory that is reused."""

Exclude: TypeAlias = "Callable[[NDArray[Any], NDArray[Any]], None]"
"""Receives rows and labels or targets of unreadable records, in host memory."""

# Bytes of a tile: a product of this many rows costs far more than its call and the wait.
_TILE_BYTES = 1 << 28


def tile_rows(bound: int, entries: int) -> int:
    """Return the rows of a tile.

    Args:
        bound: largest entry that a record adds to a sum.
        entries: number of a record's raw columns, features or targets, whichever is largest.
    """
    return min(max(16, _TILE_BYTES // (8 * entries)), exact_rows(bound))


class DeviceTiles:
    """The tile of one device that is being filled.

    Args:
        rows: the first rows, which decide the device and the number of columns.
        like: an array of labels or targets without records, of their type and further axes.
        bound, entries: as in :func:`tile_rows`; the rows' columns count as entries too.

    Attributes:
        device: the device.
    """

    def __init__(self, torch: ModuleType, rows: Tensor, like: NDArray[Any], *, bound: int, entries: int) -> None:
        self.device = rows.device
        if self.device.type == "mps":
            raise DataError("X is on a device without 64-bit floats; move it to the host with X.cpu()")
        size, targets = tile_rows(bound, max(rows.shape[1], entries)), torch.from_numpy(like)
        self._torch = torch
        self._rows = torch.empty((size, rows.shape[1]), dtype=torch.float64, device=self.device)
        self._targets = torch.empty((size, *targets.shape[1:]), dtype=targets.dtype, device=self.device)
        self._filled = 0
        self._stream = _stream(torch, self.device)

    def add(self, rows: Tensor, targets: Tensor) -> Iterator[Gathered]:
        """Gather records, and yield each tile that they fill.

        Labels or targets in host memory are copied to the device, for which the host waits.
        """
        self._follow_stream()
        start = 0
        while start < len(rows):
            end = start + min(len(rows) - start, len(self._rows) - self._filled)
            at = slice(self._filled, self._filled + end - start)
            self._rows[at].copy_(rows[start:end])
            self._targets[at].copy_(targets[start:end].reshape(self._targets[at].shape))
            self._filled, start = at.stop, end
            if self._filled == len(self._rows):
                yield from self.rest()

    def rest(self) -> Iterator[Gathered]:
        """Yield the records of a tile that is not full, if any."""
        self._follow_stream()
        if self._filled:
            filled, self._filled = self._filled, 0
            yield self._rows[:filled], self._targets[:filled]

    def _follow_stream(self) -> None:
        """Order this work after earlier work, which a caller may have queued on another of the device's streams."""
        stream = _stream(self._torch, self.device)
        if stream != self._stream:
            stream.wait_stream(self._stream)
            self._stream = stream


def without(rows: Tensor, targets: Tensor, fine: Tensor, exclude: Exclude) -> tuple[Tensor, Tensor, int]:
    """Exclude a tile's unreadable records; return the readable ones, and how many were excluded.

    Args:
        fine: which records are readable, ``(n,)``.
    """
    gone = (~fine).nonzero().squeeze(1)
    exclude(rows[gone].cpu().numpy(), targets[gone].cpu().numpy())
    return rows[fine], targets[fine], len(gone)


def state_position(error: RecordError, fine: Tensor, before: int) -> None:
    """Set an error's position to that of a tile's first unreadable record.

    Args:
        fine: which records of the tile are readable, ``(n,)``.
        before: number of records of earlier tiles.
    """
    gone = (~fine).nonzero()
    if len(gone):
        error.position = before + int(gone[0])


def _stream(torch: ModuleType, device: _torch.device) -> Any:
    return torch.get_device_module(device).current_stream(device)
