"""Full-batch gradient descent under differential privacy: what the demo holds its own rows against.

Not the library's way: one trusted holder sees every record. Abadi et al. 2016 with all records in every step; numpy
alone, several draws of the noise side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.dp import gaussian_mu, rounded_gaussian
from privstats.randomness import Generator

__all__ = ["Descent", "clipped_sum", "descend", "softmax"]

Array = NDArray[np.float32]
_NOISE_STEPS = 2.0**20  # the noise is a whole number of these to a standard deviation


@dataclass(frozen=True)
class Descent:
    """A recipe, fixed before any record is seen.

    Attributes:
        rate: learning rate, on the mean of the clipped gradients.
        clip: Euclidean norm that a record's whole gradient is clipped to.
        steps: how many; every one sees all records.
        momentum: heavy ball, as torch's SGD has it.
    """

    rate: float
    clip: float
    steps: int
    momentum: float = 0.0

    def noise(self, epsilon: float, delta: float) -> float:
        """Standard deviation of the noise in every entry of a step's sum.

        Guarantee:
            Add-remove, one record: a step's sum of gradients clipped to ``clip`` moves by at most ``clip``, so with
            noise of ``clip sqrt(steps) / mu`` it is mu / sqrt(steps)-GDP, and all steps together are mu-GDP (adaptive
            composition of Gaussian mechanisms; Dong, Roth, Su 2019), which is (epsilon, delta)-DP for the mu of
            ``gaussian_mu``. The number of records is taken as public.
        """
        return self.clip * math.sqrt(self.steps) / gaussian_mu(epsilon, delta)


def softmax(scores: Array) -> Array:
    """Probabilities of classes, over the last axis."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def clipped_sum(rows: Array, targets: Array, W: Array, clip: float) -> Array:
    """The sum of every record's clipped gradient of the cross entropy, ``(R, k, C)``.

    Args:
        rows: with the intercept's column, ``(n, k)``.
        targets: one-hot labels, ``(n, C)``.
        W: weights of every draw, ``(R, k, C)``.
        clip: a record's gradient ``x (p - e_y)'`` has norm ``|x| |p - e_y|`` and is shrunk to at most this.
    """
    residuals = softmax(rows @ W) - targets
    norms = np.sqrt(np.square(residuals).sum(axis=-1)) * np.sqrt(np.square(rows).sum(axis=-1))
    residuals *= np.minimum(1.0, clip / np.maximum(norms, 1e-30))[..., None]
    return np.asarray(rows.T @ residuals)


def descend(rows: Array, targets: Array, recipe: Descent, noise: float, draws: list[Generator]) -> Array:
    """Weights after all steps, one matrix per draw, ``(R, k, C)``; arguments as of :func:`clipped_sum`."""
    n, shape = len(rows), (rows.shape[1], targets.shape[1])
    W: Array = np.zeros((len(draws), *shape), np.float32)
    velocity: Array = np.zeros_like(W)
    for _ in range(recipe.steps):
        G = clipped_sum(rows, targets, W, recipe.clip)
        G += np.stack([_gaussian(noise, shape, rng) for rng in draws])
        velocity = np.float32(recipe.momentum) * velocity + G / np.float32(n)
        W = W - np.float32(recipe.rate) * velocity
    return W


def _gaussian(sigma: float, shape: tuple[int, int], rng: Generator) -> Array:
    drawn = rounded_gaussian(_NOISE_STEPS, math.prod(shape), rng) * (sigma / _NOISE_STEPS)
    return drawn.reshape(shape).astype(np.float32)
