"""Accuracy over a stream at one total epsilon, against releasing everything again each epoch.

    python -m benchmarks.streams.accuracy --save

Records arrive in equal parts over T epochs, one party in the central model; after each epoch a linear discriminant is
fitted on what is released. Feature sets beside the checkout where they are there, digits always.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Task, tasks
from benchmarks.measuring import Tables, command
from privstats import session
from privstats.course.mechanisms import MECHANISMS
from privstats.course.promise import part_of
from privstats.course.weighing import weighed_release
from privstats.encoding import RingVector, flatten
from privstats.moments import Moments, SignedMoments
from privstats.randomness import SEED_BYTES, Generator, seeded
from privstats.release import Release

EPSILONS = (0.3, 1.0, 3.0)
SEEDS = 2


def tables(options: argparse.Namespace) -> Tables:
    """One table per data set."""
    epochs, seeds = (4, 1) if options.quick else (16, SEEDS)
    for task in tasks(bundled_only=options.quick):
        if task.name in ("digits", "cifar10"):
            yield f"mean accuracy over {epochs} epochs, %: {task.name}", list(rows(task, epochs, seeds))


def rows(task: Task, epochs: int, seeds: int) -> Iterator[dict[str, Any]]:
    """A row per way and epsilon."""
    X, X_test, y, y_test = task.transformed()
    schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", 1.0)
    ways: Mapping[str, Callable[[ps.Plan, list[Moments], Generator], Iterator[Any]]] = {
        "again each time": _again,
        **{name: _way(name) for name in MECHANISMS},
    }
    for epsilon in EPSILONS:
        plan = _plan(schema, len(X), epsilon)
        found: dict[str, list[float]] = {name: [] for name in ways}
        ends: dict[str, list[float]] = {name: [] for name in ways}
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(X))
            parts = [ps.measure(schema, X[rows], y[rows]) for rows in np.array_split(order, epochs)]
            for place, (name, way) in enumerate(ways.items()):
                scores = [
                    100 * ps.heads.LDA().fit_release(total).score(X_test, y_test)
                    for total in way(plan, list(parts), seeded(100 * seed + place))
                ]
                found[name].append(float(np.mean(scores)))
                ends[name].append(scores[-1])
        for name in ways:
            mean, last = float(np.mean(found[name])), float(np.mean(ends[name]))
            yield {"way": name, "epsilon": epsilon, "over the epochs": mean, "at the end": last, "seeds": seeds}


def _plan(schema: ps.ClassSchema, records: int, epsilon: float) -> ps.Plan:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, records), privacy=privacy)


def _again(plan: ps.Plan, parts: list[Moments], rng: Generator) -> Iterator[Release]:
    """All records so far, released anew with a T-th of mu^2 each time."""
    node = ps.Plan(schema=plan.schema, cohort=plan.cohort, privacy=part_of(plan, 1 / len(parts), None))
    nothing = SignedMoments.nothing(plan.schema)  # type: ignore[arg-type]
    total: Any = 0
    for part in parts:
        total = total + part
        yield session.in_clear(node, [total, nothing], rng)


def _way(name: str) -> Callable[[ps.Plan, list[Moments], Generator], Iterator[Any]]:
    def totals(plan: ps.Plan, parts: list[Moments], rng: Generator) -> Iterator[Any]:
        stream = ps.Stream(plan, len(parts), name)  # type: ignore[arg-type]
        nothing = SignedMoments.nothing(plan.schema)  # type: ignore[arg-type]
        seed, releases = rng.bytes(SEED_BYTES), list[Release | None]()
        sums: list[RingVector | None] = []
        for place, at in enumerate(stream.places):
            change: Any = sum(SignedMoments.of(part) for part in parts[at.since : at.epoch + 1])
            if stream.row.correlated:
                sums.append(stream.first.ring.encode(flatten(change)))
                releases.append(weighed_release(stream, seed, sums, (0, 1), reproducible=True))
            else:
                releases.append(session.in_clear(stream.first, [change, nothing], rng))
            if place + 1 == stream.most or stream.places[place + 1].epoch != at.epoch:
                yield stream.total(releases)

    return totals


if __name__ == "__main__":
    command("streams.accuracy", __doc__, tables)
