"""Measure what a round costs twenty parties: bytes up and down and seconds, both protocols, parties missing from every
node.

    python -m benchmarks.refinement.loopback --save

Distributed model, record level, add-remove, epsilon 1, delta 1e-5, T = 4, all parties in one process over the loopback.
In every node other parties vanish: one before it sends anything, one with its upload not sent. Every sum is held
against the vectors of the parties in it. A party is told values as the engine between machines tells them: packed, and
each once. Data sets that are absent are skipped by name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import privstats as ps
from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Row, Rows, Tables, command
from benchmarks.refinement.models import DELTA
from benchmarks.secagg.sessions import bits_of
from privstats import session
from privstats.course import Round, run
from privstats.engines import loopback
from privstats.release import Release
from privstats.schema.public_values import Published, Values
from privstats.secagg.protocols import PROTOCOLS

PARTIES, ROUNDS, EPSILON = 20, 4, 1.0
TASKS = ("digits", "banking77 whole", "cifar10")
HELPERS = 2
TITLE = "bytes and seconds of a course's nodes on the loopback: "
TOLD = "bytes of the published values that a party is told in a course"


@dataclass(frozen=True)
class Cost:
    """What one node cost.

    Attributes:
        entries: integers in a party's vector.
        bits: of the narrowest and the widest of them in the plan's ring.
        up, down: bytes of a party that stayed to the end, the mean over these.
        told: bytes that a party is told of the node beforehand: its plan, the fresh values, the last release.
        fresh: bytes of the values among these: those that no earlier node has published.
        entries_told: entries of all values of the node, each of which took 8 bytes before files were packed.
        party: processor seconds of a party that stayed, measuring its records and all of the protocol.
        whole: seconds of the whole session, everybody one after another on one processor, and the release.
        survivors: parties in the sum.
        exact: the sum equals that of the survivors' vectors on every integer.
    """

    entries: int
    bits: str
    up: float
    down: float
    told: int
    fresh: int
    entries_told: int
    party: float
    whole: float
    survivors: int
    exact: bool


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set: the first release and the rounds, by protocol."""
    parties, rounds = (8, 1) if options.quick else (PARTIES, ROUNDS)
    values = []
    for task in private_tasks(bundled_only=options.quick):
        if task.name in TASKS:
            found = {protocol: played(task.transformed(), parties, rounds, protocol) for protocol in PROTOCOLS}
            yield TITLE + task.name, rows_of(found, parties)
            values.append(told_row(task.name, next(iter(found.values()))))
    yield TOLD, values


def played(split: Split, parties: int, rounds: int, protocol: str) -> list[Cost]:
    """What every node of a data set's course costs."""
    X, _, y, _ = split
    shards = [(X[party::parties], y[party::parties]) for party in range(parties)]
    return costs(course_of(split, parties, rounds, protocol), shards)


def rows_of(found: Mapping[str, list[Cost]], parties: int) -> Rows:
    """Two rows per protocol: the release, and the mean of a round."""
    nodes = {protocol: (("release", each[:1]), ("round", each[1:])) for protocol, each in found.items()}
    return [_row(protocol, name, each, parties) for protocol, both in nodes.items() for name, each in both]


def told_row(name: str, found: list[Cost]) -> Row:
    """What the values of a whole course take: packed and each once, and in 8 bytes with every round."""
    return {
        "data": name,
        "rounds": len(found) - 1,
        "8 bytes, every round": 8 * sum(cost.entries_told for cost in found),
        "packed, each once": sum(cost.fresh for cost in found),
    }


def course_of(split: Split, parties: int, rounds: int, protocol: str) -> ps.Rounds:
    """The course of a data set's records among so many parties, of which a quarter may be missing from a sum."""
    X, _, y, _ = split
    roles = [ps.secagg.Identity(bytes([place + 1]) * 32) for place in range(HELPERS + 1)]  # only their public halves
    panel = tuple(role.public.hex() for role in roles)
    kind: dict[str, Any] = {"protocol": protocol, "panel": panel if PROTOCOLS[protocol].has_panel else ()}
    whole = ps.Plan(
        schema=ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", 1.0),
        cohort=ps.Cohort(parties, parties - parties // 4, len(X)),
        privacy=ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=EPSILON, delta=DELTA),
        **kind,
    )
    return ps.Rounds.within(whole, rounds)


