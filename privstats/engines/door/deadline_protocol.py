"""uvicorn's protocol with a deadline and a size for a header, and one request at a time.

A late header is answered with 408 even while bytes arrive. A request before the previous answer ends its connection.
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from privstats.engines.door.connection_limits import (
    CONNECTION,
    MOST_HEADER_BYTES,
    PROVED,
    AdmittedConnection,
    ConnectionLimiter,
    Why,
)

HEADER_SECONDS = 10.0


class DeadlineProtocol(HttpToolsProtocol):
    """One connection."""

    limiter: ConnectionLimiter

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._admitted: AdmittedConnection = self.app_state[CONNECTION]
        self._deadline: asyncio.TimerHandle | None = None
        self._in_header, self._header_bytes, self._ended = True, 0, False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the first header's deadline."""
        super().connection_made(transport)
        self._set_deadline(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._set_deadline(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, up to the header's limit."""
        self._unset_keepalive_if_required()
        if self._in_header and self._deadline is None and self._answered:  # the first byte after an answer
            self._set_deadline(HEADER_SECONDS)
            if not self.limiter.forget(self._admitted):
                self._end()
        while data and not self._ended and not self.transport.is_closing():
            piece, data = data, b""
            if self._in_header:
                room = MOST_HEADER_BYTES - self._header_bytes
                piece, data = piece[:room], piece[room:]
                self._header_bytes += len(piece)
            self._feed(piece)
            if self._in_header and self._header_bytes >= MOST_HEADER_BYTES:
                self._refuse("size", 431)

    def _feed(self, piece: bytes) -> None:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:  # to what is not spoken here; the request itself is answered
            self._end()
        except httptools.HttpParserError:
            self._refuse("malformed", 400)

    def on_message_begin(self) -> None:
        """Begin a request; refuse one before the last answer."""
        if not self._answered:
            raise ValueError("one request at a time")
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Pass the request, with deadlines, to the application."""
        self._set_deadline(None)
        self._in_header, self._header_bytes = False, 0
        self._admitted.until = math.inf
        self.scope[PROVED] = partial(self.limiter.prove, self._admitted)  # type: ignore[literal-required]
        super().on_headers_complete()
        if any(name == b"transfer-encoding" for name, _ in self.headers):
            self._end_chunked()

    def on_message_complete(self) -> None:
        """Expect another request's header."""
        self._in_header = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Allow time to read the answer; then treat the connection as a stranger's."""
        super().on_response_complete()
        unread = self._allow_unread()
        if not unread and not self.transport.is_closing() and not self._may_stay:
            self.transport.close()

    def pause_writing(self) -> None:
        """Set a deadline for the unread answer."""
        self._allow_unread()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Resume the server's turn, unless the answer is complete."""
        if self._answered:
            self._allow_unread()
        else:
            self._admitted.until = math.inf
        super().resume_writing()

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _may_stay(self) -> bool:
        return self.limiter.forget(self._admitted) and self.limiter.may_stay(self._admitted)

    def _allow_unread(self) -> int:
        unread = self.transport.get_write_buffer_size()
        self.limiter.allow(self._admitted, unread)
        return unread

    def _refuse(self, why: Why, status: int) -> None:
        self.limiter.turn_away(why, self._admitted.host)
        if self._answered or (self.cycle.more_body and not self.cycle.response_started):
            self._last_word(status)
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._set_deadline(None)
        self.flow.pause_reading()
        if self._answered or self.cycle.more_body:
            self._allow_unread()
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    def _end_chunked(self) -> None:
        """Feed no byte more without a length: trailers would be headers without an end."""
        self._ended, self.cycle.keep_alive = True, False

    def _last_word(self, status: int) -> None:
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        self.transport.write(f"{line}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self._last_word(408)
            self._end()


def protocol_for(limiter: ConnectionLimiter) -> type[DeadlineProtocol]:
    """Return a connection class with a shared limiter."""
    return type("Connection", (DeadlineProtocol,), {"limiter": limiter})
