"""DP-SGD and full-batch DP-GD of a linear softmax, many recipes and many noise draws side by side.

Not Opacus: the same update (Abadi et al. 2016; whole gradients clipped, Gaussian noise on the sum, momentum), with
all recipes in one matrix product, so that a generous grid can be searched. `peers` trains the best again with Opacus.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Split
from privstats.contrib.sweep.rivals.private_descent import Recipe

__all__ = ["FULL_BATCH", "SAMPLED", "Schedule", "Score", "accuracy", "clipped_sums", "grid", "train"]

RATES = (1.0, 4.0, 16.0, 64.0, 128.0)
CLIPS = (0.1, 0.3, 1.0)
MOMENTA = (0.0, 0.9)
Score: TypeAlias = Callable[[NDArray[np.float32], NDArray[np.intp]], float]
"""From the scores ``(n, C)`` of test rows and their classes; the larger the better."""
Schedule: TypeAlias = tuple[float, int]
"""Share of the records per step, and how many steps."""
FULL_BATCH: Sequence[Schedule] = ((1.0, 50), (1.0, 25), (1.0, 100), (1.0, 200))
SAMPLED: Sequence[Schedule] = ((0.05, 100), (0.1, 200), (0.2, 200))
"""The schedules; the first is the one that all rates, clips and momenta are tried with."""
_MOST_COLUMNS = 2_500
_CACHED = 400_000  # probabilities that are worked on at once, few enough to stay in a processor's cache
_TAIL = 0.5


def grid(schedule: Schedule) -> list[Recipe]:
    """All rates, clips and momenta with one schedule."""
    sample, steps = schedule
    return [Recipe(*chosen, steps, sample) for chosen in itertools.product(RATES, CLIPS, MOMENTA)]


def _with_intercept(X: NDArray[Any]) -> NDArray[np.float32]:
    """Rows as a linear layer with a bias sees them, ``(n, d + 1)``."""
    return np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)


def accuracy(scores: NDArray[np.float32], y: NDArray[np.intp]) -> float:
    """The share of rows whose largest score ``(n, C)`` is their class's."""
    return float((scores.argmax(axis=1) == y).mean())


def train(
    split: Split,
    recipes: Sequence[Recipe],
    noise: float,
    rng: np.random.Generator,
    *,
    records: int | None = None,
    score: Score = accuracy,
) -> NDArray[np.float64]:
    """How well each recipe does on the test rows, ``(R, 2)``: the last weights and their tail average.

    Args:
        split: X_train, X_test, y_train, y_test.
        recipes: that share steps and sample; repeat one for several draws.
        noise: noise multiplier.
        rng: of noise and of samples, which recipes share.
        records: how many records the noise is for, where X_train is a part of them that stands for all.
        score: of a recipe's scores of the test rows.
    """
    X, X_test, y, y_test = split
    C = int(max(y.max(), y_test.max())) + 1
    rows, tests = _with_intercept(X), _with_intercept(X_test)
    most = max(1, _MOST_COLUMNS // C)
    parts = [recipes[at : at + most] for at in range(0, len(recipes), most)]
    found = []
    for part in parts:
        ends = _train(rows, y, C, part, noise, rng, records or len(X))
        found += [[score(tests @ weights.T, y_test) for weights in both] for both in zip(*ends, strict=True)]
    return np.array(found)


def _train(
    rows: NDArray[np.float32],
    y: NDArray[np.intp],
    C: int,
    recipes: Sequence[Recipe],
    noise: float,
    rng: np.random.Generator,
    records: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The last weights of each recipe and the mean of those of its tail, both ``(R, C, k)``."""
    R, k, steps, sample = len(recipes), rows.shape[1], recipes[0].steps, recipes[0].sample
    rate, clip, momentum = (_each(recipes, name) for name in ("rate", "clip", "momentum"))
    W, tail, velocity = (np.zeros((R, C, k), np.float32) for _ in range(3))
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    for step in range(steps):
        chosen = slice(None) if sample == 1 else np.flatnonzero(rng.random(len(rows)) < sample)
        G = clipped_sums(rows[chosen], lengths[chosen], y[chosen], W, clip[:, 0, 0])
        scale = sample * len(rows)
        # noise of the real cohort: where fewer rows stand for it, the mean gradient is theirs and the noise is its own
        G = G / scale + noise * clip / (sample * records) * rng.standard_normal(G.shape, dtype=np.float32)
        velocity = momentum * velocity + G
        W = W - rate * velocity
        if step >= (1 - _TAIL) * steps:
            tail += W
    return W, tail / np.float32(max(1, sum(step >= (1 - _TAIL) * steps for step in range(steps))))


def _each(recipes: Sequence[Recipe], name: str) -> NDArray[np.float32]:
    return np.array([getattr(recipe, name) for recipe in recipes], np.float32)[:, None, None]


def clipped_sums(
    rows: NDArray[np.float32],
    lengths: NDArray[np.float32],
    y: NDArray[np.intp],
    W: NDArray[np.float32],
    clip: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Sums of clipped gradients for each recipe's weights, ``(R, C, k)``; |gradient| = |p - e_y| |x|.

    Args:
        rows: with the intercept's column, ``(n, k)``.
        lengths: their norms, ``(n,)``.
        y: labels, ``(n,)``.
        W: weights of every recipe, ``(R, C, k)``.
        clip: norm that a record's gradient is clipped to, ``(R,)``.
    """
    R, C, k = W.shape
    flat, total = W.reshape(R * C, k), np.zeros((R * C, k), np.float32)
    block = max(64, _CACHED // (R * C))
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        some, labels, places = rows[part], y[part], np.arange(len(rows[part]))
        p = (flat @ some.T).reshape(R, C, len(some))
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        p[:, labels, places] -= 1
        norm = np.sqrt(np.square(p).sum(axis=1)) * lengths[part]
        p *= np.minimum(1, clip[:, None] / np.maximum(norm, 1e-30))[:, None, :]
        total += p.reshape(R * C, len(some)) @ some
    return total.reshape(R, C, k)
