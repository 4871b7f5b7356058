"""What every experiment here shares: a point on a curve, what a score means, how a seed becomes noise.

Values and sentences only; nothing is measured, drawn or fitted here. Under the rooms that run, score and show.
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
    """

    head: str
    epsilon: float
    mean: float
    spread: float


def scored(head: str, epsilon: float, scores: Sequence[float]) -> Point:
    """The point of the scores of one head at one epsilon, one score per draw, at least one."""
    return Point(head, epsilon, mean(scores), stdev(scores) if len(scores) > 1 else 0.0)


def noise_draw(seed: int, repeat: int) -> Generator:
    """The generator of one draw: the same for every epsilon and head, so that curves differ by what they compare.

    Reproducible noise protects nothing: for experiments on data that you may look at.
    """
    return seeded(seed * _DRAWS + repeat)


def metric(schema: Schema) -> str:
    """What ``score`` means for models of this schema: accuracy, or R²."""
    return _METRICS[predicted(schema)]


def shown(schema: Schema, score: float) -> str:
    """A score for people: accuracy in per cent, R² as it is."""
    return f"{score:.1%}" if predicted(schema) == "classes" else f"{score:.3f}"


def heading(epsilon: float) -> str:
    """An epsilon for people."""
    return "no DP" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
