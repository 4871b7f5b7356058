"""The clip of one person: what all rows of one add to the sums, shrunk together to a declared weighted norm.

For the person unit of privacy. ``dp.person_clip`` makes the value from a plan's promise; ``measure`` calls it for each
person, before a party's sums are formed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privstats.encoding.client_clip import ROUNDING, ClippedSums, clip_vector
from privstats.encoding.layout import blocks_of, flatten, layout_of
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.moments import Moments
    from privstats.moments.person_sums import Squares

__all__ = ["PersonClip"]


@dataclass(frozen=True)
class PersonClip:
    """How far one person counts, in worst-case records; a public value of a plan (``plan.person_clip``).

    Attributes:
        records: c: a person of at most so many rows counts in full.
        weights: by letter, share / sensitivity^2: rows ``v`` weigh ``sqrt(sum_s w_s ||v_s||^2)`` worst-case records.

    Guarantee:
        What one person adds follows from the rows of that person and this value alone, and weighs at most ``records``,
        in whole numbers and for any number of rows (docs/sensitivity.md, One person).

    Example:
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
        ...     max_records_per_person=5, person_clip=2.0)
        >>> ps.dp.person_clip(ps.ClassSchema(2, 2, "NA", 1.0), privacy).records
        2.0
    """

    averaged: ClassVar[bool] = False

    records: float
    weights: tuple[tuple[str, float], ...]

    def most_records(self, schema: Schema) -> int:
        """How many records bound all that a person adds, whatever the rows: no entry, and no sum of the counts, is
        beyond what so many can give.

        It follows from public values alone. All of c may be in one statistic, whose entries reach ``c / sqrt(share)``
        times one record's, and counts in several cells add up to more; so it lies above c. What holds a party's records
        against a limit counts a person as so many at most (``PersonMoments.counted``).

        Example:
            >>> schema = ps.ClassSchema(2, 2, "NA", 1.0)
            >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
            ...     max_records_per_person=2, person_clip=2)
            >>> ps.dp.person_clip(schema, privacy).most_records(schema)  # 2 sqrt(2 / .02): 2 cells, 2 % of mu^2
            20
        """
        weights, most = dict(self.weights), 1.0
        for each in layout_of(schema).segments:
            if each.size:
                reach = self.records * each.noise_factor * each.scale / math.sqrt(weights[each.statistic])
                cells = math.sqrt(each.size) if each.name == "N" else 1.0
                most = max(most, cells * reach / each.bound)
        return math.ceil(most * (1 + ROUNDING) / 2)  # the clip leaves as much of its norm unused

    def clipped(self, *parts: Moments) -> tuple[dict[str, Any], bool]:
        """What one person adds, by letter in wire steps and blocks first, and whether it was shrunk.

        Args:
            parts: moments of all rows of this person and of no other, in one or several parts. What passes 64 bits
                together is taken over a power of two, cut toward zero once: the clip leaves far less of it either way.
        """
        schema = parts[0].schema
        vector = flatten(parts[0])
        for part in parts[1:]:
            vector = vector.astype(object) + flatten(part).astype(object)
        if len(parts) > 1:
            unit = 1 << max(int(np.abs(vector).max()).bit_length() - 63, 0)
            vector = (np.sign(vector) * (np.abs(vector) // unit)).astype(np.int64)
        found = clip_vector(schema, vector, dict(self.weights), self.records * ROUNDING)
        return blocks_of(schema, found.vector), found.shrink < 1

    def cut(self, schema: Schema, rows: int, squares: Squares) -> ClippedSums:  # noqa: ARG002  averages read them
        """What :meth:`clipped` takes the sums of many persons by, from their squared lengths."""
        of_all, norm = squares.of_all(), self.records * ROUNDING
        return ClippedSums.by_squares(schema, of_all, dict(self.weights), norm, squares.error, squares.exactly)
