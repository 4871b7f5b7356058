"""The files of ``docs/production`` for devices: the compose file's commands, systemd's word, and a real nginx."""

import re
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial
from privstats.contrib.http.helper_desk import OFFER
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.contrib.http.settings import Limits
from privstats.engines.door.connection_limits import Limits as DoorLimits
from privstats.engines.door.ports import free_port
from tests.contrib.http.desk import ORIGIN, study_of_devices
from tests.contrib.http.test_door import until
from tests.contrib.http.test_serve import Helpers, served, waited
from tests.project.test_production import FOLDER, parsed
from tests.without import WHOLE

yaml = pytest.importorskip("yaml", reason="it comes with Flower")
COMPOSE = yaml.safe_load((FOLDER / "compose-http.yaml").read_text())["services"]


@WHOLE
def test_the_services_of_devices_run_commands_that_there_are_and_share_no_folder() -> None:
    for name in ("leader", "helper"):
        service = COMPOSE[name]
        assert str(parsed(service["command"])["home"]) == name
        asked = parsed(service["healthcheck"]["test"][2:])
        assert (str(asked["home"]), asked["healthy"]) == (name, True)
        assert (service["cap_drop"], service["ulimits"]) == (["ALL"], {"core": 0})
    volumes = [{volume.split(":")[0] for volume in COMPOSE[name]["volumes"]} for name in ("leader", "helper")]
    assert not volumes[0] & volumes[1]
    assert parsed(COMPOSE["leader"]["command"])["behind_proxy"]
    assert "ports" not in COMPOSE["helper"]


