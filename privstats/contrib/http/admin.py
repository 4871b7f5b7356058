"""The administration of a leader on its own socket: health, metrics, the release, the close.

It is a Unix socket for its owner alone, or a loopback port that requires its owner's token. Release and statements list
who took part, so they are never on the public port. A changing request needs a header that no page of another origin
may send; a loopback port answers under a loopback name only.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from hmac import compare_digest
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TypeAlias

import msgspec

from privstats.contrib.http.exchange import Answer, Receive, Refused, Request, Scope, Send
from privstats.contrib.http.owner import Owner
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.standing import Standing, exposition
from privstats.engines.carriers import EXPOSITION_TYPE, Supervision
from privstats.errors import PrivstatsError
from privstats.extend.support import read_bounded

ADMIN_SOCKET = "admin.sock"
"""The Unix socket in the leader's folder."""

ADMIN_TOKEN = "admin.token"  # noqa: S105  a file's name
"""The file with the token that proves a request is the owner's, used where a port replaces the socket."""

ASKED = "privstats-admin"
"""The header of requests that change something."""

_LONGEST = 100
"""Bytes of a socket's name that every system takes: Linux 107, others 103."""

_HOST = re.compile(r"(?i)(?:localhost|127\.0\.0\.1|\[::1\]|privstats)(?::[0-9]+)?")
_TEXT = "text/plain; charset=utf-8"
_BYTES = "application/octet-stream"
_OPEN = frozenset({"/healthz", "/readyz"})  # probes get one word, without a token
Handler: TypeAlias = Callable[[], Awaitable[Answer]]

_SECONDS = 30.0


def bearer(token: str) -> str:
    """Return the ``Authorization`` header that shows a token."""
    return f"Bearer {token}"


@contextmanager
def socket_name(home: Path) -> Iterator[str]:
    """Yield a short enough socket name for a folder."""
    path, descriptors = home / ADMIN_SOCKET, Path("/proc/self/fd")
    if len(os.fsencode(path)) <= _LONGEST or not descriptors.exists():
        yield str(path)
        return
    opened = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(descriptors / str(opened) / ADMIN_SOCKET)
    finally:
        os.close(opened)


class Administration:
    """The application; ``now`` is in Unix seconds.

    Args:
        standing: returns the standing, in the owner's thread.
        held: returns the leading process.
        token: required on a port; empty on a Unix socket.
    """

    def __init__(
        self,
        run: LeaderRun,
        owner: Owner,
        standing: Callable[[], Standing],
        held: Callable[[], Supervision | None],
        now: Callable[[], float],
        token: str = "",
    ) -> None:
        self._token = token
        self._run, self._owner, self._standing, self._held, self._now = run, owner, standing, held, now
        self._handlers: Mapping[tuple[str, str], Handler] = {
            ("GET", "/healthz"): self._healthy,
            ("GET", "/readyz"): self._ready,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/status"): self._status,
            ("GET", "/release"): self._release,
            ("GET", "/statements"): self._statements,
            ("POST", "/close"): self._close,
            ("POST", "/give-up"): self._give_up,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        await (await self._answered(Request.of(scope, receive))).send(send, {})

    async def _answered(self, request: Request) -> Answer:
        if not _HOST.fullmatch(request.headers.get("host", "")):
            return _text_answer(421, "only a loopback name is answered here")
        handler = self._handlers.get((request.method, request.path))
        if handler is None:
            return _text_answer(404, "no such resource")
        if self._token and request.path not in _OPEN and not self._authorized(request):
            return _text_answer(
                401, f"show the token in {ADMIN_TOKEN} of the leader's folder: Authorization: Bearer TOKEN"
            )
        if request.method == "POST" and ASKED not in request.headers:
            return _text_answer(403, f"name the header {ASKED}")
        try:
            return await handler()
        except Refused as refused:
            return _text_answer(503, refused.code)
        except PrivstatsError as error:
            return _text_answer(409, str(error))

    def _authorized(self, request: Request) -> bool:
        return compare_digest(request.headers.get("authorization", "").encode(), bearer(self._token).encode())

    async def _healthy(self) -> Answer:
        await self._owner.call(lambda: None)
        return _text_answer(200, "healthy")

    async def _ready(self) -> Answer:
        ready = self._run.manifest is not None and self._run.ended is None
        return _text_answer(200, "ready") if ready else _text_answer(503, "not ready")

    async def _metrics(self) -> Answer:
        standing = await self._owner.call(self._standing)
        return Answer(200, exposition(standing, self._held(), self._now()).encode(), EXPOSITION_TYPE)

    async def _status(self) -> Answer:
        return Answer(200, msgspec.json.encode(await self._owner.call(self._standing)), "application/json")

    async def _release(self) -> Answer:
        release = await self._owner.call(lambda: self._run.release)
        return _text_answer(404, "there is no release") if release is None else Answer(200, release, _BYTES)

    async def _statements(self) -> Answer:
        statements = await self._owner.call(lambda: self._run.statements)
        return Answer(200, statements, _BYTES) if statements else _text_answer(404, "statements are missing")

    async def _close(self) -> Answer:
        await self._owner.call(self._run.close_reports)
        return _text_answer(200, "reports are closed")

    async def _give_up(self) -> Answer:
        return _text_answer(200, await self._owner.call(self._run.give_up))


def _text_answer(status: int, text: str) -> Answer:
    return Answer(status, f"{text}\n".encode(), _TEXT)


class _UnixConnection(HTTPConnection):
    def __init__(self, home: Path) -> None:
        super().__init__("privstats", timeout=_SECONDS)
        self._home = home

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        with socket_name(self._home) as name:
            self.sock.connect(name)


def ask(home: Path, method: str, path: str, port: int | None = None) -> tuple[int, bytes]:
    """Send a request to the leader's administration; return its status and body.

    Args:
        port: of 127.0.0.1, where the leader has one; requires the folder's token.
    """
    headers = {ASKED: "1"}
    if port is not None:
        token = read_bounded(home / ADMIN_TOKEN, PrivstatsError, "privstats http lead --admin-port")
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
