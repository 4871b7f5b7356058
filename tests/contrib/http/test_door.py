"""Attack: strangers at a leader's public port, without any key: what their connections cost, and who is answered."""

import json
import logging
import os
import re
import select
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from privstats.contrib.http import serve
from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.contrib.http.settings import Limits
from privstats.engines.door import deadline_protocol, server
from privstats.engines.door.connection_limits import PATIENCE_SECONDS, ConnectionLimiter
from tests.contrib.http.desk import certified, study_of_devices
from tests.contrib.http.test_serve import Helpers, Server, served, waited
from tests.threads import until

GET = b"GET /v1/runs/%s HTTP/1.1\r\nhost: a\r\n\r\n"


@dataclass
class Clock:
    """Seconds that pass only when a test adds them."""

    seconds: float = 0.0


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Replace the clock of a server's connections, and put a header's own deadline out of reach.

    No connection then reaches a deadline unless the test moves the clock.
    """
    made = Clock()
    monkeypatch.setattr(serve, "ConnectionLimiter", partial(ConnectionLimiter, clock=lambda: made.seconds))
    monkeypatch.setattr(deadline_protocol, "HEADER_SECONDS", 3600.0)
    monkeypatch.setattr(server, "_TICK_SECONDS", 0.02)
    return made


@pytest.fixture
def study(tmp_path):
    return study_of_devices(tmp_path / "run")


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 10)


def numbers(server: Server, name: str) -> dict[str, float]:
    """A family of the leader's metrics, by the label's value."""
    text = server.asked("GET", "/metrics")[1].decode()
    return {label: float(value) for label, value in re.findall(rf'^privstats_{name}{{\w+="(\w+)"}} (\S+)$', text, re.M)}


def closed_of(lines: Iterable[socket.socket]) -> int:
    """How many of these the leader has closed."""
    found = 0
    for line in select.select(list(lines), [], [], 0)[0]:
        with suppress(OSError):
            found += line.recv(1 << 16) == b""
            continue
        found += 1
    return found


def is_answered(server: Server, scheme: str = "http", root: str | None = None) -> bool:
    """Return whether a device at the strangers' own address is answered within 20 seconds."""
    began = time.monotonic()
    with Dial(f"{scheme}://127.0.0.1:{server.port}", root, 20) as dial:
        status = dial.ask("GET", f"/v1/runs/{server.study.run}").status
    return status in (200, 503) and time.monotonic() - began < 20


def in_flight(server: Server) -> int:
    """Return how many bytes of reports the leader is receiving, all of senders who have signed."""
    text = server.asked("GET", "/metrics")[1].decode()
    return int(re.findall(r"^privstats_http_in_flight_bytes (\S+)$", text, re.M)[0])


