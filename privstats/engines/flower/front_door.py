"""Flower's HTTP server with a door of our own for parties: connections are counted before TLS, and none waits for ever.

uvicorn accepts without a limit, gives a handshake a minute and a request's headers and body all the time there is. Here
connections to the fleet's address are accepted one by one (:class:`Visits` says which), then handed to uvicorn's own
protocol; what has been held back for too long is closed once a second. The control address stays uvicorn's.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import uvicorn

from privstats.engines.flower.doors import MOST_REQUEST
from privstats.engines.flower.nodes_only import VISIT
from privstats.engines.flower.visits import BYTES_A_SECOND, PATIENCE_SECONDS, Visit, Visits
from privstats.engines.network.connection_status import ConnectionStatus

__all__ = ["FrontDoor"]

_TICK_SECONDS = 1.0
_TLS_SECONDS = 2 * PATIENCE_SECONDS  # both end later than the visit, which says so
_CLOSE_SECONDS = 2 * (PATIENCE_SECONDS + MOST_REQUEST / BYTES_A_SECOND)


class FrontDoor(uvicorn.Server):
    """uvicorn's server, which also accepts connections to the fleet's address.

    Args:
        config: of the server; it has TLS.
        fleet: the listening socket for parties.
        visits: says which connections are let in, and how long each may take.
        keep: called with the numbers, whenever they have changed, at most once a second.
    """

    def __init__(
        self, config: uvicorn.Config, fleet: socket.socket, visits: Visits, keep: Callable[[ConnectionStatus], None]
    ) -> None:
        super().__init__(config)
        self._fleet, self._visits, self._keep = fleet, visits, keep
        self._tasks: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept on both addresses."""
        await super().startup(sockets)
        if self.started:
            self._fleet.setblocking(False)
            self._begin(self._accept())
            self._begin(self._look())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end as uvicorn does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fleet.close()
        await super().shutdown(sockets)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _look(self) -> None:
        kept = None
        while True:
            self._visits.tick()
            if (status := self._visits.status) != kept:
                self._keep(status)
                kept = status
            await asyncio.sleep(_TICK_SECONDS)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (host, *_) = await loop.sock_accept(self._fleet)
            except OSError:  # no descriptors, or a connection that ended in the queue
                self._visits.turn_away("descriptors", "unknown")
                await asyncio.sleep(_TICK_SECONDS)
                continue
            visit = self._visits.arrive(host)
            if visit is None:
                connection.close()
            else:
                visit.end = self._begin(self._greet(connection, visit)).cancel

    async def _greet(self, connection: socket.socket, visit: Visit) -> None:
        """TLS, after which the connection is uvicorn's."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Guest(self._protocol(visit), visit, self._visits),
                connection,
                ssl=self.config.ssl,
                ssl_handshake_timeout=_TLS_SECONDS,
                ssl_shutdown_timeout=_CLOSE_SECONDS,
            )
        except BaseException as error:
            self._visits.leave(visit)
            connection.close()
            if not isinstance(error, OSError):  # a handshake that failed, or was not finished
                raise

    def _protocol(self, visit: Visit) -> asyncio.Protocol:
        made: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return made(config=self.config, server_state=self.server_state, app_state={**self.lifespan.state, VISIT: visit})


class _Guest(asyncio.Protocol):
    """uvicorn's protocol of one connection; its visit ends with the connection."""

    def __init__(self, protocol: asyncio.Protocol, visit: Visit, visits: Visits) -> None:
        self._protocol, self._visit, self._visits = protocol, visit, visits

    def connection_made(self, transport: Any) -> None:
        self._visit.end = transport.abort
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._visits.leave(self._visit)
        self._protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()
