"""The SuperLink's two addresses: parties reach the fleet interface on one, the coordinator all of it on the other.

Flower serves its control interface, which has no login, on the port that parties must reach. Here that port serves
``/v1/fleet/`` alone, where a node signs every request; all other paths are served on 127.0.0.1, on a port of its own.
``entrypoint_guard`` replaces Flower's own server by :func:`serve_both`.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from privstats.errors import PrivstatsError

__all__ = [
    "FLEET_ADDRESS",
    "LOOPBACK",
    "MOST_REQUEST",
    "ControlOnly",
    "FleetOnly",
    "host_and_port",
    "layers",
    "serve_both",
]

FLEET_ADDRESS = "PRIVSTATS_FLEET_ADDRESS"
"""The variable of the SuperLink's environment that names the ``HOST:PORT`` for parties."""

LOOPBACK = "127.0.0.1"
"""The host on which the coordinator's own commands reach the SuperLink."""

MOST_REQUEST = 32 << 20
"""The most bytes of one request of a node; Flower cuts its content into pieces of 5 MiB."""

_FLEET, _CONTROL = "/v1/fleet/", "/v1/control/"
_LAYERS = "flwr.superlink.routers.control.middlewares"
_BACKLOG = 2048
_LEAVE_SECONDS = 3

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class FleetOnly:
    """An ASGI app that serves all of Flower on one port of this machine, and the fleet interface alone elsewhere.

    It uses the port that accepted the connection, which no header changes; so a proxy on this machine that parties
    reach exposes nothing more, as long as it forwards to the fleet's port.

    Attributes:
        app: Flower's app.
        control: the port of :data:`LOOPBACK` on which the whole app is served.
    """

    app: App
    control: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward permitted requests; answer 404 to all other paths, existing or not."""
        if scope["type"] == "lifespan" or tuple(scope.get("server") or ()) == (LOOPBACK, self.control):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif not str(scope["path"]).startswith(_FLEET):
            await _refuse(send, 404)
        elif _bytes_of(scope) > MOST_REQUEST:
            await _refuse(send, 413)
        else:
            await self.app(scope, receive, send)


class ControlOnly:
    """One of Flower's layers of the control interface, which every other request passes by.

    Flower puts nine layers around each request, four of which concern the control interface alone
    (``flwr/superlink/main.py``); each layer costs the SuperLink as much as answering does.

    Args:
        app: what lies within the layer.
        layer: Starlette's description of the layer.
    """

    def __init__(self, app: App, layer: Any) -> None:
        self._app, self._layered = app, layer.cls(app, *layer.args, **layer.kwargs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, through the layer if it is for the control interface."""
        is_control = str(scope.get("path", "")).startswith(_CONTROL)
        await (self._layered if is_control else self._app)(scope, receive, send)


def layers(flowers: Callable[[], list[Any]]) -> list[Any]:
    """Flower's layers in their order, those of the control interface for its requests alone."""
    return [type(each)(ControlOnly, layer=each) if each.cls.__module__ == _LAYERS else each for each in flowers()]


async def _refuse(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def _bytes_of(scope: Scope) -> int:
    """The declared size of a request's body, which its server enforces; above the limit if undeclared."""
    sizes = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(sizes[0]) if len(sizes) == 1 and sizes[0].isdigit() else MOST_REQUEST + 1


def host_and_port(address: str) -> tuple[str, int]:
    """A ``HOST:PORT`` in its parts.

    Raises:
        PrivstatsError: ``address`` has another form.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise PrivstatsError(f"the address must be HOST:PORT with a port up to 65535, not {address!r}")
    return host.strip("[]"), int(port)


def serve_both(fleet: str, *, lifespan_config: Any) -> None:
    """Serve Flower's app on both addresses, over TLS, until the process is terminated.

    Args:
        fleet: ``HOST:PORT`` for parties.
        lifespan_config: Flower's configuration; its host and port are the control address.

    Raises:
        PrivstatsError: Flower was started on a control address that is not on loopback, or without TLS; or one of the
            two addresses cannot be bound.
    """
    if lifespan_config.host != LOOPBACK or lifespan_config.ssl_certfile is None:
        raise PrivstatsError(f"the control interface is served on {LOOPBACK} and over TLS only; nothing was started")
    uvicorn = importlib.import_module("uvicorn")
    superlink = importlib.import_module("flwr.superlink.cli.flower_superlink")
    app = importlib.import_module("flwr.superlink.main").create_app(lifespan_config, superlink.SuperLinkLifespan)
    config = uvicorn.Config(
        FleetOnly(app, lifespan_config.port),
        log_config=importlib.import_module("flwr.supercore.http_logging").get_uvicorn_log_config(
            superlink.console_handler.level
        ),
        ssl_keyfile=lifespan_config.ssl_keyfile,
        ssl_certfile=lifespan_config.ssl_certfile,
        timeout_graceful_shutdown=_LEAVE_SECONDS,  # without it one open request keeps an ended SuperLink, and its app
    )
    server = uvicorn.Server(config)
    server.run(sockets=[_listening(*host_and_port(fleet)), _listening(LOOPBACK, lifespan_config.port)])
    if not server.started:
        raise PrivstatsError("Flower's app could not be started: its own words are above")


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket, for an address of either family."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise PrivstatsError(f"cannot listen on {host}, port {port} ({error.strerror}); nothing was started") from None
