"""uvicorn's protocol with what it lacks: a deadline for a header, and few unproven connections of one address.

A header that has not ended in time is answered with 408, whatever byte came last: the server's own limit for idle
connections begins anew with every byte. What passes the limit of an address is not refused and not read: it waits, as
many people may share an address. The body's deadline is the application's.

The application names no server: under Granian 2.8 forty devices were confirmed and summed exactly, and a slow header
was held for longer than 14 seconds. So a leader is served by this one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from privstats.engines.http.exchange import PROVED
from privstats.engines.http.limits import peer_of

__all__ = ["HEADER_SECONDS", "DeadlineProtocol", "Doorway", "protocol_for"]

HEADER_SECONDS = 10.0
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Doorway:
    """Connections that have shown nothing yet, by address.

    Args:
        most: of one address; further ones wait unread.
        proxies: addresses whose connections are not counted.
    """

    def __init__(self, most: int, proxies: tuple[str, ...] = ()) -> None:
        self._most, self._proxies = most, proxies
        self._inside: dict[str, set[DeadlineProtocol]] = {}
        self._waiting: dict[str, deque[DeadlineProtocol]] = {}

    def enter(self, guest: DeadlineProtocol, address: str) -> None:
        """Count a connection that begins a request, or let it wait."""
        if address in self._proxies:
            return
        peer = peer_of(address, {}, ())
        inside = self._inside.setdefault(peer, set())
        if guest in inside:
            return
        if len(inside) < self._most:
            inside.add(guest)
        elif guest not in (waiting := self._waiting.setdefault(peer, deque())):
            waiting.append(guest)
            guest.wait()

    def leave(self, guest: DeadlineProtocol, address: str) -> None:
        """Count it no longer: it has shown something, or it has gone."""
        peer = peer_of(address, {}, ())
        inside, waiting = self._inside.get(peer, set()), self._waiting.get(peer, deque())
        inside.discard(guest)
        if guest in waiting:
            waiting.remove(guest)
        while waiting and len(inside) < self._most:
            following = waiting.popleft()
            inside.add(following)
            following.go_on()
        if not inside and not waiting:
            self._inside.pop(peer, None)
            self._waiting.pop(peer, None)


class DeadlineProtocol(HttpToolsProtocol):
    """One connection."""

    doorway: Doorway

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._in_header = True
        self._held: list[bytes] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the first header's deadline."""
        super().connection_made(transport)
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting it."""
        self._set_deadline(None)
        self.doorway.leave(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; the first byte after an answer begins a header."""
        if self._held is not None:  # it waits, and this came before the transport stopped
            self._held.append(data)
            return
        if self._deadline is None and self._in_header:
            self._expect_header()
            if self._held is not None:
                self._held.append(data)
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The header has come; let the application say when the request has shown something."""
        self._set_deadline(None)
        self._in_header = False
        self.scope[PROVED] = partial(self.doorway.leave, self, self._address)  # type: ignore[literal-required]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next byte begins another request."""
        self._in_header = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the next request as one that has shown nothing."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self.doorway.leave(self, self._address)

    def wait(self) -> None:
        """Read nothing until another connection of this address is done."""
        self._held = []
        self._set_deadline(None)
        self.flow.pause_reading()

    def go_on(self) -> None:
        """Read on, with the whole time for the header."""
        held, self._held = self._held or [], None
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._set_deadline(HEADER_SECONDS)
        for data in held:
            self.data_received(data)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _expect_header(self) -> None:
        """A request begins: its header has a deadline, and the connection is counted until it has shown something."""
        self._set_deadline(HEADER_SECONDS)
        self.doorway.enter(self, self._address)

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.write(_TIMEOUT)
            self.transport.close()


def protocol_for(doorway: Doorway) -> type[DeadlineProtocol]:
    """The class of a server's connections, which share a doorway."""
    return type("Connection", (DeadlineProtocol,), {"doorway": doorway})
