"""Define the wire format that all protocols share: labels, bitmaps, headers, size limits and refusals.

A message is ``version || msgpack array``; its first elements are its type and its session's 32 bytes. Every signed
statement and :func:`labelled` hash has a label of purpose and version, every derived key a label of purpose.
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

from privstats import domains
from privstats.errors import LocalProtocolError


@dataclass(frozen=True)
class Labels:
    """Labels of one protocol version's hashes, signatures and derived keys."""

    protocol: bytes

    def prefix(self, purpose: str) -> bytes:
        """Return a statement's first bytes; each ends with a zero, so none is a prefix of another."""
        return self.protocol + purpose.encode() + b"\0"

    def labelled(self, purpose: str, *parts: bytes | memoryview) -> bytes:
        """Hash ``parts`` with SHA-256 under a purpose; they have fixed length, come last, or carry their length."""
        return hashlib.sha256(self.prefix(purpose) + b"".join(parts)).digest()


_LABELS = Labels(domains.SECAGG)
prefix, labelled = _LABELS.prefix, _LABELS.labelled


def index(client: int) -> bytes:
    """Encode a client's index in 4 bytes."""
    return client.to_bytes(4, "big")


def to_bitmap(clients: Iterable[int], size: int) -> bytes:
    """Return the bitmap of ``clients`` out of ``size``, padded with zeros."""
    flags = np.zeros(size, bool)
    flags[list(clients)] = True
    return np.packbits(flags, bitorder="little").tobytes()


def members(bitmap: bytes, size: int) -> frozenset[int]:
    """Return the clients in a bitmap, least significant bit first.

    Raises:
        ValueError: wrong length, or a set padding bit: one list would have two encodings.
    """
    if len(bitmap) != (size + 7) // 8:
        raise ValueError(f"a bitmap of {size} clients has {(size + 7) // 8} bytes, got {len(bitmap)}")
    flags = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    if flags[size:].any():
        raise ValueError("a bitmap's padding must be zero")
    return frozenset(np.flatnonzero(flags).tolist())


HASH_BYTES = 32
"""Bytes of a SHA-256 hash."""
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
    """Refused bytes or contents.

    ``proven`` is False if another party's lie could have made an honest peer send them.
    """

    def __init__(self, code: str, detail: str = "", *, proven: bool = True) -> None:
        self.code, self.detail, self.proven = code, detail, proven
        super().__init__(code)

    def unproven(self) -> Refusal:
        """Return this refusal as unproven, where the signature is unverified."""
        return Refusal(self.code, self.detail, proven=False)


class HiddenRepr:
    """Mixin whose repr shows only the class name, because some structs hold secrets."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Hide fields that msgspec's method shows to ``rich``."""
        return []


class Codec:
    """Encoder, size limits and decoder of one protocol version.

    Args:
        limits: maps parameters to each message type's maximum bytes.
    """

    def __init__(self, version: int, limits: Callable[[Any], Mapping[type[Struct], int]]) -> None:
        self._version, self._limits = version, limits

    def encode(self, message: Struct) -> bytearray:
        """Return version byte and msgpack array, in an extensible buffer."""
        buffer = bytearray((self._version,))
        _encoder.encode_into(message, buffer, 1)
        return buffer

    def size_limit(self, kind: type[Struct], parameters: Any) -> int:
        """Return the exact maximum bytes of a message of type ``kind``."""
        return self._limits(parameters)[kind]

    def largest(self, kinds: Iterable[type[Struct]], parameters: Any) -> int:
        """Return the maximum bytes of a message of any of ``kinds``."""
        limits = self._limits(parameters)
        return max(limits[kind] for kind in kinds if kind in limits)

    def check_header(self, data: memoryview, kind: type[Struct], parameters: Any) -> None:
        """Check version, type and size before parsing; raises ``Refusal``."""
        if len(data) < HEADER_BYTES:
            raise Refusal("malformed", "shorter than a header")
        if data[0] != self._version:
            detail = f"a message of version {data[0]}; this machine supports version {self._version} only"
            raise Refusal("wrong_version", detail)
        if not self.is_kind(data, kind):
            raise Refusal("wrong_type", f"this step waits for {kind.__name__}")
        check_size(data, self.size_limit(kind, parameters))

    def is_kind(self, data: bytes | bytearray | memoryview, kind: type[Struct]) -> bool:
        """Return whether the header claims the type ``kind``."""
        return len(data) >= HEADER_BYTES and type_of(data) == kind.__struct_config__.tag

    def decode(self, data: memoryview, kind: type[_Struct]) -> _Struct:
        """Parse an opened message after its header was checked; raises ``Refusal``."""
        try:
            message: _Struct = _decoder(kind).decode(data[1:])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise Refusal("malformed", f"not a {kind.__name__}") from None
        return message


def check_size(data: memoryview, limit: int) -> None:
    """Refuse a message of more than ``limit`` bytes, before anything is hashed or parsed."""
    if len(data) > limit:
        raise Refusal("too_large", f"such a message has at most {limit} bytes")


def type_of(data: bytes | bytearray | memoryview) -> int:
    """Return the type that a message of at least :data:`HEADER_BYTES` claims."""
    return data[2]


def session_of(data: memoryview) -> bytes:
    """Return the session that a message claims, unauthenticated."""
    return bytes(data[HEADER_BYTES - 32 : HEADER_BYTES])


def view_of(data: object) -> memoryview:
    """Return a view of received bytes; raises ``LocalProtocolError`` for anything else."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise LocalProtocolError(f"a message is bytes as they came from the network, got {type(data).__name__}")
    view = memoryview(data)
    if not view.c_contiguous:
        raise LocalProtocolError("a message is bytes in one piece, as they came from the network, not every n-th byte")
    return view.cast("B")


def require_sender(sender: object) -> None:
    """Raise ``LocalProtocolError`` unless ``sender`` is an int, so that the state stays savable."""
    if type(sender) is not int:
        raise LocalProtocolError(f"a sender is a peer's index, an int, got {type(sender).__name__}")


def require_word(code: object, words: Collection[str]) -> None:
    """Raise ``LocalProtocolError`` unless ``code`` is one of ``words``."""
    if not isinstance(code, str) or code not in words:
        raise LocalProtocolError(f"a session is abandoned with one of {', '.join(words)}, got {code!r:.40}")


def size_of_bytes(size: int) -> int:
    """Return the length of msgpack's shortest encoding of ``size`` bytes."""
    return size + (2 if size < 1 << 8 else 3 if size < 1 << 16 else 5)


def size_of_array(length: int) -> int:
    """Return the length of msgpack's shortest array header."""
    return 1 if length < 1 << 4 else 3


def size_of_index(largest: int) -> int:
    """Return the length of msgpack's shortest encoding of ``largest``."""
    return 1 if largest < 1 << 7 else 2 if largest < 1 << 8 else 3 if largest < 1 << 16 else 5
