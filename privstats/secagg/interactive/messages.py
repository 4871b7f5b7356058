"""Wire messages of the interactive protocol: strict types, and size limits that are checked before anything is parsed.

A message is ``version || msgpack array || tag``; ``channel`` encrypts what follows the session in most. Unknown types,
missing or surplus fields, and byte strings of the wrong length do not parse. ``reply_to`` is the SHA-256 of the message
that is answered. This module defines the format; the machines enforce the rules.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from privstats.secagg import wire
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.wire import HASH_BYTES, HEADER_BYTES, SIGNATURE_BYTES, TAG_BYTES, Bytes32, Bytes64, Index
from privstats.secagg.wire import size_of_array as _array
from privstats.secagg.wire import size_of_bytes as _bytes
from privstats.secagg.wire import size_of_index as _index

__all__ = [
    "ABORTS",
    "BOX_BYTES",
    "PAIR_BYTES",
    "PROOF_BYTES",
    "SECRET_BYTES",
    "VERSION",
    "Abort",
    "Advertise",
    "Adverts",
    "Agree",
    "Agreement",
    "Check",
    "CheckWithCommitment",
    "ClientMessage",
    "Dealers",
    "Deliver",
    "Mask",
    "Open",
    "ServerMessage",
    "Share",
    "Survivors",
    "Unmask",
    "UnmaskWithOpening",
    "Wire",
    "check_header",
    "decode",
    "encode",
    "is_kind",
    "size_limit",
]

VERSION = 3
SECRET_BYTES = 32
ABORTS = {  # why a session ended; numbers on the wire, so a number is never reused for another reason
    "finished": 0,
    "abandoned": 1,
    "too_few_clients": 2,
    "isolated": 3,
    "unproven_boxes": 4,
    "too_few_signatures": 5,
    "too_few_shares": 6,
    "misdealt": 7,
}
PAIR_BYTES = 2 * SECRET_BYTES
"""The size of a pair of values: one for the self-mask key, then one for the mask key."""
BOX_BYTES = PAIR_BYTES + TAG_BYTES
PROOF_BYTES = 2 * SIGNATURE_BYTES


class _Message(wire.HiddenRepr, Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The first field of all messages."""

    session: Bytes32


class Open(_Message, frozen=True, tag=0):
    """Server to client: a session begins under these parameters and this roster, signed by the roster's server."""

    parameters: Bytes32
    roster: Bytes32
    server_key: Bytes32
    signature: Bytes64


class Advertise(_Message, frozen=True, tag=1):
    """Client to server: its public keys for this session, signed; the self-mask and mask keys are dealt later."""

    sender: Index
    box_key: Bytes32
    mask_key: Bytes32
    self_key: Bytes32
    signature: Bytes64


class Adverts(_Message, frozen=True, tag=2):
    """Server to client: its neighbours' advertisements, and the Merkle proof from them to the transcript."""

    adverts: tuple[Advertise, ...]
    proof: bytes


class Share(_Message, frozen=True, tag=3):
    """Client to server: its dealing. One sealed box per advertised neighbour, in increasing order.

    Commitments and responses, a pair each per neighbour, advertised or not, and the two proofs are public.
    """

    sender: Index
    reply_to: Bytes32
    boxes: bytes
    commitments: bytes
    responses: bytes
    proofs: bytes


class Deliver(_Message, frozen=True, tag=4):
    """Server to client: the neighbours that shared, and each one's dealing to it, in that order, with challenges."""

    sharers: tuple[Index, ...]
    boxes: bytes
    commitments: bytes
    responses: bytes
    challenges: bytes


class Check(_Message, frozen=True, tag=11):
    """Client to server: the owners whose shares it could not use."""

    sender: Index
    reply_to: Bytes32
    failed: tuple[Index, ...]


class Dealers(_Message, frozen=True, tag=12):
    """Server to client: the clients that continue, as a bitmap, least significant bit first.

    The client masks with its neighbours among them.
    """

    dealers: bytes


class Mask(_Message, frozen=True, tag=5):
    """Client to server: the masked vector, packed."""

    sender: Index
    reply_to: Bytes32
    vector: memoryview


class Survivors(_Message, frozen=True, tag=6):
    """Server to client: the clients whose vectors are in the sum, as a bitmap, least significant bit first."""

    survivors: bytes


