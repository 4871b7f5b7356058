"""How moments lie in one flat integer vector.

A layout is a sequence of named segments, derived from the schema alone, so every party computes the same one. It knows
each segment's size, scale, per-record bound and noise geometry; it does not know noise levels or ring widths: those
belong to the plan. In the way of the data it stands between the moments and the ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from privstats.schema import COUNT_SCALE, ClassSchema, RidgeSchema, Schema

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
    """

    name: str
    statistic: str
    size: int
    scale: float
    bound: int
    noise_factor: float = 1.0


@dataclass(frozen=True)
class Layout:
    """The segments of a schema, in wire order."""

    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """Entries of the flat vector."""
        return sum(segment.size for segment in self.segments)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each segment lies in the flat vector, in the order of ``segments``."""
        ends = list(accumulate(segment.size for segment in self.segments))
        return tuple(slice(end - segment.size, end) for segment, end in zip(self.segments, ends, strict=True))


@lru_cache(maxsize=64)
def layout_of(schema: Schema) -> Layout:
    """The layout that every party with this schema derives."""
    return Layout(_class_segments(schema) if isinstance(schema, ClassSchema) else _ridge_segments(schema))


def _class_segments(schema: ClassSchema) -> tuple[Segment, ...]:
    classes, d, radius = schema.classes, schema.features, schema.steps
    square = schema.scale**2
    table: dict[str, tuple[Segment, ...]] = {
        "N": (Segment("N", "N", classes, COUNT_SCALE, COUNT_SCALE),),
        "A": (Segment("A", "A", classes * d, schema.scale, radius),),
        "B": _symmetric("B", 1, d, square, radius),
        "S": _symmetric("S", classes, d, square, radius),
        "D": (Segment("D", "D", classes * d, square, radius**2),),
    }
    return tuple(segment for statistic in schema.statistics for segment in table[statistic])


def _ridge_segments(schema: RidgeSchema) -> tuple[Segment, ...]:
    d, folds, radius = schema.features, schema.folds, schema.steps
    return (
        *_symmetric("G", folds, d, schema.scale_of("G"), radius),
        Segment("h", "h", folds * d * schema.targets, schema.scale_of("h"), radius**2),
        Segment("q", "q", folds, schema.scale_of("q"), radius**2),
    )


def _symmetric(statistic: str, blocks: int, d: int, scale: float, radius: int) -> tuple[Segment, Segment]:
    """A symmetric second moment of vectors in a ball: |x_i x_j| is at most r^2 / 2 off the diagonal."""
    return (
        Segment(f"{statistic}.diag", statistic, blocks * d, scale, radius**2),
        Segment(f"{statistic}.off", statistic, blocks * d * (d - 1) // 2, scale, radius**2 // 2, 2**-0.5),
    )
