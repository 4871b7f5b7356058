"""Define the wire format that all protocols share: labels, lists of clients, headers, size limits and refusals.

A message is ``version || msgpack array``; its first two elements are its type and the 32 bytes that name its session.
Header and size are checked before anything is parsed. Every hash, signature and derived key carries a label of its
purpose and the version. A list of clients is a bitmap, least significant bit first. Each protocol's ``messages`` module
uses this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from privstats.errors import LocalProtocolError

PROTOCOL = "privstats/secagg/2/"


@dataclass(frozen=True)
class Labels:
    """Labels for the hashes, signatures and derived keys of one version of a protocol.

    Attributes:
        protocol: name and version, in front of each purpose.
    """

    protocol: str

    def prefix(self, purpose: str) -> bytes:
        """The first bytes of a statement for ``purpose``; each ends with a zero, so none is a prefix of another."""
        return (self.protocol + purpose).encode() + b"\0"

    def labelled(self, purpose: str, *parts: bytes | memoryview) -> bytes:
        """SHA-256 of ``parts`` under their purpose; parts are of fixed length, come last, or carry their length."""
        return hashlib.sha256(self.prefix(purpose) + b"".join(parts)).digest()


_LABELS = Labels(PROTOCOL)
prefix, labelled = _LABELS.prefix, _LABELS.labelled


def index(client: int) -> bytes:
    """A client's place on the roster, 4 bytes."""
    return client.to_bytes(4, "big")


def to_bitmap(clients: Iterable[int], size: int) -> bytes:
    """The bitmap of ``clients`` out of ``size``, padded with zeros to whole bytes."""
    flags = np.zeros(size, bool)
    flags[list(clients)] = True
    return np.packbits(flags, bitorder="little").tobytes()


def members(bitmap: bytes, size: int) -> frozenset[int]:
    """The clients in a bitmap.

    Raises:
        ValueError: wrong length, or a padding bit is set, which would give one list two encodings.
    """
    if len(bitmap) != (size + 7) // 8:
        raise ValueError(f"a bitmap of {size} clients has {(size + 7) // 8} bytes, got {len(bitmap)}")
    flags = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    if flags[size:].any():
        raise ValueError("a bitmap's padding must be zero")
    return frozenset(np.flatnonzero(flags).tolist())


HASH_BYTES = 32
SIGNATURE_BYTES = 64
TAG_BYTES = 16
HEADER_BYTES = 1 + 1 + 1 + 2 + 32  # version, array header, type, bytes header, session

Index: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 24)]
Bytes32: TypeAlias = Annotated[bytes, Meta(min_length=32, max_length=32)]
Bytes64: TypeAlias = Annotated[bytes, Meta(min_length=64, max_length=64)]

_Struct = TypeVar("_Struct", bound=Struct)

_encoder = msgspec.msgpack.Encoder()
_decoder = cache(msgspec.msgpack.Decoder)


class Refusal(Exception):  # noqa: N818 - a verdict that a machine turns into a named error at once
    """Refused bytes or contents; the refusing machine adds the peer and the step.

    ``proven`` is False if an honest peer could have sent the same because another party lied to it.
    """

    def __init__(self, code: str, detail: str = "", *, proven: bool = True) -> None:
        self.code, self.detail, self.proven = code, detail, proven
        super().__init__(code)

    def unproven(self) -> Refusal:
        """Return this refusal as unproven, for a message with an unverified signature."""
        return Refusal(self.code, self.detail, proven=False)


class HiddenRepr:
    """A struct with a repr of its name only: some hold secrets, and none needs to show a field."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Hide the fields: msgspec's own method gives every field to ``rich``."""
        return []


