"""Domain separation: every hash, signature and derived key of a protocol names its purpose.

Bytes in, bytes out. The one place that knows how a purpose is written; all of this room stands on it. The
number in it is that of the labels: a protocol's version is in its suite, which is under every context.
"""

from __future__ import annotations

import hashlib
from functools import cache

__all__ = ["PROTOCOL", "index", "labelled", "prefix"]

PROTOCOL = "privstats/secagg/2/"


@cache
def prefix(purpose: str) -> bytes:
    """What a statement for ``purpose`` begins with; no purpose is a prefix of another, because it ends with a zero."""
    return PROTOCOL.encode() + purpose.encode() + b"\0"


def labelled(purpose: str, *parts: bytes) -> bytes:
    """SHA-256 of ``parts`` under their purpose; parts are of fixed length, come last, or carry their length."""
    return hashlib.sha256(prefix(purpose) + b"".join(parts)).digest()


def index(client: int) -> bytes:
    """A client's place on the roster, 4 bytes."""
    return client.to_bytes(4, "big")
