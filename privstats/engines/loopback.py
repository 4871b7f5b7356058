"""Every client and the server in one process, over the real bytes, with faults to order.

For tests, simulations and the demo; nothing leaves the process, so it says nothing about networks. A shell around the
machines: it delivers, times and counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from privstats.encoding import RingVector
from privstats.errors import PlanError, RemoteProtocolError
from privstats.secagg import Client, Server
from privstats.secagg.steps import STEPS

__all__ = ["Outcome", "run"]


@dataclass(frozen=True)
class Outcome:
    """What a session ended in.

    Attributes:
        total: the exact sum over ``survivors``.
        survivors: the clients in the sum, in increasing order.
        bytes_sent: bytes that each client sent, by index.
        bytes_received: bytes that each client was sent, by index.
        seconds: wall time by step, clients and server together.
        faults: messages that either side refused.
    """

    total: RingVector
    survivors: tuple[int, ...]
    bytes_sent: tuple[int, ...]
    bytes_received: tuple[int, ...]
    seconds: Mapping[str, float]
    faults: tuple[RemoteProtocolError, ...]


def run(
    server: Server,
    clients: Sequence[Client],
    *,
    dropouts: Mapping[str, Collection[int]] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """Carry one session from start to sum.

    Args:
        server: a fresh server.
        clients: fresh clients, ``clients[i]`` at place i of the roster.
        dropouts: for each step ("advertise", "share", "mask", "agree", "unmask") the clients that vanish before they
            send that step's message.
        progress: called with step, clients done and clients in all after each client.

    Raises:
        AggregationError: too few clients were left.
        PlanError: ``dropouts`` names an unknown step.
    """
    unknown = set(dropouts or {}) - set(STEPS)
    if unknown:
        raise PlanError(f"dropouts names unknown steps {sorted(unknown)}: the steps are {', '.join(STEPS)}")
    return _Session(server, clients, dropouts or {}, progress).run()


class _Session:
    def __init__(
        self,
        server: Server,
        clients: Sequence[Client],
        dropouts: Mapping[str, Collection[int]],
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        self.server, self.clients, self.dropouts, self.progress = server, clients, dropouts, progress
        self.sent, self.received = [0] * len(clients), [0] * len(clients)
        self.faults: list[RemoteProtocolError] = []
        self.gone: set[int] = set()

    def run(self) -> Outcome:
        seconds: dict[str, float] = {}
        outbox = self.server.start()
        for step in STEPS:
            began = time.perf_counter()
            outbox = self._step(step, outbox)
            seconds[step] = time.perf_counter() - began
        total, survivors = self.server.result
        faults = (*self.faults, *(fault for client in self.clients for fault in client.faults))
        return Outcome(total, survivors, tuple(self.sent), tuple(self.received), seconds, faults)

    def _step(self, step: str, outbox: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Deliver one step's messages; each answer goes to the server before the next client is woken."""
        self.gone |= set(self.dropouts.get(step, ()))
        following: list[tuple[int, bytes]] = []
        for done, (client, message) in enumerate(outbox, start=1):
            self.received[client] += len(message)
            if client not in self.gone:
                following = self._exchange(client, message) or following
            if self.progress is not None:
                self.progress(step, done, len(outbox))
        return following if self.server.step != step else self.server.end_step()

    def _exchange(self, client: int, message: bytes) -> list[tuple[int, bytes]]:
        following: list[tuple[int, bytes]] = []
        try:
            for _, answer in self.clients[client].receive(message):
                self.sent[client] += len(answer)
                following = self.server.receive(client, answer)
        except RemoteProtocolError as fault:
            self.faults.append(fault)
        return following
