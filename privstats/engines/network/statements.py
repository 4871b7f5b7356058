"""Signed statements of parties and server around the machines' messages: the sender's index, and the session's end.

These statements only decide which node is asked and when a party deletes its last answer: the machines authenticate
themselves. An announcement names each published value by its digest, so a common value is sent once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final

import msgspec

from privstats import domains
from privstats.engines.network.transport import Declined, MessageKind
from privstats.errors import LocalProtocolError
from privstats.files.decoding import from_msgpack
from privstats.files.signing import verify
from privstats.plan import Plan
from privstats.secagg import Identity, Offer, Panel, Roster
from privstats.secagg.protocols import protocol_of

HEADER_BYTES = 64
_PLACE_BYTES, _SIGNATURE_BYTES, _DIGEST_BYTES = 4, 64, 32
REPLY_HEAD_BYTES = _PLACE_BYTES + _SIGNATURE_BYTES
"""The bytes of a signed answer in front of its payload."""

NO_SUM: Final = b""
"""Stands for the digest of a release in a round that ended without a sum."""

ANNOUNCED: Final[tuple[MessageKind, ...]] = ("hello", "open", "helper")
"""The kinds of messages that may be a party's first of a session: each carries the announcement, or is refused."""

_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_MaybeDigest = Annotated[bytes, msgspec.Meta(max_length=32)]
_Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]


@dataclass(frozen=True)
class Header:
    """The digests of plan and roster (32 bytes each) in an opening, so that a refusal can name which one differs."""

    plan: bytes
    roster: bytes

    @classmethod
    def of(cls, plan: Plan, roster: Roster) -> Header:
        """Return the header of a session."""
        return cls(bytes.fromhex(plan.digest), roster.digest)

    @classmethod
    def read(cls, data: bytes) -> tuple[Header, bytes]:
        """Return the header that ``data`` begins with, and the rest."""
        if len(data) < HEADER_BYTES:
            raise LocalProtocolError("an opening is shorter than its header: it was damaged on its way")
        return cls(data[:_DIGEST_BYTES], data[_DIGEST_BYTES:HEADER_BYTES]), data[HEADER_BYTES:]

    def encode(self) -> bytes:
        """Return 64 bytes: plan, roster."""
        return self.plan + self.roster


@dataclass(frozen=True)
class SignedReply:
    """A party's verified reply: its peer index, and the payload."""

    place: int
    payload: bytes


def most_bytes(plan: Plan) -> int:
    """Return the maximum bytes of a party's answer under a plan, including its signed head."""
    return REPLY_HEAD_BYTES + protocol_of(plan.masking).machines.largest_answer(plan.masking)


def sign_reply(identity: Identity, place: int, question: bytes, code: str, payload: bytes = b"") -> bytes:
    """Return a party's signed answer: ``u32 place || signature || payload``.

    Args:
        place: the party's index among the peers, clients first.
        question: the complete answered message.

    Guarantee: the signature covers question, code, place and payload, so a reply answers one message and cannot be
    replayed for another.
    """
    statement = _statement(place, sha256(question).digest(), code, sha256(payload).digest())
    return place.to_bytes(_PLACE_BYTES, "big") + identity.sign(statement) + payload


def read_signed_reply(data: bytes, question: bytes, code: str, publics: Sequence[bytes]) -> SignedReply | None:
    """Verify a signed answer; None where no listed key signed it.

    Args:
        question: SHA-256 of the answered message.
        publics: all public keys, by index.
    """
    payload = data[REPLY_HEAD_BYTES:]
    place = reply_signer(data[:REPLY_HEAD_BYTES], sha256(payload).digest(), question, code, publics)
    return None if place is None else SignedReply(place, payload)


def reply_signer(head: bytes, payload: bytes, question: bytes, code: str, publics: Sequence[bytes]) -> int | None:
    """Return the index of an answer's signer from its head alone; None where no listed key signed.

    Args:
        head: the first :data:`REPLY_HEAD_BYTES` of the answer.
        payload: SHA-256 of its payload.
        question, code, publics: as for :func:`read_signed_reply`.
    """
    place, signature = int.from_bytes(head[:_PLACE_BYTES], "big"), head[_PLACE_BYTES:]
    if len(head) != REPLY_HEAD_BYTES or place >= len(publics):
        return None
    return place if verify(publics[place], signature, _statement(place, question, code, payload)) else None


def _statement(place: int, question: bytes, code: str, payload: bytes) -> bytes:
    parts = (question, sha256(code.encode()).digest(), payload)
    return domains.REPLY + place.to_bytes(_PLACE_BYTES, "big") + b"".join(parts)


