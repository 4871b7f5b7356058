"""Score fitted models on test records."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.heads.diagnostics import OneClassWarning
from privstats.records.labels import places_of
from privstats.schema import Schema, predicted


@dataclass(frozen=True)
class Scores:
    """Scores of one fitted model on test records.

    Attributes:
        score: accuracy, or R² of a regression; None without a model.
        balanced: mean accuracy over the test classes; None for a regression.
        auc: area under the ROC curve, for more than two classes the mean one-vs-rest; None for a regression, without
            probabilities, or for one test class.
        one_class: whether one class is predicted for test records of several.
        sensitivity, specificity: of the second and first of two classes with ``predict(threshold="prevalence")``; else
            None.

    Example:
        >>> from privstats.workflows.score import Scores
        >>> Scores(score=0.95, balanced=0.83).balanced  # the misses are in a rare class
        0.83
    """

    score: float | None
    balanced: float | None = None
    auc: float | None = None
    one_class: bool = False
    sensitivity: float | None = None
    specificity: float | None = None

    @classmethod
    def of(cls, schema: Schema, head: Any, X: Any, y: Any) -> Scores:
        """Score a regression by its ``score(X, y)``, and a classifier by its ``classes_`` and ``predict(X)``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneClassWarning)  # the balanced accuracy shows it
            if predicted(schema) == "ridge":
                return cls(float(head.score(X, y)))
            labels, found = np.asarray(y), np.asarray(head.predict(X))
            places = places_of(head.classes_.tolist(), labels)
            right = (found == head.classes_[places]) & (places >= 0)
            several, at, counts = np.unique(labels, return_inverse=True, return_counts=True)
            balanced = fmean((np.bincount(at, right, len(several)) / counts).tolist())
            one = len(several) > 1 and len(np.unique(found)) == 1
            return cls(float(right.mean()), balanced, auc_of(head, X, y), one, *_flagged(head, X, labels))


def _flagged(head: Any, X: Any, labels: NDArray[Any]) -> tuple[float | None, float | None]:
    places = places_of(head.classes_.tolist(), labels) if hasattr(head, "prevalence_") else np.array([-1])
    if len(np.unique(places)) != 2 or (places < 0).any():
        return None, None
    right = head.predict(X, threshold="prevalence") == head.classes_[places]
    return float(right[places == 1].mean()), float(right[places == 0].mean())


def auc_of(head: Any, X: Any, y: Any) -> float | None:
    """Return the area under the ROC curve of a classifier's probabilities, or None.

    For two classes it is the second's; for more, the mean one-vs-rest over test classes. Ties count half.

    Args:
        head: with ``classes_`` and ``predict_proba``.
        X, y: test records; unknown labels count as others.

    Example:
        >>> from privstats.workflows.score import auc_of
        >>> X, y = np.array([[0.0, 0.1], [0.4, 0.1], [0.3, 0.1], [1.0, 0.1]]), np.array([0, 0, 1, 1])
        >>> auc_of(ps.heads.LDA().fit(X, y), X, y)  # one of four pairs of a 0 and a 1 is in the wrong order
        0.75
    """
    if not hasattr(head, "predict_proba"):
        return None
    classes = head.classes_.tolist()
    places, shares = places_of(classes, np.asarray(y)), np.asarray(head.predict_proba(X))
    chosen = (1,) if len(classes) == 2 else range(len(classes))
    areas = [area for at in chosen if (area := _area(places == at, shares[:, at])) is not None]
    return fmean(areas) if areas else None


def _area(inside: NDArray[np.bool_], scores: NDArray[np.float64]) -> float | None:
    members, others = int(inside.sum()), int((~inside).sum())
    if not members or not others:
        return None
    _, at, times = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times - 1) / 2)[at]
    return float((ranks[inside].sum() - members * (members + 1) / 2) / (members * others))
