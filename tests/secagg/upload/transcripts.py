"""Freezes whole runs: every message, byte for byte, under fixed randomness.

python -m tests.secagg.upload.transcripts > tests/secagg/vectors/uploads.json

The library draws what boxes are sealed with. So a run is recorded once, and repeated with its boxes.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from privstats.encoding import Ring
from privstats.secagg import xwing
from privstats.secagg.upload import batching
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.suite import BOX_BYTES
from tests.secagg.interactive.cohorts import PLAN, stream
from tests.secagg.plainly import unpack
from tests.secagg.upload.cohorts import Uploads, uploads_of

RUNS = {
    "one helper": {"helpers": 1},
    "two helpers, two parts": {"helpers": 2, "part": 2},
    "five helpers": {"helpers": 5, "ring": Ring(((9, 33), (2, 64), (4, 11)))},
}
SILENT = (4,)


def record(name: str) -> dict:
    """One run: what the parties agreed on, what is secret, and every message in the order of sending."""
    how = dict(RUNS[name])
    part, kept = how.pop("part", None), batching.PART_BYTES
    run = uploads_of(label=name, **how)
    batching.PART_BYTES = part * run.parameters.ring.wire_bytes if part else kept
    try:
        told = list(played(run))
    finally:
        batching.PART_BYTES = kept
    total, survivors = run.leader.result
    n, h = run.parameters.clients, run.parameters.helpers
    return {
        "clients": n,
        "min_survivors": run.parameters.min_survivors,
        "colluders": run.parameters.colluders,
        "helpers": h,
        "ring": [list(segment) for segment in run.parameters.ring.segments],
        "plan_digest": PLAN.hex(),
        "run": run.run.hex(),
        "identities": [stream(f"identity {index}")(32).hex() for index in range(n)],
        "members": [stream(f"member {place}")(32).hex() for place in range(h + 1)],
        "box_keys": [stream(f"{name} box {place}")(32).hex() for place in range(h + 1)],
        "roots": [stream(f"{name} client {index} 0")(32).hex() for index in range(n)],
        "vectors": [[int(value) for value in values] for values in run.values],
        "messages": told,
        "survivors": list(survivors),
        "total": total.lift().tolist(),
    }


def played(run: Uploads):
    """Every message of the run, in the order of sending."""
    n, waiting = run.parameters.clients, []
    for index in range(n):
        if index not in SILENT:
            report = run.report(index)
            yield {"from": index, "to": "leader", "bytes": report.hex()}
            yield from passed(run, run.leader.receive(index, report))
    while run.leader.step != "done":
        waiting = run.leader.end_step()
        yield from passed(run, waiting)


def passed(run: Uploads, outbox):
    for peer, message in outbox:
        place = peer - run.parameters.clients + 1
        yield {"from": "leader", "to": f"helper {place}", "bytes": message.hex()}
        ((_, answer),) = run.helpers[place - 1].receive(message)
        yield {"from": f"helper {place}", "to": "leader", "bytes": answer.hex()}
        yield from passed(run, run.leader.receive(peer, answer))


@contextmanager
def recorded(frozen: dict) -> Iterator[None]:
    """The boxes of a frozen run in place of fresh ones, where each opens to what is to be sealed."""
    boxes = iter(
        box
        for told in frozen["messages"]
        if isinstance(told["from"], int)
        for box in boxes_of(bytes.fromhex(told["bytes"]))
    )
    keys = [bytes.fromhex(raw) for raw in frozen["box_keys"]]
    held = {xwing.public_of(raw): xwing.private_of(raw) for raw in keys}

    def seal(public: bytes, content: bytes, info: bytes) -> bytes:
        box = next(boxes)
        assert xwing.open_box(held[public], box, info) == content
        return box

    with patch.object(xwing, "seal", seal):
        yield
    assert not list(boxes)


def boxes_of(report: bytes) -> Sequence[bytes]:
    """The boxes of a report's bytes."""
    return rows(unpack(report[1:])[3], BOX_BYTES)


if __name__ == "__main__":
    json.dump({name: record(name) for name in RUNS}, sys.stdout, indent=1)
