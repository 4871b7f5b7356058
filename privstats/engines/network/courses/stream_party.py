"""A party in a stream: what it has brought, the book of what was sent when, and its seat in each node's session.

Between two epochs everything is on the party's disk: batches, book and sessions. What never left goes with the next
node, what left goes again by proof alone. Over ``party``, which works out which node a message is of.
"""

from __future__ import annotations

import hmac
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from privstats import session
from privstats.course import Pending, RecordRegistry, Releases, Stream
from privstats.engines.journal.client_file import left_by
from privstats.engines.network.courses.announcement import EndStatements, SignedAnnouncement
from privstats.engines.network.courses.folder import CourseFolder, NodeFolder
from privstats.engines.network.courses.party import CourseParty
from privstats.engines.network.folder import account_of
from privstats.engines.network.party import Party
from privstats.engines.network.roles import ClientRole, Declined, Role, panel_of
from privstats.engines.network.streams import RecordInbox
from privstats.errors import DataError, LedgerError, LocalProtocolError
from privstats.moments import Moments
from privstats.secagg.machines import OnUpload
from privstats.session import NodeCharge

__all__ = ["Standing", "StreamParty", "StreamRole", "inbox_of", "registry_of"]

_REMEDY = "keep only the one that is meant in it"


def stream_of(folder: CourseFolder) -> Stream:
    """The stream that a folder holds."""
    assert isinstance(folder.course, Stream)  # noqa: S101  whoever opens the folder asks
    return folder.course


def inbox_of(folder: CourseFolder) -> RecordInbox:
    """What the party has brought."""
    return RecordInbox(folder.home, stream_of(folder))


def registry_of(folder: CourseFolder) -> RecordRegistry:
    """The party's book; with it the whole stream is spent, unless it was before.

    Raises:
        LedgerError: nothing says which account is charged, the cap would be passed, or the journal's key is another.
    """
    run, digest = folder.roster.run, folder.course.digest
    known = (account.of_run(run) for account in folder.ledger.accounts())
    entry = next((each for each in known if each is not None and each.plan == digest), None)
    if entry is None:
        entry = folder.entry(account_of(folder.keep(0, folder.course.first), remedy=_REMEDY))
    secret = hmac.digest(folder.key, b"privstats/flower/holding", "sha256")
    return RecordRegistry.open(stream_of(folder), folder.ledger, entry, secret)


class StreamRole(ClientRole):
    """A client in one node of a stream: it carries what is due there, and its book is told."""

    def __init__(self, folder: NodeFolder, place: int) -> None:
        super().__init__(folder, place)
        self._above, self._at = folder.above, folder.place

    def session_ended(self, beside: bytes = b"") -> bytes:
        """Keep nothing but that there was such a session; what never left may be sent with the next node."""
        said = super().session_ended(beside)
        if self._node.begun:
            with suppress(LedgerError):  # it has left, and that stays so
                registry_of(self._above).withdraw(self._at)
        return said

    def _free(self, beside: bytes) -> None:
        """Take records back that are in no sum, by the word of every helper."""
        with suppress(LedgerError):  # nothing has left, or it was taken back before
            _taken_back(self._node, self.path, beside)

    @property
    def _node(self) -> NodeFolder:
        assert isinstance(self._folder, NodeFolder)  # noqa: S101
        return self._folder

    def _left(self) -> OnUpload:
        """Only here the book is read: most messages are not about an upload."""
        plan, roster, pending = self._folder.plan, self._folder.roster, Pending(self._at, (), ())
        return lambda upload: session.on_upload(plan, roster, self._charged(registry_of(self._above), pending))(upload)

    def _charged(self, registry: RecordRegistry, pending: Pending) -> NodeCharge:
        return registry.charge(self._folder.plan, [None] * self._at, pending)

    def _part(self) -> tuple[Moments, NodeCharge]:
        registry, inbox = registry_of(self._above), inbox_of(self._above)
        inbox.register(registry)
        pending = inbox.pending(registry, self._at)
        if pending.missing:
            raise DataError(
                f"{pending.missing} records that are due are in no file of {self._above.home.name}/records: bring back "
                "what was moved away"
            )
        return inbox.change(registry, pending), self._charged(registry, pending)


@dataclass(frozen=True)
class Standing:
    """How far a party has come in a stream.

    Attributes:
        account: what the stream is charged to.
        begun: nodes up to the last that began here.
        inside, gone: records in the stream, and records that have left it.
        entering, leaving: what the next node carries, as far as is known now.
    """

    account: str
    begun: int
    inside: int
    gone: int
    entering: int
    leaving: int


class _NodeParty(Party):
    """A party in one node of a stream."""

    @property
    def role(self) -> Role:
        """Its side of the session.

        Raises:
            Declined: its identity is not on the roster.
        """
        role = super().role
        if isinstance(role, ClientRole) and isinstance(self.folder, NodeFolder):
            return StreamRole(self.folder, role.place)
        return role


