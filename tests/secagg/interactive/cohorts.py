"""A small cohort whose randomness is fixed, and a server that says what it likes, for the tests of this room."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import Ring
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import Channel
from privstats.secagg.interactive.dealing import Public
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.inside import inside

PLAN = hashlib.sha256(b"the plan of the tests").digest()
RING = Ring(((3, 12), (5, 20), (7, 40)))


def stream(label: str) -> Callable[[int], bytes]:
    """Entropy that depends on nothing but a label and on how often it was asked."""
    asked = 0

    def entropy(size: int) -> bytes:
        nonlocal asked
        asked += 1
        return hashlib.shake_256(f"{label}/{asked}".encode()).digest(size)

    return entropy


@dataclass
class Cohort:
    """Clients, server and plaintext of one session."""

    parameters: Parameters
    label: str = "cohort"
    identities: list[Identity] = field(init=False)
    aggregator: Identity = field(init=False)
    values: list[NDArray[np.int64]] = field(init=False)
    roster: Roster = field(init=False)
    clients: list[Client] = field(init=False)
    server: Server = field(init=False)
    channels: dict[int, Channel] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        n, rng = self.parameters.clients, np.random.default_rng(7)
        self.identities = [Identity.generate(stream(f"identity {i}")) for i in range(n)]
        self.aggregator = Identity.generate(stream("identity server"))
        publics = tuple(identity.public for identity in self.identities)
        self.roster = Roster.numbered(publics, server=self.aggregator.public, label="tests", counter=0)
        self.values = [rng.integers(-100, 100, self.parameters.ring.size) for _ in range(n)]
        self.clients = [self.client(i) for i in range(n)]
        self.server = Server(**self.place(), entropy=stream(f"{self.label} server"))

    def place(self, index: int | None = None) -> dict[str, Any]:
        """What a machine is made and resumed with: the server, or the client of this index."""
        own = {"identity": self.aggregator} if index is None else {"identity": self.identities[index], "index": index}
        return {"parameters": self.parameters, "roster": self.roster, **own}

    def client(self, index: int, *, label: str = "", **change: Any) -> Client:
        """A fresh client; its randomness depends on a label, by default the cohort's, and on its index."""
        made = {
            "vector": self.parameters.ring.encode(self.values[index]),
            "entropy": stream(f"{label or self.label} client {index}"),
            "noise_root": self.noise_root(index) if self.parameters.levels else b"",
        }
        return Client(**{**self.place(index), **made, **change})

    def noise_root(self, index: int) -> bytes:
        """What opens all layers of a client's noise, where the parameters have levels."""
        return stream(f"{self.label} noise {index}")(32)

    def channel(self, client: int) -> Channel:
        """Between ``client`` and the server: it outlives both machines."""
        if client not in self.channels:  # from the server, while it lives: ciphertexts are random
            self.channels[client] = inside(self.server).channel(client)
        return self.channels[client]

    def answer(
        self, outbox: Mapping[int, bytes] | Iterable[tuple[int, bytes]], clients: Iterable[int] | None = None
    ) -> None:
        """Let clients, by default all that ``outbox`` has messages for, answer the server honestly."""
        sent = dict(outbox)
        for client in sent if clients is None else clients:
            ((_, answer),) = self.clients[client].receive(sent[client])
            self.server.receive(client, answer)

    def advertised(self, client: int, data: bytes) -> None:
        """Let the server hear an advertisement, which no stream can make again, for :meth:`channel`."""
        self.channels.pop(client, None)
        self.server.receive(client, data)

    def sum_over(self, survivors: tuple[int, ...]) -> NDArray[np.int64]:
        """The answer, computed without any masks."""
        return np.sum([self.values[i] for i in survivors], axis=0)


def sparse_cohort() -> Cohort:
    """Twenty clients with six neighbours each, four of which give a secret back: eleven in a sum, sixteen listed."""
    return Cohort(Parameters(20, 4, 11, 1, 6, RING, b"p" * 32))


def cohort_of(clients: int = 6, min_survivors: int = 4, colluders: int = 1, label: str = "cohort", **solve) -> Cohort:
    """A cohort with solved parameters."""
    ring = solve.pop("ring", RING)
    parameters = Parameters.solve(
        clients=clients, min_survivors=min_survivors, colluders=colluders, ring=ring, plan_digest=PLAN, **solve
    )
    return Cohort(parameters, label)


Outbox = dict[int, bytes]


def play_until(cohort: Cohort, step: str, dropouts: dict[str, Collection[int]] | None = None) -> Outbox:
    """Play honestly up to ``step`` and return the messages that open it; who drops out never answers again."""
    outbox, gone = dict(cohort.server.start()), set()
    for current in STEPS:
        if current == step:
            return outbox
        gone |= set((dropouts or {}).get(current, ()))
        for client, message in outbox.items():
            if client not in gone:
                ((_, answer),) = cohort.clients[client].receive(message)
                cohort.server.receive(client, answer)
        outbox = dict(cohort.server.end_step())
    raise ValueError(step)


def finish(cohort: Cohort, outbox: Outbox) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Play honestly to the end, without whoever has failed, and return the sum and its survivors."""
    while cohort.server.step not in ("done", "failed"):
        current = cohort.server.step
        for client, message in outbox.items():
            if cohort.clients[client].step == current:
                ((_, answer),) = cohort.clients[client].receive(message)
                cohort.server.receive(client, answer)
        outbox = dict(cohort.server.end_step())
    total, survivors = cohort.server.result
    return total.lift(), survivors


def nothing(holders: int) -> Public:
    """The public part of a dealing that no holder can use."""
    pairs = messages.PAIR_BYTES
    return Public(bytes(pairs * holders), bytes(pairs * holders), bytes(pairs), bytes(messages.PROOF_BYTES))


def lie(cohort: Cohort, client: int, message: messages.ServerMessage) -> bytes:
    """A message of the server's own making, which it will remember as the one it sent."""
    return inside(cohort.server).send(client, message)[1]


UNSEALED = (messages.Open, messages.Advertise, messages.Abort)


def read(cohort: Cohort, client: int, data: bytes, kind: type) -> messages.Wire:
    """What a message between ``client`` and the server says, to who knows the cohort's randomness."""
    unsealed = kind in UNSEALED
    return messages.decode(memoryview(data) if unsealed else cohort.channel(client).open(memoryview(data)), kind)


def forge(cohort: Cohort, client: int, message: messages.ClientMessage) -> bytes:
    """A message of a lying client's own making, with the right tag."""
    return cohort.channel(client).seal(messages.encode(message))
