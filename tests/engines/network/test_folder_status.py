"""The standing of a folder while a session runs, waits, has been killed, and has ended; and its Prometheus text."""

import http.client
import json
import re
import socket
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from privstats.cli.ledger import history
from privstats.engines.network import metrics
from privstats.engines.network.folder_status import status_of
from privstats.engines.network.key_agreement import key_agreement
from privstats.engines.network.metrics import exposition, metrics_served
from privstats.engines.network.status_file import (
    SILENT_SECONDS,
    ConnectionStatus,
    PartyStatus,
    ServerStatus,
    Task,
    keep_connections,
    read_status,
    supervised,
    supervision,
)
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.files.text import json_text
from privstats.secagg.protocols import PROTOCOLS
from tests.engines.network.courses.study import course_study
from tests.engines.network.fake import FolderNet, study_of

LINE = r'privstats_[a-z_]+(?:\{(?:[a-z]+="[^"\\\n]*")(?:,[a-z]+="[^"\\\n]*")*\})? -?\d+(?:\.\d+)?(?:e[+-]\d+)?'


def facts(home: Path) -> dict[str, Any]:
    found = status_of(home).facts()
    assert json.loads(json_text(found)) == found
    return found


def files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_before_anything_has_begun(tmp_path: Path) -> None:
    study = study_of(tmp_path, "split")
    before = files(tmp_path)
    host = facts(study.host)
    assert (host["role"], host["session"], host["served"], host["rounds_ended"]) == ("server", "not begun", "no", 0)
    assert host["resumes"] == 'at its beginning: "flwr run study/app study" goes on from there'
    party, helper = facts(study.home(1)), facts(study.home(5))
    assert (party["role"], party["place"], party["connected"]) == ("party", "1 (Bonn)", False)
    assert party["resumes"] == "at the opening: nothing of this session is on the disk"
    assert (helper["role"], helper["place"]) == ("helper", "helper 1")
    assert host["plan"] == party["plan"] == study.plan.digest
    assert {each["tls_key_agreement"] for each in (host, party, helper)} == {str(key_agreement())}
    assert files(tmp_path) == before, "asking makes no key, no ledger and no file"


