"""Signed changes of one party's moments, as integers.

Limits on records count both those that entered and those that left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.extend.kinds import Statistic
from privstats.kinds import ClassMoments, ClassSchema, RidgeMoments, RidgeSchema, kind_of
from privstats.moments import Moments

if TYPE_CHECKING:
    from privstats.extend.records import Clip
    from privstats.moments import PersonMoments


@dataclass(frozen=True, eq=False, repr=False)
class MomentsDelta(Moments):
    """Exact moments of records that entered less those of records that left.

    Attributes:
        arrays: int64 by letter, blocks first, of either sign.
        entered, left: numbers of records; private, never sent.

    Raises:
        DataError: other arrays than the schema's, a negative number of records, or totals that could pass 2**63.

    Example:
        >>> from privstats.contrib.streams import MomentsDelta
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> entered, left = ps.measure(schema, [[0.5, 0.0]], [0]), ps.measure(schema, [[0.0, 0.25]], [1])
        >>> change = MomentsDelta.of(entered, left)
        >>> change.real().N.tolist(), change.real().A.tolist()
        ([1.0, -1.0], [[0.5, 0.0], [0.0, -0.25]])
    """

    shown: ClassVar[tuple[str, ...]] = ("statistics", "features")

    schema: ClassSchema | RidgeSchema
    arrays: Mapping[str, NDArray[np.int64]]
    entered: int
    left: int

    def __post_init__(self) -> None:
        if not isinstance(self.schema, ClassSchema | RidgeSchema):
            raise DataError(f"a change holds class or ridge moments, got a {type(self.schema).__name__}")
        refusal = "a change under this schema holds arrays of {}; build it with MomentsDelta.of"
        arrays = self.checked_arrays(self.arrays, refusal)
        if min(self.entered, self.left) < 0:
            raise DataError("a change must count at least 0 records each way; build it with MomentsDelta.of")
        self.require_room(self.records)
        object.__setattr__(self, "arrays", arrays)

    @classmethod
    def of(cls, entering: Moments | None = None, leaving: Moments | None = None) -> MomentsDelta:
        """Return the change; one argument may be None."""
        present = [each for each in (entering, leaving) if each is not None]
        if present and all(getattr(each, "in_wire_steps", False) for each in present):
            return PersonDelta.of_persons(entering, leaving)  # type: ignore[arg-type]
        if not present or not all(isinstance(each, ClassMoments | RidgeMoments) for each in present):
            raise DataError("a change is built from what measure returned for a class or ridge schema; pass entering=")
        schema = present[0].schema
        if any(each.schema != schema for each in present) or any(each.records is None for each in present):
            raise DataError("entering and leaving must be measured under one schema; pass what measure returned")
        arrays = {}
        for row in schema.sent:
            plus = 0 if entering is None else entering.sums(row)
            minus = 0 if leaving is None else leaving.sums(row)
            arrays[row.letter] = np.asarray(plus - minus, np.int64)
        counts = [0 if each is None else each.records or 0 for each in (entering, leaving)]
        return cls(schema, arrays, *counts)  # type: ignore[arg-type]

    @classmethod
    def nothing(cls, schema: ClassSchema | RidgeSchema, clip: Clip | None = None) -> MomentsDelta:
        """Return the empty change; for persons, pass ``plan.person_clip``."""
        if clip is not None:
            return PersonDelta.of_nobody(schema, clip)
        arrays = {row.letter: np.zeros(row.shape(schema.sizes), np.int64) for row in schema.sent}
        return cls(schema, arrays, 0, 0)

    @property
    def records(self) -> int:
        """Entered plus left records, as limits count them."""
        return self.entered + self.left

    def sums(self, row: Statistic) -> NDArray[np.int64]:
        """Return a statistic's signed sums, blocks first."""
        return self.arrays[row.letter]

    def __add__(self, other: MomentsDelta) -> MomentsDelta:
        if not isinstance(other, MomentsDelta):
            return NotImplemented
        if other.schema != self.schema:
            raise DataError("changes under different schemas cannot be added; measure both with one schema")
        arrays = {letter: array + other.arrays[letter] for letter, array in self.arrays.items()}
        return MomentsDelta(self.schema, arrays, self.entered + other.entered, self.left + other.left)

    def settled(self) -> Moments:
        """Return the remaining records' moments."""
        return kind_of(self.schema).exact({letter: array.copy() for letter, array in self.arrays.items()})

    def real(self) -> Any:
        """Return the change in real units, float64."""
        return kind_of(self.schema).real(self.wire())


@dataclass(frozen=True, eq=False, repr=False)
class PersonDelta(MomentsDelta):
    """Sums over persons who entered less those over persons who left.

    Attributes:
        schema, arrays: as in :class:`MomentsDelta`, in wire steps.
        entered, left: persons; private, never sent.
        counted: records against the plan's limits, entered plus left; private, never sent.

    Example:
        >>> from privstats.contrib.streams import MomentsDelta
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
        ...     max_records_per_person=2, person_clip=2)
        >>> schema = ps.ClassSchema(2, 2, "NA", 1.0)
        >>> clip = ps.dp.person_clip(schema, privacy)
        >>> X, y = np.ones((3, 2)) / 2, [0, 0, 1]
        >>> change = MomentsDelta.of(ps.measure(schema, X, y, persons=[1, 1, 2], person_clip=clip))
        >>> change.entered, change.left, change.counted
        (2, 0, 3)
    """

    in_wire_steps: ClassVar[bool] = True

    clip: Clip
    counted: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_room(self.counted)

    @classmethod
    def of_persons(cls, entering: PersonMoments | None, leaving: PersonMoments | None) -> PersonDelta:
        """Return the change; one sum may be None."""
        present = [each for each in (entering, leaving) if each is not None]
        if any((each.schema, each.clip) != (present[0].schema, present[0].clip) for each in present):
            raise DataError("entering and leaving must be measured under one plan; pass what measure returned")
        if any(each.parties != 1 or each.persons is None or each.counted is None for each in present):
            raise DataError("a change is one party's; pass what measure(persons=) returned")
        change = cls.of_nobody(present[0].schema, present[0].clip)  # type: ignore[arg-type]
        arrays = {
            row.letter: sum(
                (sign * each.sums(row) for sign, each in ((1, entering), (-1, leaving)) if each is not None),
                start=change.sums(row),
            )
            for row in change.schema.sent
        }
        entered, left = (0 if each is None else each.persons or 0 for each in (entering, leaving))
        return cls(change.schema, arrays, entered, left, change.clip, sum(each.counted or 0 for each in present))

    @classmethod
    def of_nobody(cls, schema: ClassSchema | RidgeSchema, clip: Clip) -> PersonDelta:
        """Return the empty change."""
        arrays = {row.letter: np.zeros(row.shape(schema.sizes), np.int64) for row in schema.sent}
        return cls(schema, arrays, 0, 0, clip)

    def __add__(self, other: MomentsDelta) -> PersonDelta:
        if not isinstance(other, PersonDelta):
            return NotImplemented
        if (other.schema, other.clip) != (self.schema, self.clip):
            raise DataError("changes under different plans cannot be added; measure both with one plan")
        arrays = {letter: array + other.arrays[letter] for letter, array in self.arrays.items()}
        moved = self.entered + other.entered, self.left + other.left
        return PersonDelta(self.schema, arrays, *moved, self.clip, self.counted + other.counted)

    def settled(self) -> PersonMoments:
        """Return the remaining persons' sums."""
        from privstats.moments import PersonMoments  # used only for plans of persons

        return PersonMoments(self.schema, self.arrays, self.clip, persons=self.entered - self.left)
