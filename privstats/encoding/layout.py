"""How moments lie in one flat integer vector.

A layout is a sequence of named segments, derived from the schema alone, so every party computes the same one. It holds
each segment's size, scale, per-record bound and noise geometry; noise levels and ring widths belong to the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from privstats.schema import Schema
from privstats.schema.statistic import Statistic

__all__ = ["Layout", "Segment", "layout_of"]


@dataclass(frozen=True)
class Segment:
    """A run of the flat vector whose entries share scale, bound and noise.

    Attributes:
        name: ``"N"``, ``"A"``, ``"D"``, ``"h"``, ``"q"``, or ``"B.diag"`` / ``"B.off"`` (likewise S and G): a symmetric
            block is its diagonal followed by its strict upper triangle, row by row.
        statistic: the letter the segment belongs to.
        size: number of entries.
        scale: grid steps per real unit.
        bound: largest absolute value one record adds to one entry, in grid steps.
        noise_factor: the segment's noise is this times the statistic's sigma: 1 on diagonals and plain vectors,
            1/sqrt 2 off the diagonal, because an off-diagonal entry stands for two entries of the matrix.

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
        """Entries of the flat vector."""
        return sum(segment.size for segment in self.segments)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slice of each segment in the flat vector, in the order of ``segments``."""
        ends = list(accumulate(segment.size for segment in self.segments))
        return tuple(slice(end - segment.size, end) for segment, end in zip(self.segments, ends, strict=True))


@lru_cache(maxsize=64)
def layout_of(schema: Schema) -> Layout:
    """The layout that every party with this schema derives.

    Example:
        >>> layout = ps.encoding.layout_of(ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0))
        >>> [(segment.name, segment.size) for segment in layout.segments]
        [('G.diag', 3), ('G.off', 3), ('h', 3), ('q', 1)]
    """
    return Layout(tuple(segment for row in schema.sent for segment in _segments(schema, row)))


def _segments(schema: Schema, row: Statistic) -> tuple[Segment, ...]:
    """A statistic's segments: a symmetric block is its diagonal and its triangle, where |x_i x_j| is at most r^2 /
    2."""
    blocks, entries, scale = row.blocks(schema.sizes), row.entries(schema.sizes), schema.scale_of(row.letter)
    bound = row.bound(schema.steps)
    if not row.symmetric:
        return (Segment(row.letter, row.letter, blocks * entries, scale, bound),)
    diagonal = schema.sizes[row.axes[0]]
    return (
        Segment(f"{row.letter}.diag", row.letter, blocks * diagonal, scale, bound),
        Segment(f"{row.letter}.off", row.letter, blocks * (entries - diagonal), scale, bound // 2, 2**-0.5),
    )
