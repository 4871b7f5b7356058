"""A leader's application in this process: its folders, its event loop in a thread, and requests without a socket."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial, Reply, UnreachableError
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.contrib.http.invitations import study_of
from privstats.contrib.http.leader import Leader
from privstats.contrib.http.owner import Owner
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.settings import Settings
from privstats.contrib.parts.part_sums import Cluster
from privstats.encoding import flatten
from privstats.engines.network.folder import Folder
from privstats.secagg import Identity, Roster
from tests import made

SCHEMA = ps.ClassSchema(2, 3, "NA", clip_norm=2.0)
ORIGIN = "https://page.example.org"


@dataclass
class Study:
    """The folders of one run, and the identities of its devices."""

    place: Path
    plan: ps.Plan
    roster: Roster
    identities: tuple[Identity, ...]
    members: tuple[Identity, ...]

    @property
    def leader(self) -> Path:
        return self.place / "leader"

    def helper(self, place: int) -> Path:
        return self.place / f"helper-{place}"

    @property
    def run(self) -> str:
        return self.roster.run.hex()

    @property
    def pin(self) -> str:
        return study_of(self.roster.run, bytes.fromhex(self.plan.digest), self.roster.digest)

    def moments(self, index: int) -> Any:
        rng = np.random.default_rng(index)
        return ps.measure(self.plan.schema, rng.normal(size=(4, 3)), rng.integers(0, 2, 4))

    def exact(self, survivors: Iterable[int]) -> np.ndarray:
        """The sum of the survivors, without any protocol."""
        return np.sum([flatten(self.moments(index)) for index in survivors], axis=0)


def study_of_devices(
    place: Path, clients: int = 6, helpers: int = 2, *, closes_in: float = 3600.0, least: int = 3, **changes: Any
) -> Study:
    """Keys, plan, roster and folders."""
    members = tuple(Identity.generate(os.urandom) for _ in range(1 + helpers))
    people = tuple(Identity.generate(os.urandom) for _ in range(clients))
    cohort = ps.Cohort(clients, least, max(100, 4 * clients))
    named = {"schema": SCHEMA, "cohort": cohort, "protocol": "split", **changes}
    plan = made.plan(panel=tuple(each.public.hex() for each in members), **named)
    roster = Roster([each.public for each in people], server=members[0].public, run=os.urandom(16))
    study = Study(place, plan, roster, people, members)
    closes = datetime.now(UTC) + timedelta(seconds=closes_in)
    settings = Settings("http://127.0.0.1:8765", closes, closes + timedelta(days=20), (ORIGIN,))
    for number, member in enumerate(members):
        home = study.leader if number == 0 else study.helper(number)
        home.mkdir(parents=True, mode=0o700)
        (home / "plan.toml").write_text(plan.to_toml())
        roster.save(home / "roster.toml")
        member.save(home / "identity.pem")
        (home / "http.toml").write_text(settings.to_toml())
    return study


def certified(place: Path) -> str:
    """Write certificates into the folder ``tls``, and return the path of their authority."""
    certificates = pytest.importorskip("privstats.engines.flower.certificates")
    certificates.write_certificates(place / "tls", ["127.0.0.1"], days=1)
    return str(place / "tls" / "ca.pem")


class Desk:
    """A leader in this process; as a context manager it takes the folder up and lets it go.

    Args:
        home: the leader's folder.
        clock: for :class:`Leader`.
        now: for :class:`LeaderRun`, whose other clock it is too unless ``counted`` is given.
        cluster: sums settled parts up.
    """

    def __init__(
        self,
        home: Path,
        *,
        clock: Callable[[], float] | None = None,
        now: Any = None,
        counted: Any = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._home, self._clock, self._cluster = home, clock, cluster
        self._clocks = {"now": now, "counted": counted or now} if now else {}
        self.lines: list[str] = []
        self.failed: list[Exception] = []

    def __enter__(self) -> "Desk":
        named = {"say": self.lines.append, "defers": self._cluster is not None}
        self.run = LeaderRun.open(self._home, **named, **self._clocks)
        self.loop = asyncio.new_event_loop()
        self.owner = Owner(self.run, self.failed.append)
        self.app = Leader(self.run, self.owner, **({"clock": self._clock} if self._clock else {}))
        self.owner.start()
        self._thread = Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.sums = self._cluster and self._cluster.start(self.run, self.owner.caller(self.loop))
        return self

    def __exit__(self, *_: object) -> None:
        if self.sums is not None:
            self.sums.stop()
        self.does(self.owner.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self.run.close()

    def does(self, work: Awaitable[Any]) -> Any:
        """The result of a coroutine in the desk's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)  # type: ignore[arg-type]

    def call(self, action: Callable[[], Any]) -> Any:
        """The result of a call in the owner's thread."""
        return self.does(self.owner.call(action))

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        *,
        address: str = "192.0.2.7",
        length: int | None = None,
    ) -> Reply:
        """One request; ``body`` as pieces comes in pieces."""
        return self.does(self.asked(method, path, body, headers or {}, address=address, length=length))

    async def asked(
        self,
        method: str,
        path: str,
        body: bytes | Sequence[bytes],
        headers: Mapping[str, str],
        *,
        address: str = "192.0.2.7",
        length: int | None = None,
    ) -> Reply:
        pieces = [body] if isinstance(body, bytes) else list(body)
        named = {"host": "127.0.0.1", "content-length": str(sum(map(len, pieces)) if length is None else length)}
        named |= {name.lower(): value for name, value in headers.items()}
        sent: list[Mapping[str, Any]] = []

        async def receive() -> Mapping[str, Any]:
            if not pieces:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode()) for name, value in named.items() if value],
            "client": (address, 4711),
        }
        await self.app(scope, receive, send)
        if not sent:
            raise UnreachableError("the application sent nothing")
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Reply(sent[0]["status"], told, b"".join(each["body"] for each in sent[1:]))

    def put(self, study: Study, sender: int, report: bytes, **named: Any) -> Reply:
        """A report, with the headers of a device."""
        headers = {"content-type": REPORT, SIGNATURE: report[-64:].hex(), **named.pop("headers", {})}
        return self.ask("PUT", f"/v1/runs/{study.run}/reports/{sender}", report, headers, **named)


