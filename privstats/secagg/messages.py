"""The wire messages: strict types, a version, and size limits known from the parameters before anything is parsed.

A message is ``version || msgpack array || tag``. Arrays are tagged with their type; unknown types, missing or surplus
fields, and byte strings of the wrong length do not parse. Knows the format, not the rules: those are the machines'.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from privstats.secagg.parameters import Parameters

__all__ = [
    "BOX_BYTES",
    "HASH_BYTES",
    "HEADER_BYTES",
    "SECRET_BYTES",
    "SIGNATURE_BYTES",
    "TAG_BYTES",
    "VERSION",
    "Advert",
    "Advertise",
    "Adverts",
    "Agree",
    "Agreement",
    "ClientMessage",
    "Deliver",
    "Mask",
    "Open",
    "Refusal",
    "ServerMessage",
    "Share",
    "Survivors",
    "Unmask",
    "decode",
    "encode",
    "session_of",
    "size_limit",
]

VERSION = 1
SECRET_BYTES = 32
HASH_BYTES = 32
SIGNATURE_BYTES = 64
TAG_BYTES = 16
HEADER_BYTES = 1 + 1 + 1 + 2 + 32  # version, array header, type, bytes header, session
BOX_BYTES = 2 * SECRET_BYTES + TAG_BYTES

Index: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 24)]
Bytes32: TypeAlias = Annotated[bytes, Meta(min_length=32, max_length=32)]
Bytes64: TypeAlias = Annotated[bytes, Meta(min_length=64, max_length=64)]


class Open(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=0):
    """Server to client: a session begins under these parameters and this roster."""

    session: Bytes32
    parameters: Bytes32
    roster: Bytes32
    server_key: Bytes32


class Advertise(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """Client to server: my keys for this session and a commitment to my self-mask seed, signed."""

    session: Bytes32
    sender: Index
    box_key: Bytes32
    mask_key: Bytes32
    commitment: Bytes32
    signature: Bytes64


Advert: TypeAlias = Advertise


class Adverts(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """Server to client: what your neighbours advertised, and a digest for every client that did."""

    session: Bytes32
    adverts: tuple[Advertise, ...]
    digests: bytes


class Share(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """Client to server: one sealed box and two commitments per advertised neighbour, in increasing order."""

    session: Bytes32
    sender: Index
    boxes: bytes
    commitments: bytes


class Deliver(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """Server to client: the neighbours that shared, and what each sent you, in that order."""

    session: Bytes32
    sharers: tuple[Index, ...]
    boxes: bytes
    commitments: bytes


class Mask(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """Client to server: the masked vector, packed."""

    session: Bytes32
    sender: Index
    vector: memoryview


class Survivors(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """Server to client: whose vectors are in the sum, as a bitmap, least significant bit first."""

    session: Bytes32
    survivors: bytes


class Agree(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """Client to server: my signature over the survivor list that I was shown."""

    session: Bytes32
    sender: Index
    signature: Bytes64


class Agreement(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=8):
    """Server to client: your neighbours' signatures over the survivor list."""

    session: Bytes32
    signers: tuple[Index, ...]
    signatures: bytes


class Unmask(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=9):
    """Client to server: my own self-mask seed, and one share per neighbour that I hold shares of."""

    session: Bytes32
    sender: Index
    seed: Bytes32
    owners: tuple[Index, ...]
    shares: bytes


ClientMessage: TypeAlias = Advertise | Share | Mask | Agree | Unmask
ServerMessage: TypeAlias = Open | Adverts | Deliver | Survivors | Agreement
Wire: TypeAlias = ClientMessage | ServerMessage

_CLIENT: msgspec.msgpack.Decoder[ClientMessage] = msgspec.msgpack.Decoder(ClientMessage)
_SERVER: msgspec.msgpack.Decoder[ServerMessage] = msgspec.msgpack.Decoder(ServerMessage)
_ENCODER = msgspec.msgpack.Encoder()

T = TypeVar("T", bound=Wire)


class Refusal(Exception):  # noqa: N818 - a verdict that a machine turns into a named error at once
    """Bytes or contents that are refused; the machine that refuses adds the peer and the step."""

    def __init__(self, code: str, detail: str = "") -> None:
        self.code, self.detail = code, detail
        super().__init__(code)


def encode(message: Wire) -> bytearray:
    """Version byte and msgpack array; the channel appends its tag to the buffer."""
    buffer = bytearray((VERSION,))
    _ENCODER.encode_into(message, buffer, 1)
    return buffer


def decode(data: memoryview, kind: type[T]) -> T:
    """Parse a message of type ``kind``; the caller has checked its size.

    Raises:
        Refusal: another version, another type, or anything that the schema does not allow.
    """
    if len(data) == 0 or data[0] != VERSION:
        raise Refusal("wrong_version")
    decoder = _CLIENT if kind in (Advertise, Share, Mask, Agree, Unmask) else _SERVER
    try:
        message = decoder.decode(data[1:])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refusal("malformed") from None
    if not isinstance(message, kind):
        raise Refusal("wrong_type")
    return message


def session_of(data: memoryview) -> bytes:
    """The session that a message claims, from its place in the header, before the tag is checked."""
    return bytes(data[HEADER_BYTES - 32 : HEADER_BYTES])


_FRAME = 1 + 1 + 1 + 34 + 5 + TAG_BYTES  # version, array header, type, session, sender, channel tag
_FIELD = 5  # the longest msgpack header of a byte string or array
_INDEX = 5
_ADVERTISE = _FRAME + 3 * (32 + _FIELD) + 64 + _FIELD


def size_limit(kind: type[Wire], parameters: Parameters) -> int:
    """The most bytes that a message of type ``kind`` may have in a session with these parameters."""
    k, n = parameters.neighbours, parameters.clients
    boxed = 2 * _FIELD + k * (BOX_BYTES + 2 * HASH_BYTES)
    content: dict[type[Wire], int] = {
        Open: 4 * (32 + _FIELD),
        Advertise: _ADVERTISE,
        Adverts: 2 * _FIELD + k * _ADVERTISE + n * HASH_BYTES,
        Share: boxed,
        Deliver: boxed + _FIELD + k * _INDEX,
        Mask: _FIELD + parameters.ring.wire_bytes,
        Survivors: _FIELD + (n + 7) // 8,
        Agree: _FIELD + SIGNATURE_BYTES,
        Agreement: 2 * _FIELD + k * (_INDEX + SIGNATURE_BYTES),
        Unmask: 3 * _FIELD + SECRET_BYTES + k * (_INDEX + SECRET_BYTES),
    }
    return _FRAME + content[kind]
