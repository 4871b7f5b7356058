"""Put tensors on the grid, with the host's bits.

Nothing here waits for the device. Each step first leaves counts there, which a caller reads once for a tile. The
integers follow in a second step, which accepts these counts as the host's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from privstats.moments.grid import Grid
from privstats.records.labels import outside_classes

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor


@dataclass(frozen=True, eq=False)
class GridTensor:
    """Grid vectors of a tile, or its labels.

    Attributes:
        integers: grid vectors as float64, ``(n, d)``, or int64 labels, ``(n,)``.
        squares, norms: squared norms after the clip, and norms before it, in grid steps, ``(n,)``.
        clipped: number of records that the clip moved, int64 ``()``.
        escaped: number of clipped records that are outside the ball, which is a bug, int64 ``()``.
    """

    integers: Tensor
    squares: Tensor
    norms: Tensor
    clipped: Tensor
    escaped: Tensor


class Pending(Protocol):
    """A tile's vectors or labels before the host has read their counts.

    Attributes:
        counts: int64 ``(2,)``, on the device: more than 0 if a record is unreadable, and how many records are outside.
    """

    @property
    def counts(self) -> Tensor:
        """Unreadable records, or 1 for any number of them, and records outside the ball."""

    @property
    def readable(self) -> Tensor:
        """Return which records are readable, ``(n,)``."""

    def settled(self, unreadable: int, outside: int) -> GridTensor:
        """Return the tile on its grid.

        Args:
            unreadable, outside: the counts, as the host read them.

        Raises:
            RecordError: a record is unreadable.
        """


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """Rows of a tile, scaled and rounded, before the clip.

    Attributes:
        rows: the rows in float64, ``(n, d)``.
        integers: the rounded rows, ``(n, d)``; :meth:`settled` overwrites those outside the ball.
        squares: squared norms of the rounded rows, ``(n,)``.
        outside: which rows are outside the ball, ``(n,)``.
        counts: as :class:`Pending` has them.
    """

    torch: ModuleType
    grid: Grid
    rows: Tensor
    integers: Tensor
    squares: Tensor
    outside: Tensor
    counts: Tensor

    @classmethod
    def of(cls, torch: ModuleType, grid: Grid, rows: Tensor, unreadable: Tensor | int = 0) -> RoundedRows:
        """Round float64 rows.

        Args:
            unreadable: more than 0 if an entry was unreadable before a transform.
        """
        grid.require_columns(rows)
        integers = ((rows.clamp(min=0.0) if grid.nonnegative else rows) * grid.scale).round_()
        squares = torch.linalg.vecdot(integers, integers)
        outside = squares > float(grid.radius) ** 2
        counts = torch.stack([not_finite(torch, rows) + unreadable, outside.sum()])
        return cls(torch, grid, rows, integers, squares, outside, counts)

    @property
    def readable(self) -> Tensor:
        """Return which rows are finite, ``(n,)``."""
        readable: Tensor = self.torch.isfinite(self.rows).all(dim=1)
        return readable

    def settled(self, unreadable: int, outside: int) -> GridTensor:
        """Return grid vectors, whose bits equal those of :meth:`privstats.moments.grid.Grid.quantize`."""
        if unreadable:
            raise self.grid.not_finite()
        norms = self.squares.sqrt()
        # The rows outside come first. Operations are the same for any number of them, also for none.
        clipped = self.torch.argsort(self.outside.to(self.torch.int8), descending=True, stable=True)[:outside]
        self.integers[clipped], self.squares[clipped], norms[clipped] = self.grid.shortened(self.rows[clipped])
        escaped = (~(self.squares <= float(self.grid.radius) ** 2)).sum()
        return GridTensor(self.integers, self.squares, norms, self.grid.longer(norms[clipped]), escaped)


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of a tile, int64 ``(n,)``, before the host knows that they are classes.

    A wrong label must index nothing on a device, where it would end the process's work there.
    """

    labels: Tensor
    classes: int
    counts: Tensor

    @classmethod
    def of(cls, torch: ModuleType, labels: Tensor, classes: int) -> Labels:
        """Count labels outside the classes."""
        wrong = (~_among(labels, classes)).sum()
        return cls(labels, classes, torch.stack([wrong, torch.zeros_like(wrong)]))

    @property
    def readable(self) -> Tensor:
        """Return which labels are classes, ``(n,)``."""
        return _among(self.labels, self.classes)

    def settled(self, unreadable: int, outside: int) -> GridTensor:  # noqa: ARG002 - no label is clipped
        """Return the labels."""
        if unreadable:
            raise outside_classes(self.classes)
        none, empty = self.counts[1], self.counts[:0]
        return GridTensor(self.labels, empty, empty, none, none)


@dataclass(frozen=True, eq=False)
class RealTargets:
    """Finite targets of a tile, float64 ``(n, targets)``, which stay off the grid."""

    targets: Tensor
    readable: Tensor
    counts: Tensor

    @classmethod
    def of(cls, torch: ModuleType, targets: Tensor) -> RealTargets:
        """Accept targets as they are."""
        readable = torch.ones(len(targets), dtype=torch.bool, device=targets.device)
        return cls(targets, readable, torch.zeros(2, dtype=torch.int64, device=targets.device))

    def settled(self, unreadable: int, outside: int) -> GridTensor:  # noqa: ARG002 - none is clipped
        """Return the targets."""
        none, empty = self.counts[1], self.counts[:0]
        return GridTensor(self.targets, empty, empty, none, none)


def _among(labels: Tensor, classes: int) -> Tensor:
    return (labels >= 0) & (labels < classes)


def not_finite(torch: ModuleType, rows: Tensor) -> Tensor:
    """Return 1 where an entry is NaN or infinite, else 0, int64 ``()``."""
    unreadable: Tensor = (~torch.isfinite(rows).all()).to(torch.int64)
    return unreadable
