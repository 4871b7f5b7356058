"""Measure what a few public records per class add to a release: LDA with them, without them, and them alone.

    python -m benchmarks.heads.public --save

Releases of (N, A, B), central model, record level, add-remove, delta 1e-5, at the default shares. In every draw other
training records are the public ones, and the release holds the rest. Alone, they are class means, and the nearest wins.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split
from benchmarks.heads.gains import public_options, public_tables
from benchmarks.measuring import Tables, command
from benchmarks.refinement.models import one_shot_plan
from privstats import heads
from privstats.randomness import seeded

Predict: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.intp]]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
MODELS = ("LDA", "with public records", "public records alone")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and number of public records."""
    return public_tables("heads.public", scores, MODELS, EPSILONS, options)


def scores(split: Split, count: int, epsilons: Sequence[float], seed: int) -> Iterator[tuple[float, ...]]:
    """Accuracies in percent of one draw, one per model, for each epsilon."""
    X, X_test, y, y_test = split
    chosen, rest = chosen_and_rest(y, count, seed)
    nearest = (nearest_mean(X[chosen], y[chosen])(X_test) == y_test).mean()
    plans = [one_shot_plan(split, "NAB", epsilon, None) for epsilon in epsilons]
    parts = [ps.measure(plans[0].schema, X[rest[k::2]], y[rest[k::2]]) for k in range(2)]  # of every plan
    for plan in plans:
        release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
        alone = heads.LDA().fit_release(release).score(X_test, y_test)
        both = heads.LDA().fit_release(release, public=(X[chosen], y[chosen])).score(X_test, y_test)
        yield 100 * alone, 100 * both, 100 * float(nearest)


def chosen_and_rest(y: NDArray[np.intp], count: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which training records are public in one draw, the same number of each class, and which are released."""
    chance = np.random.default_rng(seed).permutation(len(y))
    chosen = np.concatenate([chance[y[chance] == c][:count] for c in range(int(y.max()) + 1)])
    return chosen, np.setdiff1d(np.arange(len(y)), chosen)


def nearest_mean(X: NDArray[np.float64], y: NDArray[np.intp]) -> Predict:
    """Predicts the class whose mean is nearest; there is a record of every class."""
    means = np.stack([X[y == c].mean(axis=0) for c in range(int(y.max()) + 1)])
    return lambda rows: np.asarray((rows @ means.T - np.square(means).sum(axis=1) / 2).argmax(axis=1))


if __name__ == "__main__":
    command("heads.public", __doc__, tables, public_options)
