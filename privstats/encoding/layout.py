"""Lay out moments as one flat integer vector.

A layout is derived from the schema alone, so every party computes the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.kinds.base import kind_of
from privstats.schema import Schema
from privstats.schema.base import Statistic

if TYPE_CHECKING:
    from privstats.moments import Moments


@dataclass(frozen=True)
class Segment:
    """Consecutive entries of the flat vector with one scale, bound and noise level.

    Attributes:
        name: a letter; a symmetric block has ``"B.diag"`` and ``"B.off"``, its strict upper triangle row by row.
        scale: wire steps per real unit.
        bound: n records' sum is at most n times this in one entry, in wire steps.
        pooled: whether one block holds the sum over all cells.
        noise_factor: the segment's sigma divided by the statistic's: 1/sqrt 2 off the diagonal, where one entry
            counts as two, else 1.

    Example:
        >>> layout = ps.encoding.layout_of(ps.ClassSchema(2, 3, "NAB", clip_norm=1.0))
        >>> [(segment.name, segment.size) for segment in layout.segments if segment.statistic == "B"]
        [('B.diag', 3), ('B.off', 3)]
    """

    name: str
    statistic: str
    size: int
    scale: float
    bound: int
    pooled: bool
    noise_factor: float = 1.0


@dataclass(frozen=True)
class Layout:
    """The segments of a schema, in wire order.

    Example:
        >>> layout = ps.encoding.layout_of(ps.ClassSchema(2, 3, "NA", clip_norm=1.0))
        >>> [(segment.name, segment.size) for segment in layout.segments], layout.size
        ([('N', 2), ('A', 6)], 8)
    """

    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """Number of entries of the flat vector."""
        return sum(segment.size for segment in self.segments)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Slice of each segment."""
        ends = list(accumulate(segment.size for segment in self.segments))
        return tuple(slice(end - segment.size, end) for segment, end in zip(self.segments, ends, strict=True))


@lru_cache(maxsize=64)
def layout_of(schema: Schema) -> Layout:
    """Return the layout of a schema.

    Example:
        >>> layout = ps.encoding.layout_of(ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0))
        >>> [(segment.name, segment.size) for segment in layout.segments]
        [('G.diag', 3), ('G.off', 3), ('h', 3), ('q', 1)]
    """
    return Layout(tuple(segment for row in schema.sent for segment in _segments(schema, row)))


def _segments(schema: Schema, row: Statistic) -> tuple[Segment, ...]:
    """Return a statistic's segments; off the diagonal |x_i x_j| is at most steps^2 / 2."""
    blocks, entries, scale = row.blocks(schema.sizes), row.entries(schema.sizes), schema.scale_of(row.letter)
    bound, pooled = row.bound(schema.grid_steps), row.partition == "pooled"
    if not row.symmetric:
        return (Segment(row.letter, row.letter, blocks * entries, scale, bound, pooled),)
    diagonal = schema.sizes[row.axes[0]]
    return (
        Segment(f"{row.letter}.diag", row.letter, blocks * diagonal, scale, bound, pooled),
        Segment(f"{row.letter}.off", row.letter, blocks * (entries - diagonal), scale, bound // 2, pooled, 2**-0.5),
    )


def flatten(moments: Moments) -> NDArray[np.int64]:
    """Return the moments in wire steps, int64 of shape ``(layout.size,)``: ``COUNT_SCALE`` steps per record in counts.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=4)
        >>> ps.encoding.flatten(ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1])).tolist()
        [4096, 4096, 16, 0, 0, 8]
    """
    # Zeros: memory of this process must not reach the vector, whatever a layout of another package's kind leaves out.
    out = np.zeros(layout_of(moments.schema).size, np.int64)
    parts = _split(moments.schema, out)
    for row in moments.schema.sent:
        array = moments.sums(row)
        if row.symmetric:
            _write_symmetric(array, *parts[row.letter])
        else:
            np.multiply(array.reshape(-1), 1 if moments.in_wire_steps else row.factor, out=parts[row.letter][0])
    return out


def unflatten(schema: Schema, vector: NDArray[np.int64]) -> Moments:
    """Invert :func:`flatten` for exact vectors (noisy ones: :func:`to_real`), without the clip report.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1])
        >>> ps.encoding.unflatten(schema, ps.encoding.flatten(moments)) == moments
        True
    """
    arrays = blocks_of(schema, vector)
    for row in schema.sent:
        if (arrays[row.letter] % row.factor).any():
            raise DataError("vector has fractional counts, so it is not a plain sum of moments; read it with to_real")
        arrays[row.letter] = arrays[row.letter] // row.factor
    return kind_of(schema).exact(arrays)


def to_real(schema: Schema, vector: NDArray[np.int64]) -> Any:
    """Return a flat vector, noisy or exact, as moments in real units.

    For an exact vector this equals ``unflatten(schema, vector).real()`` bit for bit. Where S is sent, B and D are
    derived from the noisy S.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> vector = ps.encoding.flatten(ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1]))
        >>> ps.encoding.to_real(schema, vector).A.tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    return kind_of(schema).real(blocks_of(schema, vector))


def _split(schema: Schema, vector: NDArray[np.int64]) -> dict[str, list[NDArray[np.int64]]]:
    layout = layout_of(schema)
    if vector.shape != (layout.size,) or vector.dtype != np.int64:
        raise DataError(f"vector must be int64 ({layout.size},), got {vector.dtype} {vector.shape}; call flatten")
    parts: dict[str, list[NDArray[np.int64]]] = {}
    for segment, where in zip(layout.segments, layout.slices, strict=True):
        parts.setdefault(segment.statistic, []).append(vector[where])
    return parts


def blocks_of(schema: Schema, vector: NDArray[np.int64]) -> dict[str, Any]:
    """Return the vector in the shapes of the moments."""
    parts = _split(schema, vector)
    arrays: dict[str, Any] = {}
    for row in schema.sent:
        shape = row.shape(schema.sizes)
        if row.symmetric:
            arrays[row.letter] = _read_symmetric(shape[-1], *parts[row.letter]).reshape(shape)
        else:
            arrays[row.letter] = parts[row.letter][0].reshape(shape)
    return arrays


def _write_symmetric(matrix: NDArray[np.int64], diagonal: NDArray[np.int64], off: NDArray[np.int64]) -> None:
    d = matrix.shape[-1]
    blocks = matrix.reshape(-1, d, d)
    diagonal.reshape(-1, d)[...] = np.diagonal(blocks, axis1=1, axis2=2)
    triangle = off.reshape(len(blocks), -1)
    start = 0
    for i in range(d - 1):
        triangle[:, start : start + d - 1 - i] = blocks[:, i, i + 1 :]
        start += d - 1 - i


def _read_symmetric(d: int, diagonal: NDArray[np.int64], off: NDArray[np.int64]) -> NDArray[np.int64]:
    blocks = np.empty((len(diagonal) // d, d, d), np.int64)
    triangle = off.reshape(len(blocks), -1)
    every = np.arange(d)
    blocks[:, every, every] = diagonal.reshape(-1, d)
    start = 0
    for i in range(d - 1):
        row = triangle[:, start : start + d - 1 - i]
        blocks[:, i, i + 1 :] = row
        blocks[:, i + 1 :, i] = row
        start += d - 1 - i
    return blocks
