"""A fake network of folders: nodes that come and go, a clock that only moves when somebody waits, faults to order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

import privstats as ps
from privstats.engines.faults import Fault, Network
from privstats.engines.flower.host import Ended, Host, Waiting
from privstats.engines.flower.mail import Deadlines, Reply
from privstats.engines.flower.party import Party
from privstats.secagg import Identity, Roster

NAMES = ("Aachen", "Bonn", "Celle", "St. Mary", "Essen")
DEADLINES = Deadlines(3600, 600)
SCHEMA = ps.ClassSchema(2, 3, "NA", clip_norm=2.0)
RECORDS = (files("privstats.engines.flower") / "template" / "party" / "records.py").read_text()


@dataclass
class Study:
    """The folders of one session: a host's, one per party, one per helper."""

    place: Path
    plan: ps.Plan
    roster: Roster
    identities: tuple[Identity, ...]
    server: Identity
    helpers: tuple[Identity, ...]

    @property
    def host(self) -> Path:
        return self.place / "study" / "host"

    def home(self, peer: int) -> Path:
        return self.place / "study" / f"party {peer}"

    def exact(self, survivors: Iterable[int]) -> np.ndarray:
        """The sum over the survivors' records, without any protocol."""
        from privstats.encoding import flatten

        return np.sum([flatten(ps.measure(SCHEMA, *records_of(peer))) for peer in survivors], axis=0)

    def renewed(self) -> Study:
        """The same folders under the next run name."""
        after = replace(self, roster=self.roster.renewed())
        for home in (self.host, *(self.home(peer) for peer in range(len(self.identities) + len(self.helpers)))):
            after.roster.save(home / "roster.toml")
        return after


def records_of(peer: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(peer)
    return rng.normal(size=(9 + peer, 3)), np.arange(9 + peer) % 2


def plan_of(protocol: str, helpers: Iterable[Identity] = (), **changes) -> ps.Plan:
    panel = {} if protocol == "interactive" else {"protocol": protocol, "panel": tuple(h.public.hex() for h in helpers)}
    settings = {"schema": SCHEMA, "cohort": ps.Cohort(5, 3, 100), "privacy": ps.NoPrivacy(), **panel, **changes}
    return ps.Plan(**settings)


def study_of(place: Path, protocol: str = "interactive", helpers: int = 2, **changes) -> Study:
    """Keys, plan, roster and all folders, with records in those of the parties."""
    server = Identity.generate(os.urandom)
    clients = tuple(Identity.generate(os.urandom) for _ in NAMES)
    panel = tuple(Identity.generate(os.urandom) for _ in range(helpers if protocol == "split" else 0))
    roster = Roster.numbered(
        [each.public for each in clients], server=server.public, label="tests", counter=0, names=NAMES
    )
    study = Study(place, plan_of(protocol, (server, *panel), **changes), roster, clients, server, panel)
    for home, identity in ((study.host, server), *((study.home(i), each) for i, each in enumerate((*clients, *panel)))):
        home.mkdir(parents=True)
        home.chmod(0o700)
        (home / "plan.toml").write_text(study.plan.to_toml())
        roster.save(home / "roster.toml")
        identity.save(home / "identity.pem")
    for peer in range(len(clients)):
        (study.home(peer) / "records.py").write_text(RECORDS)
        X, y = records_of(peer)
        np.savez(study.home(peer) / "records.npz", X=X, y=y)
    return study


@dataclass
class FakeNet:
    """A mailbox whose nodes are folders; node 100 + i is party i."""

    study: Study
    nodes: dict[int, Path] = field(default_factory=dict)
    faults: Iterable[Fault] = ()
    comes: Mapping[int, float] = field(default_factory=dict)  # a node that is online from then on
    goes: Mapping[int, float] = field(default_factory=dict)
    logs: dict[int, list[str]] = field(default_factory=dict)
    now: float = 0.0
    each: Callable[[FakeNet, int, str, bytes], None] = lambda *_: None  # before a node acts
    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.nodes:
            count = len(self.study.identities) + len(self.study.helpers)
            self.nodes = {100 + peer: self.study.home(peer) for peer in range(count)}
        self.network = Network(self.faults)
        self.counts: dict[int, int] = {}
        self.waiting: dict[str, list[Reply]] = {}
        self.pushed: list[tuple[int, str, bytes]] = []
        self.lines: list[str] = []

    def online(self) -> list[int]:
        return [
            node for node in self.nodes if self.comes.get(node, 0.0) <= self.now < self.goes.get(node, float("inf"))
        ]

    def name(self, node: int) -> str:
        return f"node-{node}"

    def push(self, node: int, kind: str, data: bytes, *, ttl: float) -> str:
        assert ttl > 0
        self.pushed.append((node, kind, data))
        name = f"message {len(self.pushed)}"
        step = self.step_of(node, kind)
        self.waiting[name] = []
        for arriving in self.network.carry(step, node - 100, "down", data):
            self.each(self, node, kind, arriving)
            reply = self.answer(node, kind, arriving)
            if reply.code == "ok":
                for back in self.network.carry(step, node - 100, "up", reply.data or b"\0"):
                    self.waiting[name].append(Reply("ok", back if reply.data else b""))
            else:
                self.waiting[name].append(reply)
        return name

    def step_of(self, node: int, kind: str) -> str:
        """The name of the step that a message belongs to, as far as faults are ordered by it."""
        return self.current

    current: str = ""

    def answer(self, node: int, kind: str, data: bytes) -> Reply:
        said = self.logs.setdefault(node, [])
        try:
            party = Party.open(self.nodes[node], said.append)
        except Exception as error:
            said.append(str(error))
            return Reply("failed")
        answer = party.answer(kind, data)
        return Reply(answer.code, answer.data)

    def pull(self, message: str) -> Reply | None:
        replies = self.waiting[message]
        return replies.pop(0) if replies else None

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, deadlines: Deadlines = DEADLINES) -> Ended | Waiting:
        host = Host.open(self.study.host)
        return host.run(self, deadlines, clock=lambda: self.now, sleep=self.sleep, say=self.lines.append)
