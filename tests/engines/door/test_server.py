"""A server behind the door over real connections of this machine, at a clock that only a test moves."""

import asyncio
import math
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from itertools import pairwise
from types import SimpleNamespace

import pytest

uvicorn = pytest.importorskip("uvicorn")

from privstats.engines.door import server as module  # noqa: E402
from privstats.engines.door.connection_limits import (  # noqa: E402
    BYTES_A_SECOND,
    PATIENCE_SECONDS,
    ConnectionLimiter,
    Limits,
)
from privstats.engines.door.deadline_protocol import protocol_for  # noqa: E402
from privstats.engines.door.server import DoorServer  # noqa: E402
from tests.threads import join, until  # noqa: E402

LARGE = 16 << 20


class Served:
    def __init__(self, tls=None):
        self.now, self.kept, self.answered = 0.0, [], threading.Event()
        self.limiter = ConnectionLimiter(Limits(), lambda: self.now)
        door = socket.create_server(("127.0.0.1", 0))
        self.port = door.getsockname()[1]
        named = {} if tls is None else {"ssl_certfile": tls / "server.pem", "ssl_keyfile": tls / "server.key"}
        protocol = protocol_for(self.limiter)
        config = uvicorn.Config(
            self.large,
            interface="asgi3",
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            timeout_graceful_shutdown=1,
            **named,
        )
        self.server = DoorServer(config, door, self.limiter, self.kept.append)

    async def large(self, scope, receive, send):
        """Send an answer that exceeds every system's buffers, and report when the server has all of it."""
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
        await send({"type": "http.response.body", "body": bytes(LARGE)})
        self.answered.set()

    @contextmanager
    def running(self, inside=()):
        thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([*inside])))
        thread.start()
        try:
            self.until(lambda: self.kept)
            yield self
        finally:
            self.server.should_exit = True
            join(thread)

    def until(self, ready):
        until(ready, lambda: self.limiter.status)

    @property
    def admitted(self):
        return next(iter(self.limiter._unsigned))


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def line(request, tmp_path, monkeypatch):
    """A server, and a connection on which its large answer waits."""
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.01)
    if request.param:
        certificates = pytest.importorskip("privstats.engines.flower.certificates")
        certificates.write_certificates(tmp_path / "tls", ["127.0.0.1"], days=1)
    with (
        Served(tmp_path / "tls" if request.param else None).running() as served,
        socket.create_connection(("127.0.0.1", served.port), 20) as connection,
    ):
        if request.param:
            trust = ssl.create_default_context(cafile=tmp_path / "tls" / "ca.pem")
            connection = trust.wrap_socket(connection, server_hostname="127.0.0.1")
        connection.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        # The server sets the deadline when its buffer fills, and again when the answer is complete.
        # A test that moves the clock between the two would move the second deadline too.
        served.until(served.answered.is_set)
        yield served, connection


def read(connection):
    size = 0
    with suppress(OSError):
        while size < LARGE and (piece := connection.recv(1 << 20)):
            size += len(piece)
    return size


def test_attack_an_answer_that_nobody_takes_is_given_up_after_its_size_at_the_slowest_line(line):
    """An answer had no deadline at all."""
    served, connection = line
    assert 3 * PATIENCE_SECONDS < served.admitted.until <= PATIENCE_SECONDS + LARGE / BYTES_A_SECOND
    served.now = served.admitted.until + 1
    served.until(lambda: served.limiter.status.closed == {"slow": 1})
    assert served.limiter.status.unsigned == 0
    assert read(connection) < LARGE


def test_an_answer_that_is_taken_comes_whole(line):
    served, connection = line
    served.now = served.admitted.until - 1
    assert read(connection) >= LARGE
    assert served.limiter.status.closed == {}


_SERVER = """
import resource, socket, uvicorn
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from privstats.engines.door.connection_limits import ConnectionLimiter, Limits
from privstats.engines.door.server import DoorServer
from tests.engines.door.test_server import small
doors = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(2)]
print(*(each.getsockname()[1] for each in doors), flush=True)
limiter = ConnectionLimiter(Limits(connections=64, unsigned=64))
DoorServer(uvicorn.Config(small, http="h11", lifespan="off"), doors[0], limiter).run(sockets=doors[1:])
"""


async def small(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_attack_idle_connections_on_a_socket_for_this_machine_leave_descriptors_for_the_door():
    """300 of them took all 256: parties waited without an end, as did who came to that socket."""
    words = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        door, inside = map(int, running.stdout.readline().split())
        held = [socket.create_connection(("127.0.0.1", inside), 10) for _ in range(300)]
        try:
            for port in (door, inside):
                with socket.create_connection(("127.0.0.1", port), 10) as line:
                    line.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
                    assert line.recv(1 << 10).startswith(b"HTTP/1.1 204")
        finally:
            running.kill()
            for each in held:
                each.close()


def test_a_connection_on_a_socket_for_this_machine_may_be_silent(monkeypatch):
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.01)
    served, inside = Served(), socket.create_server(("127.0.0.1", 0))
    with served.running([inside]), socket.create_connection(inside.getsockname(), 10):
        served.until(lambda: served.server._inside.status.unsigned == 1)
        (admitted,) = served.server._inside._unsigned
        served.until(lambda: admitted.until == math.inf)


def test_attack_a_queue_of_newcomers_is_let_in_within_few_turns_and_never_takes_a_whole_one():
    """One newcomer a turn, while 500 connections asked in each, kept every device out for as long as that went on."""
    came, number = [], 100

    async def turns():
        with socket.create_server(("127.0.0.1", 0)) as door:
            lines = [socket.create_connection(door.getsockname(), 10) for _ in range(number)]
            limiter = SimpleNamespace(arrive=came.append)  # lets nobody in, and each is closed
            server = DoorServer(uvicorn.Config(small), door, limiter)
            accepting, seen = asyncio.create_task(server._accept(door, limiter)), [0]
            while seen[-1] < number:
                await asyncio.sleep(0)
                seen.append(len(came))
            accepting.cancel()
            for line in lines:
                line.close()
            return seen

    seen = asyncio.run(turns())
    assert len(seen) <= 2 + math.ceil(number / module._ACCEPTS_A_TURN) < number / 20
    assert max(later - earlier for earlier, later in pairwise(seen)) <= module._ACCEPTS_A_TURN < number
