"""Runs a session in one process, over the real bytes, with fault injection.

For tests and simulations; its times do not include a network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from privstats.encoding import RingVector
from privstats.engines.faults import Fault, Network
from privstats.errors import PlanError, RemoteProtocolError
from privstats.secagg.machines import ENDS, Aggregator, Opening, Outbox, Peer

Progress = Callable[[str, int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The result of a session; tuples are by client or panel index.

    Attributes:
        total: the exact sum over ``survivors``; marked where a client's noise is reproducible.
        survivors: the clients in the sum, in increasing order.
        bytes_sent, bytes_received: bytes from and to each client.
        seconds: wall time by step.
        openings: opened noise layers by client, for ``session.release``.

    Example:
        >>> from privstats.engines import loopback
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.5, 0.0]], [0])] * 2)
        >>> outcome = loopback.run(parties.server, parties.clients)
        >>> outcome.survivors, len(outcome.bytes_sent), outcome.faults
        ((0, 1), 2, ())
    """

    total: RingVector
    survivors: tuple[int, ...]
    bytes_sent: tuple[int, ...]
    bytes_received: tuple[int, ...]
    seconds: Mapping[str, float]
    client_cpu: tuple[float, ...]
    server_cpu: float
    faults: tuple[RemoteProtocolError, ...]
    helper_cpu: tuple[float, ...] = ()
    helper_sent: tuple[int, ...] = ()
    helper_received: tuple[int, ...] = ()
    openings: Mapping[int, Opening] = field(default_factory=dict)


