"""What a few public records per class are worth beside a release: LDA with them, without them, and them alone.

    python -m benchmarks.heads.public --save

Releases of (N, A, B), central model, record level, add-remove, delta 1e-5, at the default shares. In every draw other
training records are the public ones, and the release holds the rest. Alone, they are class means, and the nearest wins.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.heads.gains import gains
from benchmarks.measuring import Rows, Tables, command
from benchmarks.refinement.models import one_shot_plan
from privstats import heads
from privstats.randomness import seeded

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
PER_CLASS = (1, 5)
TASKS = ("digits", "banking77", "cifar10", "fmnist", "agnews")
MODELS = ("LDA", "with public records", "public records alone")


def options(parser: argparse.ArgumentParser) -> None:
    """How often, and on what."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and number of public records."""
    epsilons, draws, names = ((1.0,), 2, ["digits"]) if options.quick else (EPSILONS, options.draws, options.tasks)
    for task in (*private_tasks(bundled_only=options.quick), *agnews()):
        if task.name in names:
            split = task.transformed()
            for count in PER_CLASS:
                yield f"accuracy, %: {task.name}, {count} per class", compared(split, count, epsilons, draws)


def compared(split: Split, count: int, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per model: mean and standard error per epsilon; of the middle one also those of its gain over the first."""
    found = np.array([[scores(split, count, epsilon, seed) for epsilon in epsilons] for seed in range(draws)])
    return gains(found, MODELS, epsilons)


def scores(split: Split, count: int, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Accuracies in percent of one draw, one per model."""
    X, X_test, y, y_test = split
    chance = np.random.default_rng(seed).permutation(len(X))
    chosen = np.concatenate([chance[y[chance] == c][:count] for c in range(int(y.max()) + 1)])
    rest = np.setdiff1d(np.arange(len(X)), chosen)
    plan = one_shot_plan(split, "NAB", epsilon, None)
    parts = [ps.measure(plan.schema, X[rest[k::2]], y[rest[k::2]]) for k in range(2)]
    release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
    alone = heads.LDA().fit_release(release).score(X_test, y_test)
    both = heads.LDA().fit_release(release, public=(X[chosen], y[chosen])).score(X_test, y_test)
    means = np.stack([X[chosen[y[chosen] == c]].mean(axis=0) for c in range(int(y.max()) + 1)])
    nearest = ((X_test @ means.T - np.square(means).sum(axis=1) / 2).argmax(axis=1) == y_test).mean()
    return 100 * alone, 100 * both, 100 * float(nearest)


if __name__ == "__main__":
    command("heads.public", __doc__, tables, options)
