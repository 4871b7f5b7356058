"""A folder's state as Prometheus text, and the loopback address that serves it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from privstats.engines.network.folder_status import HomeStatus, HostStatus, status_of
from privstats.engines.network.status_file import (
    ConnectionStatus,
    PartyStatus,
    ServerStatus,
    Supervision,
    read_connections,
)
from privstats.errors import PrivstatsError

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK = "127.0.0.1"
_CONNECTIONS, _IDLE_SECONDS = 16, 5.0
_HOSTS = frozenset({_LOOPBACK, "localhost"})


def exposition(home: Path, now: Callable[[], float] = time.time) -> str:
    """Return a folder's state in Prometheus' text format, version 0.0.4; labels hold steps, indices and codes."""
    status = status_of(home)
    lines = _host(status, now()) if isinstance(status, HostStatus) else _home(status, now())
    return "".join(f"{line}\n" for line in lines)


def _host(host: HostStatus, now: float) -> Iterator[str]:
    status = host.status or ServerStatus("", 0, 0, 0.0)
    yield from gauge("up", "Whether serve runs.", host.alive)
    yield from certificate_days(host.held, now)
    yield from gauge("session_running", "Whether a process carries the session now.", host.running)
    yield from gauge("rounds_ended", "Rounds of the course that have ended.", len(host.ended))
    waits = now - status.since if status.step else 0.0
    yield from gauge("step_open_seconds", "Seconds since the current step was opened.", waits)
    yield from gauge("answered", "Answers to the current step.", len(status.answered))
    absent = {f'place="{each.place}",why="{each.why}"': now - each.since for each in status.missing}
    yield from family("missing_seconds", "gauge", "Seconds for which an answer is missing for that reason.", absent)
    closed = {f'round="{each.place}",step="{each.step}"': each.seconds for each in status.closed}
    yield from family("step_seconds", "gauge", "Seconds of a closed step.", closed)
    yield from connections_of(read_connections(host.documents.home) if host.alive else None)
    yield from _both(status, *(sum(getattr(each, name) for each in status.closed) for name in ("received", "sent")))


def connections_of(connections: ConnectionStatus | None) -> Iterator[str]:
    """Yield the metrics of the carrier's door, if any."""
    if connections is None:
        return
    open_now = {'signed="yes"': connections.nodes, 'signed="no"': connections.strangers}
    yield from family("connections", "gauge", "Open connections, by whether a known key has signed.", open_now)
    closed = {f'why="{why}"': number for why, number in connections.closed.items()}
    yield from family("turned_away_total", "counter", "Connections or requests turned away, by the reason.", closed)


def _home(home: HomeStatus, now: float) -> Iterator[str]:
    status = home.status or PartyStatus("", 0.0)
    yield from gauge("up", "Whether join runs.", home.alive)
    yield from certificate_days(home.held, now)
    yield from gauge("connected", "Whether the node is connected.", home.connected)
    polled = 0.0 if home.held is None else home.held.answered
    yield from gauge("last_poll_timestamp_seconds", "Time of the last answered poll.", polled)
    yield from family("answers_total", "counter", "Messages that were answered.", {"": status.answers})
    yield from gauge("last_answer_timestamp_seconds", "Time of the last answer.", status.updated)
    yield from _both(status, 0, 0)


def certificate_days(held: Supervision | None, now: float) -> Iterator[str]:
    """Yield the gauge of a process that shows a certificate."""
    if held is not None and held.certificate_ends:
        days = (held.certificate_ends - now) / 86_400
        yield from gauge("certificate_days_left", "Days until the TLS certificates of this process end.", days)


def _both(status: ServerStatus | PartyStatus, received: int, sent: int) -> Iterator[str]:
    yield from family("received_bytes_total", "counter", "Bytes received.", {"": status.received + received})
    yield from family("sent_bytes_total", "counter", "Bytes sent.", {"": status.sent + sent})
    refusals = {f'code="{code}"': count for code, count in status.refusals.items()}
    yield from family("refusals_total", "counter", "Refusals by their code.", refusals)


def gauge(name: str, text: str, value: float) -> Iterator[str]:
    """Yield the lines of one number."""
    yield from family(name, "gauge", text, {"": value})


def family(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    """Yield a family of numbers by their labels; nothing for no numbers."""
    if values:
        yield f"# HELP privstats_{name} {text}"
        yield f"# TYPE privstats_{name} {kind}"
    for labels, value in values.items():
        yield f"privstats_{name}{{{labels}}} {value:.15g}" if labels else f"privstats_{name} {value:.15g}"


@contextmanager
def metrics_served(home: Path, port: int | None) -> Iterator[int]:
    """Serve ``/metrics`` on 127.0.0.1 in the block, from a thread; nothing where ``port`` is None.

    Requests for other hosts than 127.0.0.1 or localhost are refused with 421: a web page may have made its own name
    resolve to this address.

    Args:
        port: 0 lets the system choose.

    Yields:
        The port, or 0.
    """
    if port is None:
        yield 0
        return
    try:
        server = _Server((_LOOPBACK, port), _handler(home))
    except (OSError, OverflowError) as error:
        raise PrivstatsError(f"cannot serve metrics on {_LOOPBACK}, port {port} ({error}): give another port") from None
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


class _Server(ThreadingHTTPServer):
    """The number of threads is bounded, so that idle connections do not use up the process's descriptors."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._places = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


def _host_in(header: str) -> str:
    return header.partition(":")[0].lower()


def _handler(home: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _IDLE_SECONDS

        def do_GET(self) -> None:
            if _host_in(self.headers.get("Host", "")) not in _HOSTS:
                # a page of another site reaches loopback by a name of its own, and the browser sends that name
                self._reply(HTTPStatus.MISDIRECTED_REQUEST, f"only {_LOOPBACK} and localhost are answered here\n")
                return
            if self.path != "/metrics":
                self._reply(HTTPStatus.NOT_FOUND, "only /metrics is served here\n")
                return
            try:
                self._reply(HTTPStatus.OK, exposition(home))
            except PrivstatsError as error:
                self._reply(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")

        def _reply(self, status: HTTPStatus, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", _TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no request."""

    return Handler
