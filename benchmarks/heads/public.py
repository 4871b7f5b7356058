"""What a few public records per class are worth beside a release: LDA with them, without them, and them alone.

    python -m benchmarks.heads.public --save

Releases of (N, A, B), central model, record level, add-remove, delta 1e-5, at the default shares. In every draw other
training records are the public ones, and the release holds the rest. Alone, they are class means, and the nearest wins.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.heads.gains import gains
from benchmarks.measuring import Rows, Tables, command, results
from benchmarks.refinement.models import one_shot_plan
from privstats import heads
from privstats.randomness import seeded

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
PER_CLASS = (1, 5)
TASKS = ("digits", "banking77", "cifar10", "fmnist", "mnist5k", "letter", "agnews")
MODELS = ("LDA", "with public records", "public records alone")


def options(parser: argparse.ArgumentParser) -> None:
    """How often, and on what."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and number of public records."""
    epsilons, draws, names = ((1.0,), 2, ["digits"]) if options.quick else (EPSILONS, options.draws, options.tasks)
    kept = results("heads.public") if options.keep else {}
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        split = task.transformed() if task.name in names else None
        for count in PER_CLASS:
            title = f"accuracy, %: {task.name}, {count} per class"
            if split is not None:
                yield title, compared(split, count, epsilons, draws)
            elif title in kept:
                yield title, kept[title]


def compared(split: Split, count: int, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per model: mean and standard error per epsilon, and those of its gain over the first."""
    found = np.array([list(scores(split, count, epsilons, seed)) for seed in range(draws)])
    return gains(found, MODELS, epsilons)


def scores(split: Split, count: int, epsilons: Sequence[float], seed: int) -> Iterator[tuple[float, ...]]:
    """Accuracies in percent of one draw, one per model, for each epsilon."""
    X, X_test, y, y_test = split
    chosen, rest = chosen_and_rest(y, count, seed)
    means = np.stack([X[chosen[y[chosen] == c]].mean(axis=0) for c in range(int(y.max()) + 1)])
    nearest = ((X_test @ means.T - np.square(means).sum(axis=1) / 2).argmax(axis=1) == y_test).mean()
    plans = [one_shot_plan(split, "NAB", epsilon, None) for epsilon in epsilons]
    parts = [ps.measure(plans[0].schema, X[rest[k::2]], y[rest[k::2]]) for k in range(2)]  # of every plan
    for plan in plans:
        release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
        alone = heads.LDA().fit_release(release).score(X_test, y_test)
        both = heads.LDA().fit_release(release, public=(X[chosen], y[chosen])).score(X_test, y_test)
        yield 100 * alone, 100 * both, 100 * float(nearest)


def chosen_and_rest(y: NDArray[np.intp], count: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which training records are public in one draw, so many of each class, and which are released."""
    chance = np.random.default_rng(seed).permutation(len(y))
    chosen = np.concatenate([chance[y[chance] == c][:count] for c in range(int(y.max()) + 1)])
    return chosen, np.setdiff1d(np.arange(len(y)), chosen)


if __name__ == "__main__":
    command("heads.public", __doc__, tables, options)
