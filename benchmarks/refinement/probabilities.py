"""What priors settle where classes are of very different size.

    python -m benchmarks.refinement.probabilities --save

Central model, record level, add-remove, delta 1e-5, the library's noise. A long tail keeps a share of each class's
training records that falls geometrically to a hundredth.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Row, Rows, Tables, command
from benchmarks.refinement.library import CENTRAL, course_of, played
from benchmarks.refinement.models import DELTA, one_shot_plan
from privstats import heads
from privstats.randomness import seeded

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
TAILED = ("cifar10", "fmnist")
LEAST_SHARE = 0.01


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--draws", type=int, default=10)


def tables(options: argparse.Namespace) -> Tables:
    """Balanced accuracy under a long tail, of each data set."""
    epsilons, draws = ((1.0,), 1) if options.quick else (EPSILONS, options.draws)
    for task in private_tasks(bundled_only=options.quick):
        if task.name in TAILED or options.quick:
            yield f"balanced accuracy under a long tail, %: {task.name}", tailed(task.transformed(), epsilons, draws)


def tailed(split: Split, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per head and priors: mean of the classes' accuracies, and its standard error over draws."""
    _, X_test, y, y_test = split
    C = int(y.max()) + 1
    short = shortened(split)
    rows: dict[str, Row] = {}
    for epsilon in epsilons:
        scores: dict[str, list[float]] = {}
        for seed in range(draws):
            for name, head in fitted(short, epsilon, seed, ("counts", "uniform")).items():
                right = head.predict(X_test) == y_test
                scores.setdefault(name, []).append(100 * float(np.mean([right[y_test == c].mean() for c in range(C)])))
        for name, own in scores.items():
            spread = float(np.std(own, ddof=1) / math.sqrt(draws)) if draws > 1 else math.nan
            cells = {f"eps {epsilon:g}": float(np.mean(own)), f"se {epsilon:g}": spread}
            rows[name] = {**rows.get(name, {"model": name}), **cells}
    return list(rows.values())


def shortened(split: Split) -> Split:
    """The split with a long tail of training records."""
    X, X_test, y, y_test = split
    C = int(y.max()) + 1
    kept = np.concatenate(
        [np.flatnonzero(y == c)[: max(2, int((y == c).sum() * LEAST_SHARE ** (c / (C - 1))))] for c in range(C)]
    )
    return X[kept], X_test, y[kept], y_test


def fitted(split: Split, epsilon: float, seed: int, priors: Sequence[str]) -> Mapping[str, Any]:
    """One-shot LDA and a refined softmax of four rounds, for each kind of priors, from the same releases."""
    X, _, y, _ = split
    plan = one_shot_plan(split, "NAB", epsilon, None)
    release = ps.session.aggregate_unmasked(
        plan, [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)], seeded(seed)
    )
    course = course_of(split, epsilon, DELTA, 4)
    releases = played(course, X, y, CENTRAL, seed)
    found: dict[str, Any] = {}
    for each in priors:
        words = f', priors="{each}"'
        found[f"LDA{words}"] = heads.LDA(priors=each).fit_release(release)
        found[f"refined{words}"] = heads.RefinedSoftmax(priors=each).fit_releases(releases)
    return found


if __name__ == "__main__":
    command("refinement.probabilities", __doc__, tables, options)
