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

EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK = "127.0.0.1"
_CONNECTIONS, _IDLE_SECONDS = 16, 5.0
_HOSTS = frozenset({_LOOPBACK, "localhost"})


def exposition(home: Path, now: Callable[[], float] = time.time) -> str:
    """Return a folder's state in Prometheus' text format, version 0.0.4; labels hold steps, indices and codes."""
    status, lines = status_of(home), Exposition()
    if isinstance(status, HostStatus):
        _host(lines, status, now())
    else:
        _home(lines, status, now())
    return lines.text


class Exposition:
    """A state in Prometheus' text format, version 0.0.4; names begin with ``privstats_``.

    Example:
        >>> from privstats.engines.carriers import Exposition
        >>> lines = Exposition()
        >>> lines.gauge("up", "Whether the server runs.", True)
        >>> print(lines.text)
        # HELP privstats_up Whether the server runs.
        # TYPE privstats_up gauge
        privstats_up 1
        <BLANKLINE>
    """

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """All lines so far."""
        return "".join(f"{line}\n" for line in self._lines)

    def gauge(self, name: str, text: str, value: float) -> None:
        """Add one number."""
        self.family(name, "gauge", text, {"": value})

    def family(self, name: str, kind: str, text: str, values: Mapping[str, float]) -> None:
        """Add a family of numbers by their labels; nothing for no numbers.

        Args:
            kind: ``gauge`` or ``counter``.
        """
        if values:
            self._head(name, kind, text)
        for labels, value in values.items():
            braced = f"{{{labels}}}" if labels else ""
            self._lines.append(f"privstats_{name}{braced} {value:.15g}")

    def summary(self, name: str, text: str, total: float, count: float) -> None:
        """Add the total and the number of some observations."""
        self._head(name, "summary", text)
        self._lines += [f"privstats_{name}_sum {total:.15g}", f"privstats_{name}_count {count:.15g}"]

    def certificate_days(self, held: Supervision | None, now: float) -> None:
        """Add the days until a process's certificates end, if it shows any."""
        if held is not None and held.certificate_ends:
            days = (held.certificate_ends - now) / 86_400
            self.gauge("certificate_days_left", "Days until the TLS certificates of this process end.", days)

    def connections(self, connections: ConnectionStatus | None) -> None:
        """Add the connections at the carrier's door, if any."""
        if connections is None:
            return
        open_now = {'signed="yes"': connections.nodes, 'signed="no"': connections.unsigned}
        self.family("connections", "gauge", "Open connections, by whether a known key has signed.", open_now)
        closed = {f'why="{why}"': number for why, number in connections.closed.items()}
        self.family("turned_away_total", "counter", "Connections or requests turned away, by the reason.", closed)

    def _head(self, name: str, kind: str, text: str) -> None:
        self._lines += [f"# HELP privstats_{name} {text}", f"# TYPE privstats_{name} {kind}"]


def _host(lines: Exposition, host: HostStatus, now: float) -> None:
    status = host.status or ServerStatus("", 0, 0, 0.0)
    lines.gauge("up", "Whether serve runs.", host.alive)
    lines.certificate_days(host.held, now)
    lines.gauge("session_running", "Whether a process carries the session now.", host.running)
    lines.gauge("rounds_ended", "Rounds of the course that have ended.", len(host.ended))
    waits = now - status.since if status.step else 0.0
    lines.gauge("step_open_seconds", "Seconds since the current step was opened.", waits)
    lines.gauge("answered", "Answers to the current step.", len(status.answered))
    absent = {f'place="{each.place}",why="{each.why}"': now - each.since for each in status.missing}
    lines.family("missing_seconds", "gauge", "Seconds for which an answer is missing for that reason.", absent)
    closed = {f'round="{each.place}",step="{each.step}"': each.seconds for each in status.closed}
    lines.family("step_seconds", "gauge", "Seconds of a closed step.", closed)
    lines.connections(read_connections(host.documents.home) if host.alive else None)
    _both(lines, status, *(sum(getattr(each, name) for each in status.closed) for name in ("received", "sent")))


def _home(lines: Exposition, home: HomeStatus, now: float) -> None:
    status = home.status or PartyStatus("", 0.0)
    lines.gauge("up", "Whether join runs.", home.alive)
    lines.certificate_days(home.held, now)
    lines.gauge("connected", "Whether the node is connected.", home.connected)
    worked = 0.0 if home.held is None else home.held.worked
    text = "Time of the last answered poll, or step of the node's own task."
    lines.gauge("last_work_timestamp_seconds", text, worked)
    lines.family("answers_total", "counter", "Messages that were answered.", {"": status.answers})
    lines.gauge("last_answer_timestamp_seconds", "Time of the last answer.", status.updated)
    _both(lines, status, 0, 0)


def _both(lines: Exposition, status: ServerStatus | PartyStatus, received: int, sent: int) -> None:
    lines.family("received_bytes_total", "counter", "Bytes received.", {"": status.received + received})
    lines.family("sent_bytes_total", "counter", "Bytes sent.", {"": status.sent + sent})
    refusals = {f'code="{code}"': count for code, count in status.refusals.items()}
    lines.family("refusals_total", "counter", "Refusals by their code.", refusals)


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
            self.send_header("Content-Type", EXPOSITION_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no request."""

    return Handler
