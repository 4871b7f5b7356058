"""A crowd of devices against a leader over loopback: processor time and memory of the leader, latencies, kills.

    python -m benchmarks.engines.crowd [--quick] [--only "10,000 devices"] --save

Four processes of Node with the library's own client seal all reports first and then send them over 2,000 connections at
once; leader, helper and devices share this machine's cores. So rates and latencies are upper and lower bounds of a busy
machine, and processor time a report is what a free core needs. The floor is that of the leader's machine with its
journal in groups (``benchmarks.engines.journal``), taken in the same run, and each goal stands beside what was found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engines.journal import Sent, journaled
from benchmarks.measuring import Row, Tables, command
from tests.contrib.http.crowd import Crowd, crowd_of
from tests.javascript.node import LACKS

_RECORDS = 2_000_000  # of all devices: what makes entries 34 bits wide
_RUNS = {
    "10,000 devices": (10_000, 272, 2_000, (), 400.0),
    "10,000 devices, three kills": (10_000, 272, 2_000, (0.2, 0.5, 0.8), 400.0),
    "2,000 uploads of half a megabyte": (2_000, 12_519, 2_000, (), 700.0),
}
_QUICK = {
    "100 devices": (100, 272, 50, (), 400.0),
    "100 devices, one kill": (100, 272, 50, (0.3,), 400.0),
}
_GOAL_MS = {272: 1e3 / 1_200, 12_519: 1e3 / 250}


def crowded(devices: int, features: int, connections: int, kills: tuple[float, ...], megabytes: float) -> Row:
    """One run to its release, which must be exact."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        named: Any = {"connections": connections, "max_records": _RECORDS, "patience": 1_200.0}
        with crowd_of(Path(place) / "study", devices, features, **named) as crowd, crowd.sealed() as send:
            crowd.leading.read()
            crowd.leading.seconds = 0.0
            outcome = send(lambda: _killed(crowd, kills))
            crowd.leading.read()
            spent = crowd.leading.seconds
            vector, survivors = crowd.released(600)
            exact = bool(np.array_equal(vector, crowd.total(survivors)))
            lost = len(set(outcome.sent) - set(survivors))
            return {
                "devices": devices,
                "entries": 10 * (features + 1),
                "bytes of a report": outcome.report_bytes,
                "connections": connections,
                "kills": crowd.leading.deaths,
                "confirmed": len(outcome.sent),
                "confirmed and lost": lost,
                "exact": exact,
                "leader, processor ms a report": 1e3 * spent / devices,
                "goal, ms": _GOAL_MS[features],
                "MB above start": crowd.leading.peak / 1e6,
                "goal, MB": megabytes,
                "reports a second, this machine": len(outcome.sent) / outcome.seconds,
                "p50 s": outcome.percentile(0.5),
                "p99 s": outcome.percentile(0.99),
                "device, processor ms": 1e3 * outcome.device_seconds,
            }


def _killed(crowd: Crowd, shares: tuple[float, ...]) -> None:
    for share in shares:
        while crowd.leading.reports < share * len(crowd.links):
            time.sleep(0.01)
        crowd.leading.kill()


def tables(options: argparse.Namespace) -> Tables:
    """The floor, then each crowd where Node is installed."""
    yield (
        "the leader without a line",
        [
            journaled(Sent(entries, reports), group=64, away=False)
            for entries, reports in (((2_730, 60),) if options.quick else ((2_730, 1_000), (125_200, 100)))
        ],
    )
    if LACKS:
        return
    for name, run in (_QUICK if options.quick else _RUNS).items():
        if options.only in ("", name):
            yield name, [crowded(*run)]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--only", default="", help="the name of one run")


if __name__ == "__main__":
    command("engines.crowd", __doc__ or "", tables, options)
