"""What a party's record registry takes: a look, what is due, and the changes of an epoch, as records add up.

    python -m benchmarks.streams.registry --save

A party that has sent all of its records but the last eighth, in a stream of eight epochs. Seconds of CPU of a whole
call: the ledger's file is opened, its chain is checked, and what is written is synced.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.streams import Pending, RecordRegistry
from privstats.course import spend
from privstats.dp import Ledger

EPOCHS = 8
SECRET = b"k" * 32
PROMISE = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
PLAN = ps.Plan(schema=ps.ClassSchema(2, 4, "NA", 1.0), cohort=ps.Cohort(2, 2, 1_000_000), privacy=PROMISE)
STREAM = ps.Stream(PLAN, EPOCHS)


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per number of records."""
    counts = (160,) if options.quick else (4_000, 40_000, 400_000)
    yield "CPU seconds of a call of a record registry", [row(count) for count in counts]


def row(records: int) -> Row:
    """Every call once; the looks, which change nothing, as the least of several."""
    names = [f"patient {number}" for number in range(records)]
    with tempfile.TemporaryDirectory() as folder:
        registry, part = opened(Path(folder)), records // EPOCHS
        for epoch in range(EPOCHS - 1):
            registry.enter(names[epoch * part : (epoch + 1) * part])
            sent(registry, epoch, registry.pending(epoch, names))
        enter = seconds(lambda: registry.enter(names[(EPOCHS - 1) * part :]))
        node = EPOCHS - 1
        return {
            "records": records,
            "open": least(lambda: opened(Path(folder))),
            "look": least(lambda: registry.state(names[0])),
            "pending": least(lambda: registry.pending(node, names)),
            "enter an eighth": enter,
            "send an eighth": seconds(lambda: sent(registry, node, registry.pending(node, names[-part:]))),
            "bytes of a record": (Path(folder) / "ward.db").stat().st_size / records,
        }


def opened(folder: Path) -> RecordRegistry:
    """The registry in ``folder``, made if this is its first use."""
    path = folder / "ward.db"
    ledger = Ledger.open(path) if path.exists() else Ledger.create(path)
    if not ledger.accounts():
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    return RecordRegistry.open(STREAM, ledger, spend(STREAM, ledger, "ward", b"may"), SECRET)


def sent(registry: RecordRegistry, node: int, pending: Pending) -> None:
    """Mark a node and let its vector leave, without a session."""
    charge = registry.charge(PLAN, [None] * node, pending)
    charge.spend(PLAN, b"")
    charge.finish(PLAN, b"", b"\1" * 32)


def least(call: Callable[[], object]) -> float:
    """The least of five."""
    return min(seconds(call) for _ in range(5))


def seconds(call: Callable[[], object]) -> float:
    """CPU time of one call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


if __name__ == "__main__":
    command("streams.registry", __doc__, tables)
