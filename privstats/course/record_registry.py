"""A party's book of a stream: which record was sent when, so that each enters once, leaves once and is there once.

The contract that a stream's promise rests on and that sums cannot see; kept in the ledger's file. It measures nothing
and moves no bytes: the party hands ids and moments in, and a charge for ``session`` out. Beside ``stream``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from privstats import secagg
from privstats.course.base import Releases, verify_next
from privstats.course.stream import Stream
from privstats.dp import Ledger, NoPrivacy, Privacy, Spend
from privstats.dp.registry_fold import KEY_BYTES, Send, State
from privstats.dp.registry_log import Changes, RegistryLog, View
from privstats.errors import DataError, LedgerError
from privstats.moments import Moments, MomentsDelta
from privstats.plan import Plan
from privstats.release import Release
from privstats.session.accounting import NodeCharge, prove_excluded_upload

__all__ = ["LONGEST_ID", "SECRET_BYTES", "Pending", "RecordRegistry", "RegistryCharge"]

SECRET_BYTES = 32
"""Length of the party's secret behind the hashes of record names."""

LONGEST_ID = 200
"""Characters in the name of a record, at most."""

_INNER, _OUTER = (bytes(value ^ pad for value in range(256)) for pad in (0x36, 0x5C))
"""What HMAC (RFC 2104) makes of its key for the inner and the outer hash."""


@dataclass(frozen=True)
class Pending:
    """What a node must carry for a party.

    Attributes:
        node: its place in the stream.
        entering, leaving: ids of the records whose moments are added and taken off.
        missing: records that are due as well and were not among the ids that were given.

    Example:
        >>> pending = ps.course.Pending(node=2, entering=("patient 17",), leaving=())
        >>> len(pending.entering), len(pending.leaving), pending.missing
        (1, 0, 0)
    """

    node: int
    entering: tuple[str, ...]
    leaving: tuple[str, ...]
    missing: int = 0


