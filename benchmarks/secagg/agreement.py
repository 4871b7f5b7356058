"""What keys, boxes and proofs cost an interactive session: bytes and CPU seconds.

    python -m benchmarks.secagg.agreement [--clients 10 100 256 1000] --save

Complete graphs up to 256 clients, beyond the random graph of a lying server. 10 % of the clients share their keys and
vanish, of 1,000 only 8 %, because a random graph needs more on a list. Saved rows of other cohorts are kept. Vectors
are short, so keys, boxes and proofs are all that is measured; the packed vector is subtracted from the bytes that a
client sends. The least CPU of the repeats counts. The second table has the wall seconds of five parties with folders
and journals in one process: a session between machines without its network.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.measuring import Row, Tables, command, results
from benchmarks.secagg.sessions import cohort, cpu
from privstats.encoding import Ring
from privstats.engines.loopback import Outcome, run
from privstats.engines.network.host import Host
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.secagg.interactive.random_graph import COMPLETE_LIMIT
from tests.engines.network.fake import study_of

TITLE = "one interactive session, random graph beyond 256 clients"
REPEATS = {10: 5, 100: 3, 256: 1, 1_000: 1}
RING = Ring(((1_000, 32),))


def played(clients: int) -> Outcome:
    """One session, whose sum is compared."""
    tenth, gone = clients // 10, _vanish(clients)
    server, machines, values, _ = cohort(clients, RING, clients - tenth, tenth)
    outcome = run(server, machines, dropouts={"mask": range(gone)})
    if not np.array_equal(outcome.total.lift(), np.sum([values[i] for i in outcome.survivors], axis=0)):
        raise SystemExit("the sum is wrong")
    return outcome


def _vanish(clients: int) -> int:
    """Return how many clients vanish: of a large cohort as many as its random graph allows."""
    return clients * (10 if clients <= COMPLETE_LIMIT else 8) // 100


def row(clients: int, repeats: int) -> Row:
    """One cohort, with its least CPU."""
    best = min((played(clients) for _ in range(repeats)), key=cpu)
    return {
        "clients": clients,
        "sends_bytes": max(best.bytes_sent) - RING.wire_bytes,
        "receives_bytes": max(best.bytes_received),
        "client_ms": 1e3 * median(best.client_cpu[_vanish(clients) :]),
        "server_s": best.server_cpu,
    }


def folders(repeats: int) -> list[Row]:
    """Sessions of five parties, the least seconds."""
    return [{"s": min(_seconds() for _ in range(repeats))}]


def _seconds() -> float:
    with tempfile.TemporaryDirectory() as folder:
        study = study_of(Path(folder))
        homes = {peer: study.home(peer) for peer in range(len(study.identities))}
        began = time.monotonic()
        Host.open(study.host).run(LocalTransport(homes), Deadlines(), sleep=lambda _: None, say=lambda _: None)
        return time.monotonic() - began


def options(parser: argparse.ArgumentParser) -> None:
    """The cohorts."""
    parser.add_argument("--clients", type=int, nargs="+", default=list(REPEATS))


def tables(chosen: argparse.Namespace) -> Tables:
    """Sessions of each cohort, 256 being the largest complete graph, and of five folders."""
    cohorts = [10] if chosen.quick else chosen.clients
    kept = [] if chosen.quick else [old for old in results("secagg.agreement")[TITLE] if old["clients"] not in cohorts]
    measured = [row(clients, 1 if chosen.quick else REPEATS.get(clients, 1)) for clients in cohorts]
    yield TITLE, sorted([*kept, *measured], key=lambda each: each["clients"])
    yield "five parties with folders and journals, in one process", folders(1 if chosen.quick else 7)


if __name__ == "__main__":
    command("secagg.agreement", __doc__, tables, options)
