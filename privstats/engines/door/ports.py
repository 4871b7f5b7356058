"""Ports of this machine: a door's listening socket, a free port, and the limit of open files."""

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
    """Return a listening socket of either address family; ``host`` may be in brackets.

    Args:
        port: 0 lets the system choose.

    Raises:
        PrivstatsError: the address is in use, or not of this machine.

    Example:
        >>> from privstats.engines.carriers import listening
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
    """Return a random free port of this machine.

    The port is not reserved: two simultaneous callers get one port with probability 1/12,000.

    Example:
        >>> from privstats.engines.carriers import free_port
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
    """Raise this process's limit of open files as far as allowed, at most to 65,536, and return it."""
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
