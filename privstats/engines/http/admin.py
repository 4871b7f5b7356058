"""The administration of a leader on a socket of its own: health, metrics, the release, the close.

A Unix socket that its owner alone may open, or a port of the loopback address, which every account of the machine
reaches: there a request shows the token in a file that its owner alone may read. Release and statements list by index
who took part, so nothing of it is on the public port. A request that changes something names a header that no page of
another origin may send, and a loopback port is answered under a loopback name only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from hmac import compare_digest
from pathlib import Path
from typing import TypeAlias

import msgspec

from privstats.engines.http.exchange import Answer, Receive, Request, Scope, Send
from privstats.engines.http.owner import Owner
from privstats.engines.http.problems import Refused
from privstats.engines.http.run import LeaderRun
from privstats.engines.http.standing import Standing, exposition
from privstats.engines.network.supervision import Supervision
from privstats.errors import PrivstatsError

__all__ = ["ADMIN_SOCKET", "ADMIN_TOKEN", "ASKED", "Administration", "bearer", "socket_name"]

ADMIN_SOCKET = "admin.sock"
"""The Unix socket in the leader's folder."""

ADMIN_TOKEN = "admin.token"  # noqa: S105  a file's name
"""The file beside it, where there is a port in its place: what a request shows that its owner sends."""

ASKED = "privstats-admin"
"""The header of requests that change something."""

_LONGEST = 100
"""Bytes of a socket's name that every system takes: Linux 107, others 103."""

_HOST = re.compile(r"(?i)(?:localhost|127\.0\.0\.1|\[::1\]|privstats)(?::[0-9]+)?")
_TEXT, _PROMETHEUS = "text/plain; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"
_BYTES = "application/octet-stream"
_OPEN = frozenset({"/healthz", "/readyz"})  # a probe hears a word
Handler: TypeAlias = Callable[[], Awaitable[Answer]]


def bearer(token: str) -> str:
    """The value of the header ``Authorization`` that shows a token."""
    return f"Bearer {token}"


@contextmanager
def socket_name(home: Path) -> Iterator[str]:
    """A name for the socket of a folder that fits a Unix socket: of a deep one, through the open folder (Linux)."""
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
    """The application.

    Args:
        run: the leader's run.
        owner: the thread that calls it.
        standing: the current standing, asked in the owner's thread.
        held: the process that leads.
        now: Unix seconds.
        token: what requests show on a port; empty on a Unix socket.
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
            return _said(421, "only a loopback name is answered here")
        handler = self._handlers.get((request.method, request.path))
        if handler is None:
            return _said(404, "no such resource")
        if self._token and request.path not in _OPEN and not self._shown(request):
            return _said(401, f"show the token in {ADMIN_TOKEN} of the leader's folder: Authorization: Bearer TOKEN")
        if request.method == "POST" and ASKED not in request.headers:
            return _said(403, f"name the header {ASKED}")
        try:
            return await handler()
        except Refused as refused:
            return _said(503, refused.code)
        except PrivstatsError as error:
            return _said(409, str(error))

    def _shown(self, request: Request) -> bool:
        return compare_digest(request.headers.get("authorization", "").encode(), bearer(self._token).encode())

    async def _healthy(self) -> Answer:
        await self._owner.call(lambda: None)
        return _said(200, "healthy")

    async def _ready(self) -> Answer:
        ready = self._run.manifest is not None and self._run.ended is None
        return _said(200, "ready") if ready else _said(503, "not ready")

    async def _metrics(self) -> Answer:
        standing = await self._owner.call(self._standing)
        return Answer(200, exposition(standing, self._held(), self._now()).encode(), _PROMETHEUS)

    async def _status(self) -> Answer:
        return Answer(200, msgspec.json.encode(await self._owner.call(self._standing)), "application/json")

    async def _release(self) -> Answer:
        release = await self._owner.call(lambda: self._run.release)
        return _said(404, "there is no release") if release is None else Answer(200, release, _BYTES)

    async def _statements(self) -> Answer:
        statements = await self._owner.call(lambda: self._run.statements)
        return Answer(200, statements, _BYTES) if statements else _said(404, "statements are missing")

    async def _close(self) -> Answer:
        await self._owner.call(self._run.close_reports)
        return _said(200, "reports are closed")

    async def _give_up(self) -> Answer:
        return _said(200, await self._owner.call(self._run.give_up))


def _said(status: int, text: str) -> Answer:
    return Answer(status, f"{text}\n".encode(), _TEXT)
