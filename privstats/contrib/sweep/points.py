"""Points, their words, and the seeded noise of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev

from privstats.extend.heads import Scores
from privstats.extend.support import Generator, seeded
from privstats.schema import Schema, predicted
from privstats.workflows.report import Point

EPSILONS = (8.0, 3.0, 1.0, 0.3)
"""The usual grid, from weak to strong privacy."""

WITHOUT_NOISE = math.inf
"""The epsilon that stands for a release without noise."""

_DRAWS = 1_000_003
_METRICS = {"classes": "accuracy", "ridge": "R²", "parties": "accuracy"}

NOTHING_RIGHT = Scores(0.0, 0.0)
"""Scores of a classifier without any remaining class."""


def scored(head: str, epsilon: float, scores: Sequence[float], **means: float | None) -> Point:
    """Return the point of one head's scores, one per replicate, and of its other ``means``.

    Example:
        >>> from privstats.contrib.sweep.points import scored
        >>> point = scored("LDA", 1.0, [0.8, 0.9])
        >>> round(point.mean, 2), round(point.spread, 3)
        (0.85, 0.071)
    """
    return Point(head, epsilon, mean(scores), stdev(scores) if len(scores) > 1 else 0.0, **means)


def noise_draw(seed: int, repeat: int) -> Generator:
    """Return one replicate's generator, common to all epsilons and heads.

    Reproducible noise protects nothing: use it only on data that you may look at.

    Example:
        >>> from privstats.contrib.sweep.points import noise_draw
        >>> noise_draw(0, 3).bytes(4) == noise_draw(0, 3).bytes(4), noise_draw(0, 3).reproducible
        (True, True)
    """
    return seeded(seed * _DRAWS + repeat)


def metric(schema: Schema) -> str:
    """Return the name of the ``score``: accuracy, or R².

    Example:
        >>> from privstats.contrib.sweep.points import metric
        >>> metric(ps.ClassSchema(2, 2, "NA", 1.0)), metric(ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0))
        ('accuracy', 'R²')
    """
    return _METRICS[predicted(schema)]


def shown(schema: Schema, score: float) -> str:
    """Return a score for people: accuracy in per cent, R² as it is.

    Example:
        >>> from privstats.contrib.sweep.points import shown
        >>> shown(ps.ClassSchema(2, 2, "NA", 1.0), 0.912)
        '91.2%'
        >>> shown(ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0), 0.912)
        '0.912'
    """
    return f"{score:.1%}" if metric(schema) == "accuracy" else f"{score:.3f}"


def heading(epsilon: float) -> str:
    """Return an epsilon for people.

    Example:
        >>> from privstats.contrib.sweep.points import heading
        >>> heading(1.0), heading(float("inf"))
        ('epsilon 1', 'no DP')
    """
    return "no DP" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
