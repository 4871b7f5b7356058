"""A transport that puts every message into an envelope with the round's number.

A party is sent the last release and new published values, or everything if it reports that it lacks more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from privstats.engines.network.statements import (
    ANNOUNCED,
    Envelope,
    RoundAnnouncement,
    SignedAnnouncement,
    read_signed_reply,
)
from privstats.engines.network.transport import FAILED, OK, VERSION, MessageKind, Reply, Transport, pulled
from privstats.secagg import Identity

BEHIND = "behind"
"""The code of a party that lacks releases, or published values, of earlier rounds."""


@dataclass(frozen=True)
class OutgoingAnnouncement:
    """The announcement of a round, with its files.

    Attributes:
        values: the file of all published values.
        fresh: the file of newly published values.
        ended: signed statements that prove exclusions from earlier rounds.
    """

    announcement: RoundAnnouncement
    identity: Identity
    values: bytes
    fresh: bytes
    releases: Mapping[int, bytes]
    ended: Mapping[int, bytes] = field(default_factory=dict)

    def signed(self, *, whole: bool) -> SignedAnnouncement:
        """Return the signed announcement with statements, the last release and fresh values; or with everything.

        Statements about rounds without a sum are always sent, because a party cannot notice that it lacks their
        outcome.
        """
        if whole:
            return SignedAnnouncement.of(self.announcement, self.identity, self.values, self.releases, self.ended)
        last = {*list(self.releases)[-1:], *list(self.ended)[-1:]}
        releases = {place: file for place, file in self.releases.items() if place in last}
        ended = {
            place: statements for place, statements in self.ended.items() if place in last or place not in self.releases
        }
        return SignedAnnouncement.of(self.announcement, self.identity, self.fresh, releases, ended)

    def repeated(self) -> SignedAnnouncement:
        """Return the announcement alone, for a party that has its files."""
        return SignedAnnouncement.of(self.announcement, self.identity, b"", {})


@dataclass(frozen=True)
class _Sent:
    node: int
    kind: MessageKind
    data: bytes
    ttl: float
    digest: bytes = b""  # of the envelope


class RoundTransport:
    """A transport for the session of one round; ``publics`` are all public keys by index."""

    def __init__(self, transport: Transport, outgoing: OutgoingAnnouncement, publics: Sequence[bytes]) -> None:
        self._transport, self._announcing, self._publics = transport, outgoing, publics
        self._sent: dict[str, _Sent] = {}
        self._again: dict[str, str] = {}  # a message, and the one sent in its place with all releases
        self._answered: set[int] = set()  # nodes that have taken the announcement

    def online(self) -> Sequence[int]:
        """Return the nodes online."""
        return self._transport.online()

    def name(self, node: int) -> str:
        """Return a node's name."""
        return self._transport.name(node)

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send a message of the session."""
        return self._pushed(_Sent(node, kind, data, ttl), whole=False)

    def pull(self, message: str, most: int) -> Reply | None:
        """Return the reply; a party that lacks releases is sent all of them, and its reply to that counts."""
        return next((reply for _, reply in self.pull_many([message], most)), None)

    def pull_many(self, messages: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
        """Yield replies, each as :meth:`pull`."""
        names = {self._again.get(message, message): message for message in messages}
        for name, reply in pulled(self._transport, list(names), most):
            read = self._read(names[name], reply)
            if read is not None:
                yield names[name], read

    def _read(self, message: str, reply: Reply) -> Reply | None:
        sent = self._sent.get(message)
        if sent is None:
            return reply
        if reply.code == OK:
            self._answered.add(sent.node)
        if reply.code == BEHIND and message not in self._again:
            self._again[message] = self._pushed(sent, whole=True)
            return None
        return Reply(VERSION) if self._is_old(sent, reply) else reply

    def _is_old(self, sent: _Sent, reply: Reply) -> bool:
        """A party that signed its failure over the envelope is an older version without envelopes."""
        return reply.code == FAILED and bool(read_signed_reply(reply.data, sent.digest, FAILED, self._publics))

    def _pushed(self, sent: _Sent, *, whole: bool) -> str:
        signed = self._signed(sent, whole) if sent.kind in ANNOUNCED else None
        envelope = Envelope(self._announcing.announcement.place, sent.kind, sent.data, signed).encode()
        name = self._transport.push(sent.node, "round", envelope, ttl=sent.ttl)
        if signed is not None:
            self._sent[name] = replace(sent, digest=sha256(envelope).digest())
        return name

    def _signed(self, sent: _Sent, whole: bool) -> SignedAnnouncement:
        if sent.node in self._answered and not whole:
            return self._announcing.repeated()
        return self._announcing.signed(whole=whole)
