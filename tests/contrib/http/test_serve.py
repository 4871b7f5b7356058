"""A leader on real sockets: deadlines of headers, connections of one address, TLS, the administration, and a stop."""

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.admin import ADMIN_TOKEN, ASKED, ask, bearer
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.intake import REPORT
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.serve import Address, Serving, serve
from privstats.contrib.http.settings import Limits, Settings
from privstats.engines.door import deadline_protocol
from privstats.engines.door.ports import free_port
from privstats.engines.network.folder import Folder
from privstats.errors import InUseError, LedgerError, LocalProtocolError, PrivstatsError
from tests.contrib.http.desk import Study, certified, study_of_devices


@dataclass
class Server:
    """A leader's process in a thread."""

    study: Study
    address: str
    admin: int
    stop: object

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def dial(self, scheme: str = "http", root: str | None = None) -> Dial:
        return Dial(f"{scheme}://127.0.0.1:{self.port}", root, 10)

    def raw(self, data: bytes, seconds: float = 10.0) -> bytes:
        """What comes back for these bytes until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as line:
            line.sendall(data)
            return self.rest(line)

    @staticmethod
    def rest(line: socket.socket) -> bytes:
        heard = b""
        while piece := line.recv(1 << 16):
            heard += piece
        return heard

    @property
    def token(self) -> str:
        """What its owner's requests to the administration show."""
        return bearer((self.study.leader / ADMIN_TOKEN).read_text().strip())

    def asked(self, method: str, path: str, **headers: str) -> tuple[int, bytes]:
        """The administration's answer."""
        line = HTTPConnection("127.0.0.1", self.admin, timeout=10)
        told = {ASKED: "1", "authorization": self.token}
        line.request(method, path, headers={**told, **headers})
        reply = line.getresponse()
        return reply.status, reply.read()


@contextmanager
def served(study: Study, certificate: Path | None = None, limits: Limits | None = None) -> Iterator[Server]:
    if limits is not None:
        settings = Settings.read(study.leader)
        told = Settings(settings.address, settings.closes, settings.until, settings.origins, limits)
        (study.leader / "http.toml").write_text(told.to_toml())
    here, running, admin = Event(), [], free_port()

    def started(serving: Serving) -> None:
        running.append(serving)
        here.set()

    codes: list[object] = []

    def work() -> None:
        try:
            run = LeaderRun.open(study.leader, say=lambda _: None)
            address = Address(certificate=certificate)
            codes.append(serve(run, address, admin_port=admin, started=started, signals=False))
        except BaseException as error:
            codes.append(error)
            here.set()

    thread = Thread(target=work, daemon=True)
    thread.start()
    assert here.wait(20)
    assert running, codes
    yield Server(study, running[0].address, admin, running[0].stop)
    running[0].stop()
    thread.join(10)
    assert codes == [0]


class Helpers:
    """Every helper of a study, in threads, over sockets."""

    def __init__(self, server: Server, scheme: str = "http", root: str | None = None) -> None:
        self.server, self.threads, self.ends = server, [], []
        for place in range(1, 1 + server.study.plan.helpers):
            home = server.study.helper(place)
            settings = Settings.read(home)
            address = f"{scheme}://127.0.0.1:{server.port}"
            told = Settings(address, settings.closes, settings.until)
            dialler = Dialler(Folder.open(home).round(0), told, root, pause=0.02, say=lambda _: None)
            self.threads.append(Thread(target=lambda each=dialler: self.ends.append(each.run()), daemon=True))
            self.threads[-1].start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(20)
        assert len(self.ends) == len(self.threads)


def waited(dial: Dial, study: Study) -> DeviceRun:
    end = time.monotonic() + 60
    while dial.ask("GET", f"/v1/runs/{study.run}").status != 200 and time.monotonic() < end:
        time.sleep(0.02)
    return DeviceRun.open(dial, study.run, study.pin)


def sent(server: Server, dial: Dial, indices: range) -> None:
    study, run = server.study, waited(dial, server.study)
    for index in indices:
        report = run.report(study.moments(index), index, study.identities[index])
        assert run.send(dial, index, report) == 201


