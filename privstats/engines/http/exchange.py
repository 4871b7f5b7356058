"""Requests and answers as the application sees them: the part of ASGI that it uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from privstats.engines.http.problems import CODES, MEDIA, problem_of

__all__ = ["PROVED", "Answer", "Gone", "Receive", "Request", "Scope", "Send", "problem"]

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]

PROVED = "privstats.proved"
"""A function in the scope, where a server has one: it hears which key has signed on this connection."""


class Gone(Exception):  # noqa: N818 - the end of a connection, and no answer can be sent
    """The client has gone in the middle of its request."""


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        method, path: as sent, the path without its query.
        headers: the last value of each, by its name in lower case.
        address: of the client, as far as the server knows it.
        chunks: the next piece of the body, empty at its end.
        proved: called with the name of a known key that has signed this request.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    address: str
    chunks: Callable[[], Awaitable[bytes]]
    proved: Callable[[bytes], object]

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Request:
        """The request in an ASGI scope."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client") or ("", 0)
        proved = scope.get(PROVED, lambda _: None)
        return cls(scope["method"], scope["path"], headers, client[0], _chunks(receive), proved)


def _chunks(receive: Receive) -> Callable[[], Awaitable[bytes]]:
    ended = False

    async def chunk() -> bytes:
        nonlocal ended
        while not ended:
            message = await receive()
            if message["type"] != "http.request":
                raise Gone
            ended = not message.get("more_body", False)
            if body := message.get("body", b""):
                return bytes(body)
        return b""

    return chunk


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        status: of HTTP.
        body: all of it.
        media: its content-type; empty without a body.
        headers: further ones.
        code: of the problem; empty without one.
    """

    status: int
    body: bytes = b""
    media: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""

    async def send(self, send: Send, headers: Mapping[str, str]) -> None:
        """Send it with further headers."""
        own = {"cache-control": "no-store", "x-content-type-options": "nosniff", **headers, **self.headers}
        if self.media:
            own["content-type"] = self.media
        if self.status not in (204, 304):
            own["content-length"] = str(len(self.body))
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body})


def problem(code: str, **members: str) -> Answer:
    """The answer that carries a problem's document."""
    row = CODES[code]
    after = {} if row.after is None else {"retry-after": str(row.after)}
    return Answer(row.status, problem_of(code, **members), MEDIA, after, code)
