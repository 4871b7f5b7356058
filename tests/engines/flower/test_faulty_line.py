"""Attack: lines between nodes, SuperLink and server app that fail in every way, over real processes and TLS."""

import time
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.engines import flower
from privstats.engines.door.ports import free_port
from tests import made
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import open_accounts, study_of
from tests.faulty_proxy import FAULTS, FaultyProxy

APP = Path(flower.__file__).parent / "template" / "app"
FAULTY_SECONDS = 8.0


@pytest.mark.nightly
@pytest.mark.waits
def test_attack_no_fault_on_the_line_takes_a_party_out(tmp_path, record_property):
    """Before, after one flipped bit, a proxy that closed or connections that were cut, nodes were offline for good."""
    port = free_port()
    with (
        FaultyProxy(port) as proxy,
        Federation(study_of(tmp_path, "interactive"), tmp_path / "federation", port, proxy.address) as federation,
    ):
        federation.wait_until_connected()
        for fault in FAULTS:
            for _ in federation.homes if fault.startswith("flip") else (0,):
                proxy.begin(fault)
                federation.wait(proxy.struck.is_set, f"{fault} meets a connection")
            time.sleep(FAULTY_SECONDS)
            facts = federation.statuses()
            if fault in ("close", "cut"):
                assert not any(each["connected"] for each in facts)
                assert all(each["offline_since"] >= each["last_work"] > "20" for each in facts)
            proxy.heal()
            record_property(f"{fault}: seconds until back", federation.wait_until_back(fault))
            record_property(f"{fault}: status said connected", [each["connected"] for each in facts])
        run = federation.start_session(APP)
        federation.finish_session(run)
        for home in federation.homes:
            said = [line for line in federation.log_of(home.name).splitlines() if "onnected" in line]
            record_property(f"{home.name} said", said)
            assert any("not connected since 20" in line for line in said)


def held_session(federation):
    """A session whose every party has been asked for its part, and holds the answer back; and what lets them go on."""
    federation.wait_until_connected()
    gates = [f"{home.name}.1" for home in federation.homes]
    federation.shut(*gates)
    run = federation.start_session(APP)
    federation.wait_for(*(f"{gate}.asked" for gate in gates))
    return run, lambda: federation.open(*gates)


def assert_whole(federation, run):
    federation.finish_session(run)
    federation.assert_exact(range(len(federation.homes)))


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


LARGE = 1_000
"""Number of columns; each upload has 2 MB."""


def large_study(place):
    """Parties with noise and an account each, so that the same records enter several sums."""
    schema, cohort = ps.ClassSchema(2, LARGE, "NAB", clip_norm=2.0), ps.Cohort(5, 4, 100, colluders=1)
    study = study_of(place, schema=schema, cohort=cohort, privacy=made.promise("distributed"))
    open_accounts(study, 100.0)
    for peer in range(len(study.identities)):
        X = np.random.default_rng(peer).normal(size=(8, LARGE))
        np.savez(study.home(peer) / "records.npz", X=X, y=np.arange(8) % 2)
    return study


@pytest.mark.nightly
@pytest.mark.waits
@pytest.mark.parametrize("faults", [FAULTS[::2], FAULTS[1::2]], ids="-".join)
def test_attack_a_fault_within_a_large_message_costs_no_party(tmp_path, faults, record_property):
    """In each session a fault meets the parties' line during uploads, then the server app's during downloads."""
    port, control, study = free_port(), free_port(), large_study(tmp_path)
    half = study.plan.masking.upload_bytes * 5 // 2
    with (
        FaultyProxy(port) as upload,
        FaultyProxy(control) as download,
        Federation(
            study, tmp_path / "federation", port, upload.address, control_port=control, own_line=download.address
        ) as federation,
    ):
        federation.wait_until_connected()
        for fault in faults:
            for line in (upload, download):
                line.begin(fault, after=half)
            run = federation.start_session(APP)
            for line in (upload, download):
                federation.wait(line.struck.is_set, f"{fault} meets a connection")
                time.sleep(2.0)
                line.heal()
            healed = time.time()
            assert_whole(federation, run)
            record_property(f"{fault}: seconds until the release", round(time.time() - healed, 1))
            federation.next_session()
