"""Measure what a leader's journal costs per report: processor time, waits for the disk, bytes written per byte
received.

    python -m benchmarks.engines.journal [--quick] [--before CHECKOUT] --save

Reports are made beforehand. A helper answers each part at once, or is away until all have reported. The floor is the
machine without a journal, and the same bytes sealed, written and waited for in as many groups. Processor time is this
process's own, so other programs disturb it little; what the kernel writes later is not in it. ``--before`` runs the
library of another checkout, which takes one report at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Row, Tables, child, command
from privstats.encoding import Ring
from privstats.engines.journal import JournaledServer
from privstats.engines.records import RecordLog
from privstats.errors import RemoteProtocolError
from privstats.progress import progress_bar
from privstats.secagg import HelperKeys, Identity, Panel, Roster, UploadParameters
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader

_SIZES = ((2_730, 2_000), (125_205, 400))
_QUICK = ((2_730, 60), (125_205, 6))
_BITS, _GROUP = 35, 64
_KEY = bytes(range(32))
_VECTORS = 8  # that clients have in turns


@dataclass
class Sent:
    """A run's machines and the reports of all its clients."""

    entries: int
    clients: int

    def __post_init__(self) -> None:
        ring = Ring(((self.entries, _BITS),))
        n = self.clients
        self.parameters = UploadParameters.solve(
            clients=n, min_survivors=n // 2, colluders=1, helpers=1, ring=ring, plan_digest=bytes(32)
        )
        self.members = [Identity.generate(os.urandom) for _ in range(2)]
        people = [Identity.generate(os.urandom) for _ in range(self.clients)]
        self.roster = Roster(tuple(each.public for each in people), server=self.members[0].public, run=os.urandom(16))
        rng = np.random.default_rng(1)
        vectors = [ring.encode(rng.integers(-100, 100, self.entries)) for _ in range(_VECTORS)]
        self.fresh_panel()
        self.reports = []
        with progress_bar("reports", self.clients) as step:
            for index, identity in enumerate(people):
                client = Client(
                    self.parameters,
                    vectors[index % _VECTORS],
                    index=index,
                    identity=identity,
                    roster=self.roster,
                    panel=self.panel,
                )
                ((_, report),) = client.start()
                self.reports.append((index, report))
                step(1)

    def fresh_panel(self) -> None:
        """Keys that can be used once more: both members' are the same in every run of the reports."""
        made = [
            HelperKeys(
                member, place, self.parameters, self.roster, until=1 << 40, entropy=partial(_repeated, place + 1)
            )
            for place, member in enumerate(self.members)
        ]
        self.keys = made
        self.panel = Panel(tuple(each.public for each in self.members), tuple(each.offer for each in made))

    def machines(self) -> tuple[Leader, Helper]:
        """A leader and a helper to which the reports are sealed."""
        self.fresh_panel()
        first, second = self.keys
        named: Any = {"roster": self.roster, "panel": self.panel}
        return Leader(self.parameters, keys=first, **named), Helper(self.parameters, keys=second, **named)

    @property
    def received(self) -> int:
        """Bytes of all reports."""
        return sum(len(report) for _, report in self.reports)


def _repeated(byte: int, size: int) -> bytes:
    return bytes([byte]) * size


