"""Decode JSON and MessagePack that someone else may have written: any bytes are a value, or one kind of error.

msgspec alone raises RecursionError for deep nesting, and UnicodeDecodeError for text that is no UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")


def from_json(data: bytes | str, kind: type[T]) -> T:
    """Return the value of a JSON document, of the type ``kind``.

    Raises:
        msgspec.DecodeError: it is no JSON, of another type, or nested too deeply.

    Example:
        >>> from privstats.files.decoding import from_json
        >>> from_json(b'{"reports": 3}', dict[str, int])
        {'reports': 3}
        >>> from_json(b"[" * 100_000, list)
        Traceback (most recent call last):
            ...
        msgspec.DecodeError: it is no UTF-8 text, or nests too deeply
    """
    return _decoded(msgspec.json.decode, data, kind)  # noqa: TID251


def from_msgpack(data: bytes | bytearray | memoryview, kind: type[T]) -> T:
    """Return the value of a MessagePack document, of the type ``kind``; raises as :func:`from_json`.

    Example:
        >>> import msgspec
        >>> from privstats.files.decoding import from_msgpack
        >>> from_msgpack(msgspec.msgpack.encode([1, 2]), tuple[int, ...])
        (1, 2)
    """
    return _decoded(msgspec.msgpack.decode, data, kind)  # noqa: TID251


def _decoded(decode: Callable[..., T], data: bytes | bytearray | memoryview | str, kind: type[T]) -> T:
    try:
        return decode(data, type=kind)
    except (UnicodeDecodeError, RecursionError):
        raise msgspec.DecodeError("it is no UTF-8 text, or nests too deeply") from None
