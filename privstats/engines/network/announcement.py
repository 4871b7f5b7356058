"""The server's signed announcement of a round: its plan, and the releases before it.

Encoding and checks only. An announcement travels with the first message that a round's session has for a party, so that
it costs no round trip of its own. ``round_transport`` sends it and ``party`` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Final

import msgspec

from privstats.engines.network.statements import EndStatements
from privstats.engines.network.transport import MessageKind
from privstats.errors import LocalProtocolError
from privstats.secagg import Identity
from privstats.secagg.keys import verify

__all__ = ["ANNOUNCED", "NO_SUM", "EndStatements", "Envelope", "RoundAnnouncement", "SignedAnnouncement", "digest_of"]

NO_SUM: Final = b""
"""In place of the digest of a release, for a round that ended without a sum."""

ANNOUNCED: Final[tuple[MessageKind, ...]] = ("hello", "open", "helper")
"""The kinds of messages that may be a party's first of a session: each carries the announcement, or is refused."""

_LABEL = b"privstats/flower/2/brief\0"
_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_MaybeDigest = Annotated[bytes, msgspec.Meta(max_length=32)]
_Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]


class RoundAnnouncement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One round of a course.

    Attributes:
        course: digest of the course, or of a plan alone.
        roster: digest of the course's roster.
        place: the round's number.
        plan: its plan, as TOML; empty for a plan alone, whose digest is in ``course``.
        values: SHA-256 of each of its published values by name (``Values.digest``), so that a value that is the same in
            several rounds, like the map of a refinement, is sent once; empty where there are none.
        outcomes: SHA-256 of the release file of every round before it; :data:`NO_SUM` for one without.
    """

    course: _Digest
    roster: _Digest
    place: _Place
    plan: str
    values: Mapping[str, _Digest]
    outcomes: tuple[_MaybeDigest, ...]


class SignedAnnouncement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An announcement with the server's signature, and what it names: values in a file, and releases by round.

    ``ended`` are signed statements about rounds that have ended, by round: one :class:`EndStatements` each, verified on
    its own.
    """

    announcement: bytes
    signature: bytes
    values: bytes
    releases: Mapping[int, bytes]
    ended: Mapping[int, bytes] = {}

    @classmethod
    def of(
        cls,
        announcement: RoundAnnouncement,
        identity: Identity,
        values: bytes,
        releases: Mapping[int, bytes],
        ended: Mapping[int, bytes] | None = None,
    ) -> SignedAnnouncement:
        """Sign an announcement, and the file of values that travels with it."""
        said = msgspec.msgpack.encode(announcement)
        return cls(said, identity.sign(_statement(said, values)), values, dict(releases), dict(ended or {}))

    def opened(self, server: bytes) -> RoundAnnouncement:
        """Verify the server's signature of the announcement and of the file of values, which is not parsed before.

        Raises:
            LocalProtocolError: a wrong signature, or bytes that are no announcement.
        """
        if not verify(server, self.signature, _statement(self.announcement, self.values)):
            raise LocalProtocolError(
                "the server on the roster did not sign this announcement of a round with these values"
            )
        try:
            return msgspec.msgpack.decode(self.announcement, type=RoundAnnouncement)
        except (msgspec.DecodeError, RecursionError):
            raise LocalProtocolError(
                "what the server signed is no round of a course: it runs another version"
            ) from None


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message of one round's session, with the round's announcement where it may be a party's first message.

    Attributes:
        place: the round's number.
        kind: of the message in its session.
        data: the message.
        signed: the round's announcement.
    """

    place: _Place
    kind: MessageKind
    data: bytes
    signed: SignedAnnouncement | None = None

    def encode(self) -> bytes:
        """The bytes that travel."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Envelope:
        """Decode an envelope.

        Raises:
            LocalProtocolError: the bytes are no envelope.
        """
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, RecursionError):
            raise LocalProtocolError("a message of a course was damaged on its way") from None


def digest_of(file: bytes | None) -> bytes:
    """SHA-256 of a file; empty where there is none."""
    return sha256(file).digest() if file else b""


def _statement(announcement: bytes, values: bytes) -> bytes:
    return _LABEL + sha256(announcement).digest() + sha256(values).digest()
