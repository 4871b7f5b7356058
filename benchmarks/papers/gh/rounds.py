"""GH-OFL's multi-round baselines on frozen features: FedAvg, FedProx and SCAFFOLD after 1, 10 and 50 rounds.

The systems and their search are those of ``benchmarks.peers``; the paper fine-tunes a whole ResNet-18, which cannot be
had. Rows of Table 1, and Figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.measuring import Tables
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.gh import published
from benchmarks.papers.gh.invariance import ALPHAS, shards_of
from benchmarks.papers.partitions import by_dirichlet
from benchmarks.papers.sets import Features, nearest_to
from benchmarks.peers import flower, scaffold
from benchmarks.peers.interface import Peer, Shards
from benchmarks.peers.systems import Search
from privstats.transforms import CentreRows, UnitNorm, apply

__all__ = ["FIGURE_4", "beside"]

FIGURE_4 = Sheet(published.PAPER, "Figure 4", "test accuracy by communication round, %", better="higher")
_TABLE = Sheet(published.PAPER, "Table 1, multi-round", "test accuracy of peers on frozen features, %", better="higher")
_CLIENTS = 10
_SEEDS = range(3)
_TUNED_AT = 0.1
_ROUNDS = (1, 2, 5, 10, 20, 50)
_ROWS = (1, 10, 50)


def beside(*, quick: bool) -> Tables:
    """Both tables from the same runs: a peer's first ten rounds are the same whether forty follow or not."""
    rows: list[Cell] = []
    curves: list[Cell] = []
    for data in ("CIFAR-10",) if quick else published.ROUNDS:
        features = nearest_to(data, quick=quick)
        rounds, seeds = ((1, 2), _SEEDS[:1]) if quick else (_ROUNDS, _SEEDS)
        tuned = _tuned(_dealt(features, _TUNED_AT, 0), rounds[-1], quick=quick)
        for (name, peer), alpha in product(tuned.items(), ALPHAS[:1] if quick else ALPHAS):
            shards = [_dealt(features, alpha, seed) for seed in seeds]
            found = {count: [_after(peer, count).fit(each).score for each in shards] for count in rounds}
            where = f"{data}, alpha = {alpha:g}"
            print(f"  {name}, {where}, {peer}: {found[rounds[-1]]}", flush=True)
            rows += _cells(name, where, published.ROUNDS[data][alpha][name], found, f"{features.said}, frozen; {peer}")
            curves += [FIGURE_4.cell(f"{count}", f"{name}, {where}", None, found[count]) for count in rounds]
    yield _TABLE.rows(rows)
    yield FIGURE_4.rows(curves)


def _cells(name: str, where: str, printed: Any, found: Mapping[int, list[float]], said: str) -> Iterator[Cell]:
    for count, text in zip(_ROWS, printed, strict=True):
        if count in found:
            plural = "" if count == 1 else "s"
            yield _TABLE.nearest(f"{name} ({count} round{plural})", where, text, found[count], said)


def _tuned(shards: Shards, rounds: int, *, quick: bool) -> Mapping[str, Peer]:
    """Each peer with the settings that are best on held-out records after the most rounds, at no charge."""
    search, few = Search(shards), slice(0, 1 if quick else None)
    fedavg: Any = search.best(flower.federated_grid(rounds=rounds)[few])
    pulled = [replace(fedavg, pull=pull) for pull in (1e-4, 1e-3)]
    return {
        "FedAvg": fedavg,
        "FedProx": search.best(pulled[few]),
        "SCAFFOLD": search.best(scaffold.scaffold_grid(rounds)[few]),
    }


def _after(peer: Any, rounds: int) -> Peer:
    stopped: Peer = replace(peer, rounds=rounds)
    return stopped


def _dealt(features: Features, alpha: float, seed: int) -> Shards:
    """Ten clients by the paper's draws, on centred rows of norm 1; a client without a record takes no part."""
    X, X_test, y, y_test = features.split
    rows, tested = (apply((CentreRows(), UnitNorm()), each) for each in (X, X_test))
    cut = by_dirichlet(y, _CLIENTS, alpha, np.random.default_rng(seed))
    parts = tuple((part.astype(np.float32), labels) for part, labels in shards_of(rows, y, cut))
    return Shards(parts, tested.astype(np.float32), y_test, features.classes, seed)
