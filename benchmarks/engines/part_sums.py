"""Measure what it costs a leader to sum settled parts itself, and to leave them to others; and what it costs those.

    python -m benchmarks.engines.part_sums [--quick] --save

Reports and machines are those of ``engines.journal``; a helper answers each part at once. Left to others, a part's
bodies are read back from the journal, written to a store, here a folder, and tagged on the way; the others read the
object, verify it, open the bodies and add them up. Carriers are not in it: what a bucket or a scheduler adds is theirs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.engines.journal import _GROUP, _KEY, _QUICK, _SIZES, Meter, Sent, _answered
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.parts.dask import _part_sum
from privstats.contrib.parts.part_store import PartStore
from privstats.engines.journal import JournaledServer


def run(sent: Sent, *, others: bool) -> Row:
    """The reports in groups to the end of the helper's checks, and all parts summed."""
    leader, helper = sent.machines()
    meter, seconds, sums = Meter(), [0.0], 0
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place, meter:
        server = JournaledServer.create(Path(place) / "leader", _KEY, leader)
        store = PartStore(str(Path(place) / "objects"), "ab" * 16)
        server.defer(others)
        for first in range(0, sent.clients, _GROUP):
            if any(server.receive_many(sent.reports[first : first + _GROUP])):
                raise RuntimeError("a report was refused")
            _answered(server, helper, meter)
            sums += handed_out(server, store, meter, seconds)
        server.end_step()
        _answered(server, helper, meter)
        sums += handed_out(server, store, meter, seconds)
        server.close()
    return {
        "entries": sent.entries,
        "reports": sent.clients,
        "summed by": "others" if others else "the leader",
        "parts": sums,
        "leader's processor ms a report": 1e3 * meter.seconds / sent.clients,
        "others' processor ms a report": 1e3 * seconds[0] / sent.clients,
        "bytes back a part": sent.parameters.upload_bytes if others else 0,
    }


def handed_out(server: JournaledServer, store: PartStore, meter: Meter, seconds: list[float]) -> int:
    """Every part that waits, through the store and back; the others' own time is not the leader's."""
    waiting = dict(server.unsummed)
    for number, senders in waiting.items():
        sealed = [server.sealed(number, senders[first : first + _GROUP]) for first in range(0, len(senders), _GROUP)]
        bodies = [body for some in sealed for body in some]
        part = store.put(number, (body.content for body in bodies))
        keys = b"".join(body.opener for body in bodies)
        began = time.process_time()
        packed = _part_sum(part, server.parameters.protocol, server.parameters.ring.segments, keys)
        spent = time.process_time() - began
        seconds[0] += spent
        meter.seconds -= spent
        server.add_part_sum(number, packed)
        store.remove(part)
    return len(waiting)


def rows(*, quick: bool) -> Iterator[Row]:
    """One row per size and who sums."""
    for entries, clients in _QUICK if quick else _SIZES:
        sent = Sent(entries, clients)
        for others in (False, True):
            yield run(sent, others=others)


def tables(options: argparse.Namespace) -> Tables:
    """The one table."""
    yield "sums of settled parts", list(rows(quick=options.quick))


if __name__ == "__main__":
    command("engines.part_sums", __doc__ or "", tables)