def session_ended(identity: Identity, header: Header, release: bytes = b"", beside: bytes = b"") -> bytes:
    """Return the server's signed end of a session: ``header || release || signature || beside``.

    Args:
        release: SHA-256 of the release's file; empty without one, which the message states as zeros.
        beside: without a sum, the panel's offers for a helper; :class:`EndStatements` for a client in no sum.
    """
    statement = header.encode() + (release or bytes(_DIGEST_BYTES))
    return statement + identity.sign(domains.ENDED + statement + beside) + beside


def read_session_ended(data: bytes, header: Header, server: bytes) -> bytes | None:
    """Return the attachment of a signed end; None where the server did not sign it for this session."""
    end = HEADER_BYTES + _DIGEST_BYTES
    statement, signature, beside = data[:end], data[end : end + _SIGNATURE_BYTES], data[end + _SIGNATURE_BYTES :]
    if statement[:HEADER_BYTES] != header.encode() or not verify(server, signature, domains.ENDED + statement + beside):
        return None
    return beside


class EndStatements(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Signed statements, as for ``session.free``, and the panel's offers: they prove that an upload is in no sum."""

    statements: Mapping[int, bytes]
    offers: tuple[bytes, ...] = ()


def panel_of(plan: Plan, offers: bytes) -> Panel | None:
    """Return a session's panel, if any."""
    return offered_panel(plan, offers) if plan.panel else None


def offered_panel(plan: Plan, offers: bytes) -> Panel:
    """Return the panel of a plan that has one."""
    size = len(offers) // len(plan.panel)
    cut = [offers[size * place : size * (place + 1)] for place in range(len(plan.panel))]
    try:
        return Panel(tuple(bytes.fromhex(key) for key in plan.panel), tuple(map(Offer.decode, cut)))
    except LocalProtocolError as error:
        raise Declined("refused", f"the server's opening holds no panel of this plan: {error}") from None


def to_helper(opening: bytes, message: bytes) -> bytes:
    """Return a message to a helper with the opening, so that lost earlier messages do not prevent binding its key."""
    return len(opening).to_bytes(4, "big") + opening + message


def split_helped(data: bytes) -> tuple[bytes, bytes]:
    """Split into opening and message; no machine accepts the parts of truncated bytes."""
    end = 4 + int.from_bytes(data[:4], "big")
    return data[4:end], data[end:]


class RoundAnnouncement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One round of a course.

    Attributes:
        course, roster: digests; for a plan alone, ``course`` is the plan's.
        plan: its plan, as TOML; empty for a plan alone.
        values: SHA-256 of each published value, by name.
        outcomes: SHA-256 of each earlier round's release file; :data:`NO_SUM` without one.
    """

    course: _Digest
    roster: _Digest
    place: _Place
    plan: str
    values: Mapping[str, _Digest]
    outcomes: tuple[_MaybeDigest, ...]


class SignedAnnouncement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An announcement with the server's signature, a file of values, and releases by round.

    ``ended`` holds one :class:`EndStatements` per ended round, each verified on its own.
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
        """Sign an announcement and its file of values."""
        encoded = msgspec.msgpack.encode(announcement)
        return cls(
            encoded, identity.sign(_announcement_statement(encoded, values)), values, dict(releases), dict(ended or {})
        )

    def opened(self, server: bytes) -> RoundAnnouncement:
        """Verify the signature of announcement and values before parsing them."""
        if not verify(server, self.signature, _announcement_statement(self.announcement, self.values)):
            raise LocalProtocolError(
                "the server on the roster did not sign this announcement of a round with these values"
            )
        try:
            return from_msgpack(self.announcement, RoundAnnouncement)
        except msgspec.DecodeError:
            raise LocalProtocolError(
                "what the server signed is no round of a course: it runs another version"
            ) from None


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message of one round's session; ``signed`` is the announcement where it may be a party's first message."""

    place: _Place
    kind: MessageKind
    data: bytes
    signed: SignedAnnouncement | None = None

    def encode(self) -> bytes:
        """Return the encoded bytes."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Envelope:
        """Decode an envelope, or raise ``LocalProtocolError``."""
        try:
            return from_msgpack(data, cls)
        except msgspec.DecodeError:
            raise LocalProtocolError("a message of a course was damaged on its way") from None


def digest_of(file: bytes | None) -> bytes:
    """Return a file's SHA-256; empty without a file."""
    return sha256(file).digest() if file else b""


def _announcement_statement(announcement: bytes, values: bytes) -> bytes:
    return domains.ANNOUNCEMENT + sha256(announcement).digest() + sha256(values).digest()
