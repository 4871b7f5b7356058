"""A fake network of folders: nodes that come and go, a clock that only moves when somebody waits, faults to order."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

import privstats as ps
from privstats.encoding import flatten
from privstats.engines.faults import Direction, Fault, Network
from privstats.engines.network.driver import SessionContext, StepReports, drive
from privstats.engines.network.host import Host
from privstats.engines.network.nodes import NodeRegistry
from privstats.engines.network.party import Party
from privstats.engines.network.roles import answered
from privstats.engines.network.round_host import Ended, Waiting
from privstats.engines.network.statements import HEADER_BYTES, Envelope, sign_reply, split_helped
from privstats.engines.network.transport import Deadlines, Declined, Reply
from privstats.secagg import Identity, Roster
from privstats.secagg.protocols import PROTOCOLS
from privstats.testing import MockTransport
from tests import made

NAMES = ("Aachen", "Bonn", "Celle", "St. Mary", "Essen")
DEADLINES = Deadlines(300, 240)
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
    def peers(self) -> tuple[Identity, ...]:
        """Clients, then helpers."""
        return (*self.identities, *self.helpers)

    @property
    def host(self) -> Path:
        return self.place / "study" / "host"

    def home(self, peer: int) -> Path:
        return self.place / "study" / f"party {peer}"

    def exact(self, survivors: Iterable[int]) -> np.ndarray:
        """The sum over the survivors' records, without any protocol."""
        return np.sum([flatten(ps.measure(SCHEMA, *records_of(peer))) for peer in survivors], axis=0)

    def renewed(self) -> "Study":
        """The same folders under the next run name."""
        after = replace(self, roster=self.roster.renewed())
        for home in (self.host, *(self.home(peer) for peer in range(len(self.peers)))):
            after.roster.save(home / "roster.toml")
        return after


