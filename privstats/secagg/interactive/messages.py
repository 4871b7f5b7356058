"""Wire messages of the interactive protocol: strict types, and size limits that are checked before anything is parsed.

A message is ``version || msgpack array || tag``; ``channel`` encrypts what follows the session in most. Unknown types,
missing or surplus fields, and byte strings of the wrong length do not parse. ``reply_to`` is the SHA-256 of the message
that is answered. This module defines the format; the machines enforce the rules.

All signed, hashed and authenticated statements are encoded here too, each under a label of its own. All fields are of
fixed length or come last, so no two statements share an encoding; both machines use these functions of public values
(commitments excepted), so that the encodings cannot differ.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from privstats.secagg import kem, wire
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.wire import (
    HASH_BYTES,
    HEADER_BYTES,
    SIGNATURE_BYTES,
    TAG_BYTES,
    Bytes32,
    Bytes64,
    Index,
    index,
    labelled,
    prefix,
)
from privstats.secagg.wire import size_of_array as _array
from privstats.secagg.wire import size_of_bytes as _bytes
from privstats.secagg.wire import size_of_index as _index

VERSION, HYBRID_VERSION = 3, 4
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
HYBRID_PROOF_BYTES = HASH_BYTES + SECRET_BYTES
"""Version 4: the commitment to the self-mask key and the response for it."""
NONCE_BYTES = 12


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

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that the signature and the leaf of the transcript cover."""
        return self.box_key, self.mask_key, self.self_key


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
    """Client to server: the owners of shares that it could not use."""

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
    """Server to client: the clients in the sum, as a bitmap, least significant bit first."""

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
    """Client to server: its own self-mask key, and one share of each dealer that dealt to it."""

    sender: Index
    reply_to: Bytes32
    self_key: Bytes32
    owners: tuple[Index, ...]
    shares: bytes


class CheckWithCommitment(Check, frozen=True, tag=13):
    """A :class:`Check` where clients remove excess noise: with the lowest value of the chain of its layers' seeds."""

    commitment: Bytes32


class UnmaskWithOpening(Unmask, frozen=True, tag=14):
    """An :class:`Unmask` where clients remove excess noise: with the value that opens the superfluous layers."""

    opening: Bytes32


class HybridOpen(_Message, frozen=True, tag=15):
    """Version 4's :class:`Open`: with the server's ML-KEM key."""

    parameters: Bytes32
    roster: Bytes32
    server_key: Bytes32
    kem_key: Annotated[bytes, Meta(min_length=kem.PUBLIC_BYTES, max_length=kem.PUBLIC_BYTES)]
    signature: Bytes64


class KnownAdvertise(_Message, frozen=True, tag=17):
    """A neighbour's :class:`HybridAdvertise` as the server shows it: with the hash of what is for the server alone."""

    sender: Index
    box_key: Bytes32
    kem_key: Annotated[bytes, Meta(min_length=kem.PUBLIC_BYTES, max_length=kem.PUBLIC_BYTES)]
    ciphertext_hash: Bytes32
    signature: Bytes64

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that the signature and the leaf of the transcript cover."""
        return self.box_key, sha256(self.kem_key).digest(), self.ciphertext_hash


class HybridAdvertise(_Message, frozen=True, tag=16):
    """Version 4's :class:`Advertise`: box key and ML-KEM key of one session, and a secret for the server, signed."""

    sender: Index
    box_key: Bytes32
    kem_key: Annotated[bytes, Meta(min_length=kem.PUBLIC_BYTES, max_length=kem.PUBLIC_BYTES)]
    ciphertext: Annotated[bytes, Meta(min_length=kem.CIPHERTEXT_BYTES, max_length=kem.CIPHERTEXT_BYTES)]
    signature: Bytes64

    @property
    def known(self) -> KnownAdvertise:
        """The part that neighbours receive."""
        hashed = sha256(self.ciphertext).digest()
        return KnownAdvertise(self.session, self.sender, self.box_key, self.kem_key, hashed, self.signature)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that the signature and the leaf of the transcript cover."""
        return self.known.keys


class HybridAdverts(_Message, frozen=True, tag=18):
    """Version 4's :class:`Adverts`."""

    adverts: tuple[KnownAdvertise, ...]
    proof: bytes


