"""A crowd of devices: processes of Node with the library's own client, a leader that may be killed, and the sum.

Leader and helper are processes of their own, over loopback sockets; the leader's processor time and memory are read
from the system. Devices' records follow from their index, so the sum is known.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats.contrib.http import registrar
from privstats.contrib.http.admin import ADMIN_TOKEN, ASKED, bearer
from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.contrib.http.settings import Settings
from privstats.encoding import flatten
from privstats.engines.door.ports import free_port
from privstats.plan.settings import EXACT
from privstats.secagg import Identity
from tests import made
from tests.contrib.http.desk import Study
from tests.watchdog import watch

__all__ = ["CLASSES", "CLIENT", "SCRIPT", "Crowd", "Leading", "Outcome", "crowd_of", "invited"]

CLASSES = 10
CLIENT = Path(__file__).parents[3] / "clients/javascript/privstats.js"
SCRIPT = Path(__file__).with_name("crowd.mjs")
_PAGE = "http://127.0.0.1:8766"
_LEADER = """
import sys
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.serve import Address, serve
run = LeaderRun.open(sys.argv[1], say=lambda line: None)
print("open", flush=True)
place, admin = Address(port=int(sys.argv[2])), int(sys.argv[3])
sys.exit(serve(run, place, admin_port=admin, started=lambda _: print("serves", flush=True)))
"""
_HELPER = """
import sys
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.settings import Settings
from privstats.engines.network.folder import Folder
folder, settings = Folder.open(sys.argv[1]).round(0), Settings.read(sys.argv[1])
Dialler(folder, settings, pause=float(sys.argv[2]), say=lambda line: None).run()
"""


@dataclass
class Leading:
    """A leader's process, which can be killed and started again.

    Attributes:
        seconds: of processor time, over all its lives, without its starts.
        peak: most memory above its start, in bytes.
        deaths: kills so far.
    """

    home: Path
    port: int
    admin: int
    seconds: float = 0.0
    peak: int = 0
    deaths: int = 0
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        told = [sys.executable, "-c", _LEADER, str(self.home), str(self.port), str(self.admin)]
        log = self.home.with_name(f"{self.home.name}.log")
        self.process = subprocess.Popen(told, stdout=subprocess.PIPE, stderr=log.open("ab"), text=True)
        assert self.process.stdout is not None
        for word in ("open", "serves"):
            assert self.process.stdout.readline().strip() == word, f"the leader did not start: {_said(log)}"
            self._base = self._memory("VmRSS") if word == "open" else self._base
        self._begun = self._spent()

    def _memory(self, name: str) -> int:
        assert self.process is not None
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))

    def _spent(self) -> float:
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self) -> None:
        """Add the processor time since the last look, or since it served, and look at its memory."""
        spent = self._spent()
        self.seconds, self._begun = self.seconds + spent - self._begun, spent
        self.peak = max(self.peak, self._memory("VmHWM") - self._base)

    def kill(self) -> None:
        """End it by SIGKILL and start it again."""
        self.read()
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.deaths += 1
        self.start()

    @property
    def reports(self) -> int:
        """On its disk, as it says."""
        lines = self.asked("GET", "/metrics")[1].decode().splitlines()
        return int(next(float(line.split()[1]) for line in lines if line.startswith("privstats_http_reports ")))

    def asked(self, method: str, path: str) -> tuple[int, bytes]:
        """The administration's answer."""
        line = HTTPConnection("127.0.0.1", self.admin, timeout=60)
        line.request(
            method, path, headers={ASKED: "1", "authorization": bearer((self.home / ADMIN_TOKEN).read_text().strip())}
        )
        reply = line.getresponse()
        return reply.status, reply.read()

    def stop(self) -> None:
        """End it as an operator does."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


@dataclass
class Outcome:
    """What devices say happened.

    Attributes:
        sent: devices that were told that their report is on the disk.
        latencies: seconds from the first attempt to that answer, sorted.
        seconds: until the last one.
        refused: other answers.
        report_bytes: of one report.
        device_seconds: processor time of a device that opens, measures and seals.
    """

    sent: list[int] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    refused: Counter[str] = field(default_factory=Counter)
    report_bytes: int = 0
    device_seconds: float = 0.0

    def percentile(self, share: float) -> float:
        """The latency that so many devices did not exceed."""
        return float(np.quantile(self.latencies, share))


@dataclass
class Crowd:
    """Devices of one study in several processes of Node.

    Args:
        study: the folders.
        leading: the leader.
        links: of all devices, by their index.
        processes: of Node.
        connections: at once, in all processes.
        patience: seconds for which a device tries.
    """

    study: Study
    leading: Leading
    links: Sequence[str]
    processes: int
    connections: int
    patience: float = 300.0

    @contextmanager
    def sealed(self) -> Iterator[Callable[[Callable[[], None]], Outcome]]:
        """All reports are sealed inside; what is yielded sends them, calls its argument meanwhile, and waits."""
        with ExitStack() as opened:
            nodes = [opened.enter_context(self._node(number)) for number in range(self.processes)]
            told = [json.loads(_line(node)) for node in nodes]
            outcome = Outcome(report_bytes=told[0]["bytes"])
            outcome.device_seconds = sum(each["cpu"] for each in told) / len(self.links)
            yield lambda meanwhile: self._sent(nodes, outcome, meanwhile)

    @contextmanager
    def _node(self, number: int) -> Iterator[subprocess.Popen[str]]:
        own = list(enumerate(self.links))[number :: self.processes]
        told = {
            "client": CLIENT.as_uri(),
            "pins": {"leader": f"http://127.0.0.1:{self.leading.port}", "run": self.study.run, "study": self.study.pin},
            "links": own,
            "classes": CLASSES,
            "features": self.study.plan.schema.features,
            "connections": max(1, self.connections // self.processes),
            "patience": self.patience,
        }
        path = self.study.place / f"told {number}.json"
        path.write_text(json.dumps(told))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": path.with_suffix(".log").open("wb")}
        with subprocess.Popen(["node", str(SCRIPT), str(path)], **pipes, text=True) as node:
            try:
                yield node
            finally:
                node.kill()

    @staticmethod
    def _sent(nodes: Sequence[subprocess.Popen[str]], outcome: Outcome, meanwhile: Callable[[], None]) -> Outcome:
        for node in nodes:
            assert node.stdin is not None
            node.stdin.write("go\n")
            node.stdin.flush()
        meanwhile()
        for node in nodes:
            found = json.loads(_line(node))
            outcome.sent += found["sent"]
            outcome.latencies += found["seconds"]
            outcome.refused += Counter(found["refused"])
            outcome.seconds = max(outcome.seconds, found["whole"])
        outcome.latencies.sort()
        return outcome

    def total(self, indices: Sequence[int]) -> Any:
        """The sum of these devices' vectors, without any protocol."""
        rows = np.array(indices)[:, None] * 31 + np.arange(self.study.plan.schema.features) * 17
        return flatten(ps.measure(self.study.plan.schema, (rows % 64 - 32) / 512, np.array(indices) % CLASSES))

    def released(self, seconds: float = 300.0) -> tuple[Any, tuple[int, ...]]:
        """Close the reports, and the release with its survivors."""
        path, end = self.study.leader / "release.safetensors", time.monotonic() + seconds
        assert self.leading.asked("POST", "/close")[0] < 300 or path.exists()
        while not path.exists():
            assert time.monotonic() < end, "no release came"
            time.sleep(0.1)
        release = ps.Release.load(path, signed_by=self.study.roster.server)
        return release.vector, release.survivors


