"""The SuperLink's two addresses: one for parties, one for the coordinator.

Flower serves its control interface, which has no login, on the port that parties must reach. Here that port serves only
``/v1/fleet/``, where a node signs every request; all else is served on a port of 127.0.0.1.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from privstats.engines.door.connection_limits import MOST_HEADER_BYTES, ConnectionLimiter, Limits
from privstats.engines.door.ports import listening
from privstats.engines.network import operator_log
from privstats.engines.network.status_file import keep_connections
from privstats.errors import PrivstatsError

FLEET_ADDRESS = "PRIVSTATS_FLEET_ADDRESS"
"""The variable of the SuperLink's environment that names the ``HOST:PORT`` for parties."""

HOME = "PRIVSTATS_HOME"
"""The variable of the SuperLink's environment that names the host's folder."""

LOOPBACK = "127.0.0.1"
"""The host on which the coordinator's own commands reach the SuperLink."""

MOST_REQUEST = 6 << 20
"""The most bytes of one request of a node; Flower cuts its content into pieces of 5 MiB."""

_FLEET, _CONTROL = "/v1/fleet/", "/v1/control/"
_LAYERS = "flwr.superlink.routers.control.middlewares"
_LEAVE_SECONDS = 3

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class FleetOnly:
    """An ASGI app that serves all of Flower on one port of this machine, and the fleet interface alone elsewhere.

    The app checks the port that accepted the connection, which no header changes. So a local proxy to the fleet's port
    exposes nothing more.

    Attributes:
        fleet: the app behind :class:`~privstats.engines.flower.node_authentication.NodeAuthentication`.
        control: port of :data:`LOOPBACK` that serves everything.
    """

    app: App
    fleet: App
    control: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward permitted requests; answer 404 to others, existing or not."""
        if scope["type"] == "lifespan" or tuple(scope.get("server") or ()) == (LOOPBACK, self.control):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif not str(scope["path"]).startswith(_FLEET):
            await refuse(send, 404)
        else:
            await self.fleet(scope, receive, send)


class ControlOnly:
    """One of Flower's layers for the control interface, which other requests bypass to save time."""

    def __init__(self, app: App, layer: Any) -> None:
        self._app, self._layered = app, layer.cls(app, *layer.args, **layer.kwargs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request."""
        is_control = str(scope.get("path", "")).startswith(_CONTROL)
        await (self._layered if is_control else self._app)(scope, receive, send)


def layers(flowers: Callable[[], list[Any]]) -> list[Any]:
    """Return Flower's layers in order."""
    return [type(each)(ControlOnly, layer=each) if each.cls.__module__ == _LAYERS else each for each in flowers()]


async def refuse(send: Send, status: int) -> None:
    """Answer a request without a body, and close its connection."""
    headers = [(b"connection", b"close"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of ``HOST:PORT``, or raise ``PrivstatsError``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise PrivstatsError(f"the address must be HOST:PORT with a port up to 65535, not {address!r}")
    return host.strip("[]"), int(port)


def serve_both(fleet: str, home: Path, *, lifespan_config: Any) -> None:
    """Serve Flower's app on both addresses, over TLS, until the process is terminated.

    Args:
        fleet: ``HOST:PORT`` for parties.
        home: the host's folder, for the connection counts.
        lifespan_config: Flower's configuration; its host and port are the control address, which must be on loopback
            with TLS.
    """
    if lifespan_config.host != LOOPBACK or lifespan_config.ssl_certfile is None:
        raise PrivstatsError(f"the control interface is served on {LOOPBACK} and over TLS only; nothing was started")
    uvicorn = importlib.import_module("uvicorn")
    superlink = importlib.import_module("flwr.superlink.cli.flower_superlink")
    app = importlib.import_module("flwr.superlink.main").create_app(lifespan_config, superlink.SuperLinkLifespan)
    limiter = ConnectionLimiter(Limits().within())
    config = uvicorn.Config(
        FleetOnly(app, _authenticated(app, limiter), lifespan_config.port),
        http="h11",  # the parser that bounds headers
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        ws="none",
        log_config=importlib.import_module("flwr.supercore.http_logging").get_uvicorn_log_config(
            superlink.console_handler.level
        ),
        access_log=False,  # a line for each request, as long as its path: strangers would fill the disk
        ssl_keyfile=lifespan_config.ssl_keyfile,
        ssl_certfile=lifespan_config.ssl_certfile,
        timeout_graceful_shutdown=_LEAVE_SECONDS,  # without it one open request keeps an ended SuperLink, and its app
    )
    logging.getLogger("uvicorn.error").addFilter(_is_no_strangers_line)
    operator_log.configure_log()
    server = importlib.import_module("privstats.engines.door.server").DoorServer(
        config, listening(*host_and_port(fleet)), limiter, partial(keep_connections, home)
    )
    server.run(sockets=[listening(LOOPBACK, lifespan_config.port)])
    if not server.started:
        raise PrivstatsError("Flower's app could not be started: its own words are above")


def _is_no_strangers_line(record: logging.LogRecord) -> bool:
    """Drop uvicorn's warnings: strangers could cause one per request."""
    return record.levelno != logging.WARNING


def _authenticated(app: Any, limiter: ConnectionLimiter) -> App:
    ours = importlib.import_module("privstats.engines.flower.node_authentication")
    layer = importlib.import_module("flwr.superlink.routers.fleet.node_auth")

    def registered(key: bytes) -> bool:
        return app.state.linkstate_factory.state().get_node_id_by_public_key(key) is not None

    guarded: App = ours.NodeAuthentication(app, ours.Logins(registered, layer.verify_signature), limiter)
    return guarded
