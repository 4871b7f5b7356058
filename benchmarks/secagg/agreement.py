"""What `key_agreement = "mlkem768-x25519"` costs an interactive session beside `"x25519"`: bytes and CPU seconds.

    python -m benchmarks.secagg.agreement --save

Complete graphs. 10 % of the clients share their keys and vanish. Vectors are short, so keys, boxes and proofs are all
that is measured; the packed vector is subtracted from the bytes that a client sends. Both take turns, and the least
CPU of the repeats counts. The second table has the wall seconds of five parties with folders and journals in one
process: a session between machines without its network.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import Row, Tables, command
from benchmarks.secagg.sessions import cohort, cpu
from privstats.encoding import Ring
from privstats.engines.loopback import Outcome, run
from privstats.engines.network.host import Host
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.secagg.keys import KEY_AGREEMENTS
from tests.engines.network.fake import study_of

TITLE = "one interactive session, complete graph, 10 % vanish after sharing"
RING = Ring(((1_000, 32),))


def played(clients: int, key_agreement: str) -> Outcome:
    """One session, whose sum is compared."""
    gone = clients // 10
    server, machines, values, _ = cohort(clients, RING, clients - gone, clients // 10, key_agreement=key_agreement)
    outcome = run(server, machines, dropouts={"mask": range(gone)})
    if not np.array_equal(outcome.total.lift(), np.sum([values[i] for i in outcome.survivors], axis=0)):
        raise SystemExit("the sum is wrong")
    return outcome


def rows(clients: int, repeats: int) -> list[Row]:
    """Both key agreements in turns, each with its least CPU."""
    best: dict[str, Outcome] = {}
    for _ in range(repeats):
        for name in KEY_AGREEMENTS:
            outcome = played(clients, name)
            best[name] = min(best.get(name, outcome), outcome, key=cpu)
    return [_row(clients, name, best) for name in KEY_AGREEMENTS]


def _row(clients: int, name: str, best: Mapping[str, Outcome]) -> dict[str, Any]:
    classical, found = best[next(iter(KEY_AGREEMENTS))], best[name]
    staying, theirs = (each.client_cpu[clients // 10 :] for each in (found, classical))
    return {
        "clients": clients,
        "key_agreement": name,
        "sends_bytes": max(found.bytes_sent) - RING.wire_bytes,
        "receives_bytes": max(found.bytes_received),
        "client_ms": 1e3 * median(staying),
        "server_s": found.server_cpu,
        "client / x25519": median(staying) / median(theirs),
        "server / x25519": found.server_cpu / classical.server_cpu,
    }


def folders(repeats: int) -> list[Row]:
    """Sessions of five parties, in turns, each with its least seconds."""
    best: dict[str, float] = {}
    for _ in range(repeats):
        for name in KEY_AGREEMENTS:
            best[name] = min(best.get(name, float("inf")), _seconds(name))
    classical = best[next(iter(KEY_AGREEMENTS))]
    return [{"key_agreement": name, "s": s, "s / x25519": s / classical} for name, s in best.items()]


def _seconds(key_agreement: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        study = study_of(Path(folder), key_agreement=key_agreement)
        homes = {peer: study.home(peer) for peer in range(len(study.identities))}
        began = time.monotonic()
        Host.open(study.host).run(LocalTransport(homes), Deadlines(), sleep=lambda _: None, say=lambda _: None)
        return time.monotonic() - began


def tables(chosen: argparse.Namespace) -> Tables:
    """Sessions of 10, 100 and 256 clients, which is the largest complete graph, and of five folders."""
    cohorts = ((10, 1),) if chosen.quick else ((10, 5), (100, 3), (256, 1))
    yield TITLE, [row for clients, repeats in cohorts for row in rows(clients, repeats)]
    yield "five parties with folders and journals, in one process", folders(1 if chosen.quick else 7)


if __name__ == "__main__":
    command("secagg.agreement", __doc__, tables)
