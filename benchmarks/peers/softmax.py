"""A linear softmax layer trained in one place, over the gradient steps that a sweep's rivals compute.

No federation and no message; ``fedpft`` and ``ccvr`` call it on the records that they sampled.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers.interface import Part
from privstats.contrib.sweep.rivals.softmax_layer import BATCH, Weights, gradient, scores, steps, with_bias
from privstats.contrib.sweep.rivals.softmax_layer import zero_weights as blank

__all__ = ["BATCH", "Weights", "blank", "scores", "steps", "trained", "with_bias"]


def trained(
    part: Part,
    classes: int,
    rate: float,
    rng: np.random.Generator,
    *,
    count: int = 2_000,
    start: Weights | None = None,
) -> Weights:
    """A layer trained in one place: SGD on larger batches with a rate that falls to nothing (cosine).

    Args:
        part: rows without a bias, and labels.
        classes: C.
        rate: of the first step.
        rng: of the batches.
        count: steps.
        start: the first weights; zeros where omitted.
    """
    rows, labels = with_bias(part[0]), part[1]
    W = blank(rows.shape[1] - 1, classes) if start is None else start.copy()
    for step in range(count):
        batch = rng.integers(0, len(labels), 4 * BATCH)
        now = rate * (1 + math.cos(math.pi * step / count)) / 2
        W -= np.float32(now) * gradient(W, rows[batch], labels[batch])
    return W
