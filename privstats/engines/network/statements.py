"""What parties and server say in their own names, around what the machines say: who I am, and that it is over.

Signed bytes and their checks; no state. The machines of ``secagg`` authenticate themselves, so what rests on these is
only which node is asked, and when a party forgets its last answer. Under the loop and both folders.
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
    """What an opening is about, so that people can be told what differs.

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
    """What a party said, after its signature was found good: its place among the peers, and what goes with it."""

    place: int
    payload: bytes


def most_bytes(plan: Plan) -> int:
    """The most bytes that a party's answer can have under a plan: what its machine says, and the word around it."""
    return _FIRST + protocol_of(plan.masking).largest_answer(plan.masking)


def sign_reply(identity: Identity, place: int, question: bytes, code: str, payload: bytes = b"") -> bytes:
    """A party's answer in its own name: ``u32 place || signature || payload``.

    Args:
        identity: the party's.
        place: its place among the peers, clients first.
        question: the whole message that is answered.
        code: the code that goes with it.
        payload: what its machine says.

    Guarantee: the signature covers question, code, place and payload, so a word answers one message and cannot be shown
    in answer to another one.
    """
    statement = _statement(place, sha256(question).digest(), code, payload)
    return place.to_bytes(_PLACE_BYTES, "big") + identity.sign(statement) + payload


def read_signed_reply(data: bytes, question: bytes, code: str, publics: Sequence[bytes]) -> SignedReply | None:
    """The word in an answer; None where nobody on the list said it.

    Args:
        data: the answer.
        question: SHA-256 of the message that it answers.
        code: the code that came with it.
        publics: everybody's public key, by place.
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
    """The server's word that a session is over: ``header || release || signature || beside``.

    Args:
        identity: the server's.
        header: the session's.
        release: SHA-256 of the release's file; zeros where there is none.
        beside: for a helper in a session without a sum the offers of its panel; for a client that is in no sum
            :class:`EndStatements`.
    """
    said = header.encode() + release
    return said + identity.sign(_ENDED + said + beside) + beside


def read_session_ended(data: bytes, header: Header, server: bytes) -> bytes | None:
    """What stands beside the server's last word; None where the server did not say it of this session."""
    end = HEADER_BYTES + _DIGEST_BYTES
    said, signature, beside = data[:end], data[end : end + _SIGNATURE_BYTES], data[end + _SIGNATURE_BYTES :]
    if said[:HEADER_BYTES] != header.encode() or not verify(server, signature, _ENDED + said + beside):
        return None
    return beside


class EndStatements(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What others signed of a session that has ended, from which a client proves that its upload is in no sum.

    Attributes:
        statements: as for ``session.free``.
        offers: of the panel that clients sent to; none where there is no panel.
    """

    statements: Mapping[int, bytes]
    offers: tuple[bytes, ...] = ()


def to_helper(opening: bytes, message: bytes) -> bytes:
    """What a helper is sent: the opening, so that its key is bound whatever was lost before, and the message."""
    return len(opening).to_bytes(4, "big") + opening + message


def split_helped(data: bytes) -> tuple[bytes, bytes]:
    """Opening and message again; what is cut short gives two that no machine takes."""
    end = 4 + int.from_bytes(data[:4], "big")
    return data[4:end], data[end:]
