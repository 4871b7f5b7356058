"""Requests, answers and codes of refusals, over the part of ASGI in use.

A refusal is a problem document (RFC 9457) that holds nothing of the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from privstats.engines.carriers import PROVED

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CLOSE: Mapping[str, str] = MappingProxyType({"connection": "close"})
"""The header with which an answer ends its connection."""

MEDIA = "application/problem+json"
_TYPE = "urn:privstats:http:"


class Gone(Exception):  # noqa: N818 - the end of a connection, and no answer can be sent
    """The client has gone during its request."""


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        method, path: as sent; the path is empty where it was sent with an escape or a query, which no address has: a
            proxy's rule for one spelling of an address would not hold for another.
        headers: last value by lower-case name.
        address: the client's, as the server knows it.
        chunks: returns the body's next piece, empty at its end.
        proved: called with the known key that signed it.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    address: str
    chunks: Callable[[], Awaitable[bytes]]
    proved: Callable[[bytes], object]

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Request:
        """Return the request in an ASGI scope."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client") or ("", 0)
        proved = scope.get(PROVED, lambda _: None)
        plain = scope.get("raw_path") in (None, scope["path"].encode()) and not scope.get("query_string")
        path = scope["path"] if plain else ""
        return cls(scope["method"], path, headers, client[0], _chunks(receive), proved)


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
    """One answer; ``code`` is the problem's, or empty."""

    status: int
    body: bytes = b""
    media: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""

    async def send(self, send: Send, headers: Mapping[str, str]) -> None:
        """Send the answer with further headers."""
        own = {"cache-control": "no-store", "x-content-type-options": "nosniff", **headers, **self.headers}
        if self.media:
            own["content-type"] = self.media
        if self.status not in (204, 304):
            own["content-length"] = str(len(self.body))
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body})


def problem(code: str, **members: str) -> Answer:
    """Return a problem's answer."""
    row = CODES[code]
    after = {} if row.after is None else {"retry-after": str(row.after)}
    return Answer(row.status, problem_of(code, **members), MEDIA, after, code)


@dataclass(frozen=True)
class Problem:
    """One kind of refusal.

    Attributes:
        title: a sentence for people.
        retry: the same request may succeed later.
        after: seconds for ``Retry-After``, or None.
    """

    status: int
    title: str
    retry: bool = False
    after: int | None = None


CODES: Mapping[str, Problem] = {
    "bad_request": Problem(400, "The request is no valid HTTP or names no valid length."),
    "stale_nonce": Problem(403, "The reply signs an older nonce: sign the one in this answer.", retry=True),
    "unknown_run": Problem(404, "No such run is here."),
    "no_resource": Problem(404, "No such resource is here."),
    "stranger": Problem(404, "This place is not on the roster."),
    "wrong_session": Problem(404, "The report is of another run, plan, roster or panel."),
    "not_yet": Problem(404, "The run has not ended.", retry=True),
    "wrong_method": Problem(405, "The resource has no such method."),
    "slow": Problem(408, "The request came too slowly.", retry=True),
    "already_here": Problem(409, "Another report of this sender is on disk."),
    "other_offer": Problem(409, "Another offer for this place is on disk."),
    "in_progress": Problem(409, "A report of this sender is being sent.", retry=True, after=5),
    "closed": Problem(410, "Reports are no longer taken."),
    "over": Problem(410, "The run has ended."),
    "length_required": Problem(411, "A report needs Content-Length."),
    "too_large": Problem(413, "The body is larger than such a message can be."),
    "wrong_media": Problem(415, "The resource takes another content-type, and no content-encoding."),
    "bad_signature": Problem(422, "The sender on the roster did not sign this."),
    "bad_offer": Problem(422, "This is no offer of the plan's member for this run."),
    "bad_parts": Problem(422, "The body is not the one that its sender signed."),
    "bad_body": Problem(422, "The body does not open: it was damaged on its way.", retry=True),
    "malformed": Problem(422, "The message does not parse."),
    "wrong_length": Problem(422, "The message has another length than its sender's has."),
    "wrong_sender": Problem(422, "The message names another sender than the address."),
    "wrong_type": Problem(422, "The message is of another type."),
    "wrong_version": Problem(422, "The message is of another version."),
    "rate": Problem(429, "Too many refused requests came from there.", retry=True, after=10),
    "busy": Problem(503, "No further report can be taken now.", retry=True, after=30),
    "no_panel": Problem(503, "Some helpers have not offered their keys.", retry=True, after=60),
    "restarting": Problem(503, "The leader restarts: nothing that it confirmed is lost.", retry=True, after=10),
}
"""All codes, in the order of their statuses."""


class Refused(Exception):  # noqa: N818 - an answer that the application turns into a document at once
    """A refusal with its code in :data:`CODES`."""

    def __init__(self, code: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        self.code, self.headers = code, headers
        super().__init__(code)


def problem_of(code: str, **members: str) -> bytes:
    """Return the document of a code, with further members.

    Example:
        >>> from privstats.contrib.http.exchange import problem_of
        >>> problem_of("closed").decode()[:61]
        '{"type":"urn:privstats:http:closed","title":"Reports are no l'
    """
    row = CODES[code]
    document = {"type": _TYPE + code, "title": row.title, "status": row.status, "code": code, "retry": row.retry}
    return msgspec.json.encode(document | members)
