"""Every client and the server in one process, over the real bytes, with faults to order.

For tests, simulations and the demo; nothing leaves the process, so it says nothing about networks. A shell around any
machines that fit ``secagg.machines``: it delivers, times and counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from privstats.encoding import RingVector
from privstats.engines.faults import Fault, Network
from privstats.errors import PlanError, RemoteProtocolError
from privstats.secagg.machines import ENDS, Aggregator, Peer
from privstats.secagg.outbox import Outbox

__all__ = ["Outcome", "Progress", "run"]

Progress = Callable[[str, int, int], None]
T = TypeVar("T")


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
    server: Aggregator,
    clients: Sequence[Peer],
    *,
    dropouts: Mapping[str, Collection[int]] | None = None,
    faults: Iterable[Fault] = (),
    order: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Carry one session from start to sum, and tell whoever was left out on the way that it is over.

    Args:
        server: a fresh server, plain or journaled.
        clients: fresh clients, plain or journaled, ``clients[i]`` at place i of the roster.
        dropouts: for each of the server's ``steps`` the clients that vanish before they send that step's message.
        faults: what happens to single messages on the way.
        order: the order in which clients are heard in every step; by index when omitted.
        progress: called with step, clients done and clients in all after each client.

    Raises:
        AggregationError: too few clients were left.
        PlanError: ``dropouts`` or ``faults`` name an unknown step.
    """
    ordered = tuple(faults)
    _check_steps("dropouts", dropouts or {}, server.steps)
    _check_steps("faults", {fault.step for fault in ordered}, server.steps)
    ranks = {client: rank for rank, client in enumerate(order if order is not None else range(len(clients)))}
    return _Session(server, clients, dropouts or {}, Network(ordered), ranks, progress).run()


def _check_steps(what: str, named: Collection[str], steps: tuple[str, ...]) -> None:
    unknown = sorted(set(named) - set(steps))
    if unknown:
        raise PlanError(f"{what} names unknown steps {unknown}: the steps are {', '.join(steps)}")


@dataclass
class _Session:
    server: Aggregator
    clients: Sequence[Peer]
    dropouts: Mapping[str, Collection[int]]
    network: Network
    ranks: Mapping[int, int]
    progress: Progress | None
    gone: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)  # clients that have answered, and not yet the last step
    refusals: list[RemoteProtocolError] = field(default_factory=list)
    server_cpu: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.clients)
        self.sent, self.received, self.client_cpu = [0] * count, [0] * count, [0.0] * count

    def run(self) -> Outcome:
        try:
            seconds = self._steps()
        finally:
            self._dismiss()
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

    def _steps(self) -> dict[str, float]:
        seconds: dict[str, float] = {}
        outbox = self._server(self.server.start)
        for step in self.server.steps:
            began = time.perf_counter()
            outbox = self._step(step, outbox)
            seconds[step] = time.perf_counter() - began
        self._deliver_late()
        return seconds

    def _dismiss(self) -> None:
        """The server's last word, to the clients that it heard once and then left out: nobody else will end them."""
        if self.server.step not in ENDS:
            return
        farewell = self._server(self.server.abandon)
        for client in sorted(self.waiting.intersection(farewell.clients)):
            message = farewell.to(client)
            self.received[client] += len(message)
            self._client(client, message)

    def _step(self, step: str, outbox: Outbox) -> Outbox:
        """Deliver one step's messages; each answer goes to the server before the next client is woken."""
        self.gone |= set(self.dropouts.get(step, ()))
        self._deliver_late()
        for done, client in enumerate(sorted(outbox.clients, key=self.ranks.__getitem__), start=1):
            message = self._server(partial(outbox.to, client))
            self.received[client] += len(message)
            for arriving in self.network.carry(step, client, "down", message):
                self._answer(step, client, arriving)
            if self.progress is not None:
                self.progress(step, done, len(outbox))
        answered = self.server.outlook().answered
        self.waiting.update(answered)
        following = self._server(self.server.end_step)
        if self.server.step in ENDS:
            self.waiting.difference_update(answered)
        return following

    def _answer(self, step: str, client: int, message: bytes) -> None:
        for answer in self._client(client, message):
            self.sent[client] += len(answer)
            for arriving in self.network.carry(step, client, "up", answer):
                self._hear(client, arriving)

    def _deliver_late(self) -> None:
        for direction, client, message in self.network.overdue():
            if direction == "up":
                self._hear(client, message)
            else:
                self._client(client, message)

    def _client(self, client: int, message: bytes) -> list[bytes]:
        """What a client answers; nothing if it is gone, or refuses."""
        if client in self.gone:
            return []
        began = time.process_time()
        try:
            return [answer for _, answer in self.clients[client].receive(message)]
        except RemoteProtocolError as refusal:
            self.refusals.append(refusal)
            return []
        finally:
            self.client_cpu[client] += time.process_time() - began

    def _hear(self, client: int, message: bytes) -> None:
        try:
            self._server(lambda: self.server.receive(client, message))
        except RemoteProtocolError as refusal:
            self.refusals.append(refusal)

    def _server(self, action: Callable[[], T]) -> T:
        began = time.process_time()
        try:
            return action()
        finally:
            self.server_cpu += time.process_time() - began
