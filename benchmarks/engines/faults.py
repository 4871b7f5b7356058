"""Measure how soon each party works again after a fault on its line, and what `join` and `flower status` said.

    python -m benchmarks.engines.faults --save

Three parties over Flower with TLS and node keys, one proxy between them and the SuperLink. One bit flips in each of
three answers; or the proxy accepts and closes for 8 s; or it cuts connections for 8 s. The status is read before the
line is good again, and from that moment the seconds count.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats.engines.door.ports import free_port
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import NAMES, study_of
from tests.faulty_proxy import Fault, FaultyProxy

FAULTS: dict[Fault, str] = {
    "flip": "one bit flipped",
    "close": "accepted and closed",
    "cut": "connections cut",
}
TITLE = "three parties after a fault"
SECONDS = 8.0


def cases(place: Path, faults: Sequence[Fault]) -> Iterator[Row]:
    """Yield one row for each fault and party."""
    port, names = free_port(), NAMES[:3]
    study = study_of(place, names=names, cohort=ps.Cohort(len(names), 2, 100))
    with (
        FaultyProxy(port) as proxy,
        Federation(study, place / "federation", port, proxy.address) as federation,
    ):
        federation.wait_until_connected()
        for fault in faults:
            printed = [len(federation.log_of(home.name)) for home in federation.homes]
            for _ in names if fault == "flip" else (0,):
                proxy.begin(fault)
                federation.wait(proxy.struck.is_set, f"{fault} meets a connection")
            time.sleep(0 if fault == "flip" else SECONDS)  # a line is good again once a bit has flipped
            statuses = federation.statuses()
            proxy.heal()
            back = federation.wait_until_back(fault)
            for name, home, status, seen in zip(names, federation.homes, statuses, printed, strict=True):
                said = [_plain(line) for line in federation.log_of(home.name)[seen:].splitlines() if _tells(line)]
                yield {
                    "fault": FAULTS[fault],
                    "party": name,
                    "status": _status(status),
                    "join": said,
                    "seconds": back[home.name],
                }


def _tells(line: str) -> bool:
    return "onnected since" in line


def _plain(line: str) -> str:
    """Return a line of `join` without its date and addresses, which differ in every run."""
    if "not connected" in line:
        return "not connected, trying again"
    return f"connected{line[after:]}" if (after := line.find(", after ")) > 0 else "connected"


def _status(facts: dict[str, Any]) -> str:
    return "connected" if facts["connected"] else "not connected, with the time"


def tables(options: argparse.Namespace) -> Tables:
    """The cases; the quick form plays the first fault alone."""
    with tempfile.TemporaryDirectory() as folder:
        yield TITLE, list(cases(Path(folder), list(FAULTS)[: 1 if options.quick else None]))


if __name__ == "__main__":
    command("engines.faults", __doc__ or "", tables)
