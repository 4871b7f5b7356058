"""Training on a client's features: a softmax layer, behind a square map where the paper fine-tunes a whole network.

Not the library's: these are the baselines of FedCGS's tables, written from its configurations, and its own fine-tuning
(eq. 12). Features are frozen, so the map, which starts as the identity, is all of the encoder that can move here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.partitions import Places

__all__ = ["Net", "Recipe", "average", "blank", "gradients", "trained"]

Array = NDArray[np.float32]

BATCH = 128


@dataclass(frozen=True)
class Net:
    """Scores ``f(x) weights + bias`` with f(x) = x map.

    Attributes:
        map: ``(d, d)``, or None for the identity that stays.
        weights: ``(d, C)``.
        bias: ``(C,)``.
    """

    map: Array | None
    weights: Array
    bias: Array

    def features(self, X: Array) -> Array:
        """f(x), ``(n, d)``."""
        return X if self.map is None else X @ self.map

    def scores(self, X: Array) -> Array:
        """Logits, ``(n, C)``."""
        return np.asarray(self.features(X) @ self.weights + self.bias)

    def probabilities(self, X: Array) -> Array:
        """Softmax of the logits."""
        return _softmax(self.scores(X))

    def accuracy(self, X: Array, y: Places) -> float:
        """In percent."""
        return 100 * float((self.scores(X).argmax(axis=1) == y).mean())


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum, batches of 128.

    Attributes:
        epochs: passes over the records.
        rate, momentum, decay: of SGD; ``decay`` is the L2 penalty.
        pull: lambda, the weight of the mean squared distance to the prototype of the record's class.
    """

    epochs: int
    rate: float = 0.01
    momentum: float = 0.9
    decay: float = 0.0
    pull: float = 0.0


def blank(features: int, classes: int, *, mapped: bool) -> Net:
    """The identity map, or none, and no weights."""
    start = np.eye(features, dtype=np.float32) if mapped else None
    return Net(start, np.zeros((features, classes), np.float32), np.zeros(classes, np.float32))


def trained(
    net: Net, X: Array, y: Places, recipe: Recipe, rng: np.random.Generator, prototypes: Array | None = None
) -> Net:
    """A net after SGD on ``(X, y)``; the map stays where there is none.

    Args:
        net: where to begin.
        X, y: float32 ``(n, d)`` and labels ``(n,)``.
        recipe: how.
        rng: of the batches.
        prototypes: ``(C, d)``, to which ``recipe.pull`` draws the features.
    """
    parts = [part.copy() for part in (net.map, net.weights, net.bias) if part is not None]
    speeds = [np.zeros_like(part) for part in parts]
    for _ in range(recipe.epochs):
        order = rng.permutation(len(X))
        for start in range(0, len(X), BATCH):
            batch = order[start : start + BATCH]
            found = gradients(_net(parts), X[batch], y[batch], recipe.pull, prototypes)
            for part, speed, gradient in zip(parts, speeds, found, strict=True):
                speed *= recipe.momentum
                speed += gradient + recipe.decay * part
                part -= recipe.rate * speed
    return _net(parts)


def average(nets: Sequence[Net], sizes: Iterable[int]) -> Net:
    """The mean net, weighted by records: one round of FedAvg."""
    share = np.array(list(sizes), np.float32)
    share /= share.sum()

    def mean(parts: Sequence[Array]) -> Array:
        return np.asarray(sum(weight * part for weight, part in zip(share, parts, strict=True)), np.float32)

    maps = [net.map for net in nets if net.map is not None]
    whole = Net(None, mean([net.weights for net in nets]), mean([net.bias for net in nets]))
    return replace(whole, map=mean(maps)) if maps else whole


def gradients(net: Net, X: Array, y: Places, pull: float, prototypes: Array | None) -> list[Array]:
    """Of the cross entropy and the pull, in the order map, weights, bias."""
    moved = net.features(X)
    error = _softmax(moved @ net.weights + net.bias)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    found = [moved.T @ error, error.sum(axis=0)]
    if net.map is None:
        return found
    back = error @ net.weights.T
    if prototypes is not None:
        back += (2 * pull / len(y)) * (moved - prototypes[y])
    return [X.T @ back, *found]


def _net(parts: Sequence[Array]) -> Net:
    return Net(None, *parts) if len(parts) == 2 else Net(*parts)


def _softmax(scores: Array) -> Array:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
