"""What `key_agreement = "mlkem768-x25519"` costs an interactive session beside `"x25519"`: bytes and CPU seconds.

    python -m benchmarks.secagg.agreement [--clients 10 100 256 1000] --save

Complete graphs up to 256 clients, beyond the random graph of a lying server. 10 % of the clients share their keys and
vanish, of 1,000 only 8 %, because version 4 needs more on a list. Saved rows of other cohorts are kept. Vectors are
short, so keys, boxes and proofs are all that is measured; the packed vector is subtracted from the bytes that a client
sends. Both take turns, and the least CPU of the repeats counts. The second table has the wall seconds of five parties
with folders and journals in one process: a session between machines without its network.
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

from benchmarks.measuring import Row, Tables, command, results
from benchmarks.secagg.sessions import cohort, cpu
from privstats.encoding import Ring
from privstats.engines.loopback import Outcome, run
from privstats.engines.network.host import Host
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.secagg.interactive.parameters import COMPLETE_LIMIT
from privstats.secagg.keys import KEY_AGREEMENTS
from tests.engines.network.fake import study_of

TITLE = "one interactive session, random graph beyond 256 clients"
REPEATS = {10: 5, 100: 3, 256: 1, 1_000: 1}
RING = Ring(((1_000, 32),))


def played(clients: int, key_agreement: str) -> Outcome:
    """One session, whose sum is compared."""
    tenth, gone = clients // 10, _vanish(clients)
    server, machines, values, _ = cohort(clients, RING, clients - tenth, tenth, key_agreement=key_agreement)
    outcome = run(server, machines, dropouts={"mask": range(gone)})
    if not np.array_equal(outcome.total.lift(), np.sum([values[i] for i in outcome.survivors], axis=0)):
        raise SystemExit("the sum is wrong")
    return outcome


def _vanish(clients: int) -> int:
    """Return how many clients vanish: of a large cohort as many as both versions allow."""
    return clients * (10 if clients <= COMPLETE_LIMIT else 8) // 100


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
    staying, theirs = (each.client_cpu[_vanish(clients) :] for each in (found, classical))
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


def options(parser: argparse.ArgumentParser) -> None:
    """The cohorts."""
    parser.add_argument("--clients", type=int, nargs="+", default=list(REPEATS))


def tables(chosen: argparse.Namespace) -> Tables:
    """Sessions of each cohort, 256 being the largest complete graph, and of five folders."""
    cohorts = [10] if chosen.quick else chosen.clients
    kept = [] if chosen.quick else [row for row in results("secagg.agreement")[TITLE] if row["clients"] not in cohorts]
    measured = [row for clients in cohorts for row in rows(clients, 1 if chosen.quick else REPEATS.get(clients, 1))]
    yield TITLE, sorted([*kept, *measured], key=lambda row: row["clients"])
    yield "five parties with folders and journals, in one process", folders(1 if chosen.quick else 7)


if __name__ == "__main__":
    command("secagg.agreement", __doc__, tables, options)