@dataclass(frozen=True)
class StreamParty(CourseParty):
    """A party's or a helper's folder of a stream."""

    def at(self, node: NodeFolder) -> Party:
        """Its side of one node."""
        return _NodeParty(node, self.say)

    def prepare(self, *, anew: bool = False, progress: bool = False) -> None:  # noqa: ARG002  measured as brought
        """What ``check`` and ``join`` do before anything is sent: find the seat, and read what was brought.

        Raises:
            PrivstatsError: the identity is not on the roster, or a file cannot be read.
        """
        if isinstance(self.first.role, ClientRole):
            inbox_of(self.folder).batches()

    def standing(self) -> Standing:
        """How far the party has come: nothing is spent and nothing marked by asking.

        Raises:
            PrivstatsError: a file cannot be read, or the ledger refuses.
        """
        folder, inbox = self.folder, inbox_of(self.folder)
        account = account_of(folder.keep(0, folder.course.first), remedy=_REMEDY)
        if not self._spent:
            batches = inbox.batches().values()
            gone = {record for each in batches for record in each.leave}
            inside = sum(len(each.ids) for each in batches) - len(gone)
            return Standing(account, 0, inside, len(gone), inside, 0)
        registry = registry_of(folder)
        inbox.register(registry)
        begun, counts = max(registry.entry.begun, default=-1) + 1, registry.records()
        pending = inbox.pending(registry, begun) if begun < folder.course.most else Pending(begun, (), ())
        return Standing(account, begun, counts["in"], counts["gone"], len(pending.entering), len(pending.leaving))

    @property
    def waiting(self) -> int:
        """Records that the next node carries already, both ways counted.

        Raises:
            PrivstatsError: a file cannot be read, or the ledger refuses.
        """
        inbox, most = inbox_of(self.folder), self.folder.course.most
        if not self._spent:
            return sum(len(each.ids) - len(each.leave) for each in inbox.batches().values())
        registry = registry_of(self.folder)
        inbox.register(registry)
        pending = inbox.pending(registry, min(max(registry.entry.begun, default=-1) + 1, most - 1))
        return len(pending.entering) + len(pending.leaving)

    @property
    def is_client(self) -> bool:
        """Whether it brings records."""
        return self.folder.identity.public in self.folder.roster.publics

    def _releases(self, place: int) -> Releases:
        """Nothing: a node of a stream follows from its number."""
        return [None] * place

    def _left_over(self, place: int) -> tuple[int, ...]:
        last = [each for each in self.folder.nodes if each < place][-1:]  # whose answers nobody asks for any more
        taken = registry_of(self.folder).taken if self.is_client and self._spent else ()
        return tuple(each for each in {*taken, *last} if each != place)

    @property
    def _spent(self) -> bool:
        run = self.folder.roster.run
        return any(account.of_run(run) is not None for account in self.folder.ledger.accounts())

    def _settle(self, signed: SignedAnnouncement) -> None:
        """Take records back of which others say, so that it is proof, that they are in no sum."""
        if not self.is_client or not self._spent:
            return
        registry, index = registry_of(self.folder), self.folder.roster.publics.index(self.folder.identity.public)
        noise = self.folder.course.first.noise
        central = noise is not None and noise.trust.by_server
        for place in registry.outstanding:
            release = self.folder.release(place) if self.folder.told(place) else None
            if release is not None and index in release.survivors:
                continue
            if release is not None and central:
                registry.left_out(place, release, index)
            elif place in signed.words:
                self._proven(place, signed.words[place])

    def _proven(self, place: int, said: bytes) -> None:
        node = self.folder.node(place)
        try:
            self.at(node).role.session_ended()  # which leaves the receipt, and nothing that could answer
            _taken_back(node, ClientRole(node, 0).path, said)
        except (Declined, LedgerError, LocalProtocolError) as error:
            self.say(f"node {place}: what others signed is no proof that our records are in no sum: {error}")
        else:
            self.say(f"node {place}: our upload is in no sum, by proof: its records go with the next node")


def _taken_back(node: NodeFolder, path: Path, said: bytes) -> None:
    """Hold what others signed of a node against what left this party, and note that its records may be sent again.

    Args:
        node: the node's folder.
        path: of the client's journal in it.
        said: :class:`EndStatements`, encoded.

    Raises:
        Declined: it is nothing that anybody signs.
        LocalProtocolError, LedgerError: as for ``RecordRegistry.excluded``.
    """
    try:
        words = msgspec.msgpack.decode(said, type=EndStatements)
    except (msgspec.DecodeError, RecursionError):
        raise Declined("damaged", "it was damaged on its way") from None
    panel = panel_of(node.plan, b"".join(words.offers))
    receipt, _ = left_by(path, node.key)
    named: dict[str, Any] = {"report": receipt, "statements": words.statements, "roster": node.roster, "panel": panel}
    registry_of(node.above).excluded(node.place, **named)
