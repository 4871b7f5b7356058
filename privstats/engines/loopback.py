"""Every client and the server in one process, over the real bytes, with faults to order.

For tests, simulations and the demo; nothing leaves the process, so it says nothing about networks. A shell around the
machines: it delivers, times and counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from privstats.encoding import RingVector
from privstats.engines.faults import Direction, Fault, Network
from privstats.errors import PlanError, RemoteProtocolError
from privstats.secagg import Client, Server
from privstats.secagg.server import Outbox
from privstats.secagg.steps import ENDS, STEPS, StepName

__all__ = ["Outcome", "Progress", "run"]

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Outcome:
    """What a session ended in.

    Attributes:
        total: the exact sum over ``survivors``.
        survivors: the clients in the sum, in increasing order.
        bytes_sent: bytes that each client sent, by index.
        bytes_received: bytes that each client was sent, by index.
        seconds: wall time by step, clients and server together.
        client_cpu: processor seconds of each client, by index.
        server_cpu: processor seconds of the server.
        faults: messages that either side refused.
    """

    total: RingVector
    survivors: tuple[int, ...]
    bytes_sent: tuple[int, ...]
    bytes_received: tuple[int, ...]
    seconds: Mapping[str, float]
    client_cpu: tuple[float, ...]
    server_cpu: float
    faults: tuple[RemoteProtocolError, ...]


def run(
    server: Server,
    clients: Sequence[Client],
    *,
    dropouts: Mapping[str, Collection[int]] | None = None,
    faults: Iterable[Fault] = (),
    order: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Carry one session from start to sum.

    Args:
        server: a fresh server.
        clients: fresh clients, ``clients[i]`` at place i of the roster.
        dropouts: for each step ("advertise", "share", "mask", "agree", "unmask") the clients that vanish before they
            send that step's message.
        faults: what happens to single messages on the way.
        order: the order in which clients are heard in every step; by index when omitted.
        progress: called with step, clients done and clients in all after each client.

    Raises:
        AggregationError: too few clients were left.
        PlanError: ``dropouts`` names an unknown step.
    """
    unknown = set(dropouts or {}) - set(STEPS)
    if unknown:
        raise PlanError(f"dropouts names unknown steps {sorted(unknown)}: the steps are {', '.join(STEPS)}")
    ranks = {client: rank for rank, client in enumerate(order if order is not None else range(len(clients)))}
    return _Session(server, clients, dropouts or {}, Network(faults), ranks, progress).run()


@dataclass
class _Session:
    server: Server
    clients: Sequence[Client]
    dropouts: Mapping[str, Collection[int]]
    network: Network
    ranks: Mapping[int, int]
    progress: Progress | None
    gone: set[int] = field(default_factory=set)
    refusals: list[RemoteProtocolError] = field(default_factory=list)
    server_cpu: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.clients)
        self.sent, self.received, self.client_cpu = [0] * count, [0] * count, [0.0] * count

    def run(self) -> Outcome:
        seconds: dict[str, float] = {}
        outbox = self.server.start()
        for step in STEPS:
            began = time.perf_counter()
            outbox = self._step(step, outbox)
            seconds[step] = time.perf_counter() - began
        total, survivors = self.server.result
        return Outcome(
            total=total,
            survivors=survivors,
            bytes_sent=tuple(self.sent),
            bytes_received=tuple(self.received),
            seconds=seconds,
            client_cpu=tuple(self.client_cpu),
            server_cpu=self.server_cpu,
            faults=(*self.refusals, *(fault for client in self.clients for fault in client.faults)),
        )

    def _step(self, step: StepName, outbox: Outbox) -> Outbox:
        """Deliver one step's messages; each answer goes to the server before the next client is woken."""
        self.gone |= set(self.dropouts.get(step, ()))
        for direction, client, message in self.network.overdue():
            self._deliver_late(direction, client, message)
        following: Outbox = []
        for done, (client, message) in enumerate(sorted(outbox, key=lambda item: self.ranks[item[0]]), start=1):
            self.received[client] += len(message)
            for arriving in self.network.carry(step, client, "down", message):
                following = self._answer(step, client, arriving) or following
            if self.progress is not None:
                self.progress(step, done, len(outbox))
        return following if self.server.step != step else self._server(self.server.end_step)

    def _answer(self, step: StepName, client: int, message: bytes) -> Outbox:
        following: Outbox = []
        for answer in self._client(client, message):
            self.sent[client] += len(answer)
            for arriving in self.network.carry(step, client, "up", answer):
                following = self._hear(client, arriving) or following
        return following

    def _deliver_late(self, direction: Direction, client: int, message: bytes) -> None:
        if direction == "up":
            self._hear(client, message)
        else:
            self._client(client, message)

    def _client(self, client: int, message: bytes) -> list[bytes]:
        """What a client answers; nothing if it is gone, has ended, or refuses."""
        machine = self.clients[client]
        if client in self.gone or machine.step in ENDS:
            return []
        began = time.process_time()
        try:
            return [answer for _, answer in machine.receive(message)]
        except RemoteProtocolError as refusal:
            self.refusals.append(refusal)
            return []
        finally:
            self.client_cpu[client] += time.process_time() - began

    def _hear(self, client: int, message: bytes) -> Outbox:
        try:
            return self._server(lambda: self.server.receive(client, message))
        except RemoteProtocolError as refusal:
            self.refusals.append(refusal)
            return []

    def _server(self, action: Callable[[], Outbox]) -> Outbox:
        began = time.process_time()
        try:
            return action()
        finally:
            self.server_cpu += time.process_time() - began
