"""A party's registry of a stream, in the ledger's file: each record or person enters and leaves once.

:class:`PersonRegistry` measures only rows with a stored keyed hash, because only all of a person's rows together have a
bound: rows sent separately would cost sqrt 2 times the promise, or twice in one node of a tree.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from privstats import domains, secagg
from privstats.contrib.streams.moments_delta import MomentsDelta
from privstats.contrib.streams.person_rows import PersonRows
from privstats.contrib.streams.registry_index import KEY_BYTES, SECRET_BYTES, Send, State, record_keys
from privstats.contrib.streams.registry_log import Changes, RegistryLog, View
from privstats.contrib.streams.stream import Stream
from privstats.course import Releases, run_of_round, verify_next
from privstats.dp import Ledger, NoPrivacy, Privacy, Spend
from privstats.errors import DataError, LedgerError
from privstats.extend.records import LOST
from privstats.intake.person_ids import RULE, names_of
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.release import Release
from privstats.session import RoundCharge
from privstats.session.charges import prove_excluded_upload


@dataclass(frozen=True)
class Pending:
    """The records that a node must carry for a party.

    Attributes:
        node: its index.
        entering, leaving: ids to add and to subtract; not in the repr.
        missing: number of pending records without a requested id.

    Example:
        >>> from privstats.contrib.streams import Pending
        >>> pending = Pending(node=2, entering=("patient 17",), leaving=())
        >>> len(pending.entering), len(pending.leaving), pending.missing
        (1, 0, 0)
    """

    node: int
    entering: tuple[str, ...] = field(repr=False)
    leaving: tuple[str, ...] = field(repr=False)
    missing: int = 0


@dataclass(frozen=True)
class RecordRegistry:
    """One party's records in one run of a stream, opened with :meth:`open`.

    A record counts as sent once its masked vector is sent, whatever the server reports: a silent server may have it.

    Args:
        stream: agreed on by all parties.
        ledger, entry: the party's own ledger, and the stream's spend from ``course.spend``.
        secret: the party's own 32 bytes, which key the stored hashes of ids.

    Guarantee:
        All vectors sent under this registry's charges meet the contract of :class:`Stream`: at each level a record is
        added once (and ``repeats`` times more) and subtracted at most as often. A record that is gone is never added
        again. Every change is on the disk before its vector is sent, in the ledger's transaction and chain: an older
        copy of the file is refused, so never restore a registry from a backup. Assumes that one record always has one
        id.

    Example:
        >>> from privstats.contrib.streams import RecordRegistry
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> stream, ledger = ps.Stream(plan, epochs=4), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = RecordRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> registry.enter(["patient 17", "patient 18"])
        >>> registry.pending(node=0, ids=["patient 17", "patient 18"]).entering
        ('patient 17', 'patient 18')
    """

    stream: Stream
    ledger: Ledger
    entry: Spend
    secret: bytes = field(repr=False)
    unit: ClassVar[str] = "record"
    rule: ClassVar[int] = 0  # ids of records are read as they are

    @classmethod
    def open(cls, stream: Stream, ledger: Ledger, entry: Spend, secret: bytes) -> RecordRegistry:
        """Return a run's registry, created on first use and verified against the chain.

        Raises:
            LedgerError: edited rows, another course's entry, a wrong secret, or the ledger refuses.
        """
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            raise LedgerError(
                f"the secret of a record registry is {SECRET_BYTES} bytes; generate os.urandom(32) once and store it"
            )
        if (stream.plan.person_clip is not None) != (cls.unit == "person"):
            right = "RecordRegistry" if cls.unit == "person" else "PersonRegistry"
            raise LedgerError(f"this stream promises another unit than a {cls.unit}: open a {right}")
        if entry.plan != stream.digest:
            raise LedgerError("this entry is another course's; pass the one that course.spend returned for this stream")
        if entry.apart == "parties":
            raise LedgerError("this entry is of a server that sees sums only; spend the stream in a party's own ledger")
        registry = cls(stream, ledger, entry, secret)
        check = hmac.digest(secret, domains.REGISTRY_CHECK + entry.run, "sha256")
        with registry._log.looking(whole=True) as view:
            register = view.register
        if not register.check:
            with registry._log.changing() as changes:
                changes.open(check, cls.rule)
        elif not hmac.compare_digest(register.check, check):
            raise LedgerError("this registry was made with another secret: pass that one, or every record looks new")
        elif register.rule != cls.rule:
            raise LedgerError(
                f"this registry reads ids of persons by rule {register.rule}, and this privstats by rule {cls.rule}: "
                "end the stream with the version that opened it"
            )
        return registry

    def enter(self, ids: Iterable[str]) -> None:
        """Add records to the stream from the next node on.

        Raises:
            LedgerError: a record entered before, an unusable or repeated id, or too many records. Nothing is written.
        """
        ids = ids if isinstance(ids, str) else list(ids)
        keys = self._keys(ids)
        if any(LOST in each for each in ids):
            raise LedgerError(
                f"an id holds U+FFFD, so a character of it was lost in decoding and two {self.unit}s may have it: read "
                "the ids again in their own encoding"
            )
        self._enter(keys, {})

    def _enter(self, keys: Sequence[bytes], marks: Mapping[bytes, bytes]) -> None:
        with self._log.changing() as changes:
            known = [key for key in keys if changes.index.state(self.entry.id, key) != "new"]
            if known:
                raise LedgerError(
                    f"{len(known)} of these {self.unit}s have entered the stream before, and a {self.unit} enters "
                    f"once: omit them; a {self.unit} that left cannot return"
                )
            self._check_room(changes.index.states(self.entry.id).total() + len(keys))
            changes.move("entered", keys)
            if marks:
                changes.mark(marks)

    def leave(self, ids: Iterable[str]) -> None:
        """Subtract records from the next node on; hold them until it is sent.

        Raises:
            LedgerError: no deletions, or a record is not in. Nothing is written.
        """
        if not self.stream.deletions:
            raise LedgerError("this stream was charged without deletions; agree on one with deletions=True")
        keys = self._keys(ids)
        with self._log.changing() as changes:
            out = [key for key in keys if changes.index.state(self.entry.id, key) != "in"]
            if out:
                raise LedgerError(
                    f"{len(out)} of these {self.unit}s are not in the stream, so they cannot leave (again)"
                )
            changes.move("gone", keys)

    def state(self, record: str) -> State:
        """Return ``"new"``, ``"in"`` or ``"gone"``."""
        (key,) = self._keys([record])
        with self._log.looking() as view:
            return view.index.state(self.entry.id, key)

    def pending(self, node: int, ids: Collection[str]) -> Pending:
        """Return the records that a node must add and subtract.

        Args:
            ids: the party's records, and those not yet subtracted at every level.
        """
        level = self._level(node)
        keys = record_keys(self.secret, ids)
        with self._log.looking() as view:
            due = self._due(view, level)
        entering, leaving = (
            tuple(dict.fromkeys(record for key, record in zip(keys, ids, strict=True) if key in wanted))
            for wanted in due
        )
        return Pending(node, entering, leaving, missing=sum(map(len, due)) - len(entering) - len(leaving))

    def delta(self, pending: Pending, entering: Moments | None = None, leaving: Moments | None = None) -> MomentsDelta:
        """Return the moments that a node carries, for ``session.client``.

        Args:
            entering, leaving: ``measure`` of exactly these records, or None; fewer where the plan excludes unreadable
                records.

        Raises:
            DataError: another number of records, or another schema.
        """
        for name, moments, ids in (("entering", entering, pending.entering), ("leaving", leaving, pending.leaving)):
            unread = len(ids) - (0 if moments is None else moments.records or 0)
            if unread < 0 or (unread and (moments is None or self.stream.first.unreadable == "refuse")):
                raise DataError(f"{name} must be the moments of the {len(ids)} records of due.{name}; measure these")
        if entering is None and leaving is None:
            return MomentsDelta.nothing(self.stream.first.schema)  # type: ignore[arg-type]
        change = MomentsDelta.of(entering, leaving)
        return replace(change, entered=len(pending.entering), left=len(pending.leaving))

    def charge(self, plan: Plan, releases: Releases, pending: Pending) -> RegistryCharge:
        """Return the charge of the node and its records."""
        node = verify_next(self.stream, plan, releases)
        if pending.node != node.place:
            raise LedgerError(f"this is pending at node {pending.node} and the plan is of node {node.place}; ask again")
        level = self._level(pending.node)
        sends = [Send(key, level, False) for key in record_keys(self.secret, pending.entering)]
        sends += [Send(key, level, True) for key in record_keys(self.secret, pending.leaving)]
        return RegistryCharge(self.ledger, self.entry, node.place, plan.digest, self, tuple(sends))

    def withdraw(self, node: int) -> None:
        """Give up a node of which nothing was or will be sent; the next may carry its records.

        Raises:
            LedgerError: its vector was sent, or it was not started.
        """
        with self._log.changing() as changes:
            end = changes.register.ends.get(node)
            if end != "taken":
                raise LedgerError(
                    f"node {node} {'was not taken' if end is None else 'has left this machine'}: only what never "
                    "left is withdrawn; what left may be sent again by proof (excluded), or if repeats are charged"
                )
            changes.end(node, "returned")

    def lose(self, node: int) -> None:
        """Send a node's records again without proof, under ``repeats``.

        Raises:
            LedgerError: no repeats, or no outstanding upload of this node.
        """
        if not self.stream.repeats:
            raise LedgerError(
                "a server that was silent may have counted these records, and this stream was charged without "
                "repeats: they are excluded, unless excluded= holds proof"
            )
        with self._log.changing() as changes:
            self._outstanding(changes, node)
            changes.end(node, "lost")

    def excluded(
        self,
        node: int,
        *,
        report: bytes,
        statements: Mapping[int, bytes],
        roster: secagg.Roster,
        panel: secagg.Panel | None = None,
    ) -> None:
        """Send a node's records again at no cost, with signed proof of exclusion.

        Proof is every helper's signature that it abandoned the node, or enough clients' on its list of survivors.

        Args:
            report, statements, roster, panel: as for ``session.free``.

        Raises:
            LocalProtocolError: no proof of exclusion.
            LedgerError: no such proof exists in this protocol, or another upload's.
        """
        upload = prove_excluded_upload(self.stream.first, report, statements, roster=roster, panel=panel)
        with self._log.changing() as changes:
            if not hmac.compare_digest(self._outstanding(changes, node), upload):
                raise LedgerError(f"what left for node {node} is another upload than the one this proof is about")
            changes.end(node, "returned")

    def excluded_centrally(self, node: int, release: Release, index: int) -> None:
        """Send a node's records again at no cost, because the central server's list excludes this client.

        Read the release with ``signed_by``. Under any model but central the list proves nothing. It is proof about the
        one session that the release names, ``course.run_of_round(entry.run, node)``.

        Raises:
            LedgerError: another model, another node's release, a list with this client, or no outstanding upload.
        """
        privacy = self.stream.first.privacy
        if isinstance(privacy, NoPrivacy) or privacy.trust.drawn_by != "server":
            raise LedgerError("a server's list is no proof that a vector was not counted, unless the model is central")
        if release.plan != self.stream.first or index in release.survivors:
            raise LedgerError("this release is not of this stream, or counts this client: its records are sent")
        if release.run != run_of_round(self.entry.run, node):
            raise LedgerError(
                f"this release does not name the session of node {node} of this run, so its list is no proof about "
                "that node: pass the release that the server signed for it"
            )
        with self._log.changing() as changes:
            self._outstanding(changes, node)
            changes.end(node, "returned")

    @property
    def begun(self) -> tuple[int, ...]:
        """Begun nodes that have sent nothing."""
        return tuple(node for node, end in self._log.register().ends.items() if end == "taken")

    @property
    def outstanding(self) -> tuple[int, ...]:
        """Nodes with a sent vector that may be in a sum."""
        return tuple(node for node, end in self._log.register().ends.items() if end == "left")

    def records(self) -> Mapping[State, int]:
        """Return the numbers of records in the stream and gone."""
        with self._log.looking() as view:
            return view.index.states(self.entry.id)

    @property
    def _log(self) -> RegistryLog:
        return RegistryLog(self.ledger, self.entry)

    def _outstanding(self, changes: Changes, node: int) -> bytes:
        if changes.register.ends.get(node) != "left":
            raise LedgerError(f"nothing of node {node} counts as sent: it never left, or is settled already")
        return changes.register.uploads[node]

    def _due(self, view: View, level: int) -> tuple[set[bytes], set[bytes]]:
        return view.index.due(self.entry.id, level, self.stream.repeats)

    def _take(self, node: int, sends: tuple[Send, ...]) -> None:
        with self._log.changing() as changes:
            arriving, parting = self._due(changes, self._level(node))
            if not all(send.key in (parting if send.leaves else arriving) for send in sends):
                raise LedgerError(
                    "a record of this vector was sent meanwhile, or has left; call pending for this node again"
                )
            changes.take(node, sends)

    def _leave(self, node: int, upload: bytes) -> None:
        with self._log.changing() as changes:
            end, known = changes.register.ends.get(node), changes.register.uploads.get(node)
            if end == "left" and known and hmac.compare_digest(known, upload):
                return
            if end != "taken":
                raise LedgerError(f"node {node} of this stream was withdrawn, or another vector of it has left")
            changes.leave(node, upload)

    def _level(self, node: int) -> int:
        if type(node) is not int or not 0 <= node < self.stream.most:
            raise LedgerError(f"this stream has nodes 0 to {self.stream.most - 1}, got {node!r}")
        return self.stream.nodes[node].level

    def _check_room(self, records: int) -> None:
        privacy = self.stream.first.privacy
        most = privacy.max_records_per_client if isinstance(privacy, Privacy) else None
        if most is not None and records > most:
            raise LedgerError(
                f"the client would bring {records} records into the stream and the plan prices at most {most} of them "
                "over all epochs (max_records_per_client); sample fewer"
            )

    def _keys(self, ids: Iterable[str]) -> list[bytes]:
        if isinstance(ids, str):
            raise LedgerError("ids must be a list of texts, one per record; put the single text into a list")
        keys = record_keys(self.secret, ids)
        if len(set(keys)) != len(keys):
            raise LedgerError(f"an id is listed twice, and one {self.unit} has one id; list each once")
        return keys


@dataclass(frozen=True)
class RegistryCharge(RoundCharge):
    """A node's mark and the records in its vector, in one transaction.

    Example:
        >>> from privstats.contrib.streams import RecordRegistry
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> stream, ledger = ps.Stream(plan, epochs=4), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = RecordRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> registry.enter(["patient 17"])
        >>> charge = registry.charge(stream.first, [], registry.pending(node=0, ids=["patient 17"]))
        >>> charge.place, len(charge.sends)
        (0, 1)
    """

    registry: RecordRegistry
    sends: tuple[Send, ...]

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments with other numbers of records."""
        leaving = sum(send.leaves for send in self.sends)
        entering = len(self.sends) - leaving
        if not isinstance(moments, MomentsDelta) or (moments.entered, moments.left) != (entering, leaving):
            raise LedgerError(
                f"these are not the moments of the {len(self.sends)} {self.registry.unit}s that go with node "
                f"{self.place}: pass what the registry's delta returns for them"
            )

    def spend(self, plan: Plan, run: bytes, number: tuple[bytes, int] | None = None) -> Spend:  # noqa: ARG002
        """Mark the node and its records, once; the node names them, so run and number are not used.

        Raises:
            LedgerError: the node has begun, or a record was sent, meanwhile; sample no noise and send nothing.
        """
        self._check(plan)
        self.registry._take(self.place, self.sends)
        return self.entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:  # noqa: ARG002
        """Record that the vector, with its records, is sent.

        Raises:
            LedgerError: the node was withdrawn, or another vector of it was sent.
        """
        self._check(plan)
        self.registry._leave(self.place, upload)


