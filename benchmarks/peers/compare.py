"""Other systems and ours on the same features and the same split: accuracy, bytes, rounds, seconds, epsilon.

    python -m benchmarks.peers.compare [--quick] --save
    python -m benchmarks.peers.compare --figures docs/images

Twenty parties, every class dealt in Dirichlet shares, rows of norm 1 (a public map). Bytes are what all parties send
and receive; seconds are processor seconds of everybody in one process with one BLAS thread. Peers are tuned on held-out
records at no charge. `sd` is the standard deviation over five seeds: of the partition and of all that is drawn.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Split, private_tasks
from benchmarks.measuring import RESULTS, Row, Tables, command, results
from benchmarks.peers.interface import Outcome, Peer, Shards, dealt
from benchmarks.peers.systems import EPSILONS, FEW_EPSILONS, Search, System, exact, party_level, private

TASKS = {"digits": "digits", "banking77 whole": "BANKING77", "cifar10": "CIFAR-10", "fmnist": "Fashion-MNIST"}
PARTIES, ALPHAS, SEEDS = 20, (0.1, 0.5), 5
EXACT, PRIVATE = "without differential privacy: ", "under differential privacy: "
QUICK = {
    "privstats LDA",
    "O-FedAvg, 1 round",
    "FedPFT, diagonal",
    "SCAFFOLD, 2 rounds",
    "DP-FedAvg (Flower), per party",
}
PARTS = ("exact", "private", "masking", "regression", "engine")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS), help="all if omitted")
    parser.add_argument("--systems", nargs="+", help="parts of the names of those to measure; all if omitted")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="all if omitted")
    parser.add_argument("--alphas", nargs="+", type=float, choices=ALPHAS, default=list(ALPHAS), help="both if omitted")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")
    parser.add_argument("--figures", type=Path, help="draw the saved results into this folder, and stop")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and partition, without and with privacy; then masking, regression and the engine."""
    if options.figures is not None:
        from benchmarks.peers.story import draw

        draw(options.json or RESULTS / "peers.compare.json", options.figures)
        return
    kept = dict(results("peers.compare")) if options.keep else {}
    makers = {"exact": _exact, "private": _private, "masking": _masking, "regression": _regression, "engine": _engine}
    for part in ("exact", "masking") if options.quick else options.parts:
        for title, rows in makers[part](options):
            kept.pop(title, None)
            yield title, rows
    yield from ((title, rows) for title, rows in kept.items() if title != "machine")


def _exact(options: argparse.Namespace) -> Tables:
    for name, split in _splits(options):
        if options.quick:
            yield f"{EXACT}{name}, quick", list(_rows(_few(), _some(split)))
            continue
        for alpha in options.alphas:
            systems = _asked(options, _at(alpha, exact()))
            yield f"{EXACT}{name}, alpha {alpha:g}", list(_rows(systems, _shards(options, split, alpha)))


def _private(options: argparse.Namespace) -> Tables:
    for name, split in _splits(options):
        for alpha in options.alphas:
            promised = _promised(EPSILONS if name == "digits" else FEW_EPSILONS)
            systems = _asked(options, _at(alpha, promised))
            yield f"{PRIVATE}{name}, alpha {alpha:g}", list(_rows(systems, _shards(options, split, alpha)))


def _promised(epsilons: Mapping[str, Sequence[float]]) -> Iterator[System]:
    yield from (system for epsilon in epsilons["record"] for system in private(epsilon))
    yield from (system for epsilon in epsilons["party"] for system in party_level(epsilon))


def _splits(options: argparse.Namespace) -> Iterator[tuple[str, Split]]:
    for task in private_tasks(bundled_only=options.quick or options.tasks == ["digits"]):
        if task.name in options.tasks:
            yield task.name, task.transformed()


def _shards(options: argparse.Namespace, split: Split, alpha: float) -> list[Shards]:
    return [dealt(split, PARTIES, alpha, seed) for seed in range(options.seeds)]


def _at(alpha: float, systems: Iterable[System]) -> Iterator[System]:
    """What no partition changes is measured at the first only."""
    return (system for system in systems if system.everywhere or alpha == ALPHAS[0])


def _asked(options: argparse.Namespace, systems: Iterable[System]) -> Iterator[System]:
    named = options.systems or [""]
    return (system for system in systems if any(name in system.name for name in named))


def _few() -> Iterator[System]:
    """Some systems with hardly any search."""
    for system in (*exact((1, 2)), *private(8.0), *party_level(8.0)):
        if system.name in QUICK:
            yield replace(system, candidates=partial(_first, system))


def _first(system: System, search: Search) -> Sequence[Peer]:
    return system.candidates(search)[:1]


def _some(split: Split) -> list[Shards]:
    """A few hundred records, five parties, two seeds."""
    return [dealt(split, 5, 0.5, seed).held_out(400) for seed in range(2)]


def _rows(systems: Iterable[System], shards: Sequence[Shards]) -> Iterator[Row]:
    """A row per system, tuned on the first shards and fitted on all."""
    search = Search(shards[0])
    for system in systems:
        row = _row(system, search, shards)
        print(f"  {system.key}: {row.get('accuracy')} in {row.get('seconds')} s", flush=True)
        yield row


def _row(system: System, search: Search, shards: Sequence[Shards]) -> Row:
    try:
        peer = search.best(system.candidates(search))
        outcomes = [peer.fit(each) for each in shards[: system.most]]
    except ImportError as error:
        return {"system": system.name, "settings": f"not measured: {error}"}
    common = {"settings": str(peer), "search": system.search, "partition": system.everywhere}
    return {"system": system.name, **summary(outcomes), **common}


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Mean and standard deviation of what differs between seeds."""
    (promise,) = {(each.epsilon, each.unit, each.rounds) for each in outcomes}
    row: dict[str, Any] = {"epsilon": None if math.isinf(promise[0]) else promise[0], "unit": promise[1]}
    for name, key in (("accuracy", "score"), ("bytes", "bytes"), ("seconds", "seconds")):
        values = np.array([getattr(each, key) for each in outcomes], float)
        row[name] = float(values.mean())
        row[f"sd {name}"] = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {**row, "rounds": promise[2], "seeds": len(outcomes)}


def _masking(options: argparse.Namespace) -> Tables:
    from benchmarks.peers.masking import masked

    parties, sizes, repeats = (4, (100,), 1) if options.quick else (PARTIES, (1_000, 35_000, 1_000_000), 3)
    yield f"masking one vector of {parties} parties", [row for size in sizes for row in masked(parties, size, repeats)]


def _regression(_: argparse.Namespace) -> Tables:
    from benchmarks.peers.regression import regressions

    yield "regression on one feature, one party: diabetes", regressions(EPSILONS["record"], 100)


def _engine(_: argparse.Namespace) -> Tables:
    from benchmarks.peers.engine import beside_the_grid

    yield "FedAvg on Flower's simulation engine and on the grid", beside_the_grid()


if __name__ == "__main__":
    command("peers.compare", __doc__, tables, options)
