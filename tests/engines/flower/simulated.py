"""A study's parties in Flower's own simulation engine: the two apps as they are, a folder for each party."""

import os
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import tomli_w

import privstats as ps
from privstats.engines.door.ports import free_port
from privstats.engines.flower import client_app, server_app
from tests.engines.network.fake import Study, study_of
from tests.watchdog import watch

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(sysconfig.get_path("scripts"))
APP = ROOT / "privstats" / "engines" / "flower" / "template" / "app"
SECONDS = 280.0


def study_of_many(place: Path, parties: int) -> Study:
    """A study of so many parties, a fifth of whom may be missing, and their folders under ``parties``."""
    cohort = ps.Cohort(clients=parties, min_survivors=4 * parties // 5, colluders=5, max_records=100 * parties)
    study = study_of(place, names=[f"party {number}" for number in range(parties)], cohort=cohort)
    (place / "parties").mkdir()
    for number in range(parties):
        (place / "parties" / str(number)).symlink_to(study.home(number))
    return study


@contextmanager
def simulation(study: Study, place: Path) -> Iterator[Callable[[], subprocess.CompletedProcess[str]]]:
    """``flwr run`` of the app on a SuperLink of simulations, which ends with the block."""
    watch()
    parties = len(study.identities)
    nodes = f"num-supernodes={parties} client-resources-num-cpus=1 init-args-num-cpus=2"
    port = free_port()
    connection = {"address": f"127.0.0.1:{port}", "insecure": True}
    (place / "flower").mkdir()
    (place / "flower" / "config.toml").write_text(tomli_w.dumps({"superlink": {"study": connection}}))
    environment = {
        **os.environ,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "FLWR_HOME": str(place / "flower"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
        "RAY_USAGE_STATS_ENABLED": "0",
        server_app.HOME: str(study.host),
        client_app.PARTIES: str(place / "parties"),
    }
    superlink = subprocess.Popen(
        [
            *(PROGRAMS / "flower-superlink", "--simulation", "--insecure", "--disable-runtime-dependency-installation"),
            *("--host", "127.0.0.1", "--port", str(port)),
        ],
        env=environment,
        cwd=place,
        stdout=(place / "superlink.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _wait(lambda: _listens(port), "the SuperLink listens", 60, superlink)
        yield lambda: subprocess.run(
            [PROGRAMS / "flwr", "run", APP, "study", "--stream", "--federation-config", nodes],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    finally:
        with suppress(ProcessLookupError):
            os.killpg(superlink.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            superlink.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(superlink.pid, signal.SIGKILL)
        superlink.wait()


def _wait(ready: Callable[[], bool], what: str, seconds: float, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None, f"{what}: the process has ended"
        assert time.monotonic() < until, what
        time.sleep(0.1)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