class Meter:
    """Processor time, waits for the disk and bytes written of the calls inside it."""

    def __init__(self) -> None:
        self.seconds, self.waits, self.written = 0.0, 0, 0

    def __enter__(self) -> Meter:
        real = self._fsync = os.fsync

        def counted(fd: Any) -> None:
            self.waits += 1
            real(fd)

        os.fsync = counted
        self._bytes, self._began = _written(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._began
        self.written += _written() - self._bytes
        os.fsync = self._fsync


def _written() -> int:
    (line,) = [line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar")]
    return int(line.split()[1])


def journaled(sent: Sent, *, group: int, away: bool) -> Row:
    """The reports in groups, through the journal's snapshots to the end of the helper's checks."""
    leader, helper = sent.machines()
    meter = Meter()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place, meter:
        server = JournaledServer.create(Path(place) / "leader", _KEY, leader)
        for first in range(0, sent.clients, group):
            items = sent.reports[first : first + group]
            if hasattr(server, "receive_many"):
                for refusal in server.receive_many(items):
                    if refusal is not None:
                        raise refusal
            else:
                _one_by_one(server, items, helper, meter)
            if not away:
                _answered(server, helper, meter)
        server.end_step()
        _answered(server, helper, meter)
        server.close()
    return _row(sent, f"journal, groups of {group}", "away" if away else "at once", meter)


def _one_by_one(server: Any, items: Any, helper: Helper, meter: Meter) -> None:
    for sender, report in items:
        try:
            server.receive(sender, report)
        except RemoteProtocolError as refusal:
            if refusal.code != "busy":
                raise
            _answered(server, helper, meter)
            server.receive(sender, report)


def _answered(server: Any, helper: Helper, meter: Meter) -> None:
    """Bring the helper what is due until nothing is; its own time is not the leader's."""
    while server.step in server.steps[:2] and len(server.outbox):
        ((peer, batch),) = server.outbox
        before = time.process_time()
        ((_, answer),) = helper.receive(batch)
        meter.seconds -= time.process_time() - before
        server.receive(peer, answer)


def alone(sent: Sent) -> Row:
    """The machine without a journal; a helper must answer it, or it holds four parts and takes no more."""
    leader, helper = sent.machines()
    with Meter() as meter:
        for sender, report in sent.reports:
            leader.receive(sender, report)
            if sender % _GROUP == _GROUP - 1:
                _answered(leader, helper, meter)
        leader.end_step()
        _answered(leader, helper, meter)
    return _row(sent, "floor: machine alone", "at once", meter)


def logged(sent: Sent) -> Row:
    """Write the bytes to a log, sealed and waited for in groups."""
    meter = Meter()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place, meter:
        log = RecordLog(Path(place) / "log", _KEY)
        for first in range(0, sent.clients, _GROUP):
            if hasattr(log, "append_many"):
                log.append_many([report for _, report in sent.reports[first : first + _GROUP]])
        log.close()
    return _row(sent, f"floor: log alone, groups of {_GROUP}", "", meter)


def _row(sent: Sent, what: str, helper: str, meter: Meter) -> Row:
    return {
        "entries": sent.entries,
        "reports": sent.clients,
        "what": what,
        "helper": helper,
        "processor ms a report": 1e3 * meter.seconds / sent.clients,
        "written a byte received": meter.written / sent.received,
        "waits a report": meter.waits / sent.clients,
    }


def rows(*, quick: bool) -> Iterator[Row]:
    """One row per size, way and helper."""
    for entries, clients in _QUICK if quick else _SIZES:
        sent = Sent(entries, clients)
        if hasattr(JournaledServer, "receive_many"):
            yield alone(sent)
            yield logged(sent)
            yield journaled(sent, group=_GROUP, away=False)
            yield journaled(sent, group=_GROUP, away=True)
        yield journaled(sent, group=1, away=False)
        yield journaled(sent, group=1, away=True)


def before(checkout: Path, *, quick: bool) -> list[Row]:
    """The rows of another checkout's library, in a process of its own."""
    code = f"import json; from benchmarks.engines.journal import rows; print(json.dumps(list(rows(quick={quick}))))"
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        (Path(place) / "benchmarks").symlink_to(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        said = child([sys.executable, "-c", code], cwd=place, env=environment)
    return list(json.loads(said.splitlines()[-1]))


def tables(options: argparse.Namespace) -> Tables:
    """Before, if a checkout is named, and now."""
    if options.before is not None:
        yield "a leader's journal, before", before(options.before, quick=options.quick)
    yield "a leader's journal", list(rows(quick=options.quick))


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version, to be measured first")


if __name__ == "__main__":
    command("engines.journal", __doc__ or "", tables, options)
