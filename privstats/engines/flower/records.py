"""Encoding of a word and a machine's message as one record of Flower, and back.

In a request the word is its kind; in a reply it is a status code. A record holds nothing else, and no sentence.
"""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, RecordDict

from privstats.engines.network.folder_checks import UPLOAD_LIMIT
from privstats.errors import RemoteProtocolError

__all__ = ["MESSAGE_TYPE", "MOST_BYTES", "pack", "unpack"]

MESSAGE_TYPE = "query.privstats"
"""Flower's type of our messages: the category of queries and our name."""

MOST_BYTES = UPLOAD_LIMIT + (1 << 20)
"""The most bytes that a party accepts in one message; the plan determines the server's limit."""

_NAME = "privstats"
_MOST_WORD = 32
_SERIAL = "privstats.bytes"


def pack(word: str, data: bytes) -> RecordDict:
    """``data`` as an array of uint8 named ``word``: Flower cuts arrays into pieces of 5 MB, but not bytes."""
    return RecordDict({_NAME: ArrayRecord({word: Array("uint8", (len(data),), _SERIAL, bytes(data))})})


def unpack(record: RecordDict, sender: int | str, most: int = MOST_BYTES) -> tuple[str, bytes]:
    """The word and the bytes of an untrusted record; its size is checked first, and nothing is decoded.

    Args:
        record: the received record.
        sender: the sender, for the error.
        most: the most bytes that are accepted.

    Raises:
        RemoteProtocolError: code ``malformed``, or ``too_large``.
    """
    arrays = record.get(_NAME) if len(record) == 1 else None
    if not isinstance(arrays, ArrayRecord) or len(arrays) != 1:
        raise RemoteProtocolError(sender, "transport", "malformed", "not one record with one array")
    ((word, array),) = arrays.items()
    if len(array.data) > most:
        raise RemoteProtocolError(sender, "transport", "too_large", f"{len(array.data)} bytes, at most {most}")
    form = (array.dtype, tuple(array.shape), array.stype)
    if form != ("uint8", (len(array.data),), _SERIAL) or not 0 < len(word) <= _MOST_WORD:
        raise RemoteProtocolError(sender, "transport", "malformed", "not a row of bytes under a short word")
    return word, array.data
