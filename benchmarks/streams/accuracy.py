"""Accuracy over a stream at one total epsilon, against releasing everything again each epoch.

    python -m benchmarks.streams.accuracy --save

Records arrive in equal parts over T epochs, one party in the central model; after each epoch a linear discriminant is
fitted on what is released. Ten orders of arrival, each with noise of its own. Feature sets beside the checkout where
they are there, digits always.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

import privstats as ps
from benchmarks.data import Split, Task, tasks
from benchmarks.measuring import Row, Rows, Tables, command, standard_error
from privstats import session
from privstats.contrib.streams import MomentsDelta
from privstats.contrib.streams.mechanisms import MECHANISMS
from privstats.contrib.streams.stream import Summed, weighed_release
from privstats.course.promise import part_of
from privstats.encoding import flatten
from privstats.moments import Moments
from privstats.randomness import SEED_BYTES, Generator, seeded
from privstats.release import Release

EPSILONS = (0.3, 1.0, 3.0)
EPOCHS, QUICK_EPOCHS = (16, 32), (4,)
SEEDS, QUICK_SEEDS = 10, 2
BASE = "again each time"

Way: TypeAlias = Callable[[ps.Plan, list[Moments], Generator], Iterator[Any]]


def tables(options: argparse.Namespace) -> Tables:
    """One table per data set and number of epochs."""
    warnings.simplefilter("ignore", ps.heads.FewRecordsWarning)
    seeds = QUICK_SEEDS if options.quick else SEEDS
    for task in tasks(bundled_only=options.quick):
        if task.name in ("digits", "cifar10"):
            for epochs in QUICK_EPOCHS if options.quick else EPOCHS:
                yield f"mean accuracy over {epochs} epochs, %: {task.name}", compared(task, epochs, seeds)


def compared(task: Task, epochs: int, seeds: int) -> Rows:
    """A row per way and epsilon: means over the seeds, their standard errors, and gains paired by seed."""
    split = task.transformed()
    ways: Mapping[str, Way] = {BASE: _again, **{name: _way(name) for name in MECHANISMS}}
    rows: list[Row] = []
    for epsilon in EPSILONS:
        found = {
            name: np.array([_scores(split, epochs, epsilon, way, seed) for seed in range(seeds)])
            for name, way in ways.items()
        }
        for name, scores in found.items():
            row: dict[str, object] = {"way": name, "epsilon": epsilon, "seeds": seeds}
            for place, what in enumerate(("over the epochs", "at the end")):
                row |= {
                    what: float(scores[:, place].mean()),
                    f"{what}, standard error": standard_error(scores[:, place]),
                }
            gains = scores[:, 0] - found[BASE][:, 0]
            rows.append(row | {"gain": float(gains.mean()), "gain, standard error": standard_error(gains)})
    return rows


def _scores(split: Split, epochs: int, epsilon: float, way: Way, seed: int) -> tuple[float, float]:
    """Test accuracy in percent of one order of the records: the mean over the epochs, and after the last."""
    X, X_test, y, y_test = split
    schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", 1.0)
    order = np.random.default_rng(seed).permutation(len(X))
    parts = [ps.measure(schema, X[rows], y[rows]) for rows in np.array_split(order, epochs)]
    totals = way(_plan(schema, len(X), epsilon), list(parts), seeded(seed))
    scores = [100 * ps.heads.LDA().fit_release(total).score(X_test, y_test) for total in totals]
    return float(np.mean(scores)), scores[-1]


def _plan(schema: ps.ClassSchema, records: int, epsilon: float) -> ps.Plan:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, records), privacy=privacy)


def _again(plan: ps.Plan, parts: list[Moments], rng: Generator) -> Iterator[Release]:
    """All records so far, released anew with a T-th of mu^2 each time."""
    node = ps.Plan(schema=plan.schema, cohort=plan.cohort, privacy=part_of(plan, 1 / len(parts), None))
    nothing = MomentsDelta.nothing(plan.schema)  # type: ignore[arg-type]
    total: Any = 0
    for part in parts:
        total = total + part
        yield session.aggregate_unmasked(node, [total, nothing], rng)


def _way(name: str) -> Way:
    def totals(plan: ps.Plan, parts: list[Moments], rng: Generator) -> Iterator[Any]:
        stream = ps.Stream(plan, len(parts), name)  # type: ignore[arg-type]
        nothing = MomentsDelta.nothing(plan.schema)  # type: ignore[arg-type]
        seed, releases = rng.bytes(SEED_BYTES), list[Release | None]()
        sums: list[Summed | None] = []
        for place, at in enumerate(stream.nodes):
            change: Any = sum(MomentsDelta.of(part) for part in parts[at.since : at.epoch + 1])
            if stream.row.correlated:
                sums.append((stream.first.ring.encode(flatten(change)), (0, 1)))
                releases.append(weighed_release(stream, seed, sums, reproducible=True))
            else:
                releases.append(session.aggregate_unmasked(stream.first, [change, nothing], rng))
            if place + 1 == stream.most or stream.nodes[place + 1].epoch != at.epoch:
                yield stream.total(releases)

    return totals


if __name__ == "__main__":
    command("streams.accuracy", __doc__, tables)
