"""Signed statements of parties and server around the machines' messages: the sender's place, and the session's end.

Signed bytes and their checks; no state. The machines of ``secagg`` authenticate themselves, so these decide only which
node is asked, and when a party deletes its last answer. The loop and both folders use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from privstats.errors import LocalProtocolError
from privstats.plan import Plan
from privstats.secagg import Identity, Roster
from privstats.secagg.keys import verify
from privstats.secagg.protocols import protocol_of

__all__ = [
    "HEADER_BYTES",
    "EndStatements",
    "Header",
    "SignedReply",
    "most_bytes",
    "read_session_ended",
    "read_signed_reply",
    "session_ended",
    "sign_reply",
    "split_helped",
    "to_helper",
]

HEADER_BYTES = 64
_PLACE_BYTES, _SIGNATURE_BYTES, _DIGEST_BYTES = 4, 64, 32
_FIRST = _PLACE_BYTES + _SIGNATURE_BYTES
_REPLY, _ENDED = b"privstats/flower/1/word\0", b"privstats/flower/1/over\0"


@dataclass(frozen=True)
class Header:
    """The plan and roster of an opening, so that a refusal can name the one that differs.

    Attributes:
        plan: the plan's digest, 32 bytes.
        roster: the roster's digest, 32 bytes.
    """

    plan: bytes
    roster: bytes

    @classmethod
    def of(cls, plan: Plan, roster: Roster) -> Header:
        """The header of a session."""
        return cls(bytes.fromhex(plan.digest), roster.digest)

    @classmethod
    def read(cls, data: bytes) -> tuple[Header, bytes]:
        """The header that ``data`` begins with, and the rest.

        Raises:
            LocalProtocolError: too short for one.
        """
        if len(data) < HEADER_BYTES:
            raise LocalProtocolError("an opening is shorter than its header: it was damaged on its way")
        return cls(data[:_DIGEST_BYTES], data[_DIGEST_BYTES:HEADER_BYTES]), data[HEADER_BYTES:]

    def encode(self) -> bytes:
        """64 bytes: plan, roster."""
        return self.plan + self.roster


@dataclass(frozen=True)
class SignedReply:
    """A party's verified reply: its place among the peers, and the payload."""

    place: int
    payload: bytes


def most_bytes(plan: Plan) -> int:
    """The most bytes of a party's answer under a plan: its machine's message, and the signed reply around it."""
    return _FIRST + protocol_of(plan.masking).largest_answer(plan.masking)


def sign_reply(identity: Identity, place: int, question: bytes, code: str, payload: bytes = b"") -> bytes:
    """A party's signed answer: ``u32 place || signature || payload``.

    Args:
        identity: the party's.
        place: its place among the peers, clients first.
        question: the whole message that is answered.
        code: the answer's code.
        payload: its machine's message.

    Guarantee: the signature covers question, code, place and payload, so a reply answers one message and cannot be
    replayed for another.
    """
    statement = _statement(place, sha256(question).digest(), code, payload)
    return place.to_bytes(_PLACE_BYTES, "big") + identity.sign(statement) + payload


def read_signed_reply(data: bytes, question: bytes, code: str, publics: Sequence[bytes]) -> SignedReply | None:
    """Verify a signed answer; None where no listed key signed it.

    Args:
        data: the answer.
        question: SHA-256 of the message that it answers.
        code: the code that came with it.
        publics: all public keys, by place.
    """
    place, signature, payload = int.from_bytes(data[:_PLACE_BYTES], "big"), data[_PLACE_BYTES:_FIRST], data[_FIRST:]
    if len(data) < _FIRST or place >= len(publics):
        return None
    if not verify(publics[place], signature, _statement(place, question, code, payload)):
        return None
    return SignedReply(place, payload)


def _statement(place: int, question: bytes, code: str, payload: bytes) -> bytes:
    parts = (question, sha256(code.encode()).digest(), sha256(payload).digest())
    return _REPLY + place.to_bytes(_PLACE_BYTES, "big") + b"".join(parts)


def session_ended(
    identity: Identity, header: Header, release: bytes = bytes(_DIGEST_BYTES), beside: bytes = b""
) -> bytes:
    """The server's signed end of a session: ``header || release || signature || beside``.

    Args:
        identity: the server's.
        header: the session's.
        release: SHA-256 of the release's file; zeros where there is none.
        beside: for a helper in a session without a sum, the offers of its panel; for a client that is in no sum,
            :class:`EndStatements`.
    """
    said = header.encode() + release
    return said + identity.sign(_ENDED + said + beside) + beside


def read_session_ended(data: bytes, header: Header, server: bytes) -> bytes | None:
    """The attachment of the server's signed end; None where the server did not sign it for this session."""
    end = HEADER_BYTES + _DIGEST_BYTES
    said, signature, beside = data[:end], data[end : end + _SIGNATURE_BYTES], data[end + _SIGNATURE_BYTES :]
    if said[:HEADER_BYTES] != header.encode() or not verify(server, signature, _ENDED + said + beside):
        return None
    return beside


class EndStatements(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Signed statements about an ended session, from which a client proves that its upload is in no sum.

    Attributes:
        statements: as for ``session.free``.
        offers: of the panel to which clients sent; none without a panel.
    """

    statements: Mapping[int, bytes]
    offers: tuple[bytes, ...] = ()


def to_helper(opening: bytes, message: bytes) -> bytes:
    """A message to a helper: the opening, so that its key is bound even if earlier messages were lost, and the
    message."""
    return len(opening).to_bytes(4, "big") + opening + message


def split_helped(data: bytes) -> tuple[bytes, bytes]:
    """Split into opening and message; truncated bytes give two parts that no machine accepts."""
    end = 4 + int.from_bytes(data[:4], "big")
    return data[4:end], data[end:]
