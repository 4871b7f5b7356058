"""What the server says of a node before anybody takes part: its plan, and what was released before, signed.

Bytes and their checks; nothing is kept or decided here. An announcement travels with the first message that a node's
session has for a party, so that it costs no round trip of its own. Under ``node_transport`` and ``party``.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Final

import msgspec

from privstats.engines.network.statements import EndStatements
from privstats.engines.network.transport import Kind
from privstats.errors import LocalProtocolError
from privstats.secagg import Identity
from privstats.secagg.keys import verify

__all__ = ["ANNOUNCED", "NO_SUM", "EndStatements", "Envelope", "RoundAnnouncement", "SignedAnnouncement", "digest_of"]

NO_SUM: Final = b""
"""What stands for the release of a node that ended without a sum."""

ANNOUNCED: Final[tuple[Kind, ...]] = ("hello", "open", "helper")
"""The messages of a session that may be the first for somebody: each comes with the announcement, or is refused."""

_LABEL = b"privstats/flower/1/brief\0"
_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_MaybeDigest = Annotated[bytes, msgspec.Meta(max_length=32)]
_Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]


class RoundAnnouncement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One node of a course.

    Attributes:
        course: digest of the course; of the plan, where that is alone.
        roster: digest of the course's roster.
        place: the node's number.
        plan: its plan, as TOML; empty where the plan is alone, because its digest says it.
        values: SHA-256 of the file of its published values; empty where there are none.
        outcomes: SHA-256 of the release file of every node before it; :data:`NO_SUM` for one without.
    """

    course: _Digest
    roster: _Digest
    place: _Place
    plan: str
    values: _MaybeDigest
    outcomes: tuple[_MaybeDigest, ...]


class SignedAnnouncement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An announcement under the server's signature, and files that it names: values, and some releases, by node.

    ``words`` are what others signed of nodes that have ended, by node: a :class:`EndStatements` each, which stands for
    itself.
    """

    announcement: bytes
    signature: bytes
    values: bytes
    releases: Mapping[int, bytes]
    words: Mapping[int, bytes] = {}

    @classmethod
    def of(
        cls,
        announcement: RoundAnnouncement,
        identity: Identity,
        values: bytes,
        releases: Mapping[int, bytes],
        words: Mapping[int, bytes] | None = None,
    ) -> SignedAnnouncement:
        """Sign an announcement."""
        said = msgspec.msgpack.encode(announcement)
        return cls(said, identity.sign(_statement(said)), values, dict(releases), dict(words or {}))

    def opened(self, server: bytes) -> RoundAnnouncement:
        """The announcement, if the server with this public key has signed it and the values are those that it names.

        Raises:
            LocalProtocolError: it has not, they are not, or the bytes are no announcement.
        """
        if not verify(server, self.signature, _statement(self.announcement)):
            raise LocalProtocolError("the server on the roster did not sign what came as a node of its course")
        try:
            announcement = msgspec.msgpack.decode(self.announcement, type=RoundAnnouncement)
        except (msgspec.DecodeError, RecursionError):
            raise LocalProtocolError("what the server signed is no node of a course: it runs another version") from None
        if digest_of(self.values) != announcement.values:
            raise LocalProtocolError("the published values are not those that the server signed")
        return announcement


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message of one node's session; with the node itself where the message may be the first for somebody.

    Attributes:
        place: the node's number.
        kind: what the message is in its session.
        data: the message.
        signed: the node.
    """

    place: _Place
    kind: Kind
    data: bytes
    signed: SignedAnnouncement | None = None

    def encode(self) -> bytes:
        """The bytes that travel."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Envelope:
        """The envelope again.

        Raises:
            LocalProtocolError: the bytes are none.
        """
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, RecursionError):
            raise LocalProtocolError("a message of a course was damaged on its way") from None


def digest_of(file: bytes | None) -> bytes:
    """SHA-256 of a file; empty where there is none."""
    return sha256(file).digest() if file else b""


def _statement(announcement: bytes) -> bytes:
    return _LABEL + sha256(announcement).digest()
