"""What the one upload costs beside the interactive protocol, in one run: CPU seconds, bytes and peak memory.

    python -m benchmarks.secagg.upload --save

Real machines over the loopback; 10 % of the clients are silent. At 10,000 clients the run is real with 100 entries, and
the columns "at 1e6" put the cost per report of the run with a million entries in its place.
"""

from __future__ import annotations

import argparse
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

import numpy as np

from benchmarks.measuring import Row, Rows, Tables, command
from benchmarks.secagg.sessions import cohort, cpu
from privstats.encoding import Ring
from privstats.engines.loopback import Outcome, run
from privstats.secagg import HelperKeys, Identity, Panel, Roster
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.parameters import UploadParameters

T = TypeVar("T")
LARGE = (100, 1_000_000)
MANY = (10_000, 100)


@dataclass
class Uploads:
    """Fresh machines of one run, with random vectors of small integers."""

    clients: int
    helpers: int
    size: int
    values: Any = field(init=False)

    def __post_init__(self) -> None:
        n, ring = self.clients, Ring(((self.size, 32),))
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
        self.rng = np.random.default_rng(1)
        self.values = np.zeros(self.size, np.int64)

    def client(self, index: int) -> Client:
        """A client whose vector is counted in :attr:`values` if it is heard."""
        vector = self.rng.integers(-50, 50, self.size)
        if index >= self.clients // 10:
            self.values += vector
        place: dict[str, Any] = {"index": index, "identity": self.identities[index]}
        return Client(
            self.parameters, self.parameters.ring.encode(vector), roster=self.roster, panel=self.panel, **place
        )

    def run(self) -> Outcome:
        """The run, with a tenth of the clients silent."""
        silent = range(self.clients // 10)
        machines = [self.client(index) for index in range(self.clients)]
        outcome = run(self.leader, machines, helpers=self.members, dropouts={"report": silent})
        if not np.array_equal(outcome.total.lift(), self.values):
            raise SystemExit("the sum is wrong")
        return outcome


def split(clients: int, size: int, helpers: int, repeats: int) -> Row:
    """One configuration of the one upload: the cheapest of the repeats, and of each party its cheapest."""
    outcomes = [Uploads(clients, helpers, size).run() for _ in range(repeats)]
    best = min(outcomes, key=everybody)
    server, helper = min(each.server_cpu for each in outcomes), min(max(each.helper_cpu) for each in outcomes)
    heard = clients - clients // 10
    ring_bytes, sent = 4 * size, max(best.bytes_sent)
    return {
        "protocol": f"split, h = {helpers}",
        "clients": clients,
        "size": size,
        "client_ms": 1e3 * min(median(each.client_cpu[clients // 10 :]) for each in outcomes),
        "server_s": server,
        "server_ms_per_report": 1e3 * server / heard,
        "helper_s": helper,
        "helper_ms_per_report": 1e3 * helper / heard,
        "all_s": everybody(best),
        "upload_bytes": sent,
        "beyond_ring_bytes": sent - ring_bytes,
        "helper_receives": max(best.helper_received),
        "helper_sends": max(best.helper_sent),
    }


def interactive(clients: int, size: int) -> Row:
    """The interactive protocol on the same work: a tenth of the clients share their keys and vanish."""
    gone = clients // 10
    server, machines, values, _ = cohort(clients, Ring(((size, 32),)), clients - gone, gone)
    outcome = run(server, machines, dropouts={"mask": range(gone)})
    if not np.array_equal(outcome.total.lift(), np.sum([values[i] for i in outcome.survivors], axis=0)):
        raise SystemExit("the sum is wrong")
    sent = max(outcome.bytes_sent)
    return {
        "protocol": "interactive",
        "clients": clients,
        "size": size,
        "client_ms": 1e3 * median(outcome.client_cpu[gone:]),
        "server_s": outcome.server_cpu,
        "server_ms_per_report": 1e3 * outcome.server_cpu / (clients - gone),
        "helper_s": None,
        "helper_ms_per_report": None,
        "all_s": cpu(outcome),
        "upload_bytes": sent,
        "beyond_ring_bytes": sent - 4 * size,
        "helper_receives": None,
        "helper_sends": None,
    }


def everybody(outcome: Outcome) -> float:
    """Processor seconds of clients, server and helpers together."""
    return cpu(outcome) + sum(outcome.helper_cpu)


class Meter:
    """The most that one machine has allocated at a time: what it keeps, and the peak of each call on top."""

    def __init__(self) -> None:
        self.kept = self.peak = 0

    def __call__(self, action: Callable[[], T]) -> T:
        """Do it, and count."""
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = action()
        after, peak = tracemalloc.get_traced_memory()
        self.peak = max(self.peak, self.kept + peak - before)
        self.kept += after - before
        return result


def memory(clients: int, size: int) -> Row:
    """Peak memory of leader and helper, messages in their hands left out; one helper."""
    uploads, leader, helper = Uploads(clients, 1, size), Meter(), Meter()
    (member,) = uploads.members
    tracemalloc.start()

    def ask(outbox: Any) -> None:
        for peer in outbox.clients:
            message = leader(lambda peer=peer: outbox.to(peer))  # type: ignore[misc]
            ((_, answer),) = helper(lambda message=message: member.receive(message))  # type: ignore[misc]
            ask(leader(lambda peer=peer, answer=answer: uploads.leader.receive(peer, answer)))  # type: ignore[misc]

    for index in range(clients):
        ((_, report),) = uploads.client(index).start()
        ask(leader(lambda index=index, report=report: uploads.leader.receive(index, report)))  # type: ignore[misc]
        del report
    for _ in uploads.leader.steps:
        ask(leader(uploads.leader.end_step))
    tracemalloc.stop()
    vector = uploads.parameters.ring.wire_bytes
    in_flight = min(clients * vector, (64 << 20) + vector)
    return {
        "clients": clients,
        "size": size,
        "leader_peak": leader.peak,
        "leader_limit": vector + in_flight,
        "helper_peak": helper.peak,
        "helper_vectors": helper.peak / vector,
    }


def extrapolated(many: Row, large: Row) -> Row:
    """The run with many clients, and what it would be with the large run's cost per report."""
    heard = many["clients"] - many["clients"] // 10
    return {
        **many,
        "client_ms_at_large": large["client_ms"],
        "server_s_at_large": heard * large["server_ms_per_report"] / 1e3,
        "helper_s_at_large": heard * large["helper_ms_per_report"] / 1e3,
    }


def options(parser: argparse.ArgumentParser) -> None:
    """Nothing beyond what every benchmark takes."""


def tables(chosen: argparse.Namespace) -> Tables:
    """Both protocols side by side, memory, and many clients."""
    (n, m), repeats = ((10, 1_000), 1) if chosen.quick else (LARGE, 3)
    rows: Rows = [interactive(n, m), *(split(n, m, helpers, repeats) for helpers in (1, 2, 5))]
    yield "one upload beside the interactive protocol, CPU seconds, 10 % silent", rows
    yield (
        "all of it together, times",
        [{"interactive / split, h = 1": rows[0]["all_s"] / rows[1]["all_s"], "target": 8}],
    )
    yield "peak memory in bytes, one helper", [memory(n, m)]
    many = split(*((20, 10) if chosen.quick else MANY), 1, 1)
    yield "many clients, and extrapolated to the large vectors", [extrapolated(many, rows[1])]


if __name__ == "__main__":
    command("secagg.upload", __doc__, tables, options)
