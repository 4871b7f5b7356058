"""Attack: a line between nodes and SuperLink that fails in every way for eight seconds, over real processes and TLS."""

import time
from pathlib import Path

import pytest

from privstats.engines import flower
from privstats.engines.door.ports import free_port
from privstats.engines.network.folder_status import status_of
from privstats.engines.network.status_file import supervision
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import study_of
from tests.faulty_proxy import FAULTS, FaultyProxy

APP = Path(flower.__file__).parent / "template" / "app"
FAULTY_SECONDS = 8.0


def all_answered_since(federation, when):
    now = time.time()
    held = [supervision(home, "joined") for home in federation.homes]
    return all(each is not None and each.works(now) and each.worked > when for each in held)


@pytest.mark.nightly
@pytest.mark.waits
def test_attack_no_fault_on_the_line_takes_a_party_out(tmp_path):
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
            if fault in ("close", "cut"):
                facts = [status_of(home).facts() for home in federation.homes]
                assert not any(each["connected"] for each in facts)
                assert all(each["offline_since"] >= each["last_work"] > "20" for each in facts)
            proxy.heal()
            healed = time.time()
            federation.wait(lambda since=healed: all_answered_since(federation, since), f"all are back after {fault}")
        run = federation.start_session(APP)
        federation.finish_session(run)
        for home in federation.homes:
            assert "not connected since 20" in federation.log_of(home.name)
