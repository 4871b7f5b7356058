"""uvicorn's server with its own listener: connections are counted before TLS, and none waits forever.

uvicorn limits neither connections nor the wait for headers and bodies.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import socket
from asyncio import sslproto
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import uvicorn

from privstats.engines.door.connection_limits import CONNECTION, AdmittedConnection, ConnectionLimiter, Limits
from privstats.engines.network.status_file import ConnectionStatus

_TICK_SECONDS = 1.0
_ACCEPTS_A_TURN = 64
"""Newcomers that are accepted before the event loop does its other work, which may be hundreds of requests."""
_OF_THE_MACHINE = Limits(connections=128, unsigned=128, of_address=128)
_TLS_SECONDS: dict[str, Any] = {"ssl_handshake_timeout": 60, "ssl_shutdown_timeout": 1000}
"""Both limits end later than the limiter's, which reports the reason."""
_KEEP_ALIVE_SECONDS, _GRACE_SECONDS = 5, 4


class DoorServer(uvicorn.Server):
    """uvicorn's server at the door, and at sockets for this machine alone.

    Local connections are counted too, because another account's idle ones could take every descriptor. After its TLS
    handshake a local connection may stay, unless it is the oldest of too many.

    Args:
        limiter: decides which connections are accepted, and for how long.
        keep: called with changed counts, at most once a second.

    Example:
        >>> from privstats.engines.carriers import ConnectionLimiter, DoorServer, Limits, listening
        >>> async def app(scope, receive, send):
        ...     await send({"type": "http.response.start", "status": 204})
        ...     await send({"type": "http.response.body"})
        >>> with listening("127.0.0.1", 0) as door:
        ...     server = DoorServer.of(app, door, ConnectionLimiter(Limits()))
        >>> server.started  # ``server.run()`` serves the app until ``server.should_exit`` is set
        False
    """

    _handles_signals = True

    def __init__(
        self,
        config: uvicorn.Config,
        door: socket.socket,
        limiter: ConnectionLimiter,
        keep: Callable[[ConnectionStatus], None] = lambda _: None,
    ) -> None:
        super().__init__(config)
        self._door, self._limiter, self._keep = door, limiter, keep
        self._inside = ConnectionLimiter(_OF_THE_MACHINE)
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def of(
        cls, app: object, door: socket.socket, limiter: ConnectionLimiter, tls: tuple[str, str] | None = None
    ) -> DoorServer:
        """Return a server of an ASGI app with deadlines for headers, and no signal handlers: servers share a process.

        Args:
            tls: the files of certificate and key.
        """
        # Flower's door needs no httptools, so this module does not import it.
        from privstats.engines.door.deadline_protocol import protocol_for

        certificate, key = tls or (None, None)
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            http=protocol_for(limiter),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        server = cls(config, door, limiter)
        server._handles_signals = False
        return server

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at signals, except in a server from :meth:`of`."""
        with super().capture_signals() if self._handles_signals else nullcontext():
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept at the door and on the sockets."""
        await super().startup([])
        if self.started:
            self._begin(self._accept(self._door, self._limiter))
            for inside in sockets or []:
                self._begin(self._accept(inside, self._inside))
            self._begin(self._look())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end as uvicorn does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._door.close()
        await super().shutdown(sockets)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _look(self) -> None:
        shown = None
        while True:
            self._limiter.tick()
            self._inside.tick()
            if (status := self._limiter.status) != shown:
                self._keep(status)
                shown = status
            await asyncio.sleep(_TICK_SECONDS)

    async def _accept(self, door: socket.socket, limiter: ConnectionLimiter) -> None:
        loop = asyncio.get_running_loop()
        door.setblocking(False)
        for number in itertools.count(1):
            if not number % _ACCEPTS_A_TURN:
                await asyncio.sleep(0)  # or a queue that never empties would keep all other work waiting
            try:
                connection, address = await loop.sock_accept(door)
            except OSError:  # no descriptors, or a connection that ended in the queue
                self._limiter.turn_away("descriptors", "unknown")
                await asyncio.sleep(_TICK_SECONDS)
                continue
            admitted = limiter.arrive(address[0] if isinstance(address, tuple) else "")
            if admitted is None:
                connection.close()
            else:
                admitted.end = connection.close  # until its task runs: a task that never ran would leave it open
                self._begin(self._greet(connection, admitted, limiter))

    async def _greet(self, connection: socket.socket, admitted: AdmittedConnection, limiter: ConnectionLimiter) -> None:
        task = asyncio.current_task()
        if task is None or connection.fileno() < 0:  # it has made room for a later one of its turn
            return
        admitted.end = task.cancel
        loop, context = asyncio.get_running_loop(), self.config.ssl
        guest = _Guest(self._protocol(admitted), admitted, limiter)
        transport: Any = None
        try:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is None:
                transport, _ = await loop.connect_accepted_socket(lambda: guest, connection)
            else:
                shaken: asyncio.Future[None] = loop.create_future()
                tls = _Tls(loop, guest, context, shaken, server_side=True, **_TLS_SECONDS)
                transport, _ = await loop.connect_accepted_socket(lambda: tls, connection)
                await shaken
        except BaseException as error:
            (connection.close if transport is None else transport.abort)()
            if not isinstance(error, OSError):  # a handshake that failed, or was not finished
                raise
        finally:
            if not guest.here:
                limiter.leave(admitted)
            elif limiter is self._inside:
                admitted.until = math.inf

    def _protocol(self, admitted: AdmittedConnection) -> asyncio.Protocol:
        protocol: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return protocol(
            config=self.config, server_state=self.server_state, app_state={**self.lifespan.state, CONNECTION: admitted}
        )


class _Tls(sslproto.SSLProtocol):
    max_size = 32 << 10

    def _get_write_buffer_size(self) -> int:
        below: Any = self._transport
        own = int(super()._get_write_buffer_size())  # type: ignore[misc]
        return own + (0 if below is None else int(below.get_write_buffer_size()))


class _Guest(asyncio.Protocol):
    """uvicorn's protocol of one connection; ``here`` is true after the TLS handshake."""

    def __init__(self, protocol: asyncio.Protocol, admitted: AdmittedConnection, limiter: ConnectionLimiter) -> None:
        self._protocol, self._admitted, self._limiter, self.here = protocol, admitted, limiter, False
        for name in ("data_received", "eof_received", "pause_writing", "resume_writing"):
            setattr(self, name, getattr(protocol, name))

    def connection_made(self, transport: Any) -> None:
        self.here, self._admitted.end = True, transport.abort
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.leave(self._admitted)
        self._protocol.connection_lost(exc)
