"""Put rows on an integer grid within a ball, and sum grid rows exactly.

A grid vector depends on its row alone, bit for bit. Integers of at most M in absolute value add up exactly in float64
while rows * M <= 2**53, in any order. The float64 sum is added to an int64 total before it could exceed 2**53.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array

from privstats.errors import PrivstatsError, RecordError, SchemaError
from privstats.moments.base import require_room
from privstats.records.reading import Reading
from privstats.schema import Schema
from privstats.transforms.base import rows_to_sum
from privstats.transforms.exact import arrays_of, row_norms, unscaled

Ints: TypeAlias = NDArray[np.float64]
"""Integers stored as float64."""

_WAITING = 1 << 15  # entries of rows to clip at once, which fit the second-level cache during the clip


@dataclass(frozen=True)
class Quantized:
    """The effect of quantizing some rows.

    Attributes:
        norms: before the clip, in grid steps, ``(n,)``.
        energy: sum of squared norms after the clip, exact.
    """

    norms: NDArray[np.float64]
    clipped: int
    energy: int


@dataclass(frozen=True)
class Grid:
    """Integer vectors of norm at most ``radius``.

    A row x becomes rint(scale x) if that vector is in the ball, which exact integers decide. Otherwise x is clipped to
    at most radius - sqrt(d)/2 and rounded. Each entry moves by at most 1/2, so the vector moves by at most sqrt(d)/2
    and stays in the ball. :meth:`clip` checks that in integers.

    Attributes:
        field: the rows' name in messages.
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
        """Write the grid vectors of ``rows`` into ``out``, both ``(n, d)``."""
        chunk = GridChunk(self, out)
        chunk.fill(rows)
        return chunk.finish()

    def rounded(self, rows: NDArray[np.generic], out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Write scaled, rounded rows into ``out``; return squared norms in grid steps before any clip."""
        with np.errstate(over="ignore", invalid="ignore"):
            signed = rows
            if self.nonnegative:
                out[...] = rows
                # Checked first, because the maximum replaces minus infinity by 0.
                self.require_finite(out)
                signed = np.maximum(out, 0.0, out=out)
            np.rint(np.multiply(signed, self.scale, out=out, dtype=np.float64), out=out)
            squares: NDArray[np.float64] = arrays_of(out).integer_dots(out, out)
        if not np.isfinite(squares).all():
            self.require_finite(rows)
        return squares

    def outside(self, squares: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the indices of squared norms beyond the radius.

        Rounding changes no decision: sums of squares up to 2**53 are exact, and larger ones stay larger.
        """
        return np.flatnonzero(squares > float(self.radius) ** 2)

    def clip(self, rows: Any) -> tuple[Any, Any, Any]:
        """Return rows clipped to the inner radius and rounded, their squared norms, and their earlier norms in steps.

        Entries of zero may be omitted: the other entries keep their bits.
        """
        grid, squares, norms = self.shortened(rows)
        if not (squares <= float(self.radius) ** 2).all():
            raise self.escaped()
        return grid, squares, norms

    def shortened(self, rows: Any) -> tuple[Any, Any, Any]:
        """Return what :meth:`clip` returns, without its check of the squared norms."""
        xp = arrays_of(rows)
        if self.nonnegative:
            rows = xp.relu(rows)
        measured = row_norms(rows, self.columns)
        inner = self.radius - math.sqrt(self.columns) / 2
        factor = inner / (measured.norms + measured.error)
        grid = measured.rows
        grid *= factor[:, None]  # in place, while it is cached
        grid = xp.rint(grid)
        squares = xp.integer_dots(grid, grid)
        with np.errstate(over="ignore"):
            return grid, squares, unscaled(measured.norms, measured.exponents) * self.scale

    def escaped(self) -> PrivstatsError:
        """Return the error about a clipped vector outside the ball."""
        return PrivstatsError("a grid vector left the clip ball after the clip: this is a bug, please report it")

    def longer(self, norms: Any) -> Any:
        """Count norms that exceed the radius by more than rounding; a tensor's count is a tensor."""
        return (norms > self.radius * (1 + 2.0**-30)).sum()

    def require_finite(self, rows: NDArray[np.generic]) -> None:
        """Raise RecordError where an entry is NaN or infinite."""
        with np.errstate(over="ignore"):
            finite = np.isfinite(np.asarray(rows, np.float64)).all()
        if not finite:
            raise self.not_finite()

    def require_columns(self, rows: Any) -> None:
        """Refuse rows of another width: one entry would be repeated over all columns, behind the clip."""
        if rows.ndim != 2 or rows.shape[1] != self.columns:
            raise SchemaError(f"{self.field} has rows of shape {tuple(rows.shape[1:])}, and {self.columns} are summed")

    def not_finite(self) -> RecordError:
        """Return the error about NaN and infinity."""
        return RecordError(f"{self.field} holds NaN, infinite or overflowing entries; remove or impute them first")


class GridChunk:
    """Memory for rows ``(n, d)`` on a grid, filled tile by tile until :meth:`finish`."""

    def __init__(self, grid: Grid, rows: NDArray[np.float64]) -> None:
        self._grid, self._rows = grid, rows
        self._squares = np.empty(len(rows))
        self._filled = self._clipped = self._entries = 0
        self._waiting: list[tuple[NDArray[np.intp], NDArray[np.float64]]] = []
        self._clipped_rows: list[tuple[NDArray[np.intp], NDArray[np.float64]]] = []

    def fill(self, rows: NDArray[np.generic]) -> None:
        """Append rows; the caller passes no more than fit."""
        self._grid.require_columns(rows)
        at = slice(self._filled, self._filled + len(rows))
        self._squares[at] = self._grid.rounded(rows, self._rows[at])
        self._filled = at.stop
        outside = self._grid.outside(self._squares[at])
        if outside.size:
            self._waiting.append((at.start + outside, np.asarray(rows.take(outside, axis=0), np.float64)))
            self._entries += outside.size * self._rows.shape[1]
            if self._entries > _WAITING:
                self._clip_waiting()

    def finish(self) -> Quantized:
        """Return the effect since the last call; the memory is then reused."""
        if self._waiting:
            self._clip_waiting()
        squares = self._squares[: self._filled]
        energy, norms = int(squares.astype(np.int64).sum()), np.sqrt(squares)  # summed as integers
        for where, before in self._clipped_rows:
            norms[where] = before
        result = Quantized(norms, self._clipped, energy)
        self._filled = self._clipped = 0
        self._clipped_rows = []
        return result

    def _clip_waiting(self) -> None:
        where = np.concatenate([places for places, _ in self._waiting])
        rows = np.concatenate([rows for _, rows in self._waiting])
        self._rows[where], self._squares[where], norms = self._grid.clip(rows)
        self._clipped_rows.append((where, norms))
        self._clipped += int(self._grid.longer(norms))
        self._waiting, self._entries = [], 0


def feature_grid(schema: Schema) -> Grid:
    """Return the grid of the (transformed) features."""
    return Grid("X", schema.features, schema.grid_steps, schema.scale, schema.nonnegative)


def through_maps(reading: Reading, rows: NDArray[Any], grid: Grid) -> NDArray[np.float64]:
    """Return rows after the public maps, in float64; codes may be NaN, features may not.

    Raises:
        RecordError: a feature is NaN or infinite.
    """
    with np.errstate(over="ignore"):
        floats = rows.astype(np.float64)
    if not reading.gaps_have_cells:
        grid.require_finite(floats)
    return np.asarray(rows_to_sum(reading.maps, floats), np.float64)


_SPARSE_WAITING = 1 << 17  # entries of rows to clip at once


def quantized(grid: Grid, rows: csr_array) -> tuple[csr_array, Quantized]:
    """Return sparse grid vectors ``(n, d)``, and the effect of quantizing them."""
    out = np.empty((rows.nnz, 1))
    entries = replace(grid, columns=1).rounded(rows.data[:, None], out)
    sparse = csr_array((out[:, 0], rows.indices, rows.indptr), shape=rows.shape)
    squares = np.asarray(csr_array((entries, rows.indices, rows.indptr), shape=rows.shape) @ np.ones(rows.shape[1]))
    norms, clipped = np.sqrt(squares), 0
    for members in _batches(rows, grid.outside(squares)):
        place, there = _places(rows, members)
        raw = np.where(there, np.asarray(rows.data, np.float64)[place], 0.0)
        inside, squares[members], norms[members] = grid.clip(raw)
        sparse.data[place[there]] = inside[there]
        clipped += int(grid.longer(norms[members]))
    return sparse, Quantized(norms, clipped, int(squares.astype(np.int64).sum()))


def _batches(rows: csr_array, outside: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Group rows by number of entries, so that padding wastes little memory."""
    counts = np.diff(rows.indptr)[outside]
    order = outside[np.argsort(-counts, kind="stable")]
    counts = -np.sort(-counts)
    start = 0
    while start < len(order):
        stop = start + max(1, _SPARSE_WAITING // int(counts[start]))
        yield order[start:stop]
        start = stop


def _places(rows: csr_array, members: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    starts, ends = rows.indptr[members, None].astype(np.intp), rows.indptr[members + 1, None]
    place = starts + np.arange((ends - starts).max())
    there = place < ends
    return np.where(there, place, starts), there


_TILE = 1 << 16

_STRIP = 1 << 21  # entries of a strip of a sparse product

# Minimum number of strips for long rows. Each strip omits a part of the upper triangle.
_STRIPS = 6

# Rows with more entries on average are long: strips then save more time than the selection of columns costs.
_LONG = 8

# With at most this many columns, numpy's symmetric product takes less time than scipy's.
_SHORT = 256

# The lower triangle is cast and mirrored in strips of this many rows, which stay in the cache.
_SIDE = 64


def exact_rows(bound: int) -> int:
    """Return the number of terms of at most ``bound`` in absolute value that float64 adds exactly: 2**53 // bound.

    For second moments of grid vectors the bound is 4**f: sum |x_i x_j| <= sum ||x||^2 <= rows 4**f.
    """
    return (1 << 53) // bound


def sums_of(schema: Schema, letters: str) -> dict[str, ExactSum]:
    """Return empty sums of a schema's sent statistics, by letter."""
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.grid_steps)) for row in schema.sent}
    require_known(sums, letters)
    return sums