@pytest.mark.ci
def test_docker_reads_the_compose_file() -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker has no compose")
    done = subprocess.run(
        ["docker", "compose", "-f", FOLDER / "compose-http.yaml", "config", "--quiet"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = tmp_path / "privstats"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (FOLDER / "privstats-http.service").read_text().replace("/opt/privstats/bin/privstats", str(program))
    (tmp_path / "privstats-http.service").write_text(text.replace("User=privstats", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "privstats-http.service"], capture_output=True, text=True
    )
    assert "privstats-http.service:" not in done.stderr, done.stderr


def test_the_proxy_limits_each_client_and_all_to_less_than_the_leader_takes() -> None:
    """Behind a proxy the leader sees one address, which it must not limit."""
    text = re.sub(r"#.*", "", (FOLDER / "nginx-http.conf").read_text())
    limits = {zone: int(number) for zone, number in re.findall(r"limit_conn (\w+) (\d+);", text)}
    assert 0 < limits["clients"] < limits["all"] < DoorLimits().connections
    zones = dict(re.findall(r"limit_conn_zone (\S+) zone=(\w+):", text))
    assert zones == {"$client": "clients", "$server_name": "all"}
    (connections,) = map(int, re.findall(r"worker_connections (\d+);", text))
    (files,) = map(int, re.findall(r"worker_rlimit_nofile (\d+);", text))
    assert 2 * limits["all"] < connections < files
    (network,) = re.findall(r'"~(\^\S+)" \$network;', text)
    for one, other in (("2001:db8:1:2::7", "2001:db8:1:2:3:4:5:6"), ("2001:db8::7", "2001:db8::9:0:0:7")):
        assert re.findall(network, one) == re.findall(network, other) != []
    assert re.findall(network, "2001:db8:1:2::7") != re.findall(network, "2001:db8:1:3::7")
    assert not re.findall(network, "192.0.2.7")


def configured(place: Path, port: int, leader: int) -> str:
    """The file of the page, on ports and in a folder of this test, without TLS."""
    text = (FOLDER / "nginx-http.conf").read_text()
    text = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", text)
    text = re.sub(r"\n *ssl_certificate[^\n]*", "", text)
    text = text.replace("127.0.0.1:8443", f"127.0.0.1:{leader}").replace("https://survey.example", ORIGIN)
    text = text.replace("client_max_body_size 16m", "client_max_body_size 100k").replace("/var/log/nginx", str(place))
    folders = "".join(
        f"    {name}_temp_path {place}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"pid {place}/pid;\ndaemon off;\n{text.replace('http {', 'http {' + chr(10) + folders, 1)}"


@contextmanager
def proxied(place: Path, leader: int) -> Iterator[int]:
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("nginx is not installed")
    port = free_port()
    (place / "nginx.conf").write_text(configured(place, port, leader))
    process = subprocess.Popen([program, "-p", place, "-c", place / "nginx.conf", "-e", place / "start.log"])
    for _ in range(1200):
        assert process.poll() is None, "nginx has ended"
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(100)


@pytest.mark.ci
def test_behind_nginx_devices_are_told_apart_and_every_refusal_can_be_read(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path / "run", 5, 1)
    (tmp_path / "proxy").mkdir()
    with (
        served(study, limits=Limits(proxies=("127.0.0.1",))) as server,
        proxied(tmp_path / "proxy", server.port) as port,
    ):
        helpers = Helpers(server)
        with Dial(f"http://127.0.0.1:{port}") as dial:
            run = waited(dial, study)
            assert isinstance(run, DeviceRun)
            report = run.report(study.moments(0), 0, study.identities[0])
            assert run.send(dial, 0, report) == 201
            assert run.send(dial, 0, report) == 200
            path = f"/v1/runs/{study.run}/reports/1"
            headers = {"content-type": REPORT, SIGNATURE: report[-64:].hex(), "origin": ORIGIN}
            forged = dial.ask("PUT", path, report, headers)
            assert (forged.code, forged.headers["access-control-allow-origin"]) == ("wrong_sender", ORIGIN)
            large = dial.ask("PUT", path, bytes(200_000), headers)
            assert (large.status, large.code) == (413, "too_large")
            assert large.headers["access-control-allow-origin"] == ORIGIN
            assert "Retry-After" in large.headers["access-control-expose-headers"]
            foreign = dial.ask("PUT", path, bytes(200_000), {**headers, "origin": "https://elsewhere.example"})
            assert "access-control-allow-origin" not in foreign.headers
            assert dial.ask("GET", "/metrics").status == 404
            server.asked("POST", "/give-up")
            helpers.join()
    log = (tmp_path / "proxy" / "privstats.log").read_text()
    assert " PUT 201 " in log
    assert "reports" not in log
    assert "127.0.0.1" not in log + (tmp_path / "proxy" / "privstats-errors.log").read_text()


@pytest.mark.ci
def test_a_leader_that_is_away_is_a_code_that_a_page_reads_and_the_same_bytes_go_through_later(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path / "run", 5, 1)
    (tmp_path / "proxy").mkdir()
    with served(study) as server:
        helpers, leader = Helpers(server), server.port
        with server.dial() as dial:
            run = waited(dial, study)
        report = run.report(study.moments(0), 0, study.identities[0])
        with proxied(tmp_path / "proxy", free_port()) as port, Dial(f"http://127.0.0.1:{port}") as dial:
            away = dial.ask("GET", f"/v1/runs/{study.run}", headers={"origin": ORIGIN})
            assert (away.status, away.code, away.retry, away.after) == (503, "restarting", True, 10)
            assert away.headers["access-control-allow-origin"] == ORIGIN
        with proxied(tmp_path / "proxy", leader) as port, Dial(f"http://127.0.0.1:{port}") as dial:
            assert run.send(dial, 0, report) == 201
        server.asked("POST", "/give-up")
        helpers.join()


@pytest.mark.ci
def test_attack_one_client_behind_nginx_holds_its_own_connections_and_no_other_clients(tmp_path: Path) -> None:
    """4,100 offers that stopped after two bytes took every connection of the leader, for as long as they were held."""
    study = study_of_devices(tmp_path / "run")
    (tmp_path / "proxy").mkdir()
    offer = f"POST /v1/runs/{study.run}/offers/1 HTTP/1.1\r\nhost: leader.example\r\n"
    offer += f"content-type: {OFFER}\r\ncontent-length: 137\r\n\r\nxx"
    asked = f"GET /v1/runs/{study.run} HTTP/1.1\r\nhost: leader.example\r\nconnection: close\r\n\r\n"
    with (
        served(study, limits=Limits(proxies=("127.0.0.1",))) as server,
        proxied(tmp_path / "proxy", server.port) as port,
        ExitStack() as held,
    ):
        lines = []
        for _ in range(300):
            line = held.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            line.sendall(offer.encode())
            lines.append(line)
        until(lambda: len(select.select(lines, [], [], 0)[0]) == 300 - 256)
        for line in select.select(lines, [], [], 0)[0]:
            assert b'"code":"busy"' in line.recv(1 << 16), "nginx has passed 256 to the leader, and no more"
        other = held.enter_context(socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0)))
        other.sendall(asked.encode())
        assert b'"code":"no_panel"' in server.rest(other)
