"""Measure what Flower costs: sessions of five parties as processes, and the same folders in one process.

    python -m benchmarks.engines.federation [--quick] [--runs 5] [--before before.json] --save

Wall seconds and bytes, five sessions over Flower of each protocol, one after another over the same nodes; whatever else
the machine does counts too, so leave it alone. The processes are those of the federation test: TLS, node
authentication, one SuperLink and one node per party and helper on this machine. For the seconds before a change, run
this file in a checkout of the earlier tree with ``--json before.json``. The first session in one process also loads
modules.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

import privstats as ps
from benchmarks.measuring import Row, Rows, Tables, command
from privstats.dp import Ledger
from privstats.engines import flower
from privstats.engines.flower import records
from privstats.engines.network.host import Host
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.secagg.protocols import PROTOCOLS
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import NAMES, Study, study_of

APP = Path(flower.__file__).parent / "template" / "app"
WHERE = {"one process": "folders in one process", "processes": "processes, over Flower"}
_STEP = re.compile(r"step (\w+): (\d+) of \d+ answered in ([\d.]+) s, ([\d,]+) bytes up, ([\d,]+) down")


def envelopes(sizes: tuple[int, ...]) -> Rows:
    """Measure what Flower sends in addition to one message, and in how many pieces; headers of HTTP come on top."""
    rows = []
    for size in sizes:  # random, since Flower sends equal pieces once
        pieces = get_all_nested_objects(records.pack("step", os.urandom(size)))
        added = sum(len(piece.deflate()) for piece in pieces.values()) - size
        rows.append({"message bytes": size, "added by Flower": added, "pieces": len(pieces)})
    return rows


def steps(said: str, protocol: str, where: str, run: int = 0) -> Iterator[Row]:
    """Yield one row for each step that the server's log reports."""
    for name, answered, seconds, up, down in dict.fromkeys(_STEP.findall(said)):
        yield {
            "protocol": protocol,
            "where": where,
            "run": run,
            "step": name,
            "answered": int(answered),
            "seconds": float(seconds),
            "bytes up": int(up.replace(",", "")),
            "bytes down": int(down.replace(",", "")),
        }


def whole(rows: Rows, seconds: float, processor: float | None) -> Row:
    """A session, from its steps, the seconds that its operator waits, and those of a program that answers a message."""
    first = rows[0]
    named = {name: first[name] for name in ("protocol", "where", "run")}
    total: dict[str, Any] = {name: sum(row[name] for row in rows) for name in ("bytes up", "bytes down")}
    return {**named, "steps": len(rows), "seconds": seconds, "processor seconds a message": processor, **total}


def in_one_process(study: Study) -> tuple[str, float, None]:
    """A session over folders: what the server said, and its seconds."""
    lines: list[str] = []
    homes = {peer: study.home(peer) for peer in range(len(study.identities) + len(study.helpers))}
    began = time.monotonic()
    Host.open(study.host).run(LocalTransport(homes), Deadlines(), sleep=lambda _: None, say=lines.append)
    return "\n".join(lines), time.monotonic() - began, None


def over_flower(study: Study, place: Path, runs: int) -> Iterator[tuple[str, float, float | None]]:
    """Sessions as processes, one after another once all nodes are online: what the server said, the seconds of ``flwr
    run``, and the mean processor seconds of a program that answers one message."""
    with Federation(study, place) as federation:
        names = [home.name for home in federation.homes]
        federation.wait(lambda: all("SuperNode ID" in federation.log_of(name) for name in names), "all are online")
        said = 0
        for _ in range(runs):
            began = time.monotonic()
            federation.finish_session(federation.start_session(APP))
            seconds, log = time.monotonic() - began, federation.log_of("run")
            own = [float(mark.read_text()) for mark in federation.marks.glob("*.seconds")]
            yield log[said:], seconds, fmean(own) if own else None
            said = len(log)
            (study.host / "release.safetensors").unlink()
            federation.study = study = study.renewed()
            federation.clear()


def study(place: Path, protocol: str) -> Study:
    """Five parties whose shares of the noise add up to the promise; with two helpers where the protocol has any."""
    made = study_of(
        place,
        protocol,
        cohort=ps.Cohort(clients=len(NAMES), min_survivors=4, colluders=1, max_records=100),
        privacy=ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5),
    )
    for peer in range(len(NAMES)):
        ledger = Ledger.create(made.home(peer) / "ledger")  # exact sums of the same records are released only once
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=50.0, delta=1e-3)
    return made


def measured(protocol: str, where: str, runs: int) -> Iterator[tuple[Rows, Row]]:
    """Yield the rows of each session's steps, and the row of the session."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        made = study(place, protocol)
        found = over_flower(made, place / "federation", runs) if where == "processes" else iter([in_one_process(made)])
        for run, (said, seconds, processor) in enumerate(found):
            rows = list(steps(said, protocol, WHERE[where], run))
            yield rows, whole(rows, seconds, processor)


def tables(options: argparse.Namespace) -> Tables:
    """All tables of this benchmark; the quick form starts no process."""
    yield "envelopes", envelopes((100, 10_000) if options.quick else (100, 10_000, 1_000_000, 100_000_000))
    places = ("one process",) if options.quick else tuple(WHERE)
    found = [each for where in places for kind in PROTOCOLS for each in measured(kind, where, options.runs)]
    yield "steps", [row for rows, _ in found for row in rows]
    yield "whole sessions", [row for _, row in found]
    if options.before is not None:
        before = json.loads(options.before.read_text())
        for title in ("steps", "whole sessions"):
            yield f"{title}, before", before[title]


def more(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark alone."""
    parser.add_argument("--runs", type=int, default=5, help="sessions over Flower, of each protocol")
    parser.add_argument("--before", type=Path, help="results of this benchmark on an earlier tree, to be kept beside")


if __name__ == "__main__":
    command("engines.federation", __doc__ or "", tables, more)
