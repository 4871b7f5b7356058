"""Ports of this machine: a door's listening socket, a port on which nothing listens yet, and how many may be open."""

from __future__ import annotations

import errno
import secrets
import socket
from typing import Final

from privstats import system
from privstats.errors import PrivstatsError

_BACKLOG = 2048
_MOST_FILES = 1 << 16
_PORTS: Final = range(20_000, 32_000)
"""Below what Linux (32768 on), macOS, Windows and the BSDs (49152 on) lend to outgoing connections.

A port that the system picks for port 0 is one that it lends: between asking for it and listening on it, or while a
killed server is started again, any connection of any process may be given it.
"""


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket of an address of either family; ``host`` may be in brackets.

    Raises:
        PrivstatsError: nothing can listen there.

    Example:
        >>> from privstats.engines.door.ports import listening
        >>> with listening("127.0.0.1", 0) as door:
        ...     door.getsockname()[0]
        '127.0.0.1'
    """
    try:
        family, *_, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise PrivstatsError(f"cannot listen on {host}, port {port} ({why}): give another address") from None


def free_port() -> int:
    """Return a port of this machine on which nothing listens, drawn at random, for a program that starts in a moment.

    It is not held: two callers at the same moment get the same one with a chance of one in 12,000.

    Raises:
        OSError: a hundred in a row were taken, or there is no loopback.

    Example:
        >>> from privstats.engines.door.ports import free_port
        >>> 20_000 <= free_port() < 32_000
        True
    """
    attempts = 100
    while True:
        try:
            with socket.create_server(("127.0.0.1", port := secrets.choice(_PORTS))):
                return port
        except OSError as error:
            attempts -= 1
            if error.errno != errno.EADDRINUSE or not attempts:
                raise


def raise_open_files() -> int:
    """Let this process open as many files and connections as the system lets it, 65,536 at most; how many those are.

    The usual limit, 1,024, is for programs that wait with ``select``; each process may raise its own.
    """
    if system.resource is None:
        return _MOST_FILES
    soft, hard = system.resource.getrlimit(system.resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == system.resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft == system.resource.RLIM_INFINITY or soft >= wanted:
        return _MOST_FILES if soft == system.resource.RLIM_INFINITY else int(soft)
    try:
        system.resource.setrlimit(system.resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS allows less than its hard limit says
        return int(soft)
    return int(wanted)
