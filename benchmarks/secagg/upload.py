"""What the one upload costs beside the interactive protocol, in one run: CPU seconds, bytes and peak memory.

    python -m benchmarks.secagg.upload --save

Real machines; each report is handed on and forgotten before the next client begins; 10 % of the clients are silent.
Entries have 32 bits, or those that a plan of class moments gives them. The floor is one keystream, added once, in the
same run.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, Protocol, TypeVar

import numpy as np

from benchmarks.measuring import Row, Rows, Tables, command
from benchmarks.secagg.sessions import Meter, bits_of, cohort, cpu, lane_bytes, mask_floor, own_ring
from privstats.encoding import Ring
from privstats.engines.loopback import run
from privstats.secagg import HelperKeys, Identity, Panel, Roster
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.parameters import UploadParameters

T = TypeVar("T")
MANY = 10_000
_VECTORS = 16  # that the clients have in turns


class Measure(Protocol):
    """What is put around every call of a party."""

    def __call__(self, action: Callable[[], T]) -> T:
        """Do it, and measure."""
        ...


@dataclass
class Uploads:
    """Fresh machines of one run, with random vectors of small integers."""

    clients: int
    helpers: int
    ring: Ring
    values: Any = field(init=False)

    def __post_init__(self) -> None:
        n, ring = self.clients, self.ring
        self.parameters = UploadParameters.solve(
            clients=n,
            min_survivors=n * 9 // 10,
            colluders=n // 10,
            helpers=self.helpers,
            ring=ring,
            plan_digest=bytes(32),
        )
        self.identities = [Identity.generate(os.urandom) for _ in range(n)]
        members = [Identity.generate(os.urandom) for _ in range(self.helpers + 1)]
        publics = tuple(each.public for each in self.identities)
        self.roster = Roster(publics, server=members[0].public, run=os.urandom(16))
        keys = [HelperKeys(each, place, self.parameters, self.roster) for place, each in enumerate(members)]
        self.panel = Panel(tuple(each.public for each in members), tuple(each.offer for each in keys))
        common: dict[str, Any] = {"roster": self.roster, "panel": self.panel}
        self.leader = Leader(self.parameters, keys=keys[0], **common)
        self.members = [Helper(self.parameters, keys=each, **common) for each in keys[1:]]
        self.vectors = np.random.default_rng(1).integers(-50, 50, (_VECTORS, ring.size))
        self.values = np.zeros(ring.size, np.int64)

    def client(self, index: int) -> Client:
        """A client whose vector is counted in :attr:`values` if it is heard."""
        vector = self.vectors[index % _VECTORS]
        if index >= self.clients // 10:
            self.values += vector
        place: dict[str, Any] = {"index": index, "identity": self.identities[index]}
        return Client(
            self.parameters, self.parameters.ring.encode(vector), roster=self.roster, panel=self.panel, **place
        )

    def run(self, client: Measure, leader: Measure, helpers: Sequence[Measure]) -> None:
        """The run: every report is handed on and forgotten before the next client begins."""

        def ask(outbox: Any) -> None:
            for peer in outbox.clients:
                place = peer - self.clients
                message = leader(partial(outbox.to, peer))
                ((_, answer),) = helpers[place](partial(self.members[place].receive, message))
                ask(leader(partial(self.leader.receive, peer, answer)))

        for index in range(self.clients // 10, self.clients):
            ((_, report),) = client(self.client(index).start)
            ask(leader(partial(self.leader.receive, index, report)))
            del report
        for _ in self.leader.steps:
            ask(leader(self.leader.end_step))
        if not np.array_equal(self.leader.result[0].lift(), self.values):
            raise SystemExit("the sum is wrong")


def split(clients: int, ring: Ring, helpers: int, repeats: int) -> Row:
    """One configuration of the one upload: of each party the cheapest of the repeats."""
    runs = [_timed(Uploads(clients, helpers, ring)) for _ in range(repeats)]
    server = min(sum(leader.seconds) for _, leader, _ in runs)
    helper = min(max(sum(each.seconds) for each in members) for _, _, members in runs)
    heard, sent = clients - clients // 10, runs[0][0].most_bytes
    return {
        "protocol": f"split, h = {helpers}",
        "clients": clients,
        "size": ring.size,
        "bits": bits_of(ring),
        "floor_ms": 1e3 * mask_floor(ring),
        "client_ms": 1e3 * min(median(each.seconds) for each, _, _ in runs),
        "server_s": server,
        "server_ms_per_report": 1e3 * server / heard,
        "helper_s": helper,
        "helper_ms_per_report": 1e3 * helper / heard,
        "all_s": min(sum(sum(each.seconds) for each in (client, leader, *members)) for client, leader, members in runs),
        "upload_bytes": sent,
        "beyond_ring_bytes": sent - ring.wire_bytes,
    }


def _timed(uploads: Uploads) -> tuple[Clock, Clock, list[Clock]]:
    clocks = Clock(), Clock(), [Clock() for _ in uploads.members]
    uploads.run(*clocks)
    return clocks


def interactive(clients: int, ring: Ring) -> Row:
    """The interactive protocol on the same work: a tenth of the clients share their keys and vanish."""
    gone = clients // 10
    server, machines, values, _ = cohort(clients, ring, clients - gone, gone)
    outcome = run(server, machines, dropouts={"mask": range(gone)})
    if not np.array_equal(outcome.total.lift(), np.sum([values[i] for i in outcome.survivors], axis=0)):
        raise SystemExit("the sum is wrong")
    sent = max(outcome.bytes_sent)
    return {
        "protocol": "interactive",
        "clients": clients,
        "size": ring.size,
        "bits": bits_of(ring),
        "floor_ms": 1e3 * mask_floor(ring),
        "client_ms": 1e3 * median(outcome.client_cpu[gone:]),
        "server_s": outcome.server_cpu,
        "server_ms_per_report": 1e3 * outcome.server_cpu / (clients - gone),
        "helper_s": None,
        "helper_ms_per_report": None,
        "all_s": cpu(outcome),
        "upload_bytes": sent,
        "beyond_ring_bytes": sent - ring.wire_bytes,
    }


class Clock:
    """Processor seconds of each call, and the most bytes that a call returned in a message."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.most_bytes = 0

    def __call__(self, action: Callable[[], T]) -> T:
        """Do it, and time it."""
        began = time.process_time()
        result = action()
        self.seconds.append(time.process_time() - began)
        if isinstance(result, list):
            self.most_bytes = max([self.most_bytes, *(len(message) for _, message in result)])
        return result


