"""Shared by all experiments: a point on a curve, the meaning of a score, and noise from a seed.

Values and sentences only; nothing is measured, drawn or fitted here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from privstats.randomness import Generator, seeded
from privstats.schema import Schema, predicted

__all__ = [
    "EPSILONS",
    "WITHOUT_NOISE",
    "Point",
    "heading",
    "metric",
    "noise_draw",
    "scored",
    "shown",
]

EPSILONS = (8.0, 3.0, 1.0, 0.3)
"""The usual grid, from weak to strong privacy."""

WITHOUT_NOISE = math.inf
"""The epsilon that stands for a release without noise."""

_DRAWS = 1_000_003
_METRICS = {"classes": "accuracy", "ridge": "R²"}


@dataclass(frozen=True)
class Point:
    """One head at one epsilon: mean and standard deviation (ddof 1) of its score over the noise draws.

    ``epsilon`` is infinite for the release without noise, whose spread is 0.

    Example:
        >>> from privstats.workflows.score import Point
        >>> Point("LDA", epsilon=1.0, mean=0.81, spread=0.02).mean
        0.81
    """

    head: str
    epsilon: float
    mean: float
    spread: float


def scored(head: str, epsilon: float, scores: Sequence[float]) -> Point:
    """The point of the scores of one head at one epsilon, one score per draw, at least one.

    Example:
        >>> from privstats.workflows.score import scored
        >>> point = scored("LDA", 1.0, [0.8, 0.9])
        >>> round(point.mean, 2), round(point.spread, 3)
        (0.85, 0.071)
    """
    return Point(head, epsilon, mean(scores), stdev(scores) if len(scores) > 1 else 0.0)


def noise_draw(seed: int, repeat: int) -> Generator:
    """The generator of one draw: the same for every epsilon and head, so that curves differ by what they compare.

    Reproducible noise protects nothing: for experiments on data that you may look at.

    Example:
        >>> from privstats.workflows.score import noise_draw
        >>> noise_draw(0, 3).bytes(4) == noise_draw(0, 3).bytes(4), noise_draw(0, 3).reproducible
        (True, True)
    """
    return seeded(seed * _DRAWS + repeat)


def metric(schema: Schema) -> str:
    """The name of the ``score`` of models of this schema: accuracy, or R².

    Example:
        >>> from privstats.workflows.score import metric
        >>> metric(ps.ClassSchema(2, 2, "NA", 1.0)), metric(ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0))
        ('accuracy', 'R²')
    """
    return _METRICS[predicted(schema)]


def shown(schema: Schema, score: float) -> str:
    """A score for people: accuracy in per cent, R² as it is.

    Example:
        >>> from privstats.workflows.score import shown
        >>> shown(ps.ClassSchema(2, 2, "NA", 1.0), 0.912)
        '91.2%'
        >>> shown(ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0), 0.912)
        '0.912'
    """
    return f"{score:.1%}" if predicted(schema) == "classes" else f"{score:.3f}"


def heading(epsilon: float) -> str:
    """An epsilon for people.

    Example:
        >>> from privstats.workflows.score import heading
        >>> heading(1.0), heading(float("inf"))
        ('epsilon 1', 'no DP')
    """
    return "no DP" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