class HybridCheck(Check, frozen=True, tag=19):
    """Version 4's :class:`Check`: with a link, 32 bytes, for every owner above the sender that is not in ``failed``."""

    links: bytes


class HybridCheckWithCommitment(HybridCheck, frozen=True, tag=20):
    """A check of version 4 where clients remove excess noise, as :class:`CheckWithCommitment`."""

    commitment: Bytes32


class HybridDealers(Dealers, frozen=True, tag=21):
    """Version 4's :class:`Dealers`: with those of them that could not use the receiver's dealing."""

    refused: tuple[Index, ...]


class Abort(_Message, frozen=True, tag=10):
    """Server to client: the session is over, with a code from :data:`ABORTS`, signed by the roster's server."""

    code: Annotated[int, Meta(ge=0, le=127)]
    signature: Bytes64


ClientMessage: TypeAlias = (
    Advertise
    | Share
    | Check
    | CheckWithCommitment
    | Mask
    | Agree
    | Unmask
    | UnmaskWithOpening
    | HybridAdvertise
    | HybridCheck
    | HybridCheckWithCommitment
)
ServerMessage: TypeAlias = (
    Open | Adverts | Deliver | Dealers | Survivors | Agreement | Abort | HybridOpen | HybridAdverts | HybridDealers
)
Wire: TypeAlias = ClientMessage | ServerMessage