def require_known(requested: Collection[str], known: Collection[str]) -> None:
    """Refuse a statistic that no code sums: it would stay zero."""
    unknown = [letter for letter in requested if letter not in known]
    if unknown:
        raise SchemaError(f"measure forms no sum for statistic {', '.join(unknown)}; exclude it from the schema")


class ExactSum:
    """A sum over records of arrays of one shape, each entry at most ``bound`` per record.

    Attributes:
        partial: float64 accumulator; add into it in place after :meth:`admit`.
    """

    def __init__(self, shape: tuple[int, ...], bound: int) -> None:
        self.partial = np.empty(shape)  # unlike np.zeros, numpy requests large pages here
        self.partial.fill(0.0)
        self._total: NDArray[np.int64] | None = None
        self._bound = bound
        self._pending = self._records = 0

    def admit(self, rows: int, counted: int | None = None) -> None:
        """Announce at most ``exact_rows(bound)`` more records, before they are added to ``partial``.

        Args:
            counted: how many records they count as; None: ``rows``.

        Raises:
            DataError: the totals could reach 2**63.
        """
        if self._pending + rows > exact_rows(self._bound):
            self._empty()
        self._pending += rows
        self._records += rows if counted is None else counted
        require_room(self._records, self._bound)

    def result(self, *, symmetric: bool = False) -> NDArray[np.int64]:
        """Return the sum as int64, without copying the array; the accumulator cannot be used again.

        Args:
            symmetric: copy the lower triangle of the last two axes above the diagonal.
        """
        if self._total is not None:
            self._empty()
        source = self.partial if self._total is None else self._total
        integers = source.view(np.int64)
        if symmetric:
            d = integers.shape[-1]
            for lower, block in zip(source.reshape(-1, d, d), integers.reshape(-1, d, d), strict=True):
                _mirror(lower, block)
        elif self._total is None:
            _cast_in_place(self.partial.reshape(-1), integers.reshape(-1))
        return integers

    def _empty(self) -> None:
        if self._total is None:
            self._total = np.zeros(self.partial.shape, np.int64)
        flat, total = self.partial.reshape(-1), self._total.reshape(-1)
        for start in range(0, flat.size, _TILE):
            total[start : start + _TILE] += flat[start : start + _TILE].astype(np.int64)
        flat[:] = 0.0
        self._pending = 0


