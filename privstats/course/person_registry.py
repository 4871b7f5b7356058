"""A party's registry of persons in a stream: all rows of a person enter together, and the same rows leave.

What a person adds is shortened as a whole, so that only all rows together have a bound: rows that came apart would
cost sqrt 2 times the promise, and in one node of a tree twice. ``record_registry`` keeps who was sent when; this
module keeps beside each person a keyed hash of the rows, and measures none but those.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from privstats.course.record_registry import Pending, RecordRegistry
from privstats.errors import DataError, LedgerError
from privstats.ledger.registry_fold import KEY_BYTES
from privstats.moments import MomentsDelta, PersonRows
from privstats.moments.person_ids import names_of

__all__ = ["PersonRegistry"]

_ROWS = b"privstats/holding/rows\0"


@dataclass(frozen=True)
class PersonRegistry(RecordRegistry):
    """One party's persons in one run of a stream whose plan promises persons.

    Made with :meth:`open`. Ids are read as ``measure(persons=)`` reads them: 007, 7 and 7.0 are one person.

    Guarantee:
        As of :class:`RecordRegistry`, for persons: with v the shortened sum of all rows with which a person entered,
        every vector that is measured by :meth:`delta` holds v for each person who enters there and -v for each who
        leaves, in whole numbers, and rows that came later are in none. So all nodes together hold v times what a record
        adds there, ||v||_* <= c, and the stream's price is that of the mechanism (docs/sensitivity.md, One person).
        Assumes that one person has one id, always.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=3.0, delta=1e-5,
        ...     max_records_per_person=2, person_clip=2)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=privacy)
        >>> stream, ledger = ps.Stream(plan, epochs=4, deletions=True), ps.dp.Ledger.create("ledger.sqlite")
        >>> ledger.set_cap("ward", unit="person", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = ps.course.PersonRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> rows = ps.moments.PersonRows.of(np.eye(2) / 2, [0, 1], ["anna", "anna"])
        >>> registry.enter(rows)
        >>> due = registry.pending(node=0, ids=["anna"])
        >>> registry.delta(due, rows).entered
        1
    """

    unit: ClassVar[str] = "person"

    def enter(self, rows: PersonRows) -> None:  # type: ignore[override]
        """Add persons to the stream from the next node on, each with all rows that are given.

        Raises:
            LedgerError: one has been in before: a person enters once, and rows that came later stay out
                (``rows.without``). Nothing is written then.
        """
        marks = self._marks(_required(rows))
        self._enter(list(marks), marks)

    def pending(self, node: int, ids: Collection[str]) -> Pending:
        """The persons that a node must carry, as of records; each by the name that stands for all forms of the id."""
        return super().pending(node, _named(ids))

    def delta(self, pending: Pending, rows: PersonRows | None = None) -> MomentsDelta:  # type: ignore[override]
        """The sums that a node carries, for ``session.client``.

        Args:
            pending: the result of :meth:`pending`.
            rows: all rows of its persons, entering and leaving; those of others are not read.

        Raises:
            DataError: rows of one of them are missing, or are not those with which that person entered.
        """
        plan = self.stream.first
        clip, unreadable = plan.person_clip, plan.unreadable
        assert clip is not None  # noqa: S101  open refuses other streams
        wanted = pending.entering + pending.leaving
        if not wanted:
            return MomentsDelta.nothing(plan.schema, clip)  # type: ignore[arg-type]
        here = PersonRows.of([], [], []) if rows is None else _required(rows).only(wanted)
        self._check_rows(here, wanted)
        entering, leaving = (
            here.only(ids).measured(plan.schema, clip, unreadable) if ids else None
            for ids in (pending.entering, pending.leaving)
        )
        return MomentsDelta.of(entering, leaving)

    def _check_rows(self, rows: PersonRows, wanted: Collection[str]) -> None:
        if missing := len(set(wanted).difference(rows.names)):
            raise DataError(f"rows of {missing} persons who are due are missing: give all rows of pending's persons")
        with self._log.looking() as view:
            known = view.marks
        changed = sum(known.get(key) != mark for key, mark in self._marks(rows).items())
        if changed:
            raise DataError(
                f"the rows of {changed} persons are not those with which they entered: a person enters and leaves with "
                "all rows of one day, so give these, and neither fewer nor those that came since"
            )

    def _marks(self, rows: PersonRows) -> Mapping[bytes, bytes]:
        """By key of a person a keyed hash of the rows."""
        keys = self._keys(rows.names)
        return {
            key: hmac.digest(self.secret, _ROWS + key + rows.digests[name], "sha256")[:KEY_BYTES]
            for key, name in zip(keys, rows.names, strict=True)
        }

    def _keys(self, ids: Iterable[str]) -> list[bytes]:
        return super()._keys(ids if isinstance(ids, str) else _named(ids))


def _required(rows: object) -> PersonRows:
    if not isinstance(rows, PersonRows):
        raise LedgerError(
            f"a person enters and leaves with rows, got a {type(rows).__name__}: give PersonRows.of(X, y, persons)"
        )
    return rows


def _named(ids: Iterable[str]) -> list[str]:
    found = names_of(list(ids))
    if None in found:
        raise LedgerError("an id says of nobody who that is: give whole numbers below 2**53, or texts")
    return [name for name in found if name is not None]
