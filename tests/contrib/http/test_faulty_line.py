"""Attack: lines that fail in every way between a leader, its helper and its devices; each goes on once they heal."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.settings import Settings
from privstats.engines.flower.certificates import write_certificates
from privstats.engines.network.folder import Folder
from tests.contrib.http.desk import study_of_devices
from tests.engines.flower.tls import polled
from tests.faulty_proxy import FAULTS, FaultyProxy
from tests.threads import join

pytest.importorskip("uvicorn")

from tests.contrib.http.test_serve import served
from tests.contrib.http.test_serve import waited as opened

FAULTY_SECONDS, PATIENCE = 3.0, 180.0


def certified(place: Path) -> str:
    """Certificates in the folder ``tls``, and the path of their authority."""
    write_certificates(place / "tls", ["127.0.0.1"], days=1)
    return str(place / "tls" / "ca.pem")


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