def records_of(peer: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(peer)
    return rng.normal(size=(9 + peer, 3)), np.arange(9 + peer) % 2


def plan_of(protocol: str, helpers: Iterable[Identity] = (), **changes) -> ps.Plan:
    panel = tuple(each.public.hex() for each in helpers) if PROTOCOLS[protocol].has_panel else ()
    usual = {"schema": SCHEMA, "cohort": ps.Cohort(5, 3, 100), "protocol": protocol, "panel": panel}
    return made.plan(**usual | changes)


def open_accounts(study: Study, epsilon: float) -> None:
    """A ledger for every party, whose one account is of beds."""
    for peer in range(len(study.identities)):
        made.ledger(study.home(peer) / "ledger", "beds", epsilon=epsilon)


def study_of(
    place: Path, protocol: str = "interactive", helpers: int = 2, names: Sequence[str] = NAMES, **changes
) -> Study:
    """Keys, plan, roster and all folders, with records in those of the parties."""
    server = Identity.generate(os.urandom)
    clients = tuple(Identity.generate(os.urandom) for _ in names)
    panel = tuple(Identity.generate(os.urandom) for _ in range(helpers if PROTOCOLS[protocol].has_panel else 0))
    roster = Roster.numbered(
        [each.public for each in clients], server=server.public, label="tests", counter=0, names=names
    )
    study = Study(place, plan_of(protocol, (server, *panel), **changes), roster, clients, server, panel)
    for home in write_folders(study, server, (*clients, *panel)):
        (home / "plan.toml").write_text(study.plan.to_toml())
    for peer in range(len(clients)):
        (study.home(peer) / "records.py").write_text(RECORDS)
        X, y = records_of(peer)
        np.savez(study.home(peer) / "records.npz", X=X, y=y)
    return study


def write_folders(study: Any, server: Identity, people: Sequence[Identity]) -> list[Path]:
    """The folders of a server, of parties and helpers, each with roster and its owner's identity."""
    homes = [study.host, *(study.home(peer) for peer in range(len(people)))]
    for home, identity in zip(homes, (server, *people), strict=True):
        home.mkdir(parents=True)
        home.chmod(0o700)
        study.roster.save(home / "roster.toml")
        identity.save(home / "identity.pem")
    return homes


def enveloped(study: Any, kind: Any, data: bytes) -> bytes:
    """A message of a session alone as its server sends it."""
    host = Host.open(study.host)
    return Envelope(0, kind, data, host._announcing(host.folder.round(0)).signed(whole=False)).encode()


class Once(Network):
    """Faults that hit one message each, however often it is sent."""

    def carry(self, step: str, client: int, direction: Direction, message: bytes) -> list[bytes]:
        arriving = super().carry(step, client, direction, message)
        self._faults.pop((step, client, direction), None)
        return arriving


class FakeNet(MockTransport):
    """Faults to order between nodes; a subclass says what a node answers. Node 100 + i is peer i."""

    def __init__(self, nodes: Iterable[int], faults: Iterable[Fault] = ()) -> None:
        super().__init__(lambda *message: self.deliver(*message), nodes)
        self.network = Once(faults)
        self.whole: list[tuple[int, bytes]] = []  # what is pushed, as it travels
        self.dropped: set[str] = set()  # kinds of messages that never arrive
        self.lines: list[str] = []
        self.step = ""

    def current(self) -> str:
        """The step that the server is at, for faults that are ordered by step."""
        return ""

    def answer(self, node: int, kind: str, data: bytes) -> Reply:
        raise NotImplementedError

    def deliver(self, node: int, kind: str, data: bytes) -> Reply:
        return self.answer(node, kind, data)

    def instead(self, node: int, kind: str, *replies: Reply) -> None:
        """The first answers of a node to a kind of message, in place of its own."""
        own, left = self.answer, list(replies)

        def answer(asked: int, what: str, data: bytes) -> Reply:
            return left.pop(0) if left and (asked, what) == (node, kind) else own(asked, what, data)

        self.answer = answer  # type: ignore[method-assign]

    def joined_by(self, *nodes: int, code: str) -> None:
        """More nodes, which prove no place and say one thing to everybody."""
        own = self.answer
        self.nodes += nodes
        self.answer = lambda node, *message: Reply(code) if node in nodes else own(node, *message)  # type: ignore

    def opened(self, kind: str, data: bytes) -> tuple[str, bytes]:
        """What a message is in its session."""
        return kind, data

    def push(self, node: int, kind: Any, data: bytes, *, ttl: float) -> str:
        inside: Any = self.opened(kind, data)
        name = "" if inside[0] in self.dropped else super().push(node, kind, data, ttl=ttl)
        if name:
            self.pushed[-1] = (node, *inside)
            self.whole.append((node, data))
        return name

    def replies(self, node: int, kind: str, data: bytes) -> Iterable[Reply]:
        if self.current() != self.step:
            self.step = self.current()
            for _, peer, late in self.network.overdue():
                self.answer(100 + peer, "step", late)
        for arriving in self.network.carry(self.step, node - 100, "down", data):
            (reply,) = super().replies(node, kind, arriving)
            back = self.network.carry(self.step, node - 100, "up", reply.data) if reply.data else [b""]
            yield from (Reply(reply.code, each) for each in back)


class MachineNet(FakeNet):
    """Nodes that are machines in memory, as a party's folder would drive them."""

    def __init__(self, server, machines, identities, opening: bytes = b"", faults: Iterable[Fault] = ()) -> None:
        super().__init__((100 + place for place in range(len(machines))), faults)
        self.server, self.machines, self.identities = server, dict(enumerate(machines, start=100)), identities
        self.panel = opening
        publics = [identity.public for identity in identities]
        self.context = SessionContext(
            self,
            NodeRegistry(publics, server.parameters.clients),
            self.clock,
            self.sleep,
            self.lines.append,
            "ab" * 32,
            1 << 20,
        )

    def current(self) -> str:
        return self.server.step

    @property
    def opening(self) -> bytes:
        first = self.server.outbox.clients[:1] if self.server.step == self.server.steps[0] else ()
        return bytes(HEADER_BYTES) + (self.panel or b"".join(map(self.server.outbox.to, first)))

    def drive(self, deadlines: Deadlines = DEADLINES) -> StepReports:
        return drive(self.server, self.context, deadlines, self.opening)

    def answer(self, node: int, kind: str, data: bytes) -> Reply:
        machine, place = self.machines[node], node - 100
        try:
            if kind in ("hello", "open"):
                said = b""
                if kind == "open" and place < self.server.parameters.clients:
                    said = answered(machine, data[HEADER_BYTES:], begins=True)
                return Reply("ok", sign_reply(self.identities[place], place, data, "ok", said))
            return Reply("ok", answered(machine, split_helped(data)[1] if kind == "helper" else data))
        except Declined as no:
            return Reply(no.code, sign_reply(self.identities[place], place, data, no.code))


class FolderNet(FakeNet):
    """Nodes that are folders."""

    def __init__(self, study: Any, faults: Iterable[Fault] = ()) -> None:
        super().__init__((100 + peer for peer in range(len(study.peers))), faults)
        self.study = study
        self.homes = {100 + peer: study.home(peer) for peer in range(len(study.peers))}
        self.logs: dict[int, list[str]] = {node: [] for node in self.homes}
        self.meanwhile: Callable[[int, str], None] = lambda *_: None  # before a node answers
        self.envelope = Envelope(0, "hello", b"")  # of the message that is answered

    def opened(self, kind: str, data: bytes) -> tuple[str, bytes]:
        envelope = Envelope.decode(data)
        return envelope.kind, envelope.data

    def deliver(self, node: int, kind: str, data: bytes) -> Reply:
        self.envelope = Envelope.decode(data)
        return self.answer(node, self.envelope.kind, self.envelope.data)

    def answer(self, node: int, kind: str, data: bytes) -> Reply:
        said = self.envelope
        self.meanwhile(node, kind)
        return self.told(node, structs.replace(said, kind=kind, data=data).encode())

    def told(self, node: int, message: bytes) -> Reply:
        """What a folder answers to a whole message."""
        said = Party.open(self.homes[node], self.logs[node].append).answer("round", message)
        return Reply(said.code, said.data)

    def run(self, deadlines: Deadlines = DEADLINES) -> Ended | Waiting:
        host = Host.open(self.study.host)
        return host.run(self, deadlines, clock=self.clock, sleep=self.sleep, say=self.lines.append)

    def ended(self) -> Ended:
        found = self.run()
        assert isinstance(found, Ended), (found.sentence, self.lines, self.logs)
        return found
