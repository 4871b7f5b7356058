"""Thousands of real clients at a small vector size, and what that says about large ones.

Every client and the server run the code they would run in the field, in one process; what is extrapolated is only the
per-element cost of masks, measured apart. A shell around the loopback engine; knows nothing of networks.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from privstats.encoding import Ring
from privstats.engines.loopback import Outcome, Progress, run
from privstats.errors import AggregationError, PlanError
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.prg import add_masks, add_packed

__all__ = ["ElementCost", "Estimate", "ScaleReport", "measure_elements", "measure_scale"]

_KEY = bytes(32)  # seals exports only to weigh them


@dataclass(frozen=True)
class ElementCost:
    """Processor seconds per vector element: of one mask, and of adding one upload."""

    mask: float
    upload: float
    lane_bytes: int


@dataclass(frozen=True)
class Estimate:
    """What one party pays at another vector size: measured fixed cost plus extrapolated element cost."""

    size: int
    client_cpu: float
    server_cpu: float
    client_bytes_sent: int


@dataclass(frozen=True)
class ScaleReport:
    """One session that was really run.

    Attributes:
        parameters: graph and thresholds.
        survivors: clients in the sum.
        client_cpu: median processor seconds of a surviving client; ``client_cpu_max`` the largest.
        server_cpu: processor seconds of the server.
        client_bytes_sent: median of a surviving client; likewise received.
        server_state_bytes: largest sealed state of the server at the start of a step.
        server_masks: masks the server expanded.
        seconds: wall time of the session.
    """

    parameters: Parameters
    survivors: int
    client_cpu: float
    client_cpu_max: float
    server_cpu: float
    client_bytes_sent: int
    client_bytes_received: int
    server_state_bytes: int
    server_masks: int
    seconds: float

    def at(self, size: int, cost: ElementCost) -> Estimate:
        """The cost at ``size`` elements instead of the few that were run: linear in masks times elements."""
        more = size - self.parameters.ring.size
        client_masks = self.parameters.neighbours + 1
        return Estimate(
            size=size,
            client_cpu=self.client_cpu + more * client_masks * cost.mask,
            server_cpu=self.server_cpu + more * (self.server_masks * cost.mask + self.survivors * cost.upload),
            client_bytes_sent=self.client_bytes_sent + more * cost.lane_bytes,
        )


def measure_scale(
    clients: int,
    *,
    size: int,
    dropouts: int,
    colluders: int,
    bits: int = 32,
    progress: Progress | None = None,
) -> ScaleReport:
    """Run one session over the sparse graph; ``dropouts`` clients vanish between sharing and masking.

    Raises:
        PlanError: no sparse graph carries this cohort.
        AggregationError: the sum is not exact, which would be a bug.
    """
    parameters = _with_room(clients, dropouts, colluders, Ring(((size, bits),)))
    identities = [Identity.generate(os.urandom) for _ in range(clients)]
    aggregator = Identity.generate(os.urandom)
    publics = tuple(identity.public for identity in identities)
    roster = Roster.numbered(publics, server=aggregator.public, label="scale", counter=0)
    entries = np.arange(size)
    machines = [
        Client(parameters, parameters.ring.encode(entries + index), index=index, identity=identity, roster=roster)
        for index, identity in enumerate(identities)
    ]
    server, weights = Server(parameters, roster=roster, identity=aggregator), [0]

    def weigh(step: str, done: int, total: int) -> None:
        if done == 1:
            weights.append(len(server.export(_KEY)))
        if progress is not None:
            progress(step, done, total)

    began = time.perf_counter()
    outcome = run(server, machines, dropouts={"mask": range(dropouts)}, progress=weigh)
    seconds = time.perf_counter() - began
    if not np.array_equal(outcome.total.lift(), len(outcome.survivors) * entries + sum(outcome.survivors)):
        raise AggregationError("unmask", "wrong_sum", "the simulated sum differs from the plaintext sum")
    return _report(parameters, outcome, max(weights), seconds)


def _with_room(clients: int, dropouts: int, colluders: int, ring: Ring) -> Parameters:
    """Return a sparse graph's parameters under which a list without ``dropouts`` clients leaves room for disputes."""
    staying = minimum = clients - dropouts
    while True:
        parameters = Parameters.solve(
            clients=clients,
            min_survivors=minimum,
            colluders=colluders,
            graph="sparse",
            ring=ring,
            plan_digest=bytes(32),
        )
        if parameters.min_listed <= staying:
            return parameters
        minimum -= parameters.min_listed - staying


def _report(parameters: Parameters, outcome: Outcome, state_bytes: int, seconds: float) -> ScaleReport:
    staying = list(outcome.survivors)
    survivors, vanished = len(staying), parameters.clients - len(staying)
    cpu = [outcome.client_cpu[client] for client in staying]
    return ScaleReport(
        parameters=parameters,
        survivors=survivors,
        client_cpu=median(cpu),
        client_cpu_max=max(cpu),
        server_cpu=outcome.server_cpu,
        client_bytes_sent=int(median(outcome.bytes_sent[client] for client in staying)),
        client_bytes_received=int(median(outcome.bytes_received[client] for client in staying)),
        server_state_bytes=state_bytes,
        server_masks=survivors + vanished * parameters.neighbours * survivors // parameters.clients,
        seconds=seconds,
    )


def measure_elements(*, size: int = 1_000_000, masks: int = 20, bits: int = 32, repeats: int = 5) -> ElementCost:
    """The element cost on this machine, now: the fastest of ``repeats``.

    Raises:
        PlanError: nothing to repeat.
    """
    if repeats < 1:
        raise PlanError(f"repeats must be at least 1, got {repeats}")
    ring = Ring(((size, bits),))
    vector, seeds, packed = ring.zeros(), [os.urandom(32) for _ in range(masks)], memoryview(bytes(ring.wire_bytes))
    mask = upload = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        add_masks(vector, plus=seeds)
        middle = time.process_time()
        add_packed(vector, packed)
        mask, upload = min(mask, middle - began), min(upload, time.process_time() - middle)
    return ElementCost(mask / size / masks, upload / size, (bits + 7) // 8)
