"""A question to a leader's administration, from the same machine: over its Unix socket, or over a loopback port."""

from __future__ import annotations

import socket
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from privstats.engines.http.admin import ADMIN_TOKEN, ASKED, bearer, socket_name
from privstats.errors import PrivstatsError
from privstats.files.atomic import read_whole

__all__ = ["ask"]

_SECONDS = 30.0


class _UnixConnection(HTTPConnection):
    """A connection to a socket that is a file."""

    def __init__(self, home: Path) -> None:
        super().__init__("privstats", timeout=_SECONDS)
        self._home = home

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        with socket_name(self._home) as name:
            self.sock.connect(name)


def ask(home: Path, method: str, path: str, port: int | None = None) -> tuple[int, bytes]:
    """The administration's answer: its status and body.

    Args:
        home: the leader's folder.
        method, path: of the request.
        port: of 127.0.0.1, where the leader was started with one; its token is then read from the folder.

    Raises:
        PrivstatsError: nobody answers there, or there is no token in the folder.
    """
    headers = {ASKED: "1"}
    if port is not None:
        token = read_whole(home / ADMIN_TOKEN, PrivstatsError, "privstats http lead --admin-port")
        headers["authorization"] = bearer(token.decode(errors="replace").strip())
    line = _UnixConnection(home) if port is None else HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        line.request(method, path, headers=headers)
        reply = line.getresponse()
        return reply.status, reply.read()
    except (OSError, HTTPException) as error:
        raise PrivstatsError(
            f"the leader's administration does not answer ({error}): where it was started with --admin-port, name it"
        ) from None
    finally:
        line.close()