class DeskDial(Dial):
    """A connection that ends in a desk; where there is none, nothing answers."""

    def __init__(self, desk: Callable[[], Desk | None], most: int | None = None) -> None:
        self._desk, self._left = desk, most

    def ask(self, method: str, path: str, body: bytes = b"", headers: Any = None, *, most: int = 0) -> Reply:
        desk = self._desk()
        if desk is None:
            raise UnreachableError("nobody is there")
        if self._left is not None:
            self._left -= 1
            assert self._left, "a helper is asked without an end"
        return desk.ask(method, path, body, headers)

    def close(self) -> None:
        pass


@dataclass
class Helpers:
    """Helpers of a study, each in a thread; they poll the desk that is there."""

    study: Study
    desk: Callable[[], Desk | None]
    threads: list[Thread] = field(default_factory=list)
    ends: dict[int, str] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    stopped: bool = False

    def __enter__(self) -> "Helpers":
        for place in range(1, 1 + self.study.plan.helpers):
            self.start(place)
        return self

    def start(self, place: int) -> None:
        self.threads.append(Thread(target=self._serve, args=(place,), daemon=True))
        self.threads[-1].start()

    def _serve(self, place: int) -> None:
        try:
            self.ends[place] = self.dialler(place).run()
        except BaseException as error:
            if not self.stopped:
                self.errors.append(error)

    def dialler(self, place: int) -> Dialler:
        home = self.study.helper(place)
        folder = Folder.open(home).round(0)
        return Dialler(
            folder,
            Settings.read(home),
            sleep=self._sleep,
            pause=0.002,
            connect=lambda *_: DeskDial(self.desk),
            say=lambda _: None,
        )

    def _sleep(self, seconds: float) -> None:
        if self.stopped:
            raise SystemExit
        import time

        time.sleep(min(seconds, 0.005))

    def join(self) -> None:
        for thread in self.threads:
            thread.join(60)

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        self.join()
        assert not self.errors, self.errors


def opened(desk: Desk, study: Study) -> DeviceRun:
    """The run as a device verifies it, once the panel is complete."""
    import time

    end = time.monotonic() + 60
    while desk.run.manifest is None and time.monotonic() < end:
        time.sleep(0.005)
    return DeviceRun.open(DeskDial(lambda: desk), study.run, study.pin)


class Paused(Exception):  # noqa: N818 - a helper that has nothing to do now
    """It would wait."""


@contextmanager
def reporting(
    place: Path, clients: int, helpers: int = 2, now: Any = None, counted: Any = None, **named: Any
) -> Iterator[tuple[Study, Desk, DeviceRun, list[bytes]]]:
    """A new run with its step open, and the report of each device."""
    study = study_of_devices(place, clients, helpers, **named)
    with Desk(study.leader, now=now, counted=counted) as desk:
        pumped(study, desk)
        run = opened(desk, study)
        yield (
            study,
            desk,
            run,
            [run.report(study.moments(index), index, study.identities[index]) for index in range(clients)],
        )


def pumped(study: Study, desk: Desk, places: Iterable[int] | None = None) -> None:
    """Let every helper work until it would wait, again and again, until none has anything to do; each begins anew from
    its disk."""
    places = tuple(range(1, 1 + study.plan.helpers) if places is None else places)
    before: object = None
    while before != (before := desk.call(lambda: _state(desk, places))):
        for place in places:
            one_pass(study, desk, place)


def _state(desk: Desk, places: Iterable[int]) -> object:
    run = desk.run
    return run.step.name, run.offering, run.ended, [run.waits_for(place) for place in places]


def one_pass(study: Study, desk: Desk, place: int, say: Callable[[str], object] = lambda _: None) -> str:
    """One helper from its disk, until it would wait, or to its end."""

    def pause(_: float) -> None:
        raise Paused

    home = study.helper(place)
    dialler = Dialler(
        Folder.open(home).round(0),
        Settings.read(home),
        sleep=pause,
        connect=lambda *_: DeskDial(lambda: desk, 200),
        say=say,
    )
    try:
        return dialler.run()
    except Paused:
        return ""