@dataclass(frozen=True)
class PersonRegistry(RecordRegistry):
    """One party's persons in one run of a stream with a promise per person, opened with :meth:`open`.

    Ids are read as in ``measure(persons=)``: 007, 7 and 7.0 are one person.

    Guarantee:
        As for :class:`RecordRegistry`, for persons. Let v be the clipped sum of all rows with which a person entered.
        Every vector measured by :meth:`delta` holds v for each person who enters there and -v for each who leaves, in
        integers; later rows are in no vector. So all nodes together hold v times a record's contribution, ||v||_* <= c,
        and the stream's price is the mechanism's (docs/proofs/persons.md, One person). Assumes that one person always
        has one id.

    Example:
        >>> from privstats.contrib.streams import PersonRegistry, PersonRows
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=3.0, delta=1e-5,
        ...     max_records_per_person=2, person_clip=2)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=privacy)
        >>> stream, ledger = ps.Stream(plan, epochs=4, deletions=True), ps.dp.Ledger.create("ledger.sqlite")
        >>> ledger.set_cap("ward", unit="person", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = PersonRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> rows = PersonRows.of(np.eye(2) / 2, [0, 1], ["anna", "anna"])
        >>> registry.enter(rows)
        >>> due = registry.pending(node=0, ids=["anna"])
        >>> registry.delta(due, rows).entered
        1
    """

    unit: ClassVar[str] = "person"
    rule: ClassVar[int] = RULE

    def enter(self, rows: PersonRows) -> None:  # type: ignore[override]
        """Add persons, each with all rows passed here, from the next node on.

        Raises:
            LedgerError: a person entered before (exclude later rows with ``rows.without``), or an id names no person by
                the rule. Nothing is written.
        """
        _named(_required(rows).names)
        marks = self._marks(rows)
        self._enter(list(marks), marks)

    def pending(self, node: int, ids: Collection[str]) -> Pending:
        """Return the persons that a node must carry, each by one name for all forms of the id."""
        return super().pending(node, _named(ids))

    def delta(self, pending: Pending, rows: PersonRows | None = None) -> MomentsDelta:  # type: ignore[override]
        """Return the sums that a node carries, for ``session.client``.

        Args:
            rows: all rows of its persons; others are ignored.

        Raises:
            DataError: a person's rows are missing, or differ from the entering ones.
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
            raise DataError(f"rows of {missing} persons who are due are missing: pass all rows of pending's persons")
        with self._log.looking() as view:
            known = view.marks
        changed = sum(known.get(key) != mark for key, mark in self._marks(rows).items())
        if changed:
            raise DataError(
                f"the rows of {changed} persons are not those with which they entered: a person enters and leaves "
                "with all rows of one day, so pass exactly these"
            )

    def _marks(self, rows: PersonRows) -> Mapping[bytes, bytes]:
        reading = self.stream.first.schema.reading
        keys, rows = self._keys(rows.names), replace(rows, words=reading.listed_words, cells=reading.declaration)
        return {
            key: hmac.digest(self.secret, domains.REGISTRY_ROWS + key + rows.digests[name], "sha256")[:KEY_BYTES]
            for key, name in zip(keys, rows.names, strict=True)
        }

    def _keys(self, ids: Iterable[str]) -> list[bytes]:
        return super()._keys(ids if isinstance(ids, str) else _named(ids))


def _required(rows: object) -> PersonRows:
    if not isinstance(rows, PersonRows):
        raise LedgerError(
            f"a person enters and leaves with rows, got a {type(rows).__name__}: pass PersonRows.of(X, y, persons)"
        )
    return rows


def _named(ids: Iterable[str]) -> list[str]:
    result = names_of(list(ids))
    if None in result:
        raise LedgerError("an id names no person: pass integers below 2**53, or texts")
    return [name for name in result if name is not None]
