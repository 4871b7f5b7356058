"""Attack: lines between nodes, SuperLink and server app that fail in every way, over real processes and TLS."""

import time
from pathlib import Path

import pytest

from privstats.engines import flower
from privstats.engines.door.ports import free_port
from privstats.engines.network.folder_status import status_of
from privstats.engines.network.status_file import supervision
from privstats.release import Release
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import study_of
from tests.faulty_proxy import FAULTS, FaultyProxy

APP = Path(flower.__file__).parent / "template" / "app"
FAULTY_SECONDS = 8.0


def answered_since(home, when):
    held = supervision(home, "joined")
    return held is not None and held.works(time.time()) and held.worked > when


def all_answered_since(federation, when):
    return all(answered_since(home, when) for home in federation.homes)


def statuses(federation):
    return [status_of(home).facts() for home in federation.homes]


def wait_until_back(federation, fault):
    """Wait until each party works again; return the seconds of each."""
    healed, back = time.time(), {}

    def all_back():
        for home in federation.homes:
            if home.name not in back and answered_since(home, healed):
                back[home.name] = round(time.time() - healed, 1)
        return len(back) == len(federation.homes) and all(each["connected"] for each in statuses(federation))

    federation.wait(all_back, f"all are back after {fault}, and status says so")
    return back


@pytest.mark.nightly
@pytest.mark.waits
def test_attack_no_fault_on_the_line_takes_a_party_out(tmp_path, record_property):
    """Before, after one flipped bit, a proxy that closed or connections that were cut, nodes were offline for good."""
    port = free_port()
    with (
        FaultyProxy(port) as proxy,
        Federation(study_of(tmp_path, "interactive"), tmp_path / "federation", port, proxy.address) as federation,
    ):
        federation.wait(lambda: all_answered_since(federation, 0.0), "every node is connected")
        for fault in FAULTS:
            for _ in federation.homes if fault.startswith("flip") else (0,):
                proxy.begin(fault)
                federation.wait(proxy.struck.is_set, f"{fault} meets a connection")
            time.sleep(FAULTY_SECONDS)
            facts = statuses(federation)
            if fault in ("close", "cut"):
                assert not any(each["connected"] for each in facts)
                assert all(each["offline_since"] >= each["last_work"] > "20" for each in facts)
            proxy.heal()
            record_property(f"{fault}: seconds until back", wait_until_back(federation, fault))
            record_property(f"{fault}: status said connected", [each["connected"] for each in facts])
        run = federation.start_session(APP)
        federation.finish_session(run)
        for home in federation.homes:
            said = [line for line in federation.log_of(home.name).splitlines() if "onnected" in line]
            record_property(f"{home.name} said", said)
            assert any("not connected since 20" in line for line in said)


def held_session(federation):
    """A session whose every party has been asked for its part, and holds the answer back; and what lets them go on."""
    federation.wait(lambda: all_answered_since(federation, 0.0), "every node is connected")
    gates = [f"{home.name}.1" for home in federation.homes]
    federation.shut(*gates)
    run = federation.start_session(APP)
    federation.wait_for(*(f"{gate}.asked" for gate in gates))
    return run, lambda: federation.open(*gates)


def assert_whole(federation, run):
    federation.finish_session(run)
    release = Release.load(federation.study.host / "release.safetensors")
    assert release.survivors == tuple(range(len(federation.homes)))


@pytest.mark.nightly
@pytest.mark.waits
@pytest.mark.parametrize("fault", ["flip", "flip-request", "cut"])
def test_attack_a_fault_during_a_sessions_transfer_costs_no_party(tmp_path, fault):
    port = free_port()
    with (
        FaultyProxy(port) as proxy,
        Federation(study_of(tmp_path, "interactive"), tmp_path / "federation", port, proxy.address) as federation,
    ):
        run, let_go = held_session(federation)
        proxy.begin(fault)
        let_go()
        federation.wait(proxy.struck.is_set, f"{fault} meets a connection")
        time.sleep(2.0)
        proxy.heal()
        assert_whole(federation, run)


@pytest.mark.nightly
@pytest.mark.waits
def test_attack_no_fault_on_the_coordinators_own_line_ends_its_run(tmp_path):
    """The server app reaches the SuperLink over TLS, on one machine."""
    control = free_port()
    study, place = study_of(tmp_path, "interactive"), tmp_path / "federation"
    with (
        FaultyProxy(control) as proxy,
        Federation(study, place, control_port=control, own_line=proxy.address) as federation,
    ):
        run, let_go = held_session(federation)
        for fault in ("flip", "flip-request", "close", "cut"):
            proxy.begin(fault)
            federation.wait(proxy.struck.is_set, f"{fault} meets a connection")
            time.sleep(2.0)
            proxy.heal()
        let_go()
        assert_whole(federation, run)
