"""Variances per class and feature from D, or pooled ones from B, noise-aware.

Naive Bayes solves with them, and the heads trained on synthetic records draw from them where S was not released.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from privstats.estimates.spectrum import positive_part
from privstats.heads.evidence import Array, ClassEvidence

__all__ = ["PRIOR_RECORDS", "class_variances", "pooled_variances"]

PRIOR_RECORDS = 10.0
"""Weight of the pooled variance against a class's own, and of the mean variance against the pooled one, in records."""


def pooled_variances(evidence: ClassEvidence, n: Array) -> tuple[Array, float]:
    """Pooled within-class variances ``(d,)`` and the noise standard deviation that was in each of them."""
    if evidence.D is not None:
        squares = evidence.D.sum(axis=0)
        level = evidence.noise("D") * np.sqrt(evidence.classes)
    else:
        squares, level = np.diagonal(evidence.B), evidence.noise("B")  # type: ignore[arg-type]
    between = (np.square(evidence.A) - evidence.noise("A") ** 2) / n[:, None]
    pooled = (squares - between.sum(axis=0)) / n.sum()
    level = float(level / n.sum())
    if level == 0:
        return np.maximum(pooled, 0.0), 0.0
    return _toward(pooled, level, float(positive_part(pooled.mean(), level / np.sqrt(len(pooled))))), level


def class_variances(
    evidence: ClassEvidence, n: Array, pooled: Array, spread: float, shrinkage: Literal["auto"] | float | None
) -> Array:
    """Variances per class ``(C, d)``, each pulled toward the pooled one by its noise and its few records.

    Args:
        evidence: with D.
        n: counts, ``(C,)``.
        pooled, spread: as :func:`pooled_variances` gives them.
        shrinkage: share of each class variance that is replaced; ``"auto"`` by :data:`PRIOR_RECORDS`.

    Raises:
        ValueError: evidence without D.
    """
    if evidence.D is None:
        raise ValueError("class_variances needs D")
    noise = evidence.noise("A") ** 2
    own = (evidence.D - (np.square(evidence.A) - noise) / n[:, None]) / n[:, None]
    if shrinkage is None:
        weight = np.zeros((len(n), 1))
    elif shrinkage == "auto":
        weight = (PRIOR_RECORDS / (PRIOR_RECORDS + n))[:, None]
    else:
        weight = np.full((len(n), 1), float(shrinkage))
    level = evidence.noise("D") / n[:, None]
    if evidence.noise("D") > 0:
        real = positive_part(
            (np.square(own - pooled) - level**2).mean(axis=1, keepdims=True),
            level**2 * np.sqrt(2 / own.shape[1]),
        )
        keep = real / (real + level**2)
        own = np.maximum(pooled + keep * (own - pooled), spread)
    return (1 - weight) * np.maximum(own, 0.0) + weight * pooled


def _toward(estimate: Array, level: float, centre: float) -> Array:
    """Positive values shrunk toward ``centre`` by a known noise level (James-Stein, then positive part)."""
    d = len(estimate)
    real = float(positive_part(np.square(estimate - centre).mean() - level**2, level**2 * np.sqrt(2 / d)))
    keep = real / (real + level**2)
    return positive_part(centre + keep * (estimate - centre), np.sqrt(keep) * level)
