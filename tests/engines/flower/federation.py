"""A federation of processes on this machine: one SuperLink, a node per folder, and what a test does to them.

Everything is started as an operator starts it, under observation (``observed``). Whatever happens, nothing that was
started here is left when it is closed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.engines.flower.authority import write_certificates, write_node_key
from tests.engines.flower.network import Study
from tests.engines.flower.observed import OBSERVED

ROOT = Path(__file__).parents[3]
FLWR = Path(sysconfig.get_path("scripts")) / "flwr"
PATIENCE = 240.0


class Federation:
    """One SuperLink and the nodes of a study's parties and helpers.

    Args:
        study: the folders.
        place: an empty folder for certificates, marks and logs.
    """

    def __init__(self, study: Study, place: Path) -> None:
        self.study, self.place = study, place
        self.marks, self.certificates = place / "marks", place / "certificates"
        self.homes = [study.home(peer) for peer in range(len(study.identities) + len(study.helpers))]
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._address = f"127.0.0.1:{_free_port()}"

    def __enter__(self) -> Self:
        self.marks.mkdir(parents=True)
        write_certificates(self.certificates)
        try:
            self._start("serve", "serve", self.study.host, self.certificates, self._address)
            self.wait(self._listens, "the SuperLink listens")
            for home in self.homes:
                write_node_key(home)
                self.flwr("supernode", "register", home / "node.pub", "study", "--name", home.name)
                self.join(home)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything, gently at first."""
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)
        until = time.monotonic() + 15
        for child in self._children.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, until - time.monotonic()))
        for path in self.marks.glob("*.pid"):
            self._kill_group(int(path.read_text()))
        for child in self._children.values():
            self._kill_group(child.pid)
            child.wait()

    def join(self, home: Path) -> None:
        """Start the node of one folder, as its operator does."""
        self._start(home.name, "join", home, self._address, self.certificates / "ca.pem", home / "node")

    def start_session(self, app: Path) -> subprocess.Popen[bytes]:
        """``flwr run``, as the coordinator starts it; it goes on while the test does something."""
        log = (self.place / "run.log").open("ab")
        return self._spawn([FLWR, "run", app, "study", "--stream", "--run-config", RUN_CONFIG], log)

    def finish_session(self, run: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a run, and for the release, which alone is success."""
        self.wait(lambda: run.poll() is not None, "flwr run ends")
        self.wait((self.study.host / "release.safetensors").exists, "the release is written", 10)

    def flwr(self, *words: object) -> str:
        """One command of Flower's, to its end."""
        ended = subprocess.run(
            [str(FLWR), *map(str, words)], env=self._environment, capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def wait(self, ready: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait for something to be so; a test that waits in vain shows what everybody said last."""
        until = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > until:
                raise AssertionError(f"waited {seconds:g} s for: {what}\n{self.said()}")
            time.sleep(0.1)

    def wait_for(self, *marks: str) -> None:
        """Wait until all of these marks have been made."""
        self.wait(lambda: all((self.marks / name).exists() for name in marks), " and ".join(marks))

    def shut(self, *gates: str) -> None:
        """Hold whoever comes to these gates."""
        for gate in gates:
            (self.marks / f"{gate}.gate").touch()

    def open(self, *gates: str) -> None:
        """Let them go on."""
        for gate in gates:
            (self.marks / f"{gate}.gate").unlink()

    def marked(self, name: str) -> str:
        """What a mark says; empty where there is none."""
        path = self.marks / name
        return path.read_text() if path.exists() else ""

    def clear(self) -> None:
        """Forget the marks of a session, and keep those of processes."""
        for path in self.marks.iterdir():
            if path.suffix != ".pid":
                path.unlink()

    def kill_node(self, home: Path) -> None:
        """``kill -9`` of a SuperNode and of what it has started; whoever supervises it lives."""
        self._kill_group(int(self.marked(f"{home.name}.pid")))

    def kill_party(self, home: Path) -> None:
        """``kill -9`` of a node and of its supervision: it never comes back."""
        child = self._children.pop(home.name)
        self._kill_group(child.pid)
        child.wait()
        self.kill_node(home)

    def kill_server_app(self) -> None:
        """``kill -9`` of the ``flwr-serverapp`` that took the last answer."""
        os.kill(int(self.marked("server.taken").split()[0]), signal.SIGKILL)

    def said(self) -> str:
        """The last lines of every log."""
        logs = sorted(self.place.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            OBSERVED: str(self.marks),
            "PYTHONPATH": str(ROOT),
            "FLWR_HOME": str(self.study.host / ".flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }

    def _start(self, name: str, *words: object) -> None:
        log = (self.place / f"{name}.log").open("ab")
        self._children[name] = self._spawn([sys.executable, "-P", "-m", "tests.engines.flower.observed", *words], log)

    def _spawn(self, words: Iterable[object], log: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=self.place,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _listens(self) -> bool:
        host, _, port = self._address.partition(":")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False

    @staticmethod
    def _kill_group(pid: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


RUN_CONFIG = "open-seconds=120 step-seconds=120"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