class TestRequests:
    def test_attack_requests_before_an_answer_are_not_answered_and_end_their_connection(self, study) -> None:
        """200 connections with 3,000 requests each, which read nothing, took 1.3 GiB, and no device was answered."""
        with served(study) as server:
            one = GET % study.run.encode()
            lines = [connected(server) for _ in range(4)]
            for line in lines:
                with suppress(OSError):
                    line.sendall(one * 300)
            for line in lines:
                with suppress(ConnectionError):
                    assert server.rest(line).count(b"HTTP/1.1") <= 1
            assert sum(json.loads(server.asked("GET", "/status")[1])["answers"].values()) <= 4
            assert numbers(server, "turned_away_total")["malformed"] == 4
            assert is_answered(server)

    def test_the_first_of_two_requests_in_a_row_is_answered(self, study) -> None:
        with served(study) as server:
            heard = server.raw(b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n" + GET % b"00")
            assert (heard.count(b"HTTP/1.1"), heard.count(b"no_resource")) == (1, 2), "title and code"

    @pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\na: ", b"GET /"], ids=["header", "address"])
    def test_attack_a_header_or_an_address_without_an_end_is_refused_at_16_kib(self, study, said: bytes) -> None:
        """8 connections took 1.6 GiB in ten seconds."""
        with served(study) as server, connected(server) as line:
            line.sendall(said)
            sent = 0
            with suppress(OSError):
                while sent < 8 << 20:
                    sent += line.send(b"a" * 4096)
            assert sent < 8 << 20, "what is sent is taken"
            assert numbers(server, "turned_away_total") == {"size": 1}
            assert b"HTTP/1.1 431" in server.raw(said + b"a" * (16 << 10))

    @pytest.mark.parametrize("trailer", [b"a: b\r\n" * 1000, b"a" * 4096], ids=["many", "one"])
    def test_attack_trailers_after_a_chunked_body_are_not_read(self, study, trailer: bytes) -> None:
        """They are headers that no size bounds: four connections took 541 MiB in ten seconds."""
        said = f"OPTIONS /v1/runs/{study.run} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n".encode()
        with served(study) as server, connected(server) as line:
            line.sendall(said)
            sent = 0
            with suppress(OSError):
                while sent < 8 << 20:
                    sent += line.send(trailer)
            assert sent < 8 << 20, "what is sent is taken"
            assert server.raw(said).startswith(b"HTTP/1.1 204")

    def test_a_header_below_the_limit_is_answered_whatever_pieces_it_comes_in(self, study) -> None:
        with served(study) as server, connected(server) as line:
            header = b"GET /nothing HTTP/1.1\r\nconnection: close\r\na: " + b"b" * 16_000 + b"\r\n\r\n"
            for start in range(0, len(header), 4000):
                line.sendall(header[start : start + 4000])
                time.sleep(0.005)
            assert b"no_resource" in server.rest(line)

    def test_attack_what_is_no_http_leaves_no_line_for_each(self, study, caplog, monkeypatch) -> None:
        monkeypatch.setattr(server, "_TICK_SECONDS", 0.02)
        upgrade = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
        with served(study) as running:
            for _ in range(20):
                assert running.raw(b"\0\1 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
                assert b"no_resource" in running.raw(upgrade)
            assert numbers(running, "turned_away_total") == {"malformed": 20}
            until(lambda: "turned away" in caplog.text)
        lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        assert len(lines) == 1
        assert "127.0.0.1" not in lines[0], "a leader's log holds no address"


class TestConnections:
    def test_attack_handshakes_without_an_end_are_counted_and_have_a_deadline(self, study, tmp_path, clock) -> None:
        """2,000 took 613 MiB, for a minute."""
        root = certified(tmp_path)
        said, trust = ssl.MemoryBIO(), ssl.create_default_context(cafile=root)
        with suppress(ssl.SSLWantReadError):
            trust.wrap_bio(ssl.MemoryBIO(), said, server_hostname="127.0.0.1").do_handshake()
        hello = said.read()
        with served(study, tmp_path / "tls", Limits(connections=8)) as server:
            lines = [connected(server) for _ in range(40)]
            for line in lines:
                with suppress(OSError):
                    line.sendall(hello)
            assert numbers(server, "connections")["no"] <= 8
            assert is_answered(server, "https", root), "no place becomes free by itself at this clock"
            clock.seconds += PATIENCE_SECONDS + 1
            until(lambda: numbers(server, "turned_away_total").get("slow", 0) >= 7)
            until(lambda: numbers(server, "connections")["no"] == 0)
            for line in lines:
                line.close()

    def test_attack_connections_that_say_nothing_make_room_for_whoever_comes(self, study, clock) -> None:
        """What passed the limit waited for ever: at 1,024 descriptors 1,400 of them locked every device out."""
        with served(study, limits=Limits(connections=8)) as server:
            lines = [connected(server) for _ in range(100)]
            until(lambda: closed_of(lines) == 92)
            assert is_answered(server), "no place becomes free by itself at this clock"
            assert numbers(server, "connections")["no"] <= 8
            for line in lines:
                line.close()

    def test_a_crowd_of_one_address_beyond_its_places_gets_in_by_asking_again(self, study) -> None:
        """Who makes room tries again, as the client in JavaScript does."""
        with served(study, limits=Limits(connections=8)) as server:

            def device(_: int) -> int:
                end = time.monotonic() + 60
                while time.monotonic() < end:
                    with suppress(UnreachableError), server.dial() as dial:
                        return dial.ask("GET", f"/v1/runs/{study.run}").status
                    time.sleep(0.01)
                return 0

            with ThreadPoolExecutor(40) as pool:
                assert set(pool.map(device, range(40))) == {503}

    def test_attack_a_manifest_takes_no_connection_out_of_counting(self, study) -> None:
        with served(study, limits=Limits(connections=8)) as server, server.dial() as dial:
            helpers = Helpers(server)
            waited(dial, study)
            lines = [connected(server) for _ in range(20)]
            for line in lines:
                with suppress(OSError):
                    line.sendall(GET % study.run.encode())
                    line.recv(1 << 16)
            # a helper that has just proved who it is counts while it is answered
            until(lambda: numbers(server, "connections")["yes"] == 0)
            assert numbers(server, "connections")["no"] <= 8
            server.asked("POST", "/give-up")
            helpers.join()

    def test_a_device_that_has_signed_makes_no_room_until_it_is_answered(self, study) -> None:
        with served(study, limits=Limits(connections=4)) as server, server.dial() as dial:
            helpers, run = Helpers(server), waited(dial, study)
            report = run.report(study.moments(0), 0, study.identities[0])
            head = f"PUT /v1/runs/{study.run}/reports/0 HTTP/1.1\r\nhost: a\r\ncontent-type: {REPORT}\r\n"
            head += f"{SIGNATURE}: {report[-64:].hex()}\r\ncontent-length: {len(report)}\r\n\r\n"
            with connected(server) as line:
                line.sendall(head.encode() + report[:-8])
                until(lambda: in_flight(server) == len(report))  # a helper that polls is counted as known too
                assert numbers(server, "connections")["yes"] >= 1
                lines = [connected(server) for _ in range(40)]
                line.sendall(report[-8:])
                assert line.recv(1 << 16).startswith(b"HTTP/1.1 201")
                until(lambda: numbers(server, "connections")["yes"] == 0)
            for each in lines:
                each.close()
            server.asked("POST", "/give-up")
            helpers.join()


class TestAdministration:
    def test_another_account_of_the_machine_hears_nothing_but_that_it_lives(self, study) -> None:
        with served(study) as server:
            token = study.leader / "admin.token"
            assert token.stat().st_mode & 0o777 == 0o600
            for shown in ("", "Bearer ", "Bearer 00", token.read_text().strip()):
                for path in ("/status", "/release", "/statements", "/metrics"):
                    assert server.asked("GET", path, authorization=shown)[0] == 401
                assert server.asked("POST", "/give-up", authorization=shown)[0] == 401
            assert server.asked("GET", "/healthz", authorization="")[0] == 200
            assert server.asked("GET", "/readyz", authorization="")[0] == 503
            assert server.asked("GET", "/status")[0] == 200
        assert not token.exists()

    def test_its_connections_are_counted_too(self, study) -> None:
        with served(study) as server:
            lines = [socket.create_connection(("127.0.0.1", server.admin), 10) for _ in range(200)]
            until(lambda: closed_of(lines) >= 136)
            assert server.asked("GET", "/healthz")[0] == 200
            for line in lines:
                line.close()


_LEADER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from pathlib import Path
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.serve import Address, serve
address = Address(certificate=Path(sys.argv[2]))
sys.exit(serve(LeaderRun.open(sys.argv[1]), address, started=lambda each: print(each.address, flush=True)))
"""


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it reads the memory of a process from /proc")
def test_attack_all_at_once_at_a_process_of_256_descriptors(study, tmp_path) -> None:
    """Memory, descriptors and log stay small, and a device at the strangers' own address is answered meanwhile."""
    root = certified(tmp_path)
    trust = ssl.create_default_context(cafile=root)
    words = [sys.executable, "-c", _LEADER, str(study.leader), str(tmp_path / "tls")]
    log = tmp_path / "log"
    with log.open("wb") as lines, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=lines, text=True) as leader:
        assert leader.stdout is not None
        port = int(leader.stdout.readline().rpartition(":")[2])

        def peak() -> int:
            told = Path(f"/proc/{leader.pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in told if line.startswith("VmHWM")) >> 10

        def line(tls: bool = True) -> socket.socket:
            plain = socket.create_connection(("127.0.0.1", port), 10)
            return trust.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain

        def said(what: bytes, times: int = 1, tls: bool = True) -> socket.socket:
            made = line(tls)
            with suppress(OSError):
                for _ in range(times):
                    made.sendall(what)
            return made

        hello = ssl.MemoryBIO()
        with suppress(ssl.SSLWantReadError):
            trust.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1").do_handshake()
        greeting, one = hello.read(), GET % study.run.encode()
        attacks: list[tuple[int, Callable[[], object]]] = [
            (8, lambda: said(one * 1000)),
            (200, lambda: said(greeting, tls=False)),
            (300, lambda: said(b"", tls=False)),
            (2, lambda: said(b"GET / HTTP/1.1\r\n" + b"a: " + b"b" * 60_000, 400)),
            (20, lambda: said(b"\0 nonsense\r\n\r\n")),
        ]
        before, held = peak(), []
        for number, attack in attacks:
            for _ in range(number):
                with suppress(OSError):
                    held.append(attack())
            with Dial(f"https://127.0.0.1:{port}", root, 5) as dial:
                assert dial.ask("GET", f"/v1/runs/{study.run}").status == 503, "the helpers are not here"
        assert peak() < before + 48
        assert len(os.listdir(f"/proc/{leader.pid}/fd")) < 256
        leader.terminate()
        assert leader.wait(20) == 0
    assert log.read_text().count("\n") < 10
