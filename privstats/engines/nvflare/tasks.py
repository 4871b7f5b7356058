"""A word and some bytes as one task of FLARE's, or as its result; and back, with the size looked at first.

Down, the word is what is asked; up, it is a code. No sentence travels, and nothing is decoded here.
"""

from __future__ import annotations

from nvflare.apis.shareable import Shareable

from privstats.errors import RemoteProtocolError

__all__ = ["MOST_BYTES", "TASK", "pack", "unpack"]

TASK = "privstats"
"""The name of the one kind of task that there is."""

MOST_BYTES = (512 << 20) + (1 << 20)
"""The most that a site takes of its server in one message: the largest upload, and what stands around it."""

_WORD, _DATA = "word", "data"
_MOST_WORD = 32


def pack(word: str, data: bytes) -> Shareable:
    """A task's data, or its result."""
    return Shareable({_WORD: word, _DATA: bytes(data)})


def unpack(shareable: Shareable, sender: str, most: int = MOST_BYTES) -> tuple[str, bytes]:
    """The word and the bytes of what anybody may have made.

    Args:
        shareable: what came.
        sender: who is named in the error.
        most: bytes that are admitted.

    Raises:
        RemoteProtocolError: code ``malformed``, or ``too_large``.
    """
    word, data = shareable.get(_WORD), shareable.get(_DATA)
    if not isinstance(word, str) or not 0 < len(word) <= _MOST_WORD or not isinstance(data, bytes):
        raise RemoteProtocolError(sender, "transport", "malformed", "not a short word and bytes")
    if len(data) > most:
        raise RemoteProtocolError(sender, "transport", "too_large", f"{len(data)} bytes, at most {most}")
    return word, data
