"""The strongest training under differential privacy that a user could have instead, tuned at no charge to its budget.

Not the library: Opacus trains its DP-SGD, numpy a full-batch DP-GD. Recipes are chosen on a fifth of the training
records, which a real user would have to pay for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.data import Split
from benchmarks.refinement import gradient
from benchmarks.refinement.gradient import Schedule, Score
from privstats.contrib.sweep.rivals.private_descent import Recipe, linear, noise_multiplier, trained

__all__ = ["SEARCH", "Trained", "dp_gd", "opacus", "opacus_dp_sgd", "tuned"]

_ADVANCE, _FINALISTS = 6, 4
_FIRST_ROWS, _NEXT_ROWS, _MOST_ROWS = 1_500, 3_000, 10_000
SEARCH = (
    f"rates {gradient.RATES}, clips {gradient.CLIPS}, momenta {gradient.MOMENTA}, last weights or tail average; "
    f"(share, steps) {gradient.FULL_BATCH} and {gradient.SAMPLED}; best {_ADVANCE} on {_FIRST_ROWS} records, then "
    f"{_FINALISTS} on {_NEXT_ROWS}, then one on {_MOST_ROWS}, of four fifths of the training records"
)
"""What every cell was searched with; two runs are one only if it is the same."""


@dataclass(frozen=True)
class Trained:
    """Accuracies of several draws, in percent, and the recipe they were reached with."""

    accuracies: tuple[float, ...]
    recipe: Recipe


def tuned(
    split: Split, epsilon: float, delta: float, schedules: Sequence[Schedule], score: Score = gradient.accuracy
) -> Recipe:
    """The best recipe on held-out records, by their accuracy or another score.

    All rates, clips and momenta with the first schedule, the best of them with all schedules, and the best of those
    again with other noise, each with its last weights and with their tail average. A part of the records stands for
    all: the mean gradient is the part's, the noise that of all.
    """
    X, _, y, _ = split
    fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)

    def tried(recipes: Sequence[Recipe], rows: int, seed: int) -> list[tuple[float, Recipe]]:
        inner, noise = (fit[:rows], held, fit_y[:rows], held_y), _noise(recipes[0], epsilon, delta)
        scores = gradient.train(inner, recipes, noise, np.random.default_rng(seed), records=len(fit), score=score)
        both = itertools.chain.from_iterable((recipe, replace(recipe, tail=True)) for recipe in recipes)
        return sorted(zip(scores.ravel().tolist(), both, strict=True), key=lambda pair: -pair[0])

    first = tried(gradient.grid(schedules[0]), _least(_FIRST_ROWS, schedules[0]), 0)
    ranked = [replace(recipe, tail=False) for _, recipe in first]
    advanced, found = list(dict.fromkeys(ranked))[:_ADVANCE], []
    for sample, steps in schedules:
        rows = _least(_NEXT_ROWS, (sample, steps))
        found += tried([replace(r, sample=sample, steps=steps) for r in advanced], rows, 0)
    finalists = [recipe for _, recipe in sorted(found, key=lambda pair: -pair[0])[:_FINALISTS]]
    again = [(score, r) for f in finalists for score, r in tried([replace(f, tail=False)], _MOST_ROWS, 1) if r == f]
    return max(again, key=lambda pair: pair[0])[1]


def _least(rows: int, schedule: Schedule) -> int:
    """So many rows, or more where a step samples few of them."""
    return int(min(max(rows, _FIRST_ROWS / schedule[0]), _MOST_ROWS))


def dp_gd(split: Split, epsilon: float, delta: float, draws: int) -> Trained:
    """Full-batch DP gradient descent at the best recipe, on all training records."""
    best = tuned(split, epsilon, delta, gradient.FULL_BATCH)
    scores = gradient.train(split, [best] * draws, _noise(best, epsilon, delta), np.random.default_rng(2))
    return Trained(tuple(100 * float(a) for a in scores[:, int(best.tail)]), best)


def opacus_dp_sgd(split: Split, epsilon: float, delta: float, draws: int) -> Trained:
    """DP-SGD of a linear softmax layer trained by Opacus, at the best recipe, on all training records."""
    best = tuned(split, epsilon, delta, gradient.SAMPLED)
    return Trained(tuple(100 * opacus(split, best, epsilon, delta, seed) for seed in range(draws)), best)


def _noise(recipe: Recipe, epsilon: float, delta: float) -> float:
    return noise_multiplier(epsilon, delta, recipe.sample, recipe.steps)


def opacus(split: Split, recipe: Recipe, epsilon: float, delta: float, seed: int) -> float:
    """Accuracy of the linear softmax layer that Opacus trains by one recipe."""
    X, X_test, y, y_test = split
    layer = trained(partial(linear, X.shape[1], int(y.max()) + 1), X, y, recipe, epsilon, delta, seed)
    weight, bias = (each.detach().numpy() for each in layer.parameters())
    guess = (X_test.astype(np.float32) @ weight.T + bias).argmax(axis=1)
    return float((guess == y_test).mean())
