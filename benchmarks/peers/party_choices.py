"""What else whole parties could send at the same promise: another direction, several, or a second round.

    python -m benchmarks.peers.party_choices [--quick] --save [--tasks digits agnews cifar10]

In floats, without grid and masks: twenty parties, central noise, add-remove. Every choice is read as the head reads it,
with the site's rows (the test rows without labels), but for the row that says so. Several directions of one party have
lengths whose squares add up to 1, and the head adds them. Two rounds have half of mu^2 each: the second descends from
the first's sum at a length that is **the best on the test rows**, and its moves are added.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import agnews, private_tasks
from benchmarks.measuring import Row, Tables, command
from benchmarks.peers.interface import DELTA, Part, Shards, dealt
from privstats.dp.gaussian import gaussian_mu
from privstats.heads.estimates.site import site_weights

__all__ = ["rows_of"]

TASKS, ALPHAS, EPSILONS = ("digits", "cifar10", "agnews"), (0.1, 0.5), (1.0, 3.0, 8.0, 20.0)
TITLE = "what else whole parties could send, accuracy in %: "
_PARTIES, _DRAWS, _STEPS, _LENGTHS = 20, 2, 30, (4.0, 16.0)
_SENT, _CENTRED = "one direction", "one direction, the site's mean alone"

Array: TypeAlias = NDArray[np.floating[Any]]


def descended(part: Part, classes: int, start: Array | float = 0.0) -> Array:
    """By how much the steps of ``party_descent`` move the weights."""
    X, Y = part[0], np.eye(classes, dtype=np.float32)[part[1]]
    W = ahead = np.zeros((classes, X.shape[1]), np.float32) + np.float32(start)
    pace = np.float32(classes / max(float(np.square(X).sum()), 1e-30))
    for step in range(_STEPS):
        scores = X @ ahead.T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        before, W = W, ahead + pace * (Y - scores / scores.sum(axis=1, keepdims=True)).T @ X
        ahead = W + np.float32(step / (step + 3)) * (W - before)
    return W.astype(np.float64) - start


def ridge(part: Part, classes: int) -> Array:
    """``(Y - 1/C)'X (X'X + 3 tr(X'X) / d I)^-1``, which parties sent before."""
    X = part[0].astype(np.float64)
    G = X.T @ X
    pulled = G + 3 * np.trace(G) / len(G) * np.eye(len(G))
    return np.asarray(np.linalg.solve(pulled, X.T @ (np.eye(classes)[part[1]] - 1 / classes)).T)


def halves(part: Part, classes: int) -> list[Array]:
    """The directions of every second record."""
    return [descended((part[0][at::2], part[1][at::2]), classes) for at in (0, 1)]


_CHOICES: Mapping[str, Callable[[Part, int], Sequence[Array]]] = {
    _SENT: lambda part, classes: [descended(part, classes)],
    "a ridge step": lambda part, classes: [ridge(part, classes)],
    "every class at the same length": lambda part, classes: [
        np.stack([_unit(row) for row in descended(part, classes)])
    ],
    "two directions: halves of the records": halves,
    "two directions: the descent and a ridge step": lambda part, classes: [
        descended(part, classes),
        ridge(part, classes),
    ],
}


def scores_of(shards: Shards) -> Iterator[tuple[str, float, float]]:
    """Choice, epsilon and score."""
    C, centred = shards.classes, shards.X_test.astype(np.float64)
    centred = centred - centred.mean(axis=0)
    noise = np.random.default_rng(shards.seed).standard_normal((2, C, shards.features))

    def score(weights: Array) -> float:
        return shards.accuracy(centred @ weights.T)

    for name, choice in _CHOICES.items():
        sent = [choice(part, C) for part in shards.parts]
        count = math.sqrt(len(sent[0]))
        summed = sum(_unit(each) for each in itertools.chain(*sent)) / count
        for epsilon in EPSILONS:
            sigma = count / gaussian_mu(epsilon, DELTA)
            noisy = summed + sigma * noise[0]
            yield name, epsilon, score(site_weights(noisy, sigma, centred))
            if name == _SENT:
                yield _CENTRED, epsilon, score(noisy)
                first = summed + math.sqrt(2) * sigma * noise[0]
                moved = [_moves(shards, length * _unit(first)) for length in _LENGTHS]
                both = [first + each + math.sqrt(2) * sigma * noise[1] for each in moved]
                yield "two rounds", epsilon, max(score(site_weights(each, 2 * sigma, centred)) for each in both)


def _moves(shards: Shards, start: Array) -> Array:
    return np.asarray(np.sum([_unit(descended(part, shards.classes, start)) for part in shards.parts], axis=0))


def _unit(V: Array) -> Array:
    return np.asarray(V / (np.linalg.norm(V) or 1.0))


def rows_of(draws: Sequence[Shards]) -> list[Row]:
    """The mean score of every choice."""
    found: dict[str, dict[float, list[float]]] = {}
    for name, epsilon, score in itertools.chain.from_iterable(map(scores_of, draws)):
        found.setdefault(name, {}).setdefault(epsilon, []).append(score)
    return [
        {"choice": name, **{f"eps {epsilon:g}": float(np.mean(each)) for epsilon, each in by.items()}}
        for name, by in found.items()
    ]


def options(parser: argparse.ArgumentParser) -> None:
    """What to compare."""
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="all if omitted")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set and partition."""
    few, names = options.quick, ("digits",) if options.quick else options.tasks
    for task in (*private_tasks(bundled_only=few), *(() if few else agnews())):
        for alpha in (ALPHAS[1:] if few else ALPHAS) if task.name in names else ():
            draws = [dealt(task.transformed(), _PARTIES, alpha, seed) for seed in range(1 if few else _DRAWS)]
            yield f"{TITLE}{task.name}, alpha {alpha:g}", rows_of(draws)


if __name__ == "__main__":
    command("peers.party_choices", __doc__, tables, options)
