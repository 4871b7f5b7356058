"""Encoding of a word and a machine's message as a FLARE task or its result, and back, with the size checked first.

In a task the word is the kind of request; in a result it is a status code. No sentence is sent, and nothing is decoded
here.
"""

from __future__ import annotations

from nvflare.apis.shareable import Shareable

from privstats.errors import RemoteProtocolError

__all__ = ["MOST_BYTES", "TASK", "pack", "unpack"]

TASK = "privstats"
"""The name of the only kind of task."""

MOST_BYTES = (512 << 20) + (1 << 20)
"""The most bytes that a site accepts in one message: the largest upload and its overhead."""

_WORD, _DATA = "word", "data"
_MOST_WORD = 32


def pack(word: str, data: bytes) -> Shareable:
    """A task's data, or its result."""
    return Shareable({_WORD: word, _DATA: bytes(data)})


def unpack(shareable: Shareable, sender: str, most: int = MOST_BYTES) -> tuple[str, bytes]:
    """The word and the bytes of an untrusted task or result.

    Args:
        shareable: the received task or result.
        sender: the sender, for the error.
        most: the most bytes that are accepted.

    Raises:
        RemoteProtocolError: code ``malformed``, or ``too_large``.
    """
    word, data = shareable.get(_WORD), shareable.get(_DATA)
    if not isinstance(word, str) or not 0 < len(word) <= _MOST_WORD or not isinstance(data, bytes):
        raise RemoteProtocolError(sender, "transport", "malformed", "not a short word and bytes")
    if len(data) > most:
        raise RemoteProtocolError(sender, "transport", "too_large", f"{len(data)} bytes, at most {most}")
    return word, data
