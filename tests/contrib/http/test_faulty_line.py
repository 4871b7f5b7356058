"""Attack: lines that fail in every way between a leader, its helper and its devices; each goes on once they heal."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.settings import Settings
from privstats.contrib.http.standing import Standing
from privstats.engines.door.ports import free_port
from privstats.engines.network.folder import Folder
from privstats.engines.network.status_file import read_status
from tests.contrib.http.crowd import CLASSES, CLIENT, SCRIPT, Crowd, invited
from tests.contrib.http.desk import Study, certified, study_of_devices
from tests.engines.flower.tls import polled
from tests.faulty_proxy import FAULTS, FaultyProxy, seconds_until
from tests.javascript.node import needs_node
from tests.threads import join
from tests.watchdog import watch

pytest.importorskip("uvicorn")

from tests.contrib.http.test_command import Process, waited
from tests.contrib.http.test_serve import served
from tests.contrib.http.test_serve import waited as opened

FAULTY_SECONDS, PATIENCE = 3.0, 180.0


@contextmanager
def striking(proxy: FaultyProxy, fault: str) -> Iterator[None]:
    """Let a line fail in the block until the fault has met something."""
    proxy.begin(fault)
    healing = threading.Thread(target=lambda: (proxy.struck.wait(60), proxy.heal()))
    healing.start()
    try:
        yield
    finally:
        join(healing)


@pytest.mark.parametrize("fault", FAULTS)
def test_attack_after_any_fault_the_same_client_is_answered_again(fault, tmp_path):
    authority = certified(tmp_path)
    with (
        polled(tmp_path / "tls") as port,
        FaultyProxy(port, delay_seconds=1.0) as proxy,
        Dial(f"https://{proxy.address}", authority, seconds=0.5) as dial,
    ):
        assert dial.ask("POST", "/", b"report").status == 200
        before = proxy.accepted
        with striking(proxy, fault):
            while not proxy.struck.is_set():
                try:
                    dial.ask("POST", "/", b"report")
                except UnreachableError as error:
                    assert "gave no answer" in str(error)
        assert dial.ask("POST", "/", b"report").status == 200
        assert proxy.accepted > before, "a fault that nothing notices proves nothing"


def at(home: Path, address: str) -> Settings:
    """The settings of a folder under another address."""
    return replace(Settings.read(home), address=f"https://{address}", origins=())


ONE_IN_EVERY_RUN = [pytest.param(each, marks=() if each == "cut" else pytest.mark.nightly) for each in FAULTS]


@pytest.mark.parametrize("fault", ONE_IN_EVERY_RUN)
def test_attack_a_fault_on_the_lines_of_helper_and_device_loses_no_report(fault, tmp_path):
    authority, study = certified(tmp_path), study_of_devices(tmp_path / "study", 5, 1)
    with (
        served(study, tmp_path / "tls") as server,
        FaultyProxy(server.port, delay_seconds=1.0) as to_helper,
        FaultyProxy(server.port, delay_seconds=1.0) as to_device,
        Dial(f"https://{to_device.address}", authority, seconds=0.5) as dial,
    ):
        home, said = study.helper(1), []
        helper = Dialler(
            Folder.open(home).round(0),
            at(home, to_helper.address),
            authority,
            pause=0.02,
            say=said.append,
            sleep=lambda seconds: time.sleep(min(seconds, 0.1)),
            connect=lambda *where: Dial(*where, seconds=0.5),
        )
        helping = threading.Thread(target=lambda: said.append(helper.run()))
        helping.start()
        run = opened(dial, study)
        reports = [run.report(study.moments(index), index, study.identities[index]) for index in range(5)]
        with striking(to_helper, fault):
            to_helper.struck.wait(60)
        for index, report in enumerate(reports[:4]):
            with striking(to_device, fault) if index == 1 else ExitStack():
                assert run.send(dial, index, report, sleep=lambda _: time.sleep(0.05), tries=400) in (200, 201)
        with striking(to_helper, fault):
            assert run.send(dial, 4, reports[4]) == 201
            to_helper.struck.wait(60)
        join(helping)
        assert said[-1] == "the run has ended"
        release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
        assert release.survivors == tuple(range(5))
        assert np.array_equal(release.vector, study.exact(range(5)))


class Parties:
    """A leader, its helper and devices of Node, each a process, over TLS and a line of its own."""

    def __init__(self, place: Path, study: Study, links: list[str], port: int, authority: str) -> None:
        self.place, self.study, self.links, self.authority = place, study, links, authority
        self.to_helper, self.to_devices = (FaultyProxy(port, delay_seconds=1.0) for _ in range(2))
        self.port = port

    def __enter__(self) -> "Parties":
        watch()
        with ExitStack() as opening:
            for line in (self.to_helper, self.to_devices):
                opening.enter_context(line)
            home = self.study.helper(1)
            (home / "http.toml").write_text(at(home, self.to_helper.address).to_toml())
            listens = ("--address", f"127.0.0.1:{self.port}", "--certificate", str(self.place / "tls"))
            self.leader = Process(self.study.leader, "lead", str(self.study.leader), *listens)
            opening.callback(self.leader.child.kill)
            self.helper = Process(home, "help", str(home), "--root-certificates", self.authority)
            opening.callback(self.helper.child.kill)
            with Dial(f"https://{self.to_devices.address}", self.authority) as dial:
                waited(dial, f"/v1/runs/{self.study.run}")
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def heard(self) -> float:
        """When the leader last heard its helper."""
        standing = read_status(self.study.leader, Standing)
        return 0.0 if standing is None else standing.helpers[0].heard

    @contextmanager
    def device(self, index: int) -> Iterator[subprocess.Popen[str]]:
        """A device that has sealed its report, and sends it after a line on its standard input."""
        told = {
            "client": CLIENT.as_uri(),
            "pins": {"leader": f"https://{self.to_devices.address}", "run": self.study.run, "study": self.study.pin},
            "links": [(index, self.links[index])],
            "classes": CLASSES,
            "features": self.study.plan.schema.features,
            "connections": 1,
            "patience": PATIENCE,
        }
        path = self.place / f"device {index}.json"
        path.write_text(json.dumps(told))
        words = ["env", f"NODE_EXTRA_CA_CERTS={self.authority}", "node", str(SCRIPT), str(path)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
            try:
                assert json.loads(node.stdout.readline())["sealed"] == 1
                yield node
            finally:
                node.kill()


def failing(proxy: FaultyProxy, fault: str, act: Callable[[], object] = lambda: None) -> float:
    """Let a line fail, act, wait until the fault has met something and some seconds more; return when it was healed."""
    proxy.begin(fault)
    act()
    assert proxy.struck.wait(PATIENCE), f"{fault} meets nothing"
    time.sleep(FAULTY_SECONDS)
    proxy.heal()
    return time.time()


@needs_node
@pytest.mark.nightly
@pytest.mark.waits
def test_attack_no_fault_takes_a_helper_or_a_device_out(tmp_path):
    port, authority = free_port(), certified(tmp_path)
    study, links = invited(tmp_path / "study", len(FAULTS) + 1, 3, port, 100)
    with Parties(tmp_path, study, links, port, authority) as parties:
        for fault in FAULTS:
            good = failing(parties.to_helper, fault)
            assert seconds_until(lambda since=good: parties.heard > since, PATIENCE) < PATIENCE, fault
            assert parties.helper.child.poll() is None
        for index, fault in enumerate(FAULTS):
            with parties.device(index) as device:
                failing(parties.to_devices, fault, lambda node=device: print("go", file=node.stdin, flush=True))
                found = json.loads(device.stdout.readline())
                assert (found["sent"], found["refused"]) == ([index], {}), fault
        failing(parties.to_helper, "cut", Process(study.leader, "close", str(study.leader)).child.wait)
        assert parties.helper.child.wait(PATIENCE) == 0
        assert parties.leader.end() == 0
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert release.survivors == tuple(range(len(FAULTS)))
    assert np.array_equal(release.vector, Crowd(study, None, links, 1, 1).total(release.survivors))
