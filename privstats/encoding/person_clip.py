"""The clip of one person: what all rows of one add to the sums, shrunk together to a declared weighted norm.

For the person unit of privacy. ``dp.person_clip`` makes the value from a plan's promise; ``measure`` calls it for each
person, before a party's sums are formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.encoding.client_clip import ROUNDING, clip_vector
from privstats.encoding.layout import blocks_of, flatten

if TYPE_CHECKING:
    from privstats.moments import Moments

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

    records: float
    weights: tuple[tuple[str, float], ...]

    def clipped(self, moments: Moments) -> tuple[dict[str, Any], bool]:
        """What one person adds, by letter in wire steps and blocks first, and whether it was shrunk.

        Args:
            moments: of all rows of this person, and of no other.
        """
        found = clip_vector(moments.schema, flatten(moments), dict(self.weights), self.records * ROUNDING)
        return blocks_of(moments.schema, found.vector), found.shrink < 1