def add_gram(rows: NDArray[np.float64] | csr_array, into: NDArray[np.float64]) -> None:
    """Add rows^T rows into the C-ordered ``(d, d)`` array ``into``: at least its lower triangle."""
    if isinstance(rows, csr_array):
        _add_sparse_gram(rows, into)
    elif len(into) <= _SHORT:
        into += rows.T @ rows
    else:
        dsyrk(1.0, np.ascontiguousarray(rows).T, beta=1.0, c=into.T, overwrite_c=1)


def _add_sparse_gram(rows: csr_array, into: NDArray[np.float64]) -> None:
    d = len(into)
    turned = rows.T.tocsr()
    strips = _STRIPS if rows.nnz > _LONG * rows.shape[0] else 1
    at_once = max(1, min(_STRIP // d, -(-d // strips)))
    for start in range(0, d, at_once):
        end = min(start + at_once, d)
        strip = (turned[start:end] @ rows[:, :end]).toarray()
        into[start:end, :start] += strip[:, :start]
        into[start:end, start:end] += np.tril(strip[:, start:])


def _cast_in_place(floats: NDArray[np.float64], integers: NDArray[np.int64]) -> None:
    # numpy would copy all of an overlapping cast first, so the cast is in tiles.
    for start in range(0, floats.size, _TILE):
        integers[start : start + _TILE] = floats[start : start + _TILE].copy()


def _mirror(lower: NDArray[np.generic], integers: NDArray[np.int64]) -> None:
    for start in range(0, len(lower), _SIDE):
        end = start + _SIDE
        strip = lower[start:end, :end].astype(np.int64)
        integers[:start, start:end] = strip[:, :start].T
        corner = np.tril(strip[:, start:])
        strip[:, start:] = corner + np.tril(corner, -1).T
        integers[start:end, :end] = strip


def less(
    plain: NDArray[Any], left: NDArray[Any], right: NDArray[Any], over: Fraction, scale: int = 1
) -> NDArray[np.int64]:
    """Return ``scale (plain - left right' / over)``, computed in Python integers, each entry truncated toward zero.

    Truncation increases the difference of two such entries by at most one step.
    """
    product = over.denominator * np.outer(left.astype(object), right.astype(object))
    top = scale * (over.numerator * plain.astype(object) - product)
    truncated = np.abs(top) // over.numerator
    return np.asarray(np.where(top < 0, -truncated, truncated), np.int64)
