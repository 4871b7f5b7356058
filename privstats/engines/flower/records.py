"""Encoding of a word (a request's kind or a reply's status code) and a message as one record of Flower."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from privstats.engines.network.folder_documents import UPLOAD_LIMIT
from privstats.errors import RemoteProtocolError

ACTION = "privstats"
"""Our name among an app's queries."""

MESSAGE_TYPE = f"query.{ACTION}"
"""Flower's type of our messages: the category of queries and our name."""

MOST_BYTES = UPLOAD_LIMIT + (1 << 20)
"""The most bytes that a party accepts in one message; the plan determines the server's limit."""

_NAME = "privstats"
_MOST_WORD = 32
_SERIAL = "privstats.bytes"
_MOST_UNSPLIT = 1 << 20


def pack(word: str, data: bytes) -> RecordDict:
    """Return ``data`` under ``word``: as bytes, or as an array of uint8 where it is large.

    Flower cuts only arrays into pieces of 5 MB. Empty data is an array, because Flower's ``message_size_mod`` fails on
    other empty values.
    """
    if 0 < len(data) <= _MOST_UNSPLIT:
        return RecordDict({_NAME: ConfigRecord({word: bytes(data)})})
    return RecordDict({_NAME: ArrayRecord({word: Array(*_form(data), bytes(data))})})


def _form(data: bytes) -> tuple[str, tuple[int, ...], str]:
    return "uint8", (len(data),), _SERIAL


def unpack(record: RecordDict, sender: int | str, most: int = MOST_BYTES) -> tuple[str, bytes]:
    """Return the word and the bytes of an untrusted record; its size is checked first, and nothing is decoded.

    Raises:
        RemoteProtocolError: code ``malformed``, or ``too_large``.
    """
    held = record.get(_NAME) if len(record) == 1 else None
    if not isinstance(held, ArrayRecord | ConfigRecord) or len(held) != 1:
        raise RemoteProtocolError(sender, "transport", "malformed", "not one record with one value")
    ((word, value),) = held.items()
    data = value.data if isinstance(value, Array) else value
    if not isinstance(data, bytes):
        raise RemoteProtocolError(sender, "transport", "malformed", "not bytes")
    if len(data) > most:
        raise RemoteProtocolError(sender, "transport", "too_large", f"{len(data)} bytes, at most {most}")
    is_row = not isinstance(value, Array) or (value.dtype, tuple(value.shape), value.stype) == _form(data)
    if not is_row or not 0 < len(word) <= _MOST_WORD:
        raise RemoteProtocolError(sender, "transport", "malformed", "not a row of bytes under a short word")
    return word, data
