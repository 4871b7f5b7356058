"""A word and some bytes as one record of Flower's, and back.

Down, the word is what is asked; up, it is a code. Nothing else travels beside what a machine said, and no sentence.
"""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, RecordDict

from privstats.engines.network.folder_checks import UPLOAD_LIMIT
from privstats.errors import RemoteProtocolError

__all__ = ["MESSAGE_TYPE", "MOST_BYTES", "pack", "unpack"]

MESSAGE_TYPE = "query.privstats"
"""Flower's name for our messages: a category of its own, and ours."""

MOST_BYTES = UPLOAD_LIMIT + (1 << 20)
"""The most that a party takes of its server in one message; what a server takes of a party follows from the plan."""

_NAME = "privstats"
_MOST_WORD = 32
_SERIAL = "privstats.bytes"


def pack(word: str, data: bytes) -> RecordDict:
    """``data`` as an array of uint8 named ``word``: Flower cuts arrays into pieces of 5 MB, and bytes it does not."""
    return RecordDict({_NAME: ArrayRecord({word: Array("uint8", (len(data),), _SERIAL, bytes(data))})})


def unpack(record: RecordDict, sender: int | str, most: int = MOST_BYTES) -> tuple[str, bytes]:
    """The word and the bytes of a record that anybody may have made; its size is looked at first, nothing is decoded.

    Args:
        record: what came.
        sender: who is named in the error.
        most: bytes that are admitted.

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