def test_a_run_over_sockets_is_exact_and_its_release_is_the_administrations(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    with served(study) as server, server.dial() as dial:
        assert server.asked("GET", "/healthz")[0] == 200
        assert server.asked("GET", "/readyz")[0] == 503
        helpers = Helpers(server)
        sent(server, dial, range(4))
        assert server.asked("GET", "/readyz")[0] == 200
        assert server.asked("GET", "/release")[0] == 404
        assert server.asked("POST", "/close")[0] == 200
        helpers.join()
        status, release = server.asked("GET", "/release")
        assert (status, release) == (200, (study.leader / "release.safetensors").read_bytes())
        assert dial.ask("GET", "/release").code == dial.ask("GET", "/metrics").code == "no_resource"
        metrics = server.asked("GET", "/metrics")[1].decode()
        assert 'privstats_http_requests_total{code="201"}' in metrics
        assert 'privstats_http_helper_silent_seconds{place="2"}' in metrics
        told = json.loads(server.asked("GET", "/status")[1])
        assert (told["step"], told["reports"]) == ("over", 4)
        assert server.asked("GET", "/statements")[0] == 200
    found = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert np.array_equal(found.vector, study.exact(range(4)))


def test_the_administration_takes_no_page_of_another_origin(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    with served(study) as server:
        line = HTTPConnection("127.0.0.1", server.admin, timeout=10)
        line.request("POST", "/give-up", headers={"authorization": server.token})
        assert line.getresponse().status == 403
        assert server.asked("GET", "/status", host="attacker.example.org")[0] == 421
        assert server.asked("POST", "/give-up")[0] == 409  # nothing has begun
        assert server.asked("POST", "/nothing")[0] == 404


@pytest.mark.parametrize("deep", ["", "/".join(["a-folder-that-lies-deep"] * 6)], ids=["near", "deep"])
def test_the_administrations_file_is_its_owners_and_goes_with_the_process(tmp_path: Path, deep: str) -> None:
    """A Unix socket's name has some hundred bytes; a folder's may have more."""
    study, here, told = study_of_devices(tmp_path / deep), Event(), []
    run = LeaderRun.open(study.leader, say=lambda _: None)
    thread = Thread(
        target=lambda: serve(run, Address(), started=lambda each: (told.append(each), here.set()), signals=False)
    )
    thread.start()
    assert here.wait(20)
    path = study.leader / "admin.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ask(study.leader, "GET", "/healthz") == (200, b"healthy\n")
    with pytest.raises(InUseError):
        LeaderRun.open(study.leader)
    told[0].stop()
    thread.join(10)
    assert not path.exists()


def dripped(line: socket.socket) -> None:
    """Send a byte of a header every 50 ms, for longer than any deadline of these tests."""
    for _ in range(1200):
        line.sendall(b"x")
        time.sleep(0.05)


def test_a_slow_header_ends_at_its_deadline_whatever_byte_came_last(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(deadline_protocol, "HEADER_SECONDS", 0.5)
    with served(study_of_devices(tmp_path)) as server:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port), 10) as line:
            line.sendall(b"GET / HTTP/1.1\r\n")
            with pytest.raises(OSError):  # noqa: PT011  the system says which
                dripped(line)
            assert 0.4 < time.monotonic() - began < 10
        with socket.create_connection(("127.0.0.1", server.port), 10) as silent:
            assert silent.recv(100).startswith(b"HTTP/1.1 408")


def test_the_second_request_of_a_connection_has_a_deadline_too(tmp_path: Path, monkeypatch) -> None:
    with served(study_of_devices(tmp_path)) as server, socket.create_connection(("127.0.0.1", server.port), 10) as line:
        line.sendall(b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n")
        assert b"404" in line.recv(1 << 16)
        monkeypatch.setattr(deadline_protocol, "HEADER_SECONDS", 0.3)
        line.sendall(b"GET /no")
        assert b"408" in server.rest(line)


def test_a_body_in_chunks_and_one_of_a_false_length_are_refused(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    with served(study) as server, server.dial() as dial:
        helpers = Helpers(server)
        waited(dial, study)
        head = (
            f"PUT /v1/runs/{study.run}/reports/0 HTTP/1.1\r\nhost: a\r\ncontent-type: {REPORT}\r\nconnection: close\r\n"
        )
        assert b"length_required" in server.raw(
            head.encode() + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )
        assert b"wrong_length" in server.raw(head.encode() + b"content-length: 3\r\n\r\nabcdef")
        assert b"400" in server.raw(head.encode() + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd")
        server.asked("POST", "/give-up")
        helpers.join()


def test_a_leader_with_a_certificate_serves_devices_and_helpers_by_tls(tmp_path: Path) -> None:
    study, root = study_of_devices(tmp_path / "run", helpers=1), certified(tmp_path)
    with served(study, tmp_path / "tls") as server, server.dial("https", root) as dial:
        helpers = Helpers(server, "https", root)
        sent(server, dial, range(3))
        assert "certificate_days_left" in server.asked("GET", "/metrics")[1].decode()
        assert server.asked("POST", "/close")[0] == 200
        helpers.join()
        with pytest.raises(UnreachableError):
            server.dial().ask("GET", "/")  # in the clear


def test_a_plain_address_for_others_is_refused_without_a_proxy() -> None:
    with pytest.raises(LocalProtocolError, match="devices there would speak without TLS"):
        Address("0.0.0.0", 8443)
    assert Address("0.0.0.0", 8443, behind_proxy=True).tls is None


def test_a_leader_with_too_little_room_does_not_begin(tmp_path: Path, monkeypatch) -> None:
    study = study_of_devices(tmp_path)
    run = LeaderRun.open(study.leader, say=lambda _: None)
    usage = type(os)("usage")
    usage.free = 10
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(PrivstatsError, match=r"may need 0 MiB, and 0 are free: make room"):
        serve(run, Address(), signals=False)
    run.close()


def test_a_leader_whose_account_cannot_pay_takes_no_report(tmp_path: Path) -> None:
    """A plan at delta 1e-5 under a cap at 1e-6 started, and said so when everybody had answered."""
    named = {"unit": "client", "adjacency": "add-remove", "max_records_per_client": 4}
    privacy = ps.Privacy(model="panel", epsilon=3.0, delta=1e-5, **named)
    study = study_of_devices(tmp_path, privacy=privacy)
    ledger = ps.dp.Ledger.create(study.leader / "ledger")
    ledger.set_cap("survey", unit="client", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    run = LeaderRun.open(study.leader, say=lambda _: None)
    with pytest.raises(LedgerError, match="would reach epsilon .* at delta 1e-06: .* nothing was spent"):
        serve(run, Address(), started=lambda each: each.stop(), signals=False)
    run.close()
    assert ledger.account("survey").entries == ()
    ledger.set_cap("survey", unit="client", adjacency="add-remove", epsilon=3.0, delta=1e-5)
    run = LeaderRun.open(study.leader, say=lambda _: None)
    assert serve(run, Address(), started=lambda each: each.stop(), signals=False) == 0
    assert ledger.account("survey").entries == (), "it was asked, and nothing is spent before the release"
