"""The address for parties over real connections of this machine, at a clock that only a test moves."""

import asyncio
import select
import socket
import ssl
import threading
from contextlib import contextmanager, suppress

import pytest
import uvicorn

from privstats.engines.door import server as door_server
from privstats.engines.door.connection_limits import PATIENCE_SECONDS, ConnectionLimiter, Limits
from privstats.engines.door.server import DoorServer
from privstats.engines.flower.addresses import FleetOnly
from privstats.engines.flower.node_authentication import Logins, NodeAuthentication
from tests.engines.flower.signing import PUBLIC, signed
from tests.threads import join, until

LIMITS = Limits(connections=6, unsigned=4, of_address=2)
BODY = 1 << 20


async def flowers(scope, receive, send):
    """An app that reads a request whole before it answers, as Flower's does."""
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"read"})


class Served:
    def __init__(self, certificates, loop):
        self.now, self.kept = 0.0, []
        self.limiter = ConnectionLimiter(LIMITS, lambda: self.now)
        self._fleet, self._control = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.port, control = (each.getsockname()[1] for each in (self._fleet, self._control))
        guarded = NodeAuthentication(flowers, Logins(lambda key: key == PUBLIC), self.limiter)
        config = uvicorn.Config(
            FleetOnly(flowers, guarded, control),
            http="h11",
            h11_max_incomplete_event_size=1 << 14,
            ws="none",
            lifespan="off",
            log_config=None,
            loop=loop,
            ssl_certfile=certificates / "server.pem",
            ssl_keyfile=certificates / "server.key",
            timeout_graceful_shutdown=1,
        )
        self.server = DoorServer(config, self._fleet, self.limiter, self.kept.append)
        self._trust = ssl.create_default_context(cafile=certificates / "ca.pem")
        self.control = control

    @contextmanager
    def running(self):
        thread = threading.Thread(target=self.server.run, args=([self._control],))
        thread.start()
        try:
            self.until(lambda: self.kept)
            yield self
        finally:
            self.server.should_exit = True
            join(thread)

    def until(self, ready):
        until(ready, lambda: (self.limiter.status, self.kept))

    def connect(self, port=None):
        connection = socket.create_connection(("127.0.0.1", port or self.port), timeout=60)
        return self._trust.wrap_socket(connection, server_hostname="localhost")

    def count(self, nodes, unsigned):
        self.until(lambda: (self.limiter.status.nodes, self.limiter.status.unsigned) == (nodes, unsigned))


@pytest.fixture(params=["uvloop", "asyncio"])
def served(request, certificates, monkeypatch):
    monkeypatch.setattr(door_server, "_TICK_SECONDS", 0.01)
    with Served(certificates, request.param).running() as made:
        yield made


def request(headers, body=b""):
    lines = [b"POST /v1/fleet/push-object HTTP/1.1", b"host: localhost", *(b": ".join(each) for each in headers)]
    return b"\r\n".join([*lines, b"", body])


def answer(connection):
    """The first line of an answer that has arrived whole."""
    told = b""
    while not told.endswith((b"\r\n\r\nread", b"content-length: 0\r\n\r\n")):
        more = connection.recv(1 << 16)
        assert more, told
        told += more
    return told.split(b"\r\n")[0]


def rest(connection):
    """What arrives until the server closes the connection."""
    told = b""
    with suppress(ConnectionError, ssl.SSLEOFError):
        while more := connection.recv(1 << 16):
            told += more
    return told


def is_closed(connection):
    return rest(connection) == b""


