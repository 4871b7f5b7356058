"""Wire messages of the interactive protocol: strict types, with sizes checked before parsing.

A message is ``version || msgpack array``. Openings, advertisements and aborts are in the clear. All others end with a
tag. The channel encrypts all after their session field, except in masked vectors. In ``Share`` a nonce precedes the
ciphertext. ``reply_to`` is the SHA-256 of the answered message.

Statements each have their own label; their fields are of fixed length or come last, so no two share an encoding.
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

VERSION = 4
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
"""The size of a pair of values: one of the polynomial g, then one of f."""
BOX_BYTES = kem.CIPHERTEXT_BYTES + PAIR_BYTES + TAG_BYTES
PROOF_BYTES = HASH_BYTES + SECRET_BYTES
"""The commitment to the self-mask key and the response for it."""
NONCE_BYTES = 12


class _Message(wire.HiddenRepr, Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    session: Bytes32


class Open(_Message, frozen=True, tag=15):
    """The server's signed opening of a session under these parameters and roster."""

    parameters: Bytes32
    roster: Bytes32
    server_key: Bytes32
    kem_key: Annotated[bytes, Meta(min_length=kem.PUBLIC_BYTES, max_length=kem.PUBLIC_BYTES)]
    signature: Bytes64


class KnownAdvertise(_Message, frozen=True, tag=17):
    """A neighbour's :class:`Advertise`, with its ciphertext hashed."""

    sender: Index
    box_key: Bytes32
    kem_key: Annotated[bytes, Meta(min_length=kem.PUBLIC_BYTES, max_length=kem.PUBLIC_BYTES)]
    ciphertext_hash: Bytes32
    signature: Bytes64

    @property
    def keys(self) -> tuple[bytes, ...]:
        """What the signature and the transcript's leaf cover."""
        return self.box_key, sha256(self.kem_key).digest(), self.ciphertext_hash


class Advertise(_Message, frozen=True, tag=16):
    """A client's signed session keys, and an encapsulated secret for the server."""

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
        """See :attr:`KnownAdvertise.keys`."""
        return self.known.keys


class Adverts(_Message, frozen=True, tag=18):
    """The neighbours' advertisements, with their Merkle proof."""

    adverts: tuple[KnownAdvertise, ...]
    proof: bytes


class Share(_Message, frozen=True, tag=3):
    """A client's dealing: one sealed box per neighbour that advertised, in increasing order.

    Public: commitment and response pairs per neighbour, advertised or not, and both of g(0).
    """

    sender: Index
    reply_to: Bytes32
    boxes: bytes
    commitments: bytes
    responses: bytes
    proofs: bytes


class Deliver(_Message, frozen=True, tag=4):
    """The neighbours that shared and, in that order, their dealings."""

    sharers: tuple[Index, ...]
    boxes: bytes
    commitments: bytes
    responses: bytes
    challenges: bytes


class Check(_Message, frozen=True, tag=19):
    """Owners of shares that the sender could not use, and a 32-byte link per usable owner above the sender."""

    sender: Index
    reply_to: Bytes32
    failed: tuple[Index, ...]
    links: bytes


class Dealers(_Message, frozen=True, tag=21):
    """The continuing clients, as a bitmap; those in ``refused`` could not use the receiver's dealing."""

    dealers: bytes
    refused: tuple[Index, ...]


class Mask(_Message, frozen=True, tag=5):
    """The masked vector, packed."""

    sender: Index
    reply_to: Bytes32
    vector: memoryview


class Survivors(_Message, frozen=True, tag=6):
    """The clients in the sum, as a bitmap."""

    survivors: bytes


class Agree(_Message, frozen=True, tag=7):
    """A client's signature over the survivor list."""

    sender: Index
    reply_to: Bytes32
    signature: Bytes64


class Agreement(_Message, frozen=True, tag=8):
    """Signatures over the survivor list, of neighbours and of the committee."""

    signers: tuple[Index, ...]
    signatures: bytes


class Unmask(_Message, frozen=True, tag=9):
    """The sender's self-mask key, and one share per dealer whose shares the sender holds."""

    sender: Index
    reply_to: Bytes32
    self_key: Bytes32
    owners: tuple[Index, ...]
    shares: bytes


class CheckWithCommitment(Check, frozen=True, tag=20):
    """A :class:`Check` with the noise layers' lowest chain value."""

    commitment: Bytes32


class UnmaskWithOpening(Unmask, frozen=True, tag=14):
    """An :class:`Unmask` that opens superfluous noise layers."""

    opening: Bytes32


class Abort(_Message, frozen=True, tag=10):
    """The server's signed end of the session, with a code from :data:`ABORTS`."""

    code: Annotated[int, Meta(ge=0, le=127)]
    signature: Bytes64


ClientMessage: TypeAlias = Advertise | Share | Check | CheckWithCommitment | Mask | Agree | Unmask | UnmaskWithOpening
ServerMessage: TypeAlias = Open | Adverts | Deliver | Dealers | Survivors | Agreement | Abort
Wire: TypeAlias = ClientMessage | ServerMessage


