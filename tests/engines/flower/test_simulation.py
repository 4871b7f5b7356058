"""Fifty parties in Flower's own simulation engine: the two apps as they are, one folder for each party."""

import os
import signal
import socket
import subprocess
import sysconfig
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tomli_w

import privstats as ps
from privstats.engines.flower import client_app, server_app
from privstats.release import Release
from tests.engines.network.fake import SCHEMA, records_of, study_of
from tests.lacking import needs

PARTIES = 50
ROOT = Path(__file__).parents[3]
PROGRAMS = Path(sysconfig.get_path("scripts"))
NODES = f"num-supernodes={PARTIES} client-resources-num-cpus=1 init-args-num-cpus=2"
APP = ROOT / "privstats" / "engines" / "flower" / "template" / "app"


@pytest.fixture
def study(tmp_path):
    names = [f"party {number}" for number in range(PARTIES)]
    cohort = ps.Cohort(clients=PARTIES, min_survivors=40, colluders=5, max_records=5000)
    study = study_of(tmp_path, names=names, cohort=cohort)
    (tmp_path / "parties").mkdir()
    for number in range(PARTIES):
        (tmp_path / "parties" / str(number)).symlink_to(study.home(number))
    return study


@pytest.fixture
def run(study, tmp_path):
    """``flwr run`` of the app on a SuperLink of simulations; it ends with the test."""
    needs("ray")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    connection = {"address": f"127.0.0.1:{port}", "insecure": True}
    (tmp_path / "flower").mkdir()
    (tmp_path / "flower" / "config.toml").write_text(tomli_w.dumps({"superlink": {"study": connection}}))
    environment = {
        **os.environ,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "FLWR_HOME": str(tmp_path / "flower"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
        "RAY_USAGE_STATS_ENABLED": "0",
        server_app.HOME: str(study.host),
        client_app.PARTIES: str(tmp_path / "parties"),
    }
    superlink = subprocess.Popen(
        [
            *(PROGRAMS / "flower-superlink", "--simulation", "--insecure", "--disable-runtime-dependency-installation"),
            *("--host", "127.0.0.1", "--port", str(port)),
        ],
        env=environment,
        cwd=tmp_path,
        stdout=(tmp_path / "superlink.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _wait(lambda: _listens(port), "the SuperLink listens", 60)
        yield lambda: subprocess.run(
            [PROGRAMS / "flwr", "run", APP, "study", "--stream", "--federation-config", NODES],
            env=environment,
            capture_output=True,
            text=True,
            timeout=280,
        )
    finally:
        with suppress(ProcessLookupError):
            os.killpg(superlink.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            superlink.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(superlink.pid, signal.SIGKILL)
        superlink.wait()


def _wait(ready, what, seconds):
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def _listens(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.mark.nightly
@pytest.mark.waits
def test_fifty_parties_give_the_exact_sum(study, run, tmp_path):
    said = run()
    path = study.host / "release.safetensors"
    assert path.exists(), said.stdout + said.stderr + (tmp_path / "superlink.log").read_text()[-3000:]
    release = Release.load(path)
    assert release.survivors == tuple(range(PARTIES))
    whole = ps.measure(SCHEMA, *map(np.concatenate, zip(*map(records_of, range(PARTIES)), strict=True)))
    assert vars(release.moments)
    for name, array in vars(Release.exact(SCHEMA, whole).moments).items():
        np.testing.assert_array_equal(getattr(release.moments, name), array)
