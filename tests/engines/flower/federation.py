"""A federation of processes on this machine: one SuperLink, a node per folder, and what a test does to them.

Everything is started as an operator starts it, under observation (``observed``). Whatever happens, nothing that was
started here is left when it is closed, or when the process that started it has ended (``watchdog``).
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from privstats import session
from privstats.engines.door.ports import free_port
from privstats.engines.flower.certificates import register, write_certificates, write_node_key
from privstats.engines.network.folder_status import status_of
from privstats.engines.network.status_file import supervision
from privstats.release import Release
from tests.engines.flower.observed import LINE, OBSERVED
from tests.engines.network.courses.study import CourseStudy
from tests.engines.network.fake import Study
from tests.watchdog import watch

ROOT = Path(__file__).parents[3]
FLWR = Path(sysconfig.get_path("scripts")) / "flwr"
PATIENCE = 300.0
ENDED_SECONDS = 20.0  # for what a run that has ended leaves behind
_ERROR = re.compile(r"^.*\w(?:Error|Exception)\b.*$", re.MULTILINE)
_SAID = 160  # letters of an error: its end says what it was and where


class Federation:
    """One SuperLink and the nodes of a study's parties and helpers.

    Args:
        study: the folders.
        place: an empty folder for certificates, marks and logs.
        port: the SuperLink's; by default a free one.
        line: ``HOST:PORT`` at which nodes reach it; by default the SuperLink's own.
        control_port: the SuperLink's for the coordinator; by default a free one.
        own_line: ``HOST:PORT`` at which the server app reaches it; by default the SuperLink's own.
    """

    def __init__(
        self,
        study: Study | CourseStudy,
        place: Path,
        port: int | None = None,
        line: str = "",
        *,
        control_port: int | None = None,
        own_line: str = "",
    ) -> None:
        self.study, self.place = study, place
        self.marks, self.certificates = place / "marks", place / "certificates"
        self.homes = [study.home(peer) for peer in range(len(study.peers))]
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lasting: set[str] = set()
        self._control_port = control_port or free_port()
        self._own_line = {LINE: own_line} if own_line else {}
        self.address = f"127.0.0.1:{port or free_port()}"
        self._line = line or self.address

    def __enter__(self) -> Self:
        watch()
        self.marks.mkdir(parents=True)
        write_certificates(self.certificates, ["localhost"], days=1)
        try:
            self.serve()
            self._register_all()
            for home in self.homes:
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
            if self._is_ours(pid := int(path.read_text())):
                self._kill_group(pid)
        for child in self._children.values():
            if child.poll() is None:
                self._kill_group(child.pid)
                child.wait()

    def serve(self) -> None:
        """Start the SuperLink."""
        options = ("--certificates", self.certificates, "--address", self.address)
        options = (*options, "--control-port", self._control_port)
        self._start("serve", "serve", self.study.host, *options, **self._own_line)
        self._lasting.add("serve")
        self.wait(self._listens, "the SuperLink listens")

    def kill_superlink(self) -> None:
        """``kill -9`` of the SuperLink and of its supervision."""
        child = self._children.pop("serve")
        self._kill_group(child.pid)
        child.wait()
        self._kill_group(int(self.marked("host.pid")))
        self.wait(lambda: not self._listens(), "the SuperLink is gone")

    def enter(self, home: Path) -> None:
        """Make a node's key, have it registered, and start the node."""
        write_node_key(home / "node")
        self.flwr("supernode", "register", home / "node.pub", "study", "--name", home.name)
        self.join(home)

    def _register_all(self) -> None:
        """All nodes at once, as a coordinator does who got their keys by mail; and again, as one does who is unsure."""
        keys = self.place / "keys"
        keys.mkdir()
        for home in self.homes:
            shutil.copy(write_node_key(home / "node"), keys / f"{home.name}.pub")
        assert {each.name for each in register(self.study.host, keys) if each.new} == {home.name for home in self.homes}
        assert not [each for each in register(self.study.host, keys) if each.new]

    def join(self, home: Path) -> None:
        """Start the node of one folder, as its operator does."""
        self._join(home, self.certificates / "ca.pem")
        self._lasting.add(home.name)

    def _join(self, home: Path, authority: Path, **environment: str) -> None:
        self._start(
            *(home.name, "join", home, "--superlink", self._line),
            *("--root-certificates", authority, "--key", home / "node"),
            **environment,
        )

    def outsiders(self, unknown: Path, late: Path, deceived: Path) -> dict[str, str]:
        """Three folders as nodes that are not let in, and what each is told: it is not registered, its clock is 400 s
        behind, it trusts somebody else's certificates.
        """
        write_certificates(self.place / "others", ["localhost"], days=1)
        for home in (unknown, late, deceived):
            write_node_key(home / "node")
        self.flwr("supernode", "register", late / "node.pub", "study", "--name", late.name)
        self._join(unknown, self.certificates / "ca.pem")
        self._join(late, self.certificates / "ca.pem", OBSERVED_CLOCK="-400")
        self._join(deceived, self.place / "others" / "ca.pem")
        ended = self._children[deceived.name]
        self.wait(lambda: ended.poll() is not None, "an outsider gives up")
        assert ended.returncode
        for home in (unknown, late):
            self.wait(lambda name=home.name: "starting it again" in self.log_of(name), "an outsider is told to wait")
            self._children[home.name].send_signal(signal.SIGINT)
        return {home.name: self.log_of(home.name) for home in (unknown, late, deceived)}

    def start_session(self, app: Path) -> subprocess.Popen[bytes]:
        """``flwr run``, as the coordinator starts it; it goes on while the test does something."""
        log = (self.place / "run.log").open("ab")
        return self._spawn([FLWR, "run", app, "study", "--stream", "--run-config", RUN_CONFIG], log)

    def finish_session(self, run: subprocess.Popen[bytes], place: str = "") -> None:
        """Wait for the end of a run, and for the release in a folder of the host's, which alone is success."""
        self.wait(lambda: run.poll() is not None, "flwr run ends")
        release = self.study.host / place / "release.safetensors"
        self.wait(release.exists, "the release is written", ENDED_SECONDS)

    def wait_until_connected(self) -> None:
        """Wait until each node has answered a poll."""
        self.wait(lambda: all(_answered_since(home, 0.0) for home in self.homes), "every node is connected")

    def wait_until_back(self, fault: str) -> dict[str, float]:
        """Wait until each party works again, and its status says so; return the seconds of each."""
        healed, back = time.time(), dict[str, float]()

        def all_back() -> bool:
            for home in self.homes:
                if home.name not in back and _answered_since(home, healed):
                    back[home.name] = round(time.time() - healed, 1)
            return len(back) == len(self.homes) and all(each["connected"] for each in self.statuses())

        self.wait(all_back, f"all are back after {fault}, and status says so")
        return back

    def statuses(self) -> list[dict[str, Any]]:
        """Return what `flower status` says of each node."""
        return [status_of(home).facts() for home in self.homes]

    def assert_exact(self, survivors: Sequence[int]) -> None:
        """Require that the release is, integer for integer, the sum of what the survivors put in."""
        release = Release.load(self.study.host / "release.safetensors")
        ring = self.study.plan.ring
        put_in = [ring.unpack((self.marks / f"party {peer}.vector").read_bytes()) for peer in survivors]
        expected = session.aggregate_unmasked(self.study.plan, put_in)
        assert release.survivors == tuple(survivors)
        for name, array in vars(expected.moments).items():
            np.testing.assert_array_equal(getattr(release.moments, name), array)

    def next_session(self) -> None:
        """Go on to the next run of the same folders."""
        (self.study.host / "release.safetensors").unlink()
        self.study = self.study.renewed()
        self.clear()

    def flwr(self, *words: object) -> str:
        """One command of Flower's, to its end."""
        ended = subprocess.run(
            [str(FLWR), *map(str, words)], env=self._environment, capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def wait(self, ready: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait until ``ready`` holds.

        Raises:
            AssertionError: the time is up, or a process that must last has ended. The message shows the end of every
                log, and its last line states the reason.
        """
        began = time.monotonic()
        while not ready():
            waited = time.monotonic() - began
            ended = ", ".join(self._ended())
            if ended or waited > seconds:
                errors = "; ".join(self.errors()) or "no log names an error"
                reason = f"{ended} ended; " if ended else ""
                raise AssertionError(f"{self.said()}\n{reason}waited {waited:.0f} s for: {what}; {errors}")
            time.sleep(0.1)

    def _ended(self) -> list[str]:
        """Return the names of processes that must last and have ended by themselves."""
        return [name for name, child in self._children.items() if name in self._lasting and child.poll() is not None]

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

    @property
    def taken(self) -> int:
        """How many different answers the server app has taken in its run."""
        return int((self.marked("server.taken") or "0 0").split()[1])

    def kill_server_app(self, run: subprocess.Popen[bytes]) -> None:
        """``kill -9`` of the ``flwr-serverapp`` of a run; nobody waits until Flower notices, which takes a minute."""
        os.kill(int(self.marked("server.taken").split()[0]), signal.SIGKILL)
        for path in (self.marks / "server.taken", self.marks / "server.held"):
            path.unlink(missing_ok=True)
        run.kill()
        run.wait()

    def log_of(self, name: str) -> str:
        """What a process has printed."""
        return (self.place / f"{name}.log").read_text(errors="replace")

    def said(self) -> str:
        """The last lines of every log."""
        logs = sorted(self.place.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)

    def errors(self) -> list[str]:
        """The last error that each log names, each once."""
        logs = sorted(self.place.glob("*.log"))
        named = ((log.stem, _ERROR.findall(log.read_text(errors="replace"))) for log in logs)
        said = {found[-1].strip()[-_SAID:]: name for name, found in named if found}
        return [f"{name}: {error}" for error, name in said.items()]

    @property
    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("COV")}  # it costs time
        return {
            **inherited,
            OBSERVED: str(self.marks),
            "PYTHONPATH": str(ROOT),
            "FLWR_HOME": str(self.study.host / ".flower"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }

    def _start(self, name: str, *words: object, **environment: str) -> None:
        log = (self.place / f"{name}.log").open("ab")
        observed = [sys.executable, "-P", "-m", "tests.engines.flower.observed"]
        self._children[name] = self._spawn([*observed, *words], log, **environment)

    def _spawn(self, words: Iterable[object], log: object, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=self.place,
            env={**self._environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _listens(self) -> bool:
        host, _, port = self.address.partition(":")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False

    def _is_ours(self, pid: int) -> bool:
        """Whether a process of this federation still has this number: a number may be given to another."""
        with suppress(OSError):
            return f"{OBSERVED}={self.marks}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        return False

    @staticmethod
    def _kill_group(pid: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _answered_since(home: Path, when: float) -> bool:
    held = supervision(home, "joined")
    return held is not None and held.works(time.time()) and held.worked > when


RUN_CONFIG = "open-seconds=120 step-seconds=120"