# Each type's largest size on the wire: every field at its longest, in msgpack's encoding.
def _limits(parameters: Parameters) -> dict[type[msgspec.Struct], int]:
    k, n = parameters.neighbours, parameters.clients
    index, neighbours = _index(n - 1), _array(k) + k * _index(n - 1)
    signers = min(n - 1, parameters.quorum + parameters.signatures)
    names = index + _bytes(HASH_BYTES)  # sender and reply_to
    keys = _bytes(32) + _bytes(kem.PUBLIC_BYTES) + _bytes(SIGNATURE_BYTES)
    known = HEADER_BYTES - 1 + index + keys + _bytes(HASH_BYTES)
    boxes, pairs, bitmap = _bytes(k * BOX_BYTES), _bytes(k * PAIR_BYTES), _bytes((n + 7) // 8)
    linked = names + neighbours + _bytes(HASH_BYTES * k)
    unmask = names + _bytes(SECRET_BYTES) + neighbours + _bytes(k * SECRET_BYTES)
    content: dict[type[msgspec.Struct], int] = {
        Open: 2 * _bytes(HASH_BYTES) + keys - TAG_BYTES,
        Advertise: index + keys + _bytes(kem.CIPHERTEXT_BYTES) - TAG_BYTES,
        Adverts: _array(k) + k * known + _bytes(HASH_BYTES * _siblings(n, k + 1)),
        Share: names + NONCE_BYTES + boxes + 2 * pairs + _bytes(PROOF_BYTES),
        Deliver: neighbours + boxes + 3 * pairs,
        Check: linked,
        CheckWithCommitment: linked + _bytes(HASH_BYTES),
        Dealers: bitmap + neighbours,
        Mask: names + _bytes(parameters.ring.wire_bytes),
        Survivors: bitmap,
        Agree: names + _bytes(SIGNATURE_BYTES),
        Agreement: _array(signers) + signers * _index(n - 1) + _bytes(signers * SIGNATURE_BYTES),
        Unmask: unmask,
        UnmaskWithOpening: unmask + _bytes(SECRET_BYTES),
        Abort: 1 + _bytes(SIGNATURE_BYTES) - TAG_BYTES,
    }
    return {kind: HEADER_BYTES + size + TAG_BYTES for kind, size in content.items()}


_CODEC = wire.Codec(VERSION, _limits)
encode, decode, is_kind, size_limit = _CODEC.encode, _CODEC.decode, _CODEC.is_kind, _CODEC.size_limit
check_header = _CODEC.check_header


def largest_answer(parameters: Parameters) -> int:
    """Return the maximum bytes of a client's message."""
    return _CODEC.largest(get_args(ClientMessage), parameters)


def largest_request(parameters: Parameters) -> int:
    """Return the maximum bytes of a server's message."""
    return _CODEC.largest(get_args(ServerMessage), parameters)


def _siblings(size: int, known: int) -> int:
    """Bound the hashes in a proof for ``known`` leaves: ``known``, or w/2 if less, on a level of w nodes."""
    return sum(min(known, 1 << level) for level in range((size - 1).bit_length()))


def context_of(graph: Graph, session: bytes, server_key: bytes, kem_key: bytes) -> bytes:
    """Hash suite, plan, parameters, roster, session and the server's keys."""
    keys = server_key + sha256(kem_key).digest()
    return labelled("context", graph.parameters.digest, graph.roster.digest, session, keys)


def open_statement(context: bytes) -> bytes:
    """Return the statement that opens a session."""
    return prefix("open") + context


def abort_statement(context: bytes, code: int) -> bytes:
    """Return the statement that ends a session early."""
    return prefix("abort") + context + bytes([code])


def advert_statement(context: bytes, sender: int, *keys: bytes) -> bytes:
    """Return what a client signs over :attr:`Advertise.keys`."""
    return prefix("advertise") + context + index(sender) + b"".join(keys)


def advert_leaf(advert: Advertise | KnownAdvertise) -> bytes:
    """Return an advertisement's Merkle leaf."""
    return labelled("leaf", index(advert.sender), *advert.keys, advert.signature)


def transcript_of(context: bytes, root: bytes) -> bytes:
    """Hash everything advertised; ``root`` is the Merkle tree's."""
    return labelled("transcript", context, root)


def box_context(session: bytes, sender: int, receiver: int) -> bytes:
    """Return a box's associated data."""
    return prefix("share") + session + index(sender) + index(receiver)


def share_commitment(transcript: bytes, kind: bytes, owner: int, holder: int, share: bytes, blind: bytes) -> bytes:
    """Commit to a share and its blind; ``kind`` is ``b"s"`` (polynomial g) or ``b"k"`` (f)."""
    return labelled("share-commitment", transcript, kind, index(owner), index(holder), share, blind)


def dealing_challenge(transcript: bytes, kind: bytes, owner: int, commitments: bytes) -> bytes:
    """Return the challenge's input for one polynomial, over all commitments."""
    return prefix("challenge") + transcript + kind + index(owner) + labelled("commitments", commitments)


def survivors_statement(transcript: bytes, survivors: bytes) -> bytes:
    """Return what a client signs for a survivor list."""
    return prefix("agree") + transcript + survivors
