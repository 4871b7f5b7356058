"""Noise in a stream's totals, drawn by the library's own releases: rms over epochs, in sigmas of one release.

    python -m benchmarks.streams.noise --save

Epochs without a single record, so that a total is its noise. All ways spend the same mu.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.contrib.streams import MomentsDelta
from privstats.contrib.streams.mechanisms import MECHANISMS
from privstats.contrib.streams.stream import Summed, weighed_release
from privstats.course.promise import part_of
from privstats.randomness import seeded
from privstats.release import Release

CLIENTS = 2
SCHEMA = ps.ClassSchema(20, 60, "NA", 1.0)
PLAN = ps.Plan(
    schema=SCHEMA,
    cohort=ps.Cohort(CLIENTS, CLIENTS, 1000),
    privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6),
)
EMPTY = MomentsDelta.nothing(SCHEMA)


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per number of epochs."""
    counts = (8,) if options.quick else (8, 32, 128)
    yield "rms noise of a total, in sigmas of one release at the same mu", [row(count) for count in counts]


def row(epochs: int) -> Row:
    """Every mechanism, without deletions and with one per record, and the same sums released again each time."""
    again = ps.Plan(schema=SCHEMA, cohort=PLAN.cohort, privacy=part_of(PLAN, 1 / epochs, None))
    rng = seeded(7)
    noise = [session.aggregate_unmasked(again, [EMPTY] * CLIENTS, rng).vector for _ in range(20)]
    found: dict[str, object] = {"epochs": epochs, "again each time": _rms(noise)}
    for name in MECHANISMS:
        for deletions in (False, True):
            stream = ps.Stream(PLAN, epochs, name, deletions)  # type: ignore[arg-type]
            found[name + (", deletions" if deletions else "")] = _rms(list(_totals(stream)))
    return found


def _totals(stream: ps.Stream) -> Iterator[np.ndarray]:
    """The total after every epoch."""
    rng, releases = seeded(stream.epochs), list[Release | None]()
    sums: list[Summed | None] = []
    for place in range(stream.most):
        if stream.row.correlated:
            sums.append((stream.first.ring.zeros(), tuple(range(CLIENTS))))
            releases.append(weighed_release(stream, b"s" * 32, sums, reproducible=True))
        else:
            releases.append(session.aggregate_unmasked(stream.first, [EMPTY] * CLIENTS, rng))
        at = stream.nodes[place]
        if place + 1 == stream.most or stream.nodes[place + 1].epoch != at.epoch:
            yield stream.total(releases).vector


def _rms(vectors: list[np.ndarray]) -> float:
    """Root of the mean square over entries and epochs, every entry in its own sigmas."""
    assert PLAN.noise is not None
    levels = np.concatenate([np.full(each.size, PLAN.noise.grid_sigma(each)) for each in PLAN.layout.segments])
    return math.sqrt(float(np.mean([np.mean((vector / levels) ** 2) for vector in vectors])))


if __name__ == "__main__":
    command("streams.noise", __doc__, tables)
