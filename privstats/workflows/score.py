"""Shared by all experiments: a point on a curve, the meaning of a score, and noise from a seed.

Values and sentences only; nothing is measured, drawn or fitted here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, mean, stdev
from typing import Any

import numpy as np

from privstats.heads.diagnostics import OneClassWarning
from privstats.randomness import Generator, seeded
from privstats.schema import Schema, predicted

__all__ = [
    "EPSILONS",
    "NOTHING_RIGHT",
    "WITHOUT_NOISE",
    "Point",
    "Scores",
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
_METRICS = {"classes": "accuracy", "ridge": "R²", "parties": "accuracy"}


@dataclass(frozen=True)
class Scores:
    """How well one fitted model does on test records.

    Attributes:
        score: accuracy, or R² of a regression; None where there is no model.
        balanced: balanced accuracy, the mean over the classes of the test records of the accuracy on each: it counts
            every class alike. None for a regression.

    Example:
        >>> from privstats.workflows.score import Scores
        >>> Scores(score=0.95, balanced=0.83).balanced  # the misses are in a rare class
        0.83
    """

    score: float | None
    balanced: float | None = None

    @classmethod
    def of(cls, schema: Schema, head: Any, X: Any, y: Any) -> Scores:
        """Of a fitted model with ``score(X, y)``, on at least one test record.

        Example:
            >>> from privstats.workflows.score import Scores
            >>> X, y = np.array([[0.0, 0.1]] * 18 + [[1.0, 0.1]] * 2), np.array([0] * 17 + [1] * 3)
            >>> schema, head = ps.ClassSchema(2, 2, "NAB", clip_norm=2.0), ps.heads.LDA().fit(X, y)
            >>> found = Scores.of(schema, head, X, y)  # one of three records of the rare class is missed
            >>> found.score, round(found.balanced, 3)
            (0.95, 0.833)
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneClassWarning)  # the balanced accuracy says it
            score = float(head.score(X, y))
            if metric(schema) != "accuracy":
                return cls(score)
            X, y = np.asarray(X), np.asarray(y)
            return cls(score, fmean(float(head.score(X[y == label], y[y == label])) for label in np.unique(y)))


NOTHING_RIGHT = Scores(0.0, 0.0)
"""Of a classifier whose every class was left out."""


@dataclass(frozen=True)
class Point:
    """One head at one epsilon: mean and standard deviation (ddof 1) of its score over the noise draws.

    ``epsilon`` is infinite for the release without noise, whose spread is 0. ``balanced`` is the mean balanced accuracy
    of a classifier (:class:`Scores`), where it was measured.

    Example:
        >>> from privstats.workflows.score import Point
        >>> Point("LDA", epsilon=1.0, mean=0.81, spread=0.02).mean
        0.81
    """

    head: str
    epsilon: float
    mean: float
    spread: float
    balanced: float | None = None


def scored(head: str, epsilon: float, scores: Sequence[float], balanced: float | None = None) -> Point:
    """The point of the scores of one head at one epsilon, one score per draw, at least one.

    Example:
        >>> from privstats.workflows.score import scored
        >>> point = scored("LDA", 1.0, [0.8, 0.9])
        >>> round(point.mean, 2), round(point.spread, 3)
        (0.85, 0.071)
    """
    return Point(head, epsilon, mean(scores), stdev(scores) if len(scores) > 1 else 0.0, balanced)


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
    return f"{score:.1%}" if metric(schema) == "accuracy" else f"{score:.3f}"


def heading(epsilon: float) -> str:
    """An epsilon for people.

    Example:
        >>> from privstats.workflows.score import heading
        >>> heading(1.0), heading(float("inf"))
        ('epsilon 1', 'no DP')
    """
    return "no DP" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
