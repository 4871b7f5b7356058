"""Recipes of the federated rivals of ``privstats sweep``, scored on held-out training records.

    python -m benchmarks.peers.sweep_recipes [--quick] --save

Ten parties at alpha .1 and 1 hold digits, AG News, CIFAR-10 and BANKING77. Each candidate trains on four fifths of each
party's records, at most 10,000 in all, and is scored on the other fifth. Test records take no part. "behind" is the
mean, over all cells, of the points by which the best candidate of the same method and cell is ahead. The recipe with
the least "behind" is selected. FedProx has FedAvg's local steps, and varies its rate and pull.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import Task, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command
from benchmarks.peers.interface import Shards, dealt
from privstats.contrib.sweep.rivals import ensemble, fedavg, fedprox
from privstats.contrib.sweep.rivals.ensemble import Ensemble, Once
from privstats.contrib.sweep.rivals.fedavg import FedAvg
from privstats.contrib.sweep.rivals.fedprox import FedProx
from privstats.contrib.sweep.rivals.local_training import LocalTraining
from privstats.contrib.sweep.rivals.softmax_layer import with_bias

__all__ = ["ALPHAS", "CANDIDATES", "TASKS", "TITLE", "rows_of"]

TITLE = "recipes on held-out training records, accuracy in %: "
TASKS, PARTIES, ALPHAS, SEEDS = ("digits", "agnews", "cifar10", "banking77 whole"), 10, (0.1, 1.0), (0, 1, 2)
_RATES, _LOCAL, _PULLS = (4.0, 8.0, 16.0, 32.0, 64.0), (5, 20), (0.001, 0.01, 0.1, 1.0)
_FAR, _ONCE = (1.0, 4.0, 16.0, 64.0), (100, 500, 2000)

CANDIDATES: Mapping[str, Sequence[LocalTraining]] = {
    "FedAvg": [
        FedAvg(replace(fedavg.RECIPE, rate=rate, local=local)) for rate, local in itertools.product(_RATES, _LOCAL)
    ],
    "FedProx": [
        FedProx(replace(fedprox.RECIPE, rate=rate, pull=pull)) for rate, pull in itertools.product(_FAR[1:3], _PULLS)
    ],
    "ensemble": [Ensemble(Once(rate, local)) for rate, local in itertools.product(_FAR, _ONCE)],
}
"""The recipes of each method that were tried."""
_CHOSEN = {"FedAvg": fedavg.RECIPE, "FedProx": fedprox.RECIPE, "ensemble": ensemble.RECIPE}


def rows_of(candidates: Sequence[LocalTraining], cells: Mapping[str, Sequence[Shards]], chosen: object) -> list[Row]:
    """Return a row per candidate: its mean accuracy in each cell, and how far it is behind the cell's best."""
    found = [
        {cell: float(np.mean([_score(each, one) for one in shards])) for cell, shards in cells.items()}
        for each in candidates
    ]
    best = {cell: max(scores[cell] for scores in found) for cell in cells}
    return [
        {
            "recipe": str(each.recipe),
            "chosen": each.recipe == chosen,
            **scores,
            "behind": float(np.mean([best[cell] - scores[cell] for cell in cells])),
        }
        for each, scores in zip(candidates, found, strict=True)
    ]


def _score(method: LocalTraining, shards: Shards) -> float:
    parts = [(with_bias(X), y) for X, y in shards.parts]
    with threadpool_limits(1):
        model = method.fit(parts, shards.features, shards.classes, shards.seed)
        return 100 * float((model.predict(shards.X_test) == shards.y_test).mean())


def _tasks(*, quick: bool) -> Iterator[Task]:
    found = {task.name: task for task in (*private_tasks(bundled_only=quick), *([] if quick else agnews()))}
    yield from (found[name] for name in TASKS if name in found)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", choices=sorted(CANDIDATES), default=list(CANDIDATES))


def tables(options: argparse.Namespace) -> Tables:
    """Yield one table per method."""
    seeds = SEEDS[:1] if options.quick else SEEDS
    cells = {
        f"{task.name}, {alpha:g}": [dealt(task.transformed(), PARTIES, alpha, seed).held_out() for seed in seeds]
        for task in _tasks(quick=options.quick)
        for alpha in ALPHAS
    }
    for name in options.methods:
        candidates = CANDIDATES[name][:2] if options.quick else CANDIDATES[name]
        yield TITLE + name, rows_of(candidates, cells, _CHOSEN[name])


if __name__ == "__main__":
    command("peers.sweep_recipes", __doc__, tables, _options)
