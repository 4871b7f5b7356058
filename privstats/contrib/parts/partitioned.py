"""Measure a party's records in parts, and add the parts' exact sums: what every engine's adapter calls.

Sums are integers and each record's terms follow from that record and public values alone. So any tree of additions,
in any order, over any partition gives the same bits. An engine only has to carry values of :class:`PartSum`.

Under a promise per person one clip needs all rows of a person. An engine therefore groups rows by the person
(``intake.person_ids``), or it learns first who has rows in several parts (:func:`in_several_parts`). Each part's sum
omits these persons, and one further sum has all their rows (:meth:`Partitioned.measure_shared`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats.engines.stored_moments import StoredMoments
from privstats.errors import DataError, SchemaError
from privstats.extend.records import in_memory, named_target, names_of_columns, table_of
from privstats.extend.support import from_msgpack, optional_dependencies
from privstats.intake.column_names import place_of
from privstats.intake.person_ids import fingerprints_by_row, typed_ids
from privstats.intake.tables import Several, column_of
from privstats.kinds import kind_of
from privstats.moments import Moments, PersonMoments, warn_if_clipped
from privstats.moments.measurement import Notes, noted_moments
from privstats.plan.document import digest_of_terms
from privstats.schema import Schema, require_schema

if TYPE_CHECKING:
    from privstats.extend.kinds import Published
    from privstats.extend.records import Clip, Unreadable
    from privstats.plan import Plan

_NO_PERSONS = np.empty(0, np.uint64)
_MAX_SHARED_ROWS = 1_000_000
"""Rows of persons in several parts that are in memory at once, unless one person has more."""
_NO_PART = "no part was measured; pass at least one, possibly of no rows"


@dataclass(frozen=True, eq=False)
class PartSum:
    """Exact sums of one party's parts; ``+`` adds further parts.

    Attributes:
        parts: names of the parts, sorted; parts without a name have none here.
        persons: 64 bits for each person in these parts (:func:`persons_in`), sorted.
        notes: what of these parts' records was not read; :meth:`Partitioned.total` warns of it once.

    Example:
        >>> from privstats.contrib.parts.partitioned import Partitioned
        >>> door = Partitioned(ps.ClassSchema(2, 2, "NA", clip_norm=1.0))
        >>> north = door.measure([[0.5, 0.0]], [0], part="north")
        >>> (north + door.zero).parts, (door.zero + north).moments.records
        (('north',), 1)
        >>> north + north
        Traceback (most recent call last):
        privstats.errors.DataError: part 'north' is in both sums, so its records would count twice; keep one of them
    """

    measured: Moments | None = field(repr=False)
    parts: tuple[str, ...] = ()
    persons: NDArray[np.uint64] = field(default_factory=_NO_PERSONS.copy, repr=False)
    notes: Notes = field(default_factory=Notes, repr=False)

    @property
    def moments(self) -> Moments:
        """The sums of these parts' records.

        Raises:
            DataError: there is no part.
        """
        if self.measured is None:
            raise DataError(_NO_PART)
        return self.measured

    def __add__(self, other: PartSum) -> PartSum:
        """Add further parts.

        Raises:
            DataError: a part or a person is in both, or the sums are under different schemas; nothing is added.
        """
        if not isinstance(other, PartSum):
            return NotImplemented
        if self.measured is None or other.measured is None:
            return other if self.measured is None else self
        if twice := sorted({*self.parts} & {*other.parts}):
            raise DataError(f"part {twice[0]!r} is in both sums, so its records would count twice; keep one of them")
        persons = _united(self.persons, other.persons)
        total: Any = self.measured + other.measured
        if isinstance(total, PersonMoments):
            total = replace(total, parties=1)
        return PartSum(total, tuple(sorted((*self.parts, *other.parts))), persons, self.notes + other.notes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartSum):
            return NotImplemented
        facts = self.measured == other.measured and self.parts == other.parts
        return facts and np.array_equal(self.persons, other.persons)

    __hash__ = None  # type: ignore[assignment]


def _united(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    persons = np.concatenate([left, right])
    persons.sort(kind="stable")  # merges two sorted runs
    if (persons[1:] == persons[:-1]).any():
        raise DataError(
            "a person has rows in two parts, and would count in full in both: pass shared= to each measure(), and add "
            "measure_shared() of the persons that in_several_parts() returns"
        )
    return persons


class Present(NamedTuple):
    """The persons with rows in one part.

    Attributes:
        persons: 64 bits for each person, ``(n,)``, sorted.
        rows: number of rows of each, ``(n,)``.
    """

    persons: NDArray[np.uint64]
    rows: NDArray[np.intp]


class Rows(NamedTuple):
    """Some rows of one part: X, y and ids, each in its own container."""

    X: Any
    y: Any
    persons: Any


def in_several_parts(parts: Sequence[Present]) -> list[NDArray[np.uint64]]:
    """Return the persons with rows in several parts, in groups of at most a million rows.

    Example:
        >>> from privstats.contrib.parts.partitioned import Partitioned, in_several_parts
        >>> clip = ps.encoding.PersonAverage()
        >>> door = Partitioned(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), person_clip=clip)
        >>> found = [door.present(None, persons=ids) for ids in (["7", "8"], [9, 7])]
        >>> [len(group) for group in in_several_parts(found)]
        [1]
    """
    if not parts:
        return []
    persons, places, several = np.unique(
        np.concatenate([part.persons for part in parts]), return_inverse=True, return_counts=True
    )
    rows = np.bincount(places, np.concatenate([part.rows for part in parts]))[several > 1]
    ends = np.flatnonzero(np.diff(np.cumsum(rows) // _MAX_SHARED_ROWS)) + 1
    return [group for group in np.split(persons[several > 1], ends) if len(group)]


class _Stored(StoredMoments, frozen=True, kw_only=True):
    mark: bytes
    parts: list[str]
    fingerprints: bytes
    excluded: list[tuple[str, str, int]]
    counts: tuple[int, int, int]
    lost: dict[str, tuple[int, int]]


def persons_in(ids: Any) -> NDArray[np.uint64]:
    """Return 64 bits for each person with an id among these, sorted.

    Example:
        >>> from privstats.contrib.parts.partitioned import persons_in
        >>> np.array_equal(persons_in(["007", "8", None]), persons_in(np.array([8, 7, 7])))
        True
    """
    return np.unique(fingerprints_by_row(ids)[0])


def person_by_row(ids: Any) -> NDArray[np.uint64]:
    """Return 64 bits for each row, ``(n,)``, by which an engine groups rows: equal where two rows are one person's.

    A row whose id names no person enters no sum. Its bits are its index, so that no part has all such rows.

    Example:
        >>> from privstats.contrib.parts.partitioned import person_by_row
        >>> bits = person_by_row(["007", None, 7])
        >>> bool(bits[0] == bits[2]), int(bits[1])
        (True, 1)
    """
    bits = np.arange(column_of(ids).records, dtype=np.uint64)
    named, rows = fingerprints_by_row(ids)
    bits[rows] = named
    return bits


@dataclass(frozen=True, eq=False, repr=False)
class Partitioned:
    """Measures parts of one party's records under one schema; a part's sum is a value that any engine may carry.

    It has no state and can be pickled, so that an engine sends it to its workers.

    Args:
        schema: its sums must be over records (``refuses_parts`` of its kind).
        published: pass ``plan.published``.
        unreadable: pass ``plan.unreadable``.
        person_clip: pass ``plan.person_clip``; then each part needs ids. All rows of a person are in one part, or in
            :meth:`measure_shared`.

    Guarantee:
        The sum over all parts is ``==`` to ``privstats.measure`` of all records, for every partition, order and tree of
        additions. Two sums that share a person are never added, because that person would count in full in both.

    Raises:
        SchemaError: the kind's sums over parts do not add up to those of all records.

    Example:
        >>> from privstats.contrib.parts.partitioned import Partitioned
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> door, X, y = Partitioned(schema), np.eye(6, 2) / 2, np.arange(6) % 2
        >>> sums = [door.measure(X[k::3], y[k::3], part=str(k)) for k in range(3)]
        >>> door.total([*sums[::-1], sums[0]]) == ps.measure(schema, X, y)  # part 0 was measured twice
        True
    """

    schema: Schema
    published: Published | None = None
    unreadable: Unreadable = "refuse"
    person_clip: Clip | None = None

    def __post_init__(self) -> None:
        require_schema(self.schema, "contrib.parts.measure(schema, X, y)")
        if why := kind_of(self.schema).refuses_parts:
            raise SchemaError(
                f"a {type(self.schema).__name__} cannot be measured in parts: {why}; pass all records to "
                "privstats.measure"
            )

    @classmethod
    def of(cls, plan: Plan) -> Partitioned:
        """Return the door for a plan's records.

        Example:
            >>> from privstats.contrib.parts.partitioned import Partitioned
            >>> plan = ps.Plan(schema=ps.MeanSchema(2, 1.0), cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
            >>> Partitioned.of(plan).measure(np.eye(2), [0, 0]).moments.records
            2
        """
        return cls(plan.schema, plan.published, plan.unreadable, plan.person_clip)

    @property
    def zero(self) -> PartSum:
        """The sum of no part: ``zero + a`` and ``a + zero`` are ``a``."""
        return PartSum(None)

    def measure(
        self,
        X: Any,
        y: Any = None,
        *,
        persons: Any = None,
        part: str = "",
        shared: Sequence[NDArray[np.uint64]] = (),
    ) -> PartSum:
        """Return the exact sums of one part.

        Args:
            X, y: as in ``privstats.measure``.
            persons: the ids of the rows, or the name of a table's column that has them.
            part: name of the part, which errors show; a sum with this name is refused by another sum with this name.
            shared: groups of persons whose rows are omitted, because :meth:`measure_shared` has them.

        Raises:
            DataError: records do not fit; the message names the part.
            RecordError: a record cannot be read; never with ``unreadable="leave out"``.
        """
        with _naming(part):
            X, persons = _with_ids(X, persons)
            if shared:
                X, y, persons = self._rows(X, y, persons, np.concatenate(shared), are_chosen=False)
            moments, notes = self._moments(X, y, persons)
        named = (part,) if part else ()
        return PartSum(moments, named, _NO_PERSONS if persons is None else persons_in(persons), notes)

    def present(self, X: Any, *, persons: Any, part: str = "") -> Present:
        """Return the persons with rows in one part; of a table that is not in memory, only the ids are read.

        Args:
            X, persons, part: as in :meth:`measure`.

        Raises:
            DataError: ``persons`` names no column, or its type does not distinguish persons.
        """
        with _naming(part):
            ids = _with_ids(X, persons, only=True)[1]
            return Present(*np.unique(fingerprints_by_row(ids)[0], return_counts=True))

    def rows_of(self, X: Any, y: Any = None, *, persons: Any, chosen: NDArray[np.uint64], part: str = "") -> Rows:
        """Return one part's rows of some persons, in the part's own containers.

        Args:
            X, y, persons, part: as in :meth:`measure`.
            chosen: these persons, from :func:`in_several_parts`.
        """
        with _naming(part):
            X, persons = _with_ids(X, persons)
            return self._rows(X, y, persons, chosen, are_chosen=True)

    def measure_shared(self, rows: Iterable[Rows]) -> PartSum:
        """Return the exact sums of persons with rows in several parts: each person's rows are clipped once.

        Args:
            rows: :meth:`rows_of` the same persons, from each part.

        Example:
            >>> from privstats.contrib.parts.partitioned import Partitioned, in_several_parts
            >>> clip = ps.encoding.PersonAverage()
            >>> door = Partitioned(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), person_clip=clip)
            >>> parts = [([[0.5, 0.0], [0.0, 0.5]], [0, 1], ["7", "8"]), ([[0.5, 0.5]], [0], [7])]
            >>> groups = in_several_parts([door.present(X, persons=ids) for X, _, ids in parts])
            >>> sums = [door.measure(X, y, persons=ids, shared=groups) for X, y, ids in parts]
            >>> for group in groups:
            ...     rows = [door.rows_of(X, y, persons=ids, chosen=group) for X, y, ids in parts]
            ...     sums.append(door.measure_shared(rows))
            >>> together = [sum(each, []) for each in zip(*parts)]
            >>> door.total(sums) == ps.measure(door.schema, *together[:2], persons=together[2], person_clip=clip)
            True
        """
        several = list(rows)
        if not several:
            return self.zero
        ids = [each for rows in several for each in _listed(rows.persons)]
        moments, notes = self._moments(Several([(each.X, each.y) for each in several]), None, ids)
        return PartSum(moments, (), persons_in(ids), notes)

    def _moments(self, X: Any, y: Any, persons: Any) -> tuple[Moments, Notes]:
        terms: Any = {"published": self.published, "unreadable": self.unreadable, "person_clip": self.person_clip}
        return noted_moments(self.schema, X, y, persons=persons, **terms)

    def _rows(self, X: Any, y: Any, persons: Any, chosen: NDArray[np.uint64], *, are_chosen: bool) -> Rows:
        """Return the rows of these persons, or all other rows."""
        reading = self.schema.reading
        if not reading.columns:
            X, y = named_target(X, y, several=reading.width > 1)
        ids = column_of(persons)
        bits, places = fingerprints_by_row(persons)
        theirs = np.zeros(ids.records, np.bool_)
        theirs[places] = np.isin(bits, chosen)
        where = np.flatnonzero(theirs == are_chosen)
        return Rows(table_of(X).take(where), None if y is None else table_of(y).take(where), ids.take(where))

    def measure_tables(self, tables: Iterable[Any], y: Any, *, persons: str | None, part: str = "") -> PartSum:
        """Return the exact sums of one part that comes as several Arrow tables or batches.

        They are read one by one where the schema accepts batches and no ids are read; else they are joined.

        Args:
            y, persons: names of columns.
        """
        several = iter(tables)
        if (first := next(several, None)) is None:
            return self.zero
        several = chain([first], several)
        reading = self.schema.reading
        if persons is None and reading.batches and y is not None:
            pairs = (named_target(table, y, several=reading.width > 1) for table in several)
            return self.measure(pairs, part=part)
        arrow = optional_dependencies.load("pyarrow", by="contrib.parts.measure")
        batches = [
            batch for table in several for batch in (table.to_batches() if hasattr(table, "to_batches") else [table])
        ]
        return self.measure(arrow.Table.from_batches(batches, first.schema), y, persons=persons, part=part)

    def encode(self, sums: PartSum) -> bytes:
        """Return a sum as bytes, which hold exact sums and ids: store and send them as you do the records.

        Of ``notes`` they hold the numbers, and no text of a record.
        """
        ids = sums.persons.astype("<u8").tobytes()
        stored = _Stored.of(
            sums.moments,
            mark=self._mark,
            parts=list(sums.parts),
            fingerprints=ids,
            **sums.notes.numbers,
        )
        return msgspec.msgpack.encode(stored)

    def decode(self, content: bytes) -> PartSum:
        """Return the sum that :meth:`encode` wrote; no code runs.

        Raises:
            DataError: damaged, or measured under another schema, published values, clip or treatment of the unreadable.
        """
        try:
            stored = from_msgpack(content, _Stored)
        except msgspec.DecodeError:
            raise DataError("these bytes are no sum of a part; pass what encode() returned") from None
        if stored.mark != self._mark:
            raise DataError("this sum was measured under another plan or version; measure its part again")
        try:
            moments = stored.moments(self.schema, self.person_clip)
            persons = np.frombuffer(stored.fingerprints, "<u8").astype(np.uint64)
            notes = Notes.of_numbers(stored.excluded, stored.counts, stored.lost)
        except ValueError:
            raise DataError("these bytes of a part's sum are damaged; measure the part again") from None
        return PartSum(moments, tuple(stored.parts), persons, notes)

    def total(self, sums: Iterable[PartSum | bytes]) -> Moments:
        """Return the moments of all parts' records.

        Args:
            sums: values of parts, or their bytes, in any order; a later sum of the same named parts replaces an
                earlier one, so that a retry counts once.

        Warns:
            ClippedWarning, UnreadableRecordsWarning: as ``privstats.measure``, once for all parts.

        Raises:
            DataError: there is no part, or sums overlap otherwise.
        """
        latest: dict[Any, PartSum] = {}
        for place, each in enumerate(sums):
            one = self.decode(each) if isinstance(each, bytes) else each
            latest[one.parts or place] = one
        return self.warned(self.added(list(latest.values())), stacklevel=4)

    def warned(self, sums: PartSum, *, stacklevel: int = 3) -> Moments:
        """Return the moments of all parts, and warn the data holder once of all parts' records."""
        sums.notes.warn(sums.moments, stacklevel=stacklevel)
        warn_if_clipped(sums.moments, stacklevel=stacklevel)
        return sums.moments

    def added(self, sums: Sequence[PartSum]) -> PartSum:
        """Return the sum of some parts."""
        return sum(sums, self.zero)

    @cached_property
    def _mark(self) -> bytes:
        digest = None if self.published is None else self.published.sha256
        terms = {"published": digest, "unreadable": self.unreadable, "clip": self.person_clip}
        return digest_of_terms(self.schema, terms)


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Put the part's name before the message of an error, if it has a name."""
    try:
        yield
    except DataError as error:
        if not part:
            raise
        raise type(error)(f"partition {part}: {error}") from None


def _with_ids(X: Any, persons: Any, *, only: bool = False) -> tuple[Any, Any]:
    """Return a table without its column of ids, and the ids; anything else unchanged.

    Args:
        only: whether the ids alone are read of a table that is not in memory.
    """
    if not isinstance(persons, str):
        return X, persons
    X = in_memory(X, (persons,) if only else None)
    names = names_of_columns(X)
    place = None if names is None else place_of(persons, names)
    if names is None or place is None:
        raise DataError(f"persons={persons!r} names no column of X; name the column of ids, or pass an id for each row")
    others = [at for at in range(len(names)) if at != place]
    return table_of(X).select(others), X[names[place]]


def _listed(ids: Any) -> Sequence[object]:
    plain = typed_ids(ids)
    return plain.tolist() if isinstance(plain, np.ndarray) else plain