class TestNodes:
    def test_a_node_is_answered_and_keeps_its_connection(self, served):
        with served.connect() as connection:
            for _ in range(3):
                connection.sendall(request(signed(content_length=BODY), bytes(BODY)))
                assert answer(connection) == b"HTTP/1.1 200 OK"
            served.count(nodes=1, unsigned=0)
        served.count(nodes=0, unsigned=0)
        assert served.limiter.status.closed == {}

    def test_the_control_address_is_not_counted(self, served):
        with served.connect(served.control) as connection:
            connection.sendall(request([(b"content-length", b"0")]))
            assert answer(connection) == b"HTTP/1.1 200 OK"
            assert served.limiter.status.unsigned == 0

    def test_a_node_that_holds_back_a_byte_is_closed(self, served):
        with served.connect() as connection:
            connection.sendall(request(signed(content_length=BODY), bytes(BODY - 1)))
            served.count(nodes=1, unsigned=0)
            served.now += PATIENCE_SECONDS + BODY
            assert is_closed(connection)
        served.count(nodes=0, unsigned=0)
        assert served.limiter.status.closed == {"slow": 1}
        served.until(lambda: not served.limiter._requests)  # its place among the requests is free again


class TestStrangers:
    def test_a_body_that_nobody_has_signed_is_refused_before_it_is_read(self, served):
        with served.connect() as connection:
            connection.sendall(request([(b"content-length", b"%d" % BODY)]))
            assert answer(connection) == b"HTTP/1.1 401 Unauthorized"
            assert is_closed(connection)
        served.count(nodes=0, unsigned=0)

    @pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"])
    def test_a_handshake_that_is_not_finished_is_closed(self, served, said):
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
            connection.sendall(said)
            served.count(nodes=0, unsigned=1)
            served.now += PATIENCE_SECONDS + 1
            assert is_closed(connection)
        served.count(nodes=0, unsigned=0)
        assert served.limiter.status.closed == {"slow": 1}

    @pytest.mark.parametrize("said", [b"", b"POST /v1/fleet/push-object HTTP/1.1\r\nhost: "])
    def test_headers_that_are_held_back_are_closed_also_after_a_request(self, served, said):
        fresh, used = served.connect(), served.connect()
        with fresh, used:
            used.sendall(request(signed(content_length=0)))
            assert answer(used) == b"HTTP/1.1 200 OK"
            for connection in (fresh, used):
                connection.sendall(said)
            served.count(nodes=1, unsigned=1)
            served.now += PATIENCE_SECONDS + 1
            assert is_closed(fresh)
            assert is_closed(used)
        served.count(nodes=0, unsigned=0)

    def test_headers_without_an_end_are_refused(self, served):
        with served.connect() as connection:
            with suppress(ConnectionError, ssl.SSLError):
                for _ in range(64):
                    connection.sendall(b"POST / HTTP/1.1\r\na: b" + b"c" * 1024)
            assert rest(connection).partition(b"\r")[0] in (b"", b"HTTP/1.1 400 Bad Request")
        served.count(nodes=0, unsigned=0)

    def test_where_places_are_taken_one_is_closed_at_once_and_a_node_gets_in(self, served):
        held = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(2)]
        served.count(nodes=0, unsigned=2)
        with served.connect() as connection:
            connection.sendall(request(signed(content_length=0)))
            assert answer(connection) == b"HTTP/1.1 200 OK"
        served.count(nodes=0, unsigned=1)
        served.until(lambda: len(select.select(held, [], [], 0)[0]) == 1)
        for each in held:
            each.close()
        assert served.limiter.status.closed == {"address": 1}

    def test_the_numbers_are_kept_when_they_change(self, served):
        with served.connect() as connection:
            served.until(lambda: served.kept[-1].unsigned == 1)
            connection.sendall(request([]))
            served.until(lambda: served.kept[-1].closed == {"login": 1})
        served.until(lambda: served.kept[-1].unsigned == 0)
        assert all(one != other for one, other in zip(served.kept, served.kept[1:], strict=False))


def test_a_machine_without_descriptors_is_told_of_and_accepts_again(certificates, monkeypatch):
    monkeypatch.setattr(door_server, "_TICK_SECONDS", 0.01)
    made = Served(certificates, "asyncio")
    accept, left = asyncio.SelectorEventLoop.sock_accept, [OSError(24, "Too many open files")] * 3

    async def failing(self, listening):
        if left:
            raise left.pop()
        return await accept(self, listening)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_accept", failing)
    with made.running(), made.connect() as connection:
        connection.sendall(request(signed(content_length=0)))
        assert answer(connection) == b"HTTP/1.1 200 OK"
    assert made.limiter.status.closed["descriptors"] == 3
