"""``privstats http``: leader and helpers as processes, killed at any moment, how they stand, and a study's page."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.command import _started
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.settings import Settings
from privstats.engines.door.ports import free_port
from privstats.engines.network.key_agreement import key_agreement
from tests.contrib.http.desk import Study, study_of_devices

pytest.importorskip("uvicorn")

from privstats.contrib.http.serve import Serving


def started(home: Path, *words: str) -> subprocess.Popen:
    """A command in a process of its own; what it says goes to a file beside its folder."""
    environment = {**os.environ, "XDG_STATE_HOME": str(home.parent / f"{home.name}.state")}
    log = (home.parent / f"{home.name}.log").open("ab")
    return subprocess.Popen(
        [sys.executable, "-m", "privstats", "http", *words], env=environment, stderr=log, stdout=log
    )


def at_port(study: Study, port: int) -> Study:
    for home in (study.leader, *(study.helper(place) for place in range(1, 1 + study.plan.helpers))):
        settings = Settings.read(home)
        told = Settings(f"http://127.0.0.1:{port}", settings.closes, settings.until, settings.origins)
        (home / "http.toml").write_text(told.to_toml())
    return study


def waited(dial: Dial, path: str, status: int = 200, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if dial.ask("GET", path).status == status:
                return
        except UnreachableError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{path} never gave {status}")


class Process:
    """A command that is killed and started again."""

    def __init__(self, home: Path, *words: str) -> None:
        self.home, self.words, self.deaths = home, words, 0
        self.child = started(home, *words)

    def kill(self) -> None:
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.deaths += 1
        self.child = started(self.home, *self.words)

    def end(self) -> int:
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_processes_killed_at_random_moments_lose_no_confirmed_report(tmp_path: Path, seed: int) -> None:
    """Five kills a run, of the leader or its helper, while devices send over sockets: twenty in all."""
    chance = random.Random(seed)
    port = free_port()
    study = at_port(study_of_devices(tmp_path, 40, 1, least=30), port)
    leader = Process(study.leader, "lead", str(study.leader), "--address", f"127.0.0.1:{port}")
    helper = Process(study.helper(1), "help", str(study.helper(1)))
    kept: dict[int, bytes] = {}

    def devices(indices: range) -> None:
        with Dial(f"http://127.0.0.1:{port}") as dial:
            waited(dial, f"/v1/runs/{study.run}")
            run = DeviceRun.open(dial, study.run, study.pin)
            for index in indices:
                report = run.report(study.moments(index), index, study.identities[index])
                assert run.send(dial, index, report, sleep=lambda _: time.sleep(0.2), tries=300) in (200, 201)
                kept[index] = report
                time.sleep(chance.random() * 0.3)

    threads = [Thread(target=devices, args=(range(start, 36, 3),)) for start in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        time.sleep(chance.uniform(0.5, 4))
        chance.choice((leader, helper)).kill()
    for thread in threads:
        thread.join(120)
    assert len(kept) == 36
    with Dial(f"http://127.0.0.1:{port}") as dial:
        waited(dial, f"/v1/runs/{study.run}")
        for _ in range(100):
            closed = subprocess.run(
                [sys.executable, "-m", "privstats", "http", "close", str(study.leader)], check=False
            )
            if closed.returncode == 0:
                break
        waited(dial, f"/v1/runs/{study.run}/end")
    assert helper.child.wait(30) == leader.end() == 0
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert release.survivors == tuple(sorted(kept))
    assert np.array_equal(release.vector, study.exact(sorted(kept)))
    assert leader.deaths + helper.deaths == 5


@pytest.mark.ci
def test_a_leader_says_how_it_stands_and_ends_in_seconds(privstats, tmp_path: Path) -> None:
    port = free_port()
    study = at_port(study_of_devices(tmp_path, 5, 1), port)
    assert "not begun" in privstats("http", "status", str(study.leader), "--healthy", cwd=tmp_path, code=1).stdout
    leader = Process(study.leader, "lead", str(study.leader), "--address", f"127.0.0.1:{port}")
    with Dial(f"http://127.0.0.1:{port}") as dial:
        waited(dial, f"/v1/runs/{study.run}", 503)
        assert privstats("http", "status", str(study.leader), "--ready", cwd=tmp_path).returncode == 1
        refused = privstats("http", "close", str(study.leader), cwd=tmp_path)
        assert (refused.returncode, "offers are missing of helpers [1]" in refused.stderr) == (2, True)
        helper = Process(study.helper(1), "help", str(study.helper(1)))
        waited(dial, f"/v1/runs/{study.run}")
    assert privstats("http", "status", str(study.leader), "--ready", "--healthy", cwd=tmp_path).returncode == 0
    for _ in range(80):
        told = json.loads(privstats("http", "status", str(study.leader), "--json", cwd=tmp_path).stdout)
        if told["step"] == "report" and told["helpers"][0]["heard"] != "not since the leader started":
            break
        time.sleep(0.1)
    assert (told["reports"], told["helpers"][0]["offer"]) == ("0 of 5, 3 are needed", "here")
    joined = json.loads(privstats("http", "status", str(study.helper(1)), "--json", cwd=tmp_path).stdout)
    assert (joined["role"], joined["connected"]) == ("helper", True)
    assert "it was given up" in privstats("http", "give-up", str(study.leader), "--yes", cwd=tmp_path).stdout
    assert helper.child.wait(20) == 0
    began = time.monotonic()
    assert leader.end() == 0
    assert time.monotonic() - began < 6
    again = privstats("http", "give-up", str(study.leader), "--yes", cwd=tmp_path)
    assert (again.returncode, "ended on" in again.stderr) == (2, True)


def test_a_page_is_one_file_and_the_headers_that_go_with_it(privstats, tmp_path: Path) -> None:
    study = study_of_devices(tmp_path / "run", 5, 1)
    pinned = {"leader": "https://leader.example", "run": study.run, "study": study.pin}
    (tmp_path / "study.json").write_text(json.dumps(pinned))
    done = privstats("http", "page", "study.json", "site", cwd=tmp_path, code=0)
    html, headers = (tmp_path / "site" / "index.html").read_text(), (tmp_path / "site" / "headers.json").read_text()
    assert study.pin in html
    assert "connect-src https://leader.example" in json.loads(headers)["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in (tmp_path / "site" / "nginx-headers.conf").read_text()
    assert "sha256-" in done.stdout


def test_folders_that_cannot_serve_devices_are_refused_by_name(privstats, tmp_path: Path) -> None:
    study = study_of_devices(tmp_path / "run", 5, 1)
    told = privstats("http", "lead", str(study.helper(1)), cwd=tmp_path)
    assert (told.returncode, "identity.pem is not the server's" in told.stderr) == (2, True)
    told = privstats("http", "help", str(study.leader), cwd=tmp_path)
    assert (told.returncode, "identity.pem is no helper's" in told.stderr) == (2, True)
    (study.leader / "http.toml").unlink()
    told = privstats("http", "lead", str(study.leader), cwd=tmp_path)
    assert (told.returncode, "cannot read" in told.stderr) == (2, True)


def test_a_cluster_without_a_store_and_one_that_others_hear_are_refused(privstats, tmp_path: Path) -> None:
    study = study_of_devices(tmp_path / "run", 5, 1)
    told = privstats("http", "lead", str(study.leader), "--cluster", "tls://scheduler:1", cwd=tmp_path)
    assert (told.returncode, "--cluster and --store go together" in told.stderr) == (2, True)
    named = ("--cluster", "tcp://192.0.2.1:8786", "--store", "objects")
    told = privstats("http", "lead", str(study.leader), *named, cwd=tmp_path)
    assert (told.returncode, "is not encrypted, and keys of reports would travel there" in told.stderr) == (2, True)


@pytest.mark.parametrize("tls", [True, False])
def test_a_leader_says_how_its_tls_agrees_on_keys(tls: bool) -> None:
    told: list[str] = []
    run = SimpleNamespace(say=told.append, folder=SimpleNamespace(roster=SimpleNamespace(run=b"run")))
    _started(run, Serving("127.0.0.1:8443", lambda: None), tls=tls)
    assert (
        told == ["the leader serves 127.0.0.1:8443, run 72756e", f"TLS agrees on keys by {key_agreement()}"][: 1 + tls]
    )
