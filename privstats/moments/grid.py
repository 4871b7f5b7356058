"""The integer grid in a ball: shrink a row to the clip norm, round it, and check its norm in whole numbers.

The result depends on the row alone, bit for bit: no decision depends on a rounded sum. The grid has no labels and no
moments; rows reach it from the public transform, and every sum takes grid rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PrivstatsError, RecordError
from privstats.schema import RidgeSchema, Schema
from privstats.transforms.arrays import arrays_of
from privstats.transforms.exact import row_norms, unscaled

__all__ = ["Grid", "GridChunk", "Quantized", "feature_grid", "target_grid"]

_WAITING = 1 << 15  # entries of rows to shrink at once, which fit the second-level cache while they are shrunk


@dataclass(frozen=True)
class Quantized:
    """The effect of quantizing some rows.

    Attributes:
        norms: norms before the clip in grid steps, shape ``(n,)``.
        clipped: how many rows were longer than the radius and are now shorter.
        energy: sum of the squared norms after the clip, in squared grid steps, exact.
    """

    norms: NDArray[np.float64]
    clipped: int
    energy: int


@dataclass(frozen=True)
class Grid:
    """Whole-numbered vectors of norm at most ``radius``.

    A row x becomes rint(scale x) if that lies in the ball, which is decided in exact whole numbers. Otherwise x is
    shrunk to norm radius - sqrt(d)/2 and rounded, which cannot leave the ball: rounding moves a vector by at most
    sqrt(d)/2. (docs/moments_numbers.md; the norm of the shrink is an upper bound that no order of summation can
    change.)

    Attributes:
        field: the caller's name for these rows, for messages.
        columns: d.
        radius: 2**grid_bits.
        scale: grid steps per unit.
        nonnegative: negative entries become 0 first.
    """

    field: str
    columns: int
    radius: int
    scale: float
    nonnegative: bool = False

    def quantize(self, rows: NDArray[np.generic], out: NDArray[np.float64]) -> Quantized:
        """Write the grid vectors of ``rows`` into ``out``, both of shape ``(n, d)``.

        Raises:
            RecordError: an entry is NaN or infinite.
        """
        chunk = GridChunk(self, out)
        chunk.fill(rows)
        return chunk.finish()

    def rounded(self, rows: NDArray[np.generic], out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Write the rows, scaled and rounded, into ``out``; returns their squared norms in grid steps, before any clip.

        Raises:
            RecordError: an entry is NaN or infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            kept = rows
            if self.nonnegative:
                out[...] = rows
                self.require_finite(out)  # before the maximum, which would hide minus infinity
                kept = np.maximum(out, 0.0, out=out)
            np.rint(np.multiply(kept, self.scale, out=out, dtype=np.float64), out=out)
            squares: NDArray[np.float64] = arrays_of(out).whole_dots(out, out)
        if not np.isfinite(squares).all():
            self.require_finite(rows)
        return squares

    def outside(self, squares: NDArray[np.float64]) -> NDArray[np.intp]:
        """Indices of the squared norms beyond the radius.

        Whole numbers up to 2**53 add exactly and larger sums stay larger, so rounding cannot change this decision.
        """
        return np.flatnonzero(squares > float(self.radius) ** 2)

    def shrink(self, rows: Any) -> tuple[Any, Any, Any]:
        """Rows scaled to the inner radius and rounded, their squared norms, and their norms in grid steps before that;
        torch or numpy.

        Zeros may be left out of a row anywhere: the other entries get the same bits.
        """
        xp = arrays_of(rows)
        if self.nonnegative:
            rows = xp.relu(rows)
        measured = row_norms(rows, self.columns)
        inner = self.radius - math.sqrt(self.columns) / 2
        factor = inner / (measured.norms + measured.error)
        grid = measured.rows
        grid *= factor[:, None]  # in memory that is cached
        grid = xp.rint(grid)
        squares = xp.whole_dots(grid, grid)
        if not (squares <= float(self.radius) ** 2).all():
            raise PrivstatsError("a grid vector left the clip ball after the clip: this is a bug, please report it")
        with np.errstate(over="ignore"):
            return grid, squares, unscaled(measured.norms, measured.exponents) * self.scale

    def longer(self, norms: Any) -> int:
        """Number of norms beyond the radius by more than rounding: the rows that a user would call clipped."""
        return int((norms > self.radius * (1 + 2.0**-30)).sum())

    def require_finite(self, rows: NDArray[np.generic]) -> None:
        """Raise RecordError where an entry is NaN or infinite."""
        with np.errstate(over="ignore"):
            finite = np.isfinite(np.asarray(rows, np.float64)).all()
        if not finite:
            raise self.not_finite()

    def not_finite(self) -> RecordError:
        """The error about NaN and infinity."""
        return RecordError(f"{self.field} holds NaN, infinite or overflowing entries; remove or impute them first")


class GridChunk:
    """Memory for rows on a grid that is filled tile by tile, and whose clipped rows are shrunk many at once.

    Args:
        grid: the grid.
        rows: the memory, ``(n, d)``; holds the grid vectors once :meth:`finish` was called.
    """

    def __init__(self, grid: Grid, rows: NDArray[np.float64]) -> None:
        self._grid, self._rows = grid, rows
        self._squares = np.empty(len(rows))
        self._filled = self._clipped = self._entries = 0
        self._waiting: list[tuple[NDArray[np.intp], NDArray[np.float64]]] = []
        self._shrunk: list[tuple[NDArray[np.intp], NDArray[np.float64]]] = []

    def fill(self, rows: NDArray[np.generic]) -> None:
        """Append rows, no more than there is room for.

        Raises:
            RecordError: an entry is NaN or infinite.
        """
        at = slice(self._filled, self._filled + len(rows))
        self._squares[at] = self._grid.rounded(rows, self._rows[at])
        self._filled = at.stop
        outside = self._grid.outside(self._squares[at])
        if outside.size:
            self._waiting.append((at.start + outside, np.asarray(rows.take(outside, axis=0), np.float64)))
            self._entries += outside.size * self._rows.shape[1]
            if self._entries > _WAITING:
                self._shrink()

    def finish(self) -> Quantized:
        """The effect on the rows since the last call; the next rows overwrite the memory from its start."""
        if self._waiting:
            self._shrink()
        squares = self._squares[: self._filled]
        energy, norms = int(squares.astype(np.int64).sum()), np.sqrt(squares)  # whole numbers, added as such
        for where, before in self._shrunk:
            norms[where] = before
        found = Quantized(norms, self._clipped, energy)
        self._filled = self._clipped = 0
        self._shrunk = []
        return found

    def _shrink(self) -> None:
        where = np.concatenate([places for places, _ in self._waiting])
        rows = np.concatenate([rows for _, rows in self._waiting])
        self._rows[where], self._squares[where], norms = self._grid.shrink(rows)
        self._shrunk.append((where, norms))
        self._clipped += self._grid.longer(norms)
        self._waiting, self._entries = [], 0


def feature_grid(schema: Schema) -> Grid:
    """The grid of the (transformed) features."""
    return Grid("X", schema.features, schema.steps, schema.scale, schema.nonnegative)


def target_grid(schema: RidgeSchema) -> Grid:
    """The grid of the regression targets."""
    return Grid("y", schema.targets, schema.steps, schema.target_scale)
