"""Attack: one address without any key keeps connections busy, while idle ones queue: a device there is answered."""

import os
import select
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.settings import Limits
from tests.contrib.http.desk import certified, study_of_devices
from tests.contrib.http.test_door import GET, connected, numbers, until
from tests.contrib.http.test_serve import served

_LEADER = """
import sys
from pathlib import Path
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.serve import Address, serve
address = Address(certificate=Path(sys.argv[2]) if sys.argv[2] else None)
sys.exit(serve(LeaderRun.open(sys.argv[1]), address, started=lambda each: print(each.address, flush=True)))
"""
_ANSWERS = 60
"""Answers to each busy connection, in the mean, within which the device must have its own.

One newcomer per turn of the event loop let each have one answer per connection that queued before the device.
"""


@contextmanager
def leading(home: Path, tls: Path | None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A leader's process, and its port."""
    words = [sys.executable, "-c", _LEADER, str(home), "" if tls is None else str(tls)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as leader:
        try:
            assert leader.stdout is not None
            yield leader, int(leader.stdout.readline().rpartition(":")[2])
        finally:
            leader.kill()


def asked_again(lines: dict[int, socket.socket], poll: select.epoll, request: bytes) -> int:
    """Return how many answers have come to connections that ask at once for the next one."""
    answers = 0
    for number, _ in poll.poll(0.1):
        try:
            piece = lines[number].recv(1 << 16)
            if not piece:
                poll.unregister(number)
            elif piece.endswith(b"}"):  # the last byte of the answer
                answers += 1
                lines[number].sendall(request)
        except (ssl.SSLWantReadError, BlockingIOError):
            continue
        except OSError:
            poll.unregister(number)
    return answers


@pytest.mark.ci
@pytest.mark.skipif(not hasattr(select, "epoll"), reason="it asks on hundreds of connections by epoll")
@pytest.mark.parametrize(("tls", "busy", "idle"), [(False, 300, 600), (True, 200, 600)], ids=["plain", "tls"])
def test_attack_connections_that_ask_and_idle_ones_before_it_keep_no_device_out(tmp_path, tls, busy, idle) -> None:
    """All queue while the leader's process is stopped, so the device's place in the queue is the same each time."""
    folder: Path | None = None
    root: str | None = None
    trust: ssl.SSLContext | None = None
    if tls:
        folder, root = tmp_path / "tls", certified(tmp_path)
        trust = ssl.create_default_context(cafile=root)
    study = study_of_devices(tmp_path / "run")
    request = GET % study.run.encode()
    address = f"{'https' if tls else 'http'}://127.0.0.1"

    def is_answered(port: int) -> bool:
        with suppress(UnreachableError), Dial(f"{address}:{port}", root, 300) as dial:
            return dial.ask("GET", f"/v1/runs/{study.run}").status == 503
        return False

    with leading(study.leader, folder) as (leader, port), ExitStack() as held, ThreadPoolExecutor(1) as pool:
        poll = held.enter_context(select.epoll())
        lines: dict[int, socket.socket] = {}
        for _ in range(busy):
            line = socket.create_connection(("127.0.0.1", port), 60)
            line = held.enter_context(trust.wrap_socket(line, server_hostname="127.0.0.1") if trust else line)
            lines[line.fileno()] = line
            poll.register(line, select.EPOLLIN)
        os.kill(leader.pid, signal.SIGSTOP)
        for line in lines.values():
            line.sendall(request)
            line.setblocking(False)
        for _ in range(idle):
            held.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        device, answers = pool.submit(is_answered, port), 0
        until(lambda: queued(port) > idle)
        os.kill(leader.pid, signal.SIGCONT)
        while not device.done() and answers < busy * _ANSWERS:
            answers += asked_again(lines, poll, request)
        leader.kill()
        assert device.result(), f"{answers} answers to {busy} connections, and none to the device"


def queued(port: int) -> int:
    """Return how many connections wait at a listening port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(int(row[4].partition(":")[2], 16) for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A")


def answer(line: socket.socket) -> bytes:
    """Return one refusal, whose document ends it."""
    heard = b""
    while not heard.endswith(b"}") and (piece := line.recv(1 << 16)):
        heard += piece
    return heard


def test_a_strangers_connection_ends_with_its_answer_while_places_are_scarce(tmp_path) -> None:
    study = study_of_devices(tmp_path / "run")
    with served(study, limits=Limits(connections=8)) as server, connected(server) as asks:
        for _ in range(2):  # there is room, and it may ask again
            asks.sendall(GET % study.run.encode())
            assert answer(asks).startswith(b"HTTP/1.1 503")
        with ExitStack() as held:
            for _ in range(4):
                held.enter_context(connected(server))
            until(lambda: numbers(server, "connections")["no"] == 5)
            asks.sendall(GET % study.run.encode())
            assert server.rest(asks).startswith(b"HTTP/1.1 503")
