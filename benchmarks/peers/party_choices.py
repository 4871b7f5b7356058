"""What else whole parties could send at the same promise: another direction, several, or a second round.

    python -m benchmarks.peers.party_choices [--quick] --save [--keep] [--tasks digits agnews cifar10]

In floats, without grid and masks: central noise, add-remove. Every choice is read as the head reads it, with the site's
rows (the test rows without labels), but for the row that says so. Several directions of one party have lengths whose
squares add up to 1, and the head adds them. Two rounds have half of mu^2 each: the second descends from the first's sum
at a fixed length, and its moves are added. All choices of a draw have the same noise, so what one gains over one
direction is known better than either; `se` is the standard error of that gain, or of the accuracy of one direction.
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
from benchmarks.measuring import Row, Tables, command, results, standard_error
from benchmarks.peers.interface import DELTA, Part, Shards, dealt
from privstats.contrib.heads.party_discriminant import site_weights
from privstats.dp.gaussian import gaussian_mu

__all__ = ["PARTIES", "TITLE", "rows_of"]

TASKS, PARTIES, ALPHAS, EPSILONS = ("digits", "cifar10", "agnews"), (20, 100), (0.1, 0.5), (1.0, 3.0, 8.0)
TITLE = "what else whole parties could send, accuracy in %: "
_DRAWS, _STEPS, _LENGTHS = 10, 30, (16.0, 32.0)
_SENT, _CENTRED = "one direction", "one direction, the site's mean alone"

Array: TypeAlias = NDArray[np.floating[Any]]


def descended(part: Part, classes: int, start: Array | float = 0.0) -> Array:
    """By how much the steps of ``kinds.party`` move the weights."""
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
    drawn = np.random.default_rng(shards.seed).standard_normal((2, C, shards.features))
    noise = drawn.sum(axis=0) / math.sqrt(2)

    def score(weights: Array) -> float:
        return shards.accuracy(centred @ weights.T)

    for name, choice in _CHOICES.items():
        sent = [choice(part, C) for part in shards.parts]
        count = math.sqrt(len(sent[0]))
        summed = sum(_unit(each) for each in itertools.chain(*sent)) / count
        for epsilon in EPSILONS:
            sigma = count / gaussian_mu(epsilon, DELTA)
            noisy = summed + sigma * noise
            yield name, epsilon, score(site_weights(noisy, sigma, centred))
            if name == _SENT:
                yield _CENTRED, epsilon, score(noisy)
                first = summed + math.sqrt(2) * sigma * drawn[0]
                for length in _LENGTHS:
                    both = first + _moves(shards, length * _unit(first)) + math.sqrt(2) * sigma * drawn[1]
                    yield f"two rounds, length {length:g}", epsilon, score(site_weights(both, 2 * sigma, centred))


def _moves(shards: Shards, start: Array) -> Array:
    return np.asarray(np.sum([_unit(descended(part, shards.classes, start)) for part in shards.parts], axis=0))


def _unit(V: Array) -> Array:
    return np.asarray(V / (np.linalg.norm(V) or 1.0))


def rows_of(draws: Sequence[Shards]) -> list[Row]:
    """The mean score of one direction, and what every other choice gains over it, draw by draw."""
    found: dict[str, dict[float, list[float]]] = {}
    for name, epsilon, score in itertools.chain.from_iterable(map(scores_of, draws)):
        found.setdefault(name, {}).setdefault(epsilon, []).append(score)
    rows: list[Row] = []
    for name, by in found.items():
        row: dict[str, Any] = {"choice": name, "draws": len(draws)}
        for epsilon, scores in by.items():
            values = np.array(scores) - (0.0 if name == _SENT else np.array(found[_SENT][epsilon]))
            row |= {f"eps {epsilon:g}": float(values.mean()), f"se {epsilon:g}": standard_error(values)}
        rows.append(row)
    return rows


def options(parser: argparse.ArgumentParser) -> None:
    """What to compare."""
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="all if omitted")
    parser.add_argument("--parties", nargs="+", type=int, choices=PARTIES, default=list(PARTIES))
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set, number of parties and partition."""
    few, names = options.quick, ("digits",) if options.quick else options.tasks
    kept = dict(results("peers.party_choices")) if options.keep else {}
    for task in (*private_tasks(bundled_only=few), *(() if few else agnews())):
        cells = itertools.product(options.parties, ALPHAS) if task.name in names else ()
        for parties, alpha in itertools.islice(cells, 1) if few else cells:
            draws = [dealt(task.transformed(), parties, alpha, seed) for seed in range(2 if few else _DRAWS)]
            title = f"{TITLE}{task.name}, {parties} parties, alpha {alpha:g}"
            kept.pop(title, None)
            yield title, rows_of(draws)
    yield from ((title, rows) for title, rows in kept.items() if title != "machine")


if __name__ == "__main__":
    command("peers.party_choices", __doc__, tables, options)
