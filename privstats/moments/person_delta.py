"""The signed change of one party's sums over persons: those who entered less those who left, in wire steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privstats.errors import DataError
from privstats.moments.exact_sum import require_room
from privstats.moments.moments_delta import MomentsDelta
from privstats.moments.persons import Clip, PersonMoments
from privstats.schema import ClassSchema, RidgeSchema

__all__ = ["PersonDelta"]


@dataclass(frozen=True, eq=False, repr=False)
class PersonDelta(MomentsDelta):
    """Sums over persons who entered less those over persons who left; ``MomentsDelta.of`` makes it.

    Attributes:
        schema: what was measured.
        arrays: int64 by letter, blocks first, of either sign, in wire steps.
        entered, left: numbers of persons. Private, and never sent, as all below.
        clip: what bounds a person.
        counted: records that are held against the plan's limits, both ways added up.

    Raises:
        DataError: not the arrays of the schema, a negative number of persons, or totals that could pass 2**63.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
        ...     max_records_per_person=2, person_clip=2)
        >>> schema = ps.ClassSchema(2, 2, "NA", 1.0)
        >>> clip = ps.dp.person_clip(schema, privacy)
        >>> X, y = np.ones((3, 2)) / 2, [0, 0, 1]
        >>> change = ps.moments.MomentsDelta.of(ps.measure(schema, X, y, persons=[1, 1, 2], person_clip=clip))
        >>> change.entered, change.left, change.counted
        (2, 0, 3)
    """

    in_wire_steps: ClassVar[bool] = True

    clip: Clip
    counted: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_room(self.counted, self.schema.bound)

    @classmethod
    def of_persons(cls, entering: PersonMoments | None, leaving: PersonMoments | None) -> PersonDelta:
        """The change that these sums make; at least one of the two.

        Raises:
            DataError: sums under different schemas or clips, over several parties, or of an unknown number of persons.
        """
        given = [each for each in (entering, leaving) if each is not None]
        if any((each.schema, each.clip) != (given[0].schema, given[0].clip) for each in given):
            raise DataError("entering and leaving must be measured under one plan; give what measure returned")
        if any(each.parties != 1 or each.persons is None or each.counted is None for each in given):
            raise DataError("a change is one party's, of so many persons; give what measure(persons=) returned")
        change = cls.of_nobody(given[0].schema, given[0].clip)  # type: ignore[arg-type]
        arrays = {
            row.letter: sum(
                (sign * each.sums(row) for sign, each in ((1, entering), (-1, leaving)) if each is not None),
                start=change.sums(row),
            )
            for row in change.schema.sent
        }
        entered, left = (0 if each is None else each.persons or 0 for each in (entering, leaving))
        return cls(change.schema, arrays, entered, left, change.clip, sum(each.counted or 0 for each in given))

    @classmethod
    def of_nobody(cls, schema: ClassSchema | RidgeSchema, clip: Clip) -> PersonDelta:
        """The empty change."""
        arrays = {row.letter: np.zeros(row.shape(schema.sizes), np.int64) for row in schema.sent}
        return cls(schema, arrays, 0, 0, clip)

    def __add__(self, other: MomentsDelta) -> PersonDelta:
        """Both changes.

        Raises:
            DataError: the schemas or clips differ, or the totals could pass 2**63.
        """
        if not isinstance(other, PersonDelta):
            return NotImplemented
        if (other.schema, other.clip) != (self.schema, self.clip):
            raise DataError("changes under different plans cannot be added; measure both with one plan")
        arrays = {letter: array + other.arrays[letter] for letter, array in self.arrays.items()}
        moved = self.entered + other.entered, self.left + other.left
        return PersonDelta(self.schema, arrays, *moved, self.clip, self.counted + other.counted)

    def settled(self) -> PersonMoments:
        """The sums over the remaining persons, where this is the sum of all changes."""
        return PersonMoments(self.schema, self.arrays, self.clip, persons=self.entered - self.left)