def memory(clients: int, ring: Ring) -> Row:
    """Peak memory of client, leader and helper apart, messages in their hands left out; one helper."""
    uploads, client, leader, helper = Uploads(clients, 1, ring), Meter(), Meter(), Meter()
    tracemalloc.start()
    uploads.run(client, leader, [helper])
    tracemalloc.stop()
    vector = ring.wire_bytes
    limit = lane_bytes(ring) + min(clients * vector, (64 << 20) + vector) + (1 << 20)
    if leader.peak > limit:
        raise SystemExit(f"the leader held {leader.peak:,} bytes, more than the {limit:,} that the pages say")
    return {
        "clients": clients,
        "size": ring.size,
        "bits": bits_of(ring),
        "client_peak": client.peak,
        "leader_peak": leader.peak,
        "leader_limit": limit,
        "helper_peak": helper.peak,
        "helper_vectors": helper.peak / vector,
    }


def options(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what every benchmark takes."""


def tables(chosen: argparse.Namespace) -> Tables:
    """Both protocols side by side, memory, and many clients."""
    (n, size), repeats, many = ((10, 1_000), 1, 20) if chosen.quick else ((100, 1_000_000), 3, MANY)
    narrow, own = Ring(((size, 32),)), own_ring(size, n)
    rows: Rows = [interactive(n, narrow), *(split(n, narrow, helpers, repeats) for helpers in (1, 2, 5))]
    rows = [*rows, interactive(n, own), split(n, own, 1, repeats)]
    yield "one upload beside the interactive protocol, CPU seconds, 10 % silent", rows
    yield (
        "all of it together, times",
        [{"interactive / split, h = 1": rows[0]["all_s"] / rows[1]["all_s"], "target": 8}],
    )
    yield "peak memory in bytes, one helper", [memory(n, narrow), memory(n, own)]
    rings = [Ring(((entries, 32),)) for entries in (100, size // 10, size)]
    yield (
        "many clients, one helper, each report streamed",
        [split(many, ring, 1, 1) for ring in (*rings, own_ring(size, many))],
    )


if __name__ == "__main__":
    command("secagg.upload", __doc__, tables, options)