def costs(course: ps.Rounds, shards: list[tuple[Any, Any]]) -> list[Cost]:
    """What every node of the course costs, played with its noise."""
    found: list[Cost] = []
    last: list[Release] = []
    known: set[bytes] = set()

    def carried(round_: Round) -> Release:
        release, cost = one_round(round_, shards, last, known)
        found.append(cost)
        last[:] = [release]
        known.update(value.digest for value in _values(round_.plan).values())
        return release

    run(course, carried)
    return found


def one_round(
    round_: Round, shards: list[tuple[Any, Any]], last: list[Release], known: set[bytes]
) -> tuple[Release, Cost]:
    """One session: measured, masked, summed over those who are left, released."""
    plan, parties = round_.plan, len(shards)
    steps = plan.masking.steps
    away, silent = (2 * round_.place) % parties, (2 * round_.place + 1) % parties
    gone: dict[str, set[int]] = {steps[0]: {away}}
    gone.setdefault(plan.masking.upload_step, set()).add(silent)
    began, own, contributions = time.perf_counter(), [], []
    for X, y in shards:
        start = time.process_time()
        moments = ps.measure(plan.schema, X, y, published=plan.published)
        contributions.append(session.contribution(plan, moments))
        own.append(time.process_time() - start)
    vectors = [each.vector for each in contributions]
    cast = session.local_parties(plan, contributions)
    outcome = loopback.run(cast.server, cast.clients, helpers=cast.helpers, dropouts=gone)
    release = session.release(plan, outcome.total, outcome.survivors, charge="uncharged")
    whole = time.perf_counter() - began
    plain = plan.ring.zeros()
    for party in outcome.survivors:
        plain.add(vectors[party])
    stayed = outcome.survivors
    fresh = fresh_values(plan, known)
    cost = Cost(
        entries=plan.layout.size,
        bits=bits_of(plan.ring),
        up=fmean(outcome.bytes_sent[party] for party in stayed),
        down=fmean(outcome.bytes_received[party] for party in stayed),
        told=len(fresh) + told(plan, last),
        fresh=len(fresh),
        entries_told=sum(value.integers.size for value in _values(plan).values()),
        party=fmean(own[party] + outcome.client_cpu[party] for party in stayed),
        whole=whole,
        survivors=len(stayed),
        exact=plain.pack() == outcome.total.pack(),
    )
    return release, cost


def told(plan: ps.Plan, last: list[Release]) -> int:
    """Bytes of the plan, and of the release that a party is shown before it admits the node."""
    with TemporaryDirectory() as folder:
        for release in last:
            release.save(Path(folder) / "release")
        return len(plan.to_toml()) + sum(path.stat().st_size for path in Path(folder).iterdir())


def fresh_values(plan: ps.Plan, known: set[bytes]) -> bytes:
    """The file of the values that no earlier node has published."""
    fresh = {name: value for name, value in _values(plan).items() if value.digest not in known}
    return Published.of(fresh).encode() if fresh else b""


def _values(plan: ps.Plan) -> Mapping[str, Values]:
    return {} if plan.published is None else plan.published.read()


def _row(protocol: str, node: str, found: list[Cost], parties: int) -> Row:
    return {
        "protocol": protocol,
        "node": node,
        "nodes": len(found),
        "parties": parties,
        "in the sum": min(cost.survivors for cost in found),
        "entries": found[0].entries,
        "bits": found[0].bits,
        "bytes up": fmean(cost.up for cost in found),
        "bytes down": fmean(cost.down for cost in found),
        "bytes told": fmean(cost.told for cost in found),
        "seconds of a party": fmean(cost.party for cost in found),
        "seconds": fmean(cost.whole for cost in found),
        "exact": all(cost.exact for cost in found),
    }


if __name__ == "__main__":
    command("refinement.loopback", __doc__, tables)
