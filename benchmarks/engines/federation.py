"""What Flower costs: sessions of five parties as processes, and the same folders in one process.

    python -m benchmarks.engines.federation [--quick] --save

Wall seconds and bytes: one run of each, on whatever else the machine does, so take ratios. The processes are those of
the federation test: TLS, node authentication, one SuperLink and one node per party and helper on this machine.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

import privstats as ps
from benchmarks.measuring import Row, Rows, Tables, command
from privstats.engines import flower
from privstats.engines.flower import records
from privstats.engines.network.host import Host
from privstats.engines.network.local import LocalTransport
from privstats.engines.network.transport import Deadlines
from tests.engines.flower.federation import Federation
from tests.engines.network.fake import NAMES, Study, study_of

APP = Path(flower.__file__).parent / "template" / "app"
WHERE = {"one process": "folders in one process", "processes": "processes, over Flower"}
_STEP = re.compile(r"step (\w+): (\d+) of \d+ answered in ([\d.]+) s, ([\d,]+) bytes up, ([\d,]+) down")


def envelopes(sizes: tuple[int, ...]) -> Rows:
    """What Flower sends beside the bytes of one message, and in how many pieces; headers of HTTP come on top."""
    rows = []
    for size in sizes:  # random, since Flower sends equal pieces once
        pieces = get_all_nested_objects(records.pack("step", os.urandom(size)))
        added = sum(len(piece.deflate()) for piece in pieces.values()) - size
        rows.append({"message bytes": size, "added by Flower": added, "pieces": len(pieces)})
    return rows


def steps(said: str, protocol: str, where: str) -> Iterator[Row]:
    """The lines that the server says of its steps."""
    for name, answered, seconds, up, down in dict.fromkeys(_STEP.findall(said)):
        yield {
            "protocol": protocol,
            "where": where,
            "step": name,
            "answered": int(answered),
            "seconds": float(seconds),
            "bytes up": int(up.replace(",", "")),
            "bytes down": int(down.replace(",", "")),
        }


def whole(rows: Rows, seconds: float) -> Row:
    """A session, from its steps and the seconds that its operator waits."""
    first = rows[0]
    total: dict[str, Any] = {name: sum(row[name] for row in rows) for name in ("bytes up", "bytes down")}
    return {"protocol": first["protocol"], "where": first["where"], "steps": len(rows), "seconds": seconds, **total}


def in_one_process(study: Study) -> str:
    """A session over folders; gives what the server said."""
    lines: list[str] = []
    homes = {peer: study.home(peer) for peer in range(len(study.identities) + len(study.helpers))}
    Host.open(study.host).run(LocalTransport(homes), Deadlines(), sleep=lambda _: None, say=lines.append)
    return "\n".join(lines)


def over_flower(study: Study, place: Path) -> tuple[str, float]:
    """A session as processes, once all nodes are online: what the server said, and the seconds of ``flwr run``."""
    with Federation(study, place) as federation:
        names = [home.name for home in federation.homes]
        federation.wait(lambda: all("SuperNode ID" in federation.log_of(name) for name in names), "all are online")
        began = time.monotonic()
        federation.finish_session(federation.start_session(APP))
        return federation.log_of("run"), time.monotonic() - began


def study(place: Path, protocol: str) -> Study:
    """Five parties whose shares of the noise add up to the promise; with two helpers where the protocol has any."""
    return study_of(
        place,
        protocol,
        cohort=ps.Cohort(clients=len(NAMES), min_survivors=4, colluders=1, max_records=100),
        privacy=ps.NoPrivacy(),
    )


def measured(protocol: str, where: str) -> tuple[Rows, Row]:
    """One session: its steps, and the whole."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        made = study(place, protocol)
        if where == "one process":
            began = time.monotonic()
            said = in_one_process(made)
            seconds = time.monotonic() - began
        else:
            said, seconds = over_flower(made, place / "federation")
    rows = list(steps(said, protocol, WHERE[where]))
    return rows, whole(rows, seconds)


def tables(options: argparse.Namespace) -> Tables:
    """All tables of this benchmark; the quick form starts no process."""
    yield "envelopes", envelopes((100, 10_000) if options.quick else (100, 10_000, 1_000_000, 100_000_000))
    places = ("one process",) if options.quick else tuple(WHERE)
    found = [measured(protocol, where) for where in places for protocol in ("interactive", "split")]
    yield "steps", [row for rows, _ in found for row in rows]
    yield "whole sessions", [row for _, row in found]


if __name__ == "__main__":
    command("engines.federation", __doc__ or "", tables)