def run(
    server: Aggregator,
    clients: Sequence[Peer],
    *,
    helpers: Sequence[Peer] = (),
    dropouts: Mapping[str, Collection[int]] | None = None,
    faults: Iterable[Fault] = (),
    order: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run one session from start to sum, then send its end to excluded clients.

    A client that ended before its upload is discarded, which refunds its spend.

    Args:
        server, clients, helpers: fresh machines, plain or journaled; clients by roster index, helpers by panel index.
        dropouts: per step, the clients that vanish before they send that step's message.
        order: the order of the clients in every step; default by index.
        progress: called with step, clients done and number of clients.

    Raises:
        AggregationError: too few clients remained.
        PlanError: ``dropouts`` or ``faults`` name an unknown step.

    Example:
        >>> from privstats.engines import loopback
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.5, 0.0]], [0])] * 3)
        >>> loopback.run(parties.server, parties.clients, dropouts={"mask": {1}}).survivors
        (0, 2)
    """
    ordered = tuple(faults)
    _check_steps("dropouts", dropouts or {}, server.steps)
    _check_steps("faults", {fault.step for fault in ordered}, server.steps)
    ranks = {client: rank for rank, client in enumerate(order if order is not None else range(len(clients)))}
    peers = (*clients, *helpers)
    return _Session(server, peers, len(clients), dropouts or {}, Network(ordered), ranks, progress).run()


def _check_steps(what: str, named: Collection[str], steps: tuple[str, ...]) -> None:
    unknown = sorted(set(named) - set(steps))
    if unknown:
        raise PlanError(f"{what} names unknown steps {unknown}: the steps are {', '.join(steps)}")


@dataclass
class _Session:
    server: Aggregator
    peers: Sequence[Peer]
    clients: int
    dropouts: Mapping[str, Collection[int]]
    network: Network
    ranks: Mapping[int, int]
    progress: Progress | None
    gone: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)  # clients that have answered, and not yet the last step
    refusals: list[RemoteProtocolError] = field(default_factory=list)
    server_cpu: float = 0.0
    step: str = ""

    def __post_init__(self) -> None:
        count = len(self.peers)
        self.sent, self.received, self.client_cpu = [0] * count, [0] * count, [0.0] * count

    def run(self) -> Outcome:
        known = [place for place, peer in enumerate(self.peers) if getattr(peer, "reproducible", False)]
        mark = getattr(self.server, "mark_known_noise", None)  # a journal's, whose release is made from its own sum
        if known and mark is not None:
            mark(known)
        try:
            seconds = self._steps()
        finally:
            self._dismiss()
        total, survivors = self.server.result
        return Outcome(
            total=replace(total, reproducible=not set(known).isdisjoint(survivors)),
            survivors=survivors,
            bytes_sent=tuple(self.sent[: self.clients]),
            bytes_received=tuple(self.received[: self.clients]),
            seconds=seconds,
            client_cpu=tuple(self.client_cpu[: self.clients]),
            server_cpu=self.server_cpu,
            faults=(*self.refusals, *(fault for peer in self.peers for fault in peer.faults)),
            helper_cpu=tuple(self.client_cpu[self.clients :]),
            helper_sent=tuple(self.sent[self.clients :]),
            helper_received=tuple(self.received[self.clients :]),
            openings=self.server.openings,
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
        if self.server.step in ENDS:
            self._send_the_end()
        for client in self.peers[: self.clients]:
            if client.step in ENDS and not client.upload:
                client.discard()

    def _send_the_end(self) -> None:
        farewell = self._server(self.server.abandon)
        for client in sorted(self.waiting.intersection(farewell.clients)):
            message = farewell.to(client)
            self.received[client] += len(message)
            self._client(client, message)

    def _step(self, step: str, outbox: Outbox) -> Outbox:
        """Each answer goes to the server before the next client's message."""
        self.gone |= set(self.dropouts.get(step, ()))
        self._deliver_late()
        if not self.step:
            self._begin(step)
        self.step = step
        for done, client in enumerate(sorted(outbox.clients, key=self._rank), start=1):
            self._ask(outbox, client)
            if self.progress is not None:
                self.progress(step, done, len(outbox))
        answered = self.server.step_status().answered
        self.waiting.update(answered)
        following = self._server(self.server.end_step)
        if self.server.step in ENDS:
            self.waiting.difference_update(answered)
        return following

    def _rank(self, peer: int) -> int:
        return self.ranks.get(peer, peer)

    def _begin(self, step: str) -> None:
        self.step = step
        for done, client in enumerate(sorted(range(self.clients), key=self._rank), start=1):
            sent = self._sent(client, self.peers[client].start)
            for message in sent:
                self._send(client, message)
            if sent and self.progress is not None:
                self.progress(step, done, self.clients)

    def _ask(self, outbox: Outbox, peer: int) -> None:
        message = self._server(partial(outbox.to, peer))
        self.received[peer] += len(message)
        for arriving in self.network.carry(self.step, peer, "down", message):
            for answer in self._client(peer, arriving):
                self._send(peer, answer)

    def _send(self, peer: int, message: bytes) -> None:
        self.sent[peer] += len(message)
        for arriving in self.network.carry(self.step, peer, "up", message):
            self._deliver_to_server(peer, arriving)

    def _deliver_late(self) -> None:
        for direction, client, message in self.network.overdue():
            if direction == "up":
                self._deliver_to_server(client, message)
            else:
                self._client(client, message)

    def _client(self, client: int, message: bytes) -> list[bytes]:
        return self._sent(client, partial(self.peers[client].receive, message))

    def _sent(self, client: int, action: Callable[[], list[tuple[str, bytes]]]) -> list[bytes]:
        if client in self.gone:
            return []
        began = time.process_time()
        try:
            return [answer for _, answer in action()]
        except RemoteProtocolError as refusal:
            self.refusals.append(refusal)
            return []
        finally:
            self.client_cpu[client] += time.process_time() - began

    def _deliver_to_server(self, client: int, message: bytes) -> None:
        try:
            following = self._server(lambda: self.server.receive(client, message))
        except RemoteProtocolError as refusal:
            self.refusals.append(refusal)
            return
        for peer in following.clients:
            self._ask(following, peer)

    def _server(self, action: Callable[[], T]) -> T:
        began = time.process_time()
        try:
            return action()
        finally:
            self.server_cpu += time.process_time() - began