@dataclass(frozen=True)
class RecordRegistry:
    """One party's records in one run of a stream.

    Made with :meth:`open`. A record is new, in or gone, and at each level of the stream it was sent or not. It counts
    as sent when the masked vector with it leaves, whatever a server says became of that: silence is no proof, and a
    server that is silent after the upload still has it.

    Args:
        stream: what all parties agreed on.
        ledger, entry: the party's own, and what ``course.spend`` wrote the stream down under.
        secret: 32 bytes that the party keeps: record ids are in the file as keyed hashes only.

    Guarantee:
        What leaves under charges of this holding keeps the contract of :class:`Stream`: a record is added once (and
        ``repeats`` times more) at each level, taken off at most as often, and never added again once it is gone. Every
        change is on the disk before the vector that it is about leaves, in the ledger's transaction and under its
        chain: an older copy of the file is refused like an older ledger, so a holding is never restored from a backup.
        Assumes that one record has one id, always.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> stream, ledger = ps.Stream(plan, epochs=4), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = ps.course.RecordRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> registry.enter(["patient 17", "patient 18"])
        >>> registry.pending(node=0, ids=["patient 17", "patient 18"]).entering
        ('patient 17', 'patient 18')
    """

    stream: Stream
    ledger: Ledger
    entry: Spend
    secret: bytes = field(repr=False)

    @classmethod
    def open(cls, stream: Stream, ledger: Ledger, entry: Spend, secret: bytes) -> RecordRegistry:
        """The holding of a stream's run, made if this is its first use; all of its rows are checked against the chain.

        Raises:
            LedgerError: rows were edited, the entry is another course's, the secret is not 32 bytes or not the one that
                this holding was made with, or the ledger refuses.
        """
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            raise LedgerError(f"the secret of a holding is {SECRET_BYTES} bytes; take os.urandom(32) once and keep it")
        if entry.plan != stream.digest:
            raise LedgerError("this entry is another course's; give the one that course.spend returned for this stream")
        if entry.apart == "parties":
            raise LedgerError("this entry is of a server that sees sums only; spend the stream in a party's own ledger")
        registry = cls(stream, ledger, entry, secret)
        check = hmac.digest(secret, b"privstats/holding/check\0" + entry.run, "sha256")
        with registry._log.looking(whole=True) as view:
            register = view.register
        if not register.check:
            with registry._log.changing() as changes:
                changes.open(check)
        elif not hmac.compare_digest(register.check, check):
            raise LedgerError("this holding was made with another secret, under which every record would look new")
        return registry

    def enter(self, ids: Iterable[str]) -> None:
        """Records that are in the stream from the next node on.

        Raises:
            LedgerError: one has been in before (a record enters once), an id comes twice, or the client would hold more
                records than ``max_records_per_client``. Nothing is written then.
        """
        keys = self._keys(ids)
        with self._log.changing() as changes:
            known = [key for key in keys if changes.index.state(self.entry.id, key) != "new"]
            if known:
                raise LedgerError(
                    f"{len(known)} of these records have entered the stream before, and a record enters once: leave "
                    "out those that are in; one that is gone stays gone"
                )
            self._check_room(changes.index.states(self.entry.id).total() + len(keys))
            changes.move("entered", keys)

    def leave(self, ids: Iterable[str]) -> None:
        """Records that are taken off from the next node on, and never come back; keep them until that is sent.

        Raises:
            LedgerError: the stream has no deletions, or one of them is not in. Nothing is written then.
        """
        if not self.stream.deletions:
            raise LedgerError("this stream was paid for without deletions; agree on one with deletions=True")
        keys = self._keys(ids)
        with self._log.changing() as changes:
            out = [key for key in keys if changes.index.state(self.entry.id, key) != "in"]
            if out:
                raise LedgerError(f"{len(out)} of these records are not in the stream, so they cannot leave it (again)")
            changes.move("gone", keys)

    def state(self, record: str) -> State:
        """``"new"``, ``"in"`` or ``"gone"``."""
        (key,) = self._keys([record])
        with self._log.looking() as view:
            return view.index.state(self.entry.id, key)

    def pending(self, node: int, ids: Collection[str]) -> Pending:
        """What a node must carry: of the records given, those that are in and not there yet, and those that are gone
        and still there.

        Args:
            node: its place in the stream.
            ids: all records that the party has, with those that have left and may not have been taken off everywhere.
        """
        level = self._level(node)
        keys = self._hashed(ids)
        with self._log.looking() as view:
            due = self._due(view, level)
        entering, leaving = (
            tuple(dict.fromkeys(record for key, record in zip(keys, ids, strict=True) if key in wanted))
            for wanted in due
        )
        return Pending(node, entering, leaving, missing=sum(map(len, due)) - len(entering) - len(leaving))

    def delta(self, pending: Pending, entering: Moments | None = None, leaving: Moments | None = None) -> MomentsDelta:
        """The change that a node carries, as moments for ``session.client``.

        Args:
            pending: what :meth:`pending` gave.
            entering, leaving: ``measure`` of exactly these records; None where there are none.

        Raises:
            DataError: moments of another number of records, or of another schema.
        """
        for name, moments, ids in (("entering", entering, pending.entering), ("leaving", leaving, pending.leaving)):
            if (0 if moments is None else moments.records) != len(ids):
                raise DataError(f"{name} must be the moments of the {len(ids)} records of due.{name}; measure these")
        if entering is None and leaving is None:
            return MomentsDelta.nothing(self.stream.first.schema)  # type: ignore[arg-type]
        return MomentsDelta.of(entering, leaving)

    def charge(self, plan: Plan, releases: Releases, pending: Pending) -> RegistryCharge:
        """Where ``session.client`` marks the node, with the records that its vector holds.

        Raises:
            PlanError: the plan is not the next node's.
            LedgerError: ``pending`` is another node's.
        """
        node = verify_next(self.stream, plan, releases)
        if pending.node != node.place:
            raise LedgerError(f"this is pending at node {pending.node} and the plan is of node {node.place}; ask again")
        level = self._level(pending.node)
        sends = [Send(key, level, False) for key in self._hashed(pending.entering)]
        sends += [Send(key, level, True) for key in self._hashed(pending.leaving)]
        return RegistryCharge(self.ledger, self.entry, node.place, plan.digest, self, tuple(sends))

    def withdraw(self, node: int) -> None:
        """Give up a node of which nothing has left: its records may be sent with the next, and its client never speaks.

        Raises:
            LedgerError: its vector has left, or the node was not taken.
        """
        with self._log.changing() as changes:
            end = changes.register.ends.get(node)
            if end != "taken":
                raise LedgerError(
                    f"node {node} {'was not taken' if end is None else 'has left this machine'}: only what never left "
                    "is withdrawn; what left may be sent again by proof (excluded), or where repeats were paid for"
                )
            changes.end(node, "returned")

    def lose(self, node: int) -> None:
        """Send a node's records again although nobody has proven that they were not counted; for ``repeats``.

        Raises:
            LedgerError: the stream was paid for without repeats, or nothing of this node is outstanding.
        """
        if not self.stream.repeats:
            raise LedgerError(
                "a server that was silent may have counted these records, and this stream was paid for without "
                "repeats: they stay out, unless excluded has proof"
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
        """A node's records are in no sum, by the word of those who would know: they are sent again at no cost.

        Every helper has signed that it abandoned the node, or enough clients have signed who was in it.

        Args:
            node: the node.
            report, statements, roster, panel: as for ``session.free``.

        Raises:
            LocalProtocolError: that is not proven.
            LedgerError: the protocol has no such proof, or it is about another upload.
        """
        upload = prove_excluded_upload(self.stream.first, report, statements, roster=roster, panel=panel)
        with self._log.changing() as changes:
            if not hmac.compare_digest(self._outstanding(changes, node), upload):
                raise LedgerError(f"what left for node {node} is another upload than the one this proof is about")
            changes.end(node, "returned")

    def left_out(self, node: int, release: Release, index: int) -> None:
        """A node's records are in no sum, by the central server's own list: they are sent again at no cost.

        The server is who a central promise trusts; read its release with ``signed_by``. In every other model its list
        proves nothing, because a server that is silent after the upload still has it.

        Raises:
            LedgerError: the model is another, the list has this client, or nothing of this node is outstanding.
        """
        privacy = self.stream.first.privacy
        if isinstance(privacy, NoPrivacy) or privacy.trust.drawn_by != "server":
            raise LedgerError("a server's list is no proof that a vector was not counted, unless the model is central")
        if release.plan != self.stream.first or index in release.survivors:
            raise LedgerError("this release is not of this stream, or counts this client: its records are sent")
        with self._log.changing() as changes:
            self._outstanding(changes, node)
            changes.end(node, "returned")

    @property
    def taken(self) -> tuple[int, ...]:
        """The nodes that were begun and of which nothing has left: each is given up with :meth:`withdraw`."""
        return tuple(node for node, end in self._log.register().ends.items() if end == "taken")

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The nodes whose vector has left: their records count as sent, unless somebody proves that they are not."""
        return tuple(node for node, end in self._log.register().ends.items() if end == "left")

    def records(self) -> Mapping[State, int]:
        """How many records are in the stream, and how many have gone."""
        with self._log.looking() as view:
            return view.index.states(self.entry.id)

    @property
    def _log(self) -> RegistryLog:
        return RegistryLog(self.ledger, self.entry)

    def _outstanding(self, changes: Changes, node: int) -> bytes:
        """The name of what left for a node whose records count as sent."""
        if changes.register.ends.get(node) != "left":
            raise LedgerError(f"nothing of node {node} counts as sent: it never left, or is settled already")
        return changes.register.uploads[node]

    def _due(self, view: View, level: int) -> tuple[set[bytes], set[bytes]]:
        """Records that a node at ``level`` must add, and those that it must take off."""
        return view.index.due(self.entry.id, level, self.stream.repeats)

    def _take(self, node: int, sends: tuple[Send, ...]) -> None:
        with self._log.changing() as changes:
            arriving, parting = self._due(changes, self._level(node))
            if not all(send.key in (parting if send.leaves else arriving) for send in sends):
                raise LedgerError(
                    "a record of this vector was sent meanwhile, or has left; ask for what is pending again"
                )
            changes.take(node, sends)

    def _leave(self, node: int, upload: bytes) -> None:
        with self._log.changing() as changes:
            end, known = changes.register.ends.get(node), changes.register.uploads.get(node)
            if end == "left" and known is not None and hmac.compare_digest(known, upload):
                return
            if end != "taken":
                raise LedgerError(f"node {node} of this stream was withdrawn, or another vector of it has left")
            changes.leave(node, upload)

    def _level(self, node: int) -> int:
        if type(node) is not int or not 0 <= node < self.stream.most:
            raise LedgerError(f"this stream has nodes 0 to {self.stream.most - 1}, got {node!r}")
        return self.stream.places[node].level

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
            raise LedgerError("ids must be several texts, one per record; put it into a list")
        keys = self._hashed(ids)
        if len(set(keys)) != len(keys):
            raise LedgerError("an id comes twice, and one record has one id; give each once")
        return keys

    def _hashed(self, ids: Iterable[str]) -> list[bytes]:
        """HMAC-SHA-256 of each id; both keyed blocks are made once, which takes half the time of ``hmac.digest``."""
        block = self.secret.ljust(hashlib.sha256().block_size, b"\0")
        inner = block.translate(_INNER) + b"privstats/holding/record\0"
        outer = block.translate(_OUTER)
        sha256 = hashlib.sha256
        return [sha256(outer + sha256(inner + _said(each)).digest()).digest()[:KEY_BYTES] for each in ids]


def _said(record: str) -> bytes:
    if not isinstance(record, str) or not 0 < len(record) <= LONGEST_ID:
        raise LedgerError(f"the id of a record is a text of 1 to {LONGEST_ID} characters; give one that stays")
    return record.encode()


@dataclass(frozen=True)
class RegistryCharge(NodeCharge):
    """A node's mark and the records in its vector, in one transaction; made by :meth:`RecordRegistry.charge`.

    Attributes:
        registry: the party's book.
        sends: the records.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> stream, ledger = ps.Stream(plan, epochs=4), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
        >>> registry = ps.course.RecordRegistry.open(stream, ledger, entry, secret=os.urandom(32))
        >>> registry.enter(["patient 17"])
        >>> charge = registry.charge(stream.first, [], registry.pending(node=0, ids=["patient 17"]))
        >>> charge.node, len(charge.sends)
        (0, 1)
    """

    registry: RecordRegistry
    sends: tuple[Send, ...]

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments of other records than those that are noted, as far as their number shows it.

        Raises:
            LedgerError: they are no change of so many records; nothing is noted then.
        """
        leaving = sum(send.leaves for send in self.sends)
        if not isinstance(moments, MomentsDelta) or (moments.entered, moments.left) != (
            len(self.sends) - leaving,
            leaving,
        ):
            raise LedgerError(
                f"these are not the moments of the {len(self.sends)} records that go with node {self.node}: give what "
                "RecordRegistry.delta makes of measuring them"
            )

    def spend(self, plan: Plan, run: bytes) -> Spend:  # noqa: ARG002  a node has no name but its place
        """Mark the node and its records, once.

        Raises:
            LedgerError: the node has begun before, or a record was sent meanwhile; nothing may be drawn or leave then.
        """
        self._check(plan)
        self.registry._take(self.node, self.sends)
        return self.entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:  # noqa: ARG002
        """Note that the vector leaves: from here on its records count as sent.

        Raises:
            LedgerError: the node was withdrawn, or another vector of it has left.
        """
        self._check(plan)
        self.registry._leave(self.node, upload)