def _limits(parameters: Parameters) -> dict[type[msgspec.Struct], int]:
    """The most bytes that a message of each type can have in a session with these parameters, exactly."""
    k, n = parameters.neighbours, parameters.clients
    index, neighbours = _index(n - 1), _array(k) + k * _index(n - 1)
    names = index + _bytes(HASH_BYTES)  # sender and reply_to
    advertise = HEADER_BYTES - 1 + index + 3 * _bytes(32) + _bytes(SIGNATURE_BYTES)
    boxes, pairs, bitmap = _bytes(k * box_bytes(parameters)), _bytes(k * PAIR_BYTES), _bytes((n + 7) // 8)
    proofs = NONCE_BYTES + _bytes(HYBRID_PROOF_BYTES) if parameters.hybrid else _bytes(PROOF_BYTES)
    unmask = names + _bytes(SECRET_BYTES) + neighbours + _bytes(k * SECRET_BYTES)
    content: dict[type[msgspec.Struct], int] = {
        Open: 3 * _bytes(32) + _bytes(SIGNATURE_BYTES) - TAG_BYTES,
        Advertise: advertise - HEADER_BYTES + 1 - TAG_BYTES,
        Adverts: _array(k) + k * advertise + _bytes(HASH_BYTES * _siblings(n, k + 1)),
        Share: names + boxes + 2 * pairs + proofs,
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
    if parameters.hybrid:
        content |= _hybrid_limits(parameters, neighbours, names)
    return {kind: HEADER_BYTES + size + TAG_BYTES for kind, size in content.items()}


def _hybrid_limits(parameters: Parameters, neighbours: int, names: int) -> dict[type[msgspec.Struct], int]:
    """Return the size limits of version 4's messages, without header and tag."""
    k, n = parameters.neighbours, parameters.clients
    keys = _bytes(32) + _bytes(kem.PUBLIC_BYTES) + _bytes(SIGNATURE_BYTES)
    known = HEADER_BYTES - 1 + _index(n - 1) + keys + _bytes(HASH_BYTES)
    linked = names + neighbours + _bytes(HASH_BYTES * k)
    return {
        HybridOpen: 2 * _bytes(HASH_BYTES) + keys - TAG_BYTES,
        HybridAdvertise: _index(n - 1) + keys + _bytes(kem.CIPHERTEXT_BYTES) - TAG_BYTES,
        HybridAdverts: _array(k) + k * known + _bytes(HASH_BYTES * _siblings(n, k + 1)),
        HybridCheck: linked,
        HybridCheckWithCommitment: linked + _bytes(HASH_BYTES),
        HybridDealers: _bytes((n + 7) // 8) + neighbours,
    }


def box_bytes(parameters: Parameters) -> int:
    """The size of a sealed box; version 4's has the ciphertext of its key in front."""
    return BOX_BYTES + kem.CIPHERTEXT_BYTES * parameters.hybrid


_CODEC, _HYBRID_CODEC = wire.Codec(VERSION, _limits), wire.Codec(HYBRID_VERSION, _limits)
encode, decode, is_kind, size_limit = _CODEC.encode, _CODEC.decode, _CODEC.is_kind, _CODEC.size_limit


def codec_of(parameters: Parameters) -> wire.Codec:
    """The codec of the version that these parameters are for."""
    return _HYBRID_CODEC if parameters.hybrid else _CODEC


def check_header(data: memoryview, kind: type[Struct], parameters: Parameters) -> None:
    """Check version, type and size of a message, before anything is parsed; raises ``Refusal``."""
    codec_of(parameters).check_header(data, kind, parameters)


def largest_answer(parameters: Parameters) -> int:
    """The most bytes that any message of a client can have in a session with these parameters."""
    return codec_of(parameters).largest(get_args(ClientMessage), parameters)


def largest_request(parameters: Parameters) -> int:
    """The most bytes that any message of the server can have in a session with these parameters."""
    return codec_of(parameters).largest(get_args(ServerMessage), parameters)


def _siblings(size: int, known: int) -> int:
    """The most hashes in a proof for ``known`` of ``size`` leaves: on a level of w nodes, at most w/2 are missing."""
    return sum(min(known, 1 << level) for level in range((size - 1).bit_length()))


def context_of(graph: Graph, session: bytes, server_key: bytes, kem_key: bytes = b"") -> bytes:
    """32 bytes that stand for suite, plan, parameters, roster, session and the server's session keys."""
    keys = server_key + (sha256(kem_key).digest() if kem_key else b"")
    return labelled("context", graph.parameters.digest, graph.roster.digest, session, keys)


def open_statement(context: bytes) -> bytes:
    """The server signs this to open a session; the context fixes suite, plan, roster, session and its key."""
    return prefix("open") + context


def abort_statement(context: bytes, code: int) -> bytes:
    """The server signs this to end a session early."""
    return prefix("abort") + context + bytes([code])


def advert_statement(context: bytes, sender: int, *keys: bytes) -> bytes:
    """The statement that a client signs when it advertises its keys, :attr:`Advertise.keys`."""
    return prefix("advertise") + context + index(sender) + b"".join(keys)


def advert_leaf(advert: Advertise | HybridAdvertise | KnownAdvertise) -> bytes:
    """The leaf of one advertisement in the tree of all of them."""
    return labelled("leaf", index(advert.sender), *advert.keys, advert.signature)


def transcript_of(context: bytes, root: bytes) -> bytes:
    """32 bytes that stand for everything that was advertised; ``root`` is that of the Merkle tree."""
    return labelled("transcript", context, root)


def box_context(session: bytes, sender: int, receiver: int) -> bytes:
    """The associated data of a sealed box: session, sender, receiver, step."""
    return prefix("share") + session + index(sender) + index(receiver)


def share_commitment(transcript: bytes, kind: bytes, owner: int, holder: int, share: bytes, blind: bytes) -> bytes:
    """The commitment to one share and its blind; ``kind`` is ``b"s"`` (self-mask key) or ``b"k"`` (mask key)."""
    return labelled("share-commitment", transcript, kind, index(owner), index(holder), share, blind)


def dealing_challenge(transcript: bytes, kind: bytes, owner: int, commitments: bytes) -> bytes:
    """Return the input of version 4's challenge of one dealt polynomial, with all commitments of the dealing."""
    return prefix("challenge") + transcript + kind + index(owner) + labelled("commitments", commitments)


def dealing_statement(transcript: bytes, kind: bytes, owner: int, commitments: bytes) -> bytes:
    """The message of the proof of one dealt key: all commitments of the dealing, so its challenge depends on them."""
    return prefix("dealing") + transcript + kind + index(owner) + labelled("commitments", commitments)


def survivors_statement(transcript: bytes, survivors: bytes) -> bytes:
    """The statement that a client signs for a survivor list; the transcript fixes session, plan and roster."""
    return prefix("agree") + transcript + survivors
