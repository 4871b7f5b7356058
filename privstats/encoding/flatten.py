"""Moments to one flat int64 vector and back, segment by segment of the layout.

Symmetric blocks are written as their diagonal and their strict upper triangle. ``ring`` encodes the vector; a released
sum is read back into real units here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.encoding.layout import layout_of
from privstats.errors import DataError
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.moments import Moments

__all__ = ["flatten", "to_real", "unflatten"]


def flatten(moments: Moments) -> NDArray[np.int64]:
    """The moments as int64 of shape ``(layout.size,)``, in wire order; counts are multiplied by ``COUNT_SCALE``.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=4)
        >>> ps.encoding.flatten(ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1])).tolist()
        [4096, 4096, 16, 0, 0, 8]
    """
    out = np.empty(layout_of(moments.schema).size, np.int64)
    parts = _split(moments.schema, out)
    for row in moments.schema.sent:
        array = moments.sums(row)
        if row.symmetric:
            _write_symmetric(array, *parts[row.letter])
        else:
            np.multiply(array.reshape(-1), row.kept, out=parts[row.letter][0])
    return out


def unflatten(schema: Schema, vector: NDArray[np.int64]) -> Moments:
    """Inverse of :func:`flatten` for exact vectors; the clip report is gone.

    Raises:
        DataError: the vector has another size, or its counts are not whole (noisy vectors: use :func:`to_real`).

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1])
        >>> ps.encoding.unflatten(schema, ps.encoding.flatten(moments)) == moments
        True
    """
    from privstats.moments import kind_of  # a plan knows layouts, and its check need not wait for what forms sums

    arrays = _blocks(schema, vector)
    for row in schema.sent:
        if (arrays[row.letter] % row.kept).any():
            raise DataError("vector has fractional counts, so it is not a plain sum of moments; read it with to_real")
        arrays[row.letter] = arrays[row.letter] // row.kept
    return kind_of(schema).exact(schema, arrays)


def to_real(schema: Schema, vector: NDArray[np.int64]) -> Any:
    """A flat vector, noisy or exact, in real units: every entry divided by its segment's scale.

    For an exact vector this equals ``unflatten(schema, vector).real()`` bit for bit. B and D are derived where S is
    sent, from the noisy S.

    Raises:
        DataError: the vector has another size.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> vector = ps.encoding.flatten(ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1]))
        >>> ps.encoding.to_real(schema, vector).A.tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    from privstats.moments import kind_of

    return kind_of(schema).real(schema, _blocks(schema, vector))


def _split(schema: Schema, vector: NDArray[np.int64]) -> dict[str, list[NDArray[np.int64]]]:
    """The vector's pieces by statistic, as views."""
    layout = layout_of(schema)
    if vector.shape != (layout.size,) or vector.dtype != np.int64:
        raise DataError(f"vector must be int64 of shape ({layout.size},) under this schema")
    parts: dict[str, list[NDArray[np.int64]]] = {}
    for segment, where in zip(layout.segments, layout.slices, strict=True):
        parts.setdefault(segment.statistic, []).append(vector[where])
    return parts


def _blocks(schema: Schema, vector: NDArray[np.int64]) -> dict[str, Any]:
    """The vector as arrays in the shapes of the moments."""
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