def _line(node: subprocess.Popen[str]) -> str:
    assert node.stdout is not None
    line = node.stdout.readline()
    assert line, f"a process of Node ended early: {_said(Path(node.args[-1]).with_suffix('.log'))}"  # type: ignore[index]
    return line


def _said(log: Path) -> str:
    """The last error of a program's log: Node writes the line of code above it, its own version below it."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if "Error" in line]
    return lines[-1].strip() if lines else "it said nothing"


@contextmanager
def crowd_of(
    place: Path,
    devices: int,
    features: int,
    *,
    processes: int = 4,
    connections: int = 2_000,
    patience: float = 300.0,
    max_records: int = 0,
) -> Iterator[Crowd]:
    """A study of so many devices with ``10 * (features + 1)`` entries, its leader and its helper, all running.

    One more is invited and stays silent, so that reports stay open until they are closed. ``max_records``, of all
    devices together, makes entries wider; two a device where it is not given.
    """
    watch()
    port = free_port()
    study, links = invited(place, devices + 1, features, port, max_records or 2 * devices)
    leading = Leading(study.leader, port, free_port())
    with ExitStack() as opened:
        leading.start()
        opened.callback(leading.stop)
        helper = subprocess.Popen([sys.executable, "-c", _HELPER, str(study.helper(1)), "0.05"])
        opened.callback(helper.wait)
        opened.callback(helper.kill)
        _await_panel(study, leading)
        yield Crowd(study, leading, links[:-1], processes, connections, patience)


def invited(place: Path, people: int, features: int, port: int, max_records: int) -> tuple[Study, list[str]]:
    """The folders of all parties as the registrar makes them, and everybody's link."""
    trier, *members = (Identity.generate(os.urandom) for _ in range(3))
    devices = ps.plan.Devices(
        organisations=("University of Ulm", "Bonn Clinic"),
        registrar="Study Office Trier",
        registrar_key=trier.public.hex(),
        page="Library of Kiel",
        most_runs=1,
        exact=EXACT,
    )
    plan = made.plan(
        ps.ClassSchema(CLASSES, features, "NA", clip_norm=1.0),
        ps.Cohort(people, max(2, people // 2), max_records, colluders=1),
        protocol="split",
        panel=tuple(each.public.hex() for each in members),
        devices=devices,
    )
    closes = datetime.now(UTC) + timedelta(hours=1)
    settings = Settings(f"http://127.0.0.1:{port}", closes, closes + timedelta(days=20), (_PAGE,))
    registrar.write_study(place, plan, settings, f"{_PAGE}/")
    run = registrar.write_invitations(place, trier)
    for name, identity in zip(("leader", "helper-1"), members, strict=True):
        identity.save(run.folder / name / "identity.pem")
    links = (place / registrar.LINKS).read_text().splitlines()
    return Study(run.folder, plan, run.roster, (), tuple(members)), links


def _await_panel(study: Study, leading: Leading) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with Dial(f"http://127.0.0.1:{leading.port}", None, 10) as dial:
                if dial.ask("GET", f"/v1/runs/{study.run}").status == 200:
                    return
        except UnreachableError:
            pass
        time.sleep(0.05)
    raise AssertionError("the helper has not offered its key")