class Agree(_Message, frozen=True, tag=7):
    """Client to server: its signature over the survivor list that it received."""

    sender: Index
    reply_to: Bytes32
    signature: Bytes64


class Agreement(_Message, frozen=True, tag=8):
    """Server to client: its neighbours' signatures over the survivor list."""

    signers: tuple[Index, ...]
    signatures: bytes


class Unmask(_Message, frozen=True, tag=9):
    """Client to server: its own self-mask key, and one share per dealer whose shares it holds."""

    sender: Index
    reply_to: Bytes32
    self_key: Bytes32
    owners: tuple[Index, ...]
    shares: bytes


class CheckWithCommitment(Check, frozen=True, tag=13):
    """The same where clients take excess noise back: with the lowest value of the chain of its layers' seeds."""

    commitment: Bytes32


class UnmaskWithOpening(Unmask, frozen=True, tag=14):
    """The same where clients take excess noise back: with the value that opens the superfluous layers of its noise."""

    opening: Bytes32


class Abort(_Message, frozen=True, tag=10):
    """Server to client: the session is over, with a code from :data:`ABORTS`, signed by the roster's server."""

    code: Annotated[int, Meta(ge=0, le=127)]
    signature: Bytes64


ClientMessage: TypeAlias = Advertise | Share | Check | CheckWithCommitment | Mask | Agree | Unmask | UnmaskWithOpening
ServerMessage: TypeAlias = Open | Adverts | Deliver | Dealers | Survivors | Agreement | Abort
Wire: TypeAlias = ClientMessage | ServerMessage


def _limits(parameters: Parameters) -> dict[type[msgspec.Struct], int]:
    """The most bytes that a message of each type can have in a session with these parameters, exactly."""
    k, n = parameters.neighbours, parameters.clients
    index, neighbours = _index(n - 1), _array(k) + k * _index(n - 1)
    names = index + _bytes(HASH_BYTES)  # sender and reply_to
    advertise = HEADER_BYTES - 1 + index + 3 * _bytes(32) + _bytes(SIGNATURE_BYTES)
    boxes, pairs, bitmap = _bytes(k * BOX_BYTES), _bytes(k * PAIR_BYTES), _bytes((n + 7) // 8)
    unmask = names + _bytes(SECRET_BYTES) + neighbours + _bytes(k * SECRET_BYTES)
    content: dict[type[msgspec.Struct], int] = {
        Open: 3 * _bytes(32) + _bytes(SIGNATURE_BYTES) - TAG_BYTES,
        Advertise: advertise - HEADER_BYTES + 1 - TAG_BYTES,
        Adverts: _array(k) + k * advertise + _bytes(HASH_BYTES * _siblings(n, k + 1)),
        Share: names + boxes + 2 * pairs + _bytes(PROOF_BYTES),
        Deliver: neighbours + boxes + 3 * pairs,
        Check: names + neighbours,
        CheckWithCommitment: names + neighbours + _bytes(HASH_BYTES),
        Dealers: bitmap,
        Mask: names + _bytes(parameters.ring.wire_bytes),
        Survivors: bitmap,
        Agree: names + _bytes(SIGNATURE_BYTES),
        Agreement: neighbours + _bytes(k * SIGNATURE_BYTES),
        Unmask: unmask,
        UnmaskWithOpening: unmask + _bytes(SECRET_BYTES),
        Abort: 1 + _bytes(SIGNATURE_BYTES) - TAG_BYTES,
    }
    return {kind: HEADER_BYTES + size + TAG_BYTES for kind, size in content.items()}


_CODEC = wire.Codec(VERSION, _limits)
encode, decode, is_kind = _CODEC.encode, _CODEC.decode, _CODEC.is_kind
check_header, size_limit = _CODEC.check_header, _CODEC.size_limit


def largest_answer(parameters: Parameters) -> int:
    """The most bytes that any message of a client can have in a session with these parameters."""
    return _CODEC.largest(get_args(ClientMessage), parameters)


def largest_request(parameters: Parameters) -> int:
    """The most bytes that any message of the server can have in a session with these parameters."""
    return _CODEC.largest(get_args(ServerMessage), parameters)


def _siblings(size: int, known: int) -> int:
    """The most hashes in a proof for ``known`` of ``size`` leaves: on a level of w nodes, at most w/2 are missing."""
    return sum(min(known, 1 << level) for level in range((size - 1).bit_length()))
