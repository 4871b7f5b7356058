"""Flower's HTTP server with the fleet's own listener: connections are counted before TLS, and none waits for ever.

uvicorn accepts without a limit, gives a handshake a minute and a request's headers and body all the time there is. Here
connections to the fleet's address are accepted one by one (:class:`ConnectionLimiter` says which), then handed to
uvicorn's own protocol; what has been held back for too long is closed once a second. The control address stays
uvicorn's.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import uvicorn

from privstats.engines.flower.addresses import MOST_REQUEST
from privstats.engines.flower.connection_limits import (
    BYTES_A_SECOND,
    PATIENCE_SECONDS,
    AdmittedConnection,
    ConnectionLimiter,
)
from privstats.engines.flower.node_authentication import CONNECTION
from privstats.engines.network.status_file import ConnectionStatus

__all__ = ["FleetServer"]

_TICK_SECONDS = 1.0
_TLS_SECONDS = 2 * PATIENCE_SECONDS  # both end later than the limiter closes, which says why
_CLOSE_SECONDS = 2 * (PATIENCE_SECONDS + MOST_REQUEST / BYTES_A_SECOND)


class FleetServer(uvicorn.Server):
    """uvicorn's server, which also accepts connections to the fleet's address.

    Args:
        config: of the server; it has TLS.
        fleet: the listening socket for parties.
        limiter: says which connections are let in, and how long each may take.
        keep: called with the numbers, whenever they have changed, at most once a second.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        fleet: socket.socket,
        limiter: ConnectionLimiter,
        keep: Callable[[ConnectionStatus], None],
    ) -> None:
        super().__init__(config)
        self._fleet, self._limiter, self._keep = fleet, limiter, keep
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
            self._limiter.tick()
            if (status := self._limiter.status) != kept:
                self._keep(status)
                kept = status
            await asyncio.sleep(_TICK_SECONDS)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (host, *_) = await loop.sock_accept(self._fleet)
            except OSError:  # no descriptors, or a connection that ended in the queue
                self._limiter.turn_away("descriptors", "unknown")
                await asyncio.sleep(_TICK_SECONDS)
                continue
            admitted = self._limiter.arrive(host)
            if admitted is None:
                connection.close()
            else:
                admitted.end = self._begin(self._greet(connection, admitted)).cancel

    async def _greet(self, connection: socket.socket, admitted: AdmittedConnection) -> None:
        """TLS, after which the connection is uvicorn's."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Guest(self._protocol(admitted), admitted, self._limiter),
                connection,
                ssl=self.config.ssl,
                ssl_handshake_timeout=_TLS_SECONDS,
                ssl_shutdown_timeout=_CLOSE_SECONDS,
            )
        except BaseException as error:
            self._limiter.leave(admitted)
            connection.close()
            if not isinstance(error, OSError):  # a handshake that failed, or was not finished
                raise

    def _protocol(self, admitted: AdmittedConnection) -> asyncio.Protocol:
        made: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return made(
            config=self.config, server_state=self.server_state, app_state={**self.lifespan.state, CONNECTION: admitted}
        )


class _Guest(asyncio.Protocol):
    """uvicorn's protocol of one connection; the limiter is told when it ends."""

    def __init__(self, protocol: asyncio.Protocol, admitted: AdmittedConnection, limiter: ConnectionLimiter) -> None:
        self._protocol, self._admitted, self._limiter = protocol, admitted, limiter

    def connection_made(self, transport: Any) -> None:
        self._admitted.end = transport.abort
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.leave(self._admitted)
        self._protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()
