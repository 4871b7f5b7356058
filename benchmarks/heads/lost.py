"""Measure how often strong noise costs a head a class: draws in which a class that LDA predicts is never predicted.

    python -m benchmarks.heads.lost --save

Releases of (N, A, S), central model, record level, add-remove, delta 1e-5. A class is lost where its recall is below
5 % and that of LDA, from the same release, above 50 %. "Before": while every difference above its noise counted, and
not only what exceeds two standard deviations of it.
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Row, Rows, Tables, command, standard_error
from benchmarks.refinement.models import one_shot_plan
from privstats import heads
from privstats.estimates.denoise import positive_part
from privstats.heads.fitting import class_covariance
from privstats.randomness import seeded

HEADS = {"LDA": heads.LDA, "QDA": heads.QDA, "LowRankQDA": heads.LowRankQDA, "RDA": heads.RDA}
OF_CLASSES = ("QDA", "LowRankQDA", "RDA")  # heads of a covariance per class
CELLS = (
    *(("made-up classes", epsilon, 300) for epsilon in (0.1, 0.3)),
    *(("digits", epsilon, 60) for epsilon in (0.3, 1.0, 3.0, 8.0)),
)
_LOST, _TOLD = 0.05, 0.5


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, help="noise draws of every cell; by default 300 and 60")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and epsilon."""
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    digits = next(task for task in private_tasks(bundled_only=True) if task.name == "digits")
    splits = {"made-up classes": made_up(), "digits": digits.transformed()}
    for name, epsilon, draws in CELLS[-1:] if options.quick else CELLS:
        yield (
            f"lost classes: {name}, {epsilon:g}",
            lost(splits[name], epsilon, 2 if options.quick else options.draws or draws),
        )


def lost(split: Split, epsilon: float, draws: int) -> Rows:
    """A row per head: draws that lost a class, and balanced accuracy on average and in the worst draw; and before."""
    X, X_test, y, y_test = split
    plan = one_shot_plan(split, "NAS", epsilon, None)
    parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)]
    found: dict[str, list[list[float]]] = {name: [] for name in HEADS}
    before: dict[str, list[list[float]]] = {name: [] for name in HEADS}
    for seed in range(draws):
        release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
        for name, head in HEADS.items():
            found[name].append(recalls(head().fit_release(release), X_test, y_test))
        with patch.object(class_covariance, "_own_share", kept_before):
            for name in OF_CLASSES:
                before[name].append(recalls(HEADS[name]().fit_release(release), X_test, y_test))
    told = np.array(found["LDA"]) > _TOLD
    return [row(name, np.array(found[name]), np.array(before[name] or found[name]), told) for name in HEADS]


def row(name: str, found: NDArray[np.float64], before: NDArray[np.float64], told: NDArray[np.bool_]) -> Row:
    """Summarise a head's recalls, ``(draws, classes)``, and how they changed."""
    balanced, change = 100 * found.mean(axis=1), 100 * (found - before).mean(axis=1)
    return {
        "head": name,
        "draws": len(found),
        "lost": int(((found < _LOST) & told).any(axis=1).sum()),
        "lost before": int(((before < _LOST) & told).any(axis=1).sum()),
        "balanced accuracy": float(balanced.mean()),
        "worst draw": float(balanced.min()),
        "change": float(change.mean()),
        "change se": standard_error(change),
    }


def kept_before(difference: NDArray[np.float64], level: float) -> float:
    """The share of a class's difference from the pool that counts as real, without the caution of today's."""
    d = len(difference)
    noise = level**2 / 2 * d * (d + 1)
    real = float(positive_part(float(np.square(difference).sum()) - noise, noise * math.sqrt(2 / (d * d))))
    return real / (real + noise)


def recalls(head: Any, X: NDArray[np.float64], y: NDArray[np.intp]) -> list[float]:
    """The share of each class's records that are told right."""
    right = head.predict(X) == y
    return [float(right[y == label].mean()) for label in np.unique(y)]


def made_up() -> Split:
    """Four Gaussian classes far apart, each with a covariance of its own: 4,000 rows of norm at most 1."""
    chance = np.random.default_rng(0)
    means, shapes = 2 * chance.standard_normal((4, 10)), chance.standard_normal((4, 10, 10)) / 10**0.5 + np.eye(10)
    y = chance.integers(4, size=5_000)
    X = means[y] + np.einsum("nij,nj->ni", shapes[y], chance.standard_normal((5_000, 10)))
    X /= np.linalg.norm(X, axis=1).max()
    return X[:4_000], X[4_000:], y[:4_000], y[4_000:]


if __name__ == "__main__":
    command("heads.lost", __doc__, tables, options)