class Codec:
    """Encoder, size limits and decoder for the messages of one version of a protocol.

    Args:
        version: the only supported version.
        limits: maps the parameters of a session to the most bytes that a message of each type can have.
    """

    def __init__(self, version: int, limits: Callable[[Any], Mapping[type[Struct], int]]) -> None:
        self._version, self._limits = version, limits

    def encode(self, message: Struct) -> bytearray:
        """Version byte and msgpack array, in a buffer to which a tag can be appended."""
        buffer = bytearray((self._version,))
        _encoder.encode_into(message, buffer, 1)
        return buffer

    def size_limit(self, kind: type[Struct], parameters: Any) -> int:
        """The most bytes that a message of type ``kind`` can have in a session with these parameters, exactly."""
        return self._limits(parameters)[kind]

    def largest(self, kinds: Iterable[type[Struct]], parameters: Any) -> int:
        """The most bytes that a message of any of ``kinds`` that it has can have with these parameters."""
        limits = self._limits(parameters)
        return max(limits[kind] for kind in kinds if kind in limits)

    def check_header(self, data: memoryview, kind: type[Struct], parameters: Any) -> None:
        """Check version, type and size, before anything is parsed.

        Raises:
            Refusal: another version, another type, or more bytes than such a message can have.
        """
        if len(data) < HEADER_BYTES:
            raise Refusal("malformed", "shorter than a header")
        if data[0] != self._version:
            detail = f"a message of version {data[0]}; this machine supports version {self._version} only"
            raise Refusal("wrong_version", detail)
        if not self.is_kind(data, kind):
            raise Refusal("wrong_type", f"this step waits for {kind.__name__}")
        check_size(data, self.size_limit(kind, parameters))

    def is_kind(self, data: bytes | bytearray | memoryview, kind: type[Struct]) -> bool:
        """Whether the header claims the type ``kind``; False if the message is shorter than a header."""
        return len(data) >= HEADER_BYTES and type_of(data) == kind.__struct_config__.tag

    def decode(self, data: memoryview, kind: type[_Struct]) -> _Struct:
        """Parse an opened message after its header has been checked.

        Raises:
            Refusal: anything that the schema does not allow.
        """
        try:
            message: _Struct = _decoder(kind).decode(data[1:])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise Refusal("malformed", f"not a {kind.__name__}") from None
        return message


def check_size(data: memoryview, limit: int) -> None:
    """Refuse a message of more than ``limit`` bytes: a machine checks this before it hashes or parses anything.

    Raises:
        Refusal: the message is larger.
    """
    if len(data) > limit:
        raise Refusal("too_large", f"such a message has at most {limit} bytes")


def type_of(data: bytes | bytearray | memoryview) -> int:
    """The type that a message of at least :data:`HEADER_BYTES` claims, from its place in the header."""
    return data[2]


def session_of(data: memoryview) -> bytes:
    """The session that a message claims in its header, unauthenticated."""
    return bytes(data[HEADER_BYTES - 32 : HEADER_BYTES])


def view_of(data: object) -> memoryview:
    """A view of the received bytes; raises ``LocalProtocolError`` for an argument that is not bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise LocalProtocolError(f"a message is bytes as they came from the network, got {type(data).__name__}")
    view = memoryview(data)
    if not view.c_contiguous:
        raise LocalProtocolError("a message is bytes in one piece, as they came from the network, not every n-th byte")
    return view.cast("B")


def require_sender(sender: object) -> None:
    """Raise ``LocalProtocolError`` unless ``sender`` is an int: it is stored in the state, which must stay savable."""
    if type(sender) is not int:
        raise LocalProtocolError(f"a sender is a peer's place, an int, got {type(sender).__name__}")


def require_word(code: object, words: Collection[str]) -> None:
    """Raise ``LocalProtocolError`` unless ``code`` is one of the codes that a session can be abandoned with."""
    if not isinstance(code, str) or code not in words:
        raise LocalProtocolError(f"a session is abandoned with one of {', '.join(words)}, got {code!r:.40}")


def size_of_bytes(size: int) -> int:
    """msgpack's shortest encoding of ``size`` bytes, in bytes."""
    return size + (2 if size < 1 << 8 else 3 if size < 1 << 16 else 5)


def size_of_array(length: int) -> int:
    """msgpack's shortest header of an array of ``length`` elements, in bytes."""
    return 1 if length < 1 << 4 else 3


def size_of_index(largest: int) -> int:
    """msgpack's shortest encoding of the index ``largest``, in bytes."""
    return 1 if largest < 1 << 7 else 2 if largest < 1 << 8 else 3 if largest < 1 << 16 else 5
