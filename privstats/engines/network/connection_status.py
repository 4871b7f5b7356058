"""Connections to the address for parties: how many are open, how many were turned away; a file beside ``.served``.

The carrier's server writes it while it runs, ``metrics`` reads it, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.files.atomic import atomic_write, read_whole

__all__ = ["ConnectionStatus", "connections_forgotten", "keep_connections", "read_connections"]

_NAME = ".connections"


class ConnectionStatus(msgspec.Struct, frozen=True):
    """What the address for parties carries, and what it turned away, since the server started.

    Attributes:
        nodes: open connections on which a registered node has signed.
        strangers: all other open connections.
        closed: how many were closed, or requests refused, by the reason.
    """

    nodes: int = 0
    strangers: int = 0
    closed: Mapping[str, int] = {}


def keep_connections(home: Path, status: ConnectionStatus) -> None:
    """Replace the file; where it cannot be written, the server continues without it."""
    with suppress(PrivstatsError):
        atomic_write(home / _NAME, msgspec.json.encode(status), durable=False)


def read_connections(home: Path) -> ConnectionStatus | None:
    """What was kept last; None where nothing was, or something else lies there."""
    with suppress(LocalProtocolError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(
            read_whole(home / _NAME, LocalProtocolError, "privstats flower"), type=ConnectionStatus
        )
    return None


@contextmanager
def connections_forgotten(home: Path) -> Iterator[None]:
    """The file is removed after this block; what a killed server left is replaced by the next one."""
    try:
        yield
    finally:
        with suppress(OSError):
            (home / _NAME).unlink(missing_ok=True)