def test_who_is_missing_why_and_since_when(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    net.goes = {103: 1.0}
    net.comes = {104: 1e9}
    (net.study.home(2) / "records.py").unlink()
    seen: list[dict[str, Any]] = []

    def look(node: int, kind: str) -> None:
        seen.append(facts(net.study.host))
        if kind == "step":  # the others stay away, so that the step cannot be closed
            net.goes |= {100: net.now, 101: net.now, 103: net.now}

    net.meanwhile = look
    waits = net.run()
    assert "the plan needs 3" in waits.sentence
    assert {each["session"] for each in seen} == {"running"}
    host = facts(net.study.host)
    assert (host["session"], host["step"]) == ("stopped", "share")
    assert host["steps"][0] | {"seconds": 0, "bytes_received": 0, "bytes_sent": 0} == {
        "round": 0,
        "step": "advertise",
        "answered": 3,
        "missing": ["2 (Celle)", "4 (Essen)"],
        "seconds": 0,
        "bytes_received": 0,
        "bytes_sent": 0,
    }
    missing = {each["who"]: each["why"] for each in host["missing"]}
    assert missing["3 (St. Mary)"] == "is offline"
    assert host["refusals"] == {"no_data": 1}
    assert host["resumes"] == 'at step share: "flwr run study/app study" goes on from there'
    assert host["bytes_received"] > host["steps"][0]["bytes_received"] - 1 > 0


def test_a_missing_party_keeps_the_time_since_which_it_is_missing(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    net.run()
    first = read_status(net.study.host, ServerStatus)
    net.run()
    again = read_status(net.study.host, ServerStatus)
    assert [(each.place, each.why) for each in first.missing] == [(place, "unseen") for place in (2, 3, 4)]
    assert (again.missing, again.since) == (first.missing, first.since), "another run of the server asks for the same"
    assert again.updated >= first.updated


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_after_the_end_both_sides_say_so(protocol: str, tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path, protocol))
    sentence = net.ended().sentence
    host, party = facts(net.study.host), facts(net.study.home(1))
    assert (host["session"], host["rounds_ended"], host["missing"]) == ("ended", 1, [])
    assert host["resumes"] == f"{sentence}. A new one needs a new run name: privstats flower renew"
    assert [step["step"] for step in host["steps"]][-len(net.study.plan.masking.steps) :] == [
        *net.study.plan.masking.steps
    ]
    assert party["resumes"] == "nowhere: the server has declared this session over"
    assert (party["last_message"], party["last_answer"], party["refusals"]) == ("over", "ok", {})
    assert host["bytes_sent"] > 0
    net.study.renewed()
    assert facts(net.study.host)["session"] == "not begun", "what was kept is of another run"
    assert facts(net.study.home(1))["answers"] == 0


def test_a_party_in_the_middle_names_its_step(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    seen: list[str] = []
    net.meanwhile = lambda node, kind: seen.append(facts(net.homes[101])["resumes"]) if node == 101 else None
    net.ended()
    assert seen[0] == "at the opening: nothing of this session is on the disk"
    assert seen[2].startswith("with the server's next message, after step ")
    kept = read_status(net.study.home(1), PartyStatus)
    assert kept.answers == len(seen)


@pytest.mark.ci
def test_a_course_counts_its_rounds(tmp_path: Path) -> None:
    net = FolderNet(course_study(tmp_path))
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    net.run()
    host = facts(net.study.host)
    assert (host["session"], host["rounds_ended"], host["rounds"]) == ("stopped", 0, 3)
    assert host["resumes"].startswith("in round 0, at step advertise: ")
    assert host["course"] == net.study.course.digest
    net.goes = {}
    net.ended()
    host, account = facts(net.study.host), net.study.account(0)
    assert host["resumes"].endswith(
        "0, 1, 2, 3, 4: host/nodes/2/release.safetensors. A new one needs a new run name: privstats flower renew"
    )
    assert list(history(account).columns[-1].cells)[-1] == "3 rounds"


def test_a_stranger_is_told_that_it_is_one(tmp_path: Path) -> None:
    study, other = study_of(tmp_path / "one"), study_of(tmp_path / "two")
    (study.home(0) / "identity.pem").write_bytes((other.home(0) / "identity.pem").read_bytes())
    assert facts(study.home(0))["place"] == "none: identity.pem is not on roster.toml"
    assert not status_of(study.home(0)).ready


def test_a_status_that_is_damaged_or_cannot_be_written_stops_nothing(tmp_path: Path, caplog) -> None:
    net = FolderNet(study_of(tmp_path))
    (net.study.host / "status.json").write_text("[{")
    (net.study.home(1) / "status.json").mkdir()
    net.ended()
    assert "status.json stays as it was" in caplog.text
    assert facts(net.study.home(1))["answers"] == 0
    (net.study.host / "status.json").write_bytes(b"\xff")
    assert facts(net.study.host)["steps"] == []


class TestHealth:
    def test_a_party_is_healthy_while_it_is_joined_and_ready_while_it_is_connected(self, tmp_path: Path) -> None:
        home = study_of(tmp_path).home(0)
        assert (status_of(home).alive, status_of(home).ready) == (False, False)
        with supervised(home, "joined", "host:8000") as connected:
            assert (status_of(home).alive, status_of(home).ready) == (True, False)
            connected(True)
            assert (status_of(home).alive, status_of(home).ready) == (True, True)
            assert re.fullmatch(r"by process \d+ since .*, host:8000", facts(home)["joined"])
            assert "offline_since" not in facts(home)
            assert facts(home)["connected_since"] == facts(home)["last_work"]
            connected(False)
            assert not status_of(home).ready
            assert facts(home)["offline_since"] >= facts(home)["last_work"] > "20"
        assert (status_of(home).alive, status_of(home).ready) == (False, False)

    def test_a_connection_without_work_for_two_minutes_is_none(self, tmp_path: Path, monkeypatch) -> None:
        """Before, a node whose loop had ended was connected for good: its last word was that it is."""
        home, began = study_of(tmp_path).home(0), time.time()
        with supervised(home, "joined", "host:8000") as connected:
            assert facts(home)["last_work"] == "none"
            connected(True)
            monkeypatch.setattr(time, "time", lambda: began + SILENT_SECONDS + 60)
            assert not status_of(home).ready
            assert facts(home)["offline_since"] == facts(home)["last_work"]
            assert "privstats_connected 0\n" in exposition(home)
            connected(True)
            assert status_of(home).ready
            assert "privstats_connected 1\n" in exposition(home)

    def test_work_is_stored_every_few_seconds_and_a_change_at_once(self, tmp_path: Path, monkeypatch) -> None:
        home, now = study_of(tmp_path).home(0), [1000.0]
        monkeypatch.setattr(time, "time", lambda: now[0])
        stored = []
        with supervised(home, "joined", "host:8000") as connected:
            for later, state in ((0, True), (1, True), (4, True), (1, False), (9, False), (1, True)):
                now[0] += later
                connected(state)
                held = supervision(home, "joined")
                assert held is not None
                stored.append((held.connected, held.changed, held.worked))
        assert stored == [
            *[(True, 1000.0, 1000.0)] * 2,
            (True, 1000.0, 1005.0),
            *[(False, 1006.0, 1005.0)] * 2,
            (True, 1016.0, 1016.0),
        ]

    def test_what_a_killed_join_has_left_is_not_believed(self, tmp_path: Path) -> None:
        home = study_of(tmp_path).home(0)
        with supervised(home, "joined", "host:8000") as connected:
            connected(True)
            left = {name: (home / name).read_bytes() for name in (".joined", ".joined.lock")}
        for name, data in left.items():
            (home / name).write_bytes(data)
        assert not status_of(home).alive

    def test_a_server_is_ready_while_its_address_takes_connections(self, tmp_path: Path) -> None:
        home = study_of(tmp_path).host
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = f"0.0.0.0:{listening.getsockname()[1]}"
            assert not status_of(home).ready, "something listens there, and it is not ours"
            with supervised(home, "served", address):
                assert (status_of(home).alive, status_of(home).ready) == (True, True)
        with supervised(home, "served", address):
            assert (status_of(home).alive, status_of(home).ready) == (True, False)


class TestCertificate:
    @pytest.mark.parametrize(("task", "days"), [("served", 40), ("joined", 40), ("joined", -3)])
    def test_its_days_are_told_while_a_process_uses_it(self, tmp_path: Path, task: Task, days: int) -> None:
        study = study_of(tmp_path)
        home = study.host if task == "served" else study.home(0)
        end = datetime.now(UTC) + timedelta(days=days, hours=1)
        with supervised(home, task, "host:8000", end):
            told = facts(home)
            assert told["certificate_ends"] == end.isoformat(timespec="seconds")
            assert told["certificate_days_left"] == days
            (line,) = [
                line for line in exposition(home).splitlines() if line.startswith("privstats_certificate_days_left ")
            ]
            assert re.fullmatch(LINE, line)
            assert days < float(line.split()[1]) < days + 1 / 20
        assert "certificate_ends" not in facts(home)
        assert "certificate" not in exposition(home)

    def test_what_an_older_version_wrote_beside_its_lock_is_read(self, tmp_path: Path) -> None:
        home = study_of(tmp_path).home(0)
        with supervised(home, "joined", "host:8000"):
            (home / ".joined").write_text('{"process":1,"since":0.5,"address":"host:8000","connected":true}')
            assert (status_of(home).alive, status_of(home).ready) == (True, False), "no work of it is known"
            assert "certificate_ends" not in facts(home)


def asked_under(host: str, port: int) -> tuple[int, bytes]:
    """Ask the endpoint under a name of its host; return status and body."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    asked.request("GET", "/metrics", headers={"Host": host})
    reply = asked.getresponse()
    found = reply.status, reply.read()
    asked.close()
    return found


class TestMetrics:
    def test_every_line_is_in_the_format_and_every_family_is_announced_once(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path))
        net.goes = {103: 1.0, 104: 1.0}
        net.comes = {102: 1e9}
        (net.study.home(1) / "records.py").unlink()
        net.run()
        for home in (net.study.host, net.study.home(0), net.study.home(1)):
            lines = exposition(home).splitlines()
            values = [line for line in lines if not line.startswith("#")]
            assert all(re.fullmatch(LINE, line) for line in values), values
            names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
            assert len(names) == len(set(names))
            assert {re.split(r"[{ ]", line)[0] for line in values} == set(names)
            assert len(values) == len(set(values))
        assert 'privstats_refusals_total{code="no_data"} ' in exposition(net.study.home(1))

    def test_numbers_are_those_of_the_session(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path))
        net.ended()
        host, text = facts(net.study.host), exposition(net.study.host)
        assert f"privstats_received_bytes_total {host['bytes_received']}\n" in text
        assert "privstats_rounds_ended 1\n" in text
        assert "privstats_up 0\n" in text
        assert len(re.findall(r"privstats_step_seconds\{", text)) == len(net.study.plan.masking.steps)

    def test_the_endpoint_is_on_loopback_and_serves_nothing_else(self, tmp_path: Path) -> None:
        home = study_of(tmp_path).home(0)
        with metrics_served(home, 0) as port:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
                assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert reply.read().decode() == exposition(home)
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/identity.pem", timeout=60)
            with pytest.raises(
                PrivstatsError, match=f"cannot serve metrics on 127.0.0.1, port {port} .*: give another"
            ):
                metrics_served(home, port).__enter__()
            (home / "roster.toml").unlink()
            with pytest.raises(urllib.error.HTTPError, match="503"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=60)

    def test_connections_to_the_address_for_parties_are_counted_while_it_is_served(self, tmp_path: Path) -> None:
        home = study_of(tmp_path).host
        keep_connections(home, ConnectionStatus(3, 1, {"address": 882, "slow": 2}))
        assert "connections" not in exposition(home), "nobody serves: the numbers are of a process that was killed"
        with supervised(home, "served", "127.0.0.1:8000"):
            lines = exposition(home).splitlines()
        assert [line for line in lines if re.match("privstats_(connections|turned_away)", line)] == [
            'privstats_connections{signed="yes"} 3',
            'privstats_connections{signed="no"} 1',
            'privstats_turned_away_total{why="address"} 882',
            'privstats_turned_away_total{why="slow"} 2',
        ]
        assert all(re.fullmatch(LINE, line) for line in lines if line[0] != "#")

    def test_idle_connections_take_a_few_places_and_no_descriptors_beyond(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metrics, "_CONNECTIONS", 2)
        with metrics_served(study_of(tmp_path).home(0), 0) as port:
            held = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(6)]
            assert [each.recv(1) for each in held[2:]] == [b""] * 4
            for each in held:
                each.close()

    def test_an_idle_connection_ends_after_a_moment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics, "_CONNECTIONS", 1)
        monkeypatch.setattr(metrics, "_IDLE_SECONDS", 0.1)
        with metrics_served(study_of(tmp_path).home(0), 0) as port:
            for said in (b"", b"GET /metrics HTTP/1.1\r\n"):
                with socket.create_connection(("127.0.0.1", port), timeout=60) as held:
                    held.sendall(said)
                    assert held.recv(1) == b""

    def test_attack_a_page_reads_it_under_a_name_that_means_this_address(self, tmp_path: Path) -> None:
        with metrics_served(study_of(tmp_path).home(0), 0) as port:
            for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1]", "0", ""):
                status, body = asked_under(host, port)
                assert (status, b"privstats_up" in body) == (421, False), host

    def test_the_names_of_this_machine_are_answered_on_any_port(self, tmp_path: Path) -> None:
        """A container's port has another number outside."""
        with metrics_served(study_of(tmp_path).home(0), 0) as port:
            for host in ("127.0.0.1", "127.0.0.1:1", "localhost:9464", "LocalHost"):
                assert asked_under(host, port)[0] == 200, host

    def test_without_a_port_nothing_listens(self, tmp_path: Path) -> None:
        with metrics_served(tmp_path, None) as port:
            assert port == 0

    @pytest.mark.parametrize("port", [-1, 65536])
    def test_a_port_that_is_none_is_refused(self, tmp_path: Path, port: int) -> None:
        with pytest.raises(PrivstatsError, match="cannot serve metrics"):
            metrics_served(tmp_path, port).__enter__()


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalProtocolError, match="is no folder of a party or a server"):
        status_of(tmp_path / "nowhere")
