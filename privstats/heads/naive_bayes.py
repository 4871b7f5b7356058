"""Gaussian naive Bayes from (N, A) and squares, noise-aware.

One variance per class and feature. With class squares (D, or the diagonals of S) variances differ by class and are
shrunk toward the pooled ones; with B alone all classes share the pooled variances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.estimates.spectrum import positive_part
from privstats.heads.estimates import denoise
from privstats.heads.estimates.shrinkage import Priors, conditioned, log_priors
from privstats.heads.estimates.subspace import Subspace
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import Array, ClassEvidence
from privstats.heads.registry import NONE, PRIORS, SUBSPACE, Bounds, Entry, Number, Text
from privstats.heads.rules import DiagonalRule

__all__ = ["NaiveBayes"]


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayes(ClassHead):
    """Gaussian naive Bayes: independent features within each class.

    ``log p(x | c) = -sum_j [(x_j - mu_cj)^2 / v_cj + log v_cj] / 2``; v_c = D_c / N_c - mu_c^2, pulled
    toward the pooled variance.

    Args:
        shrinkage: ``"auto"``, a number in [0, 1], or None. Share of each class variance that is replaced by the pooled
            one. ``"auto"`` weighs the pooled variance as ten further records would, and within it the mean variance
            likewise, so columns must have like scales (see ``LDA``); a number and None do not depend on units.
        priors: ``"counts"``, ``"uniform"``, or C probabilities.
        subspace: as in ``LDA``; needs B or S, because squares in other coordinates do not follow from squares in these.

    Attributes:
        means_, variances_: shape ``(C, d)`` each.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> head = ps.heads.NaiveBayes().fit(X, y)
        >>> head.classes_.tolist(), head.predict_proba([[0.5, 0.1]]).round(2).tolist()  # halfway between the means
        (['ash', 'elm'], [[0.5, 0.5]])
    """

    entry: ClassVar[Entry] = Entry(any_of="DB")
    bounds: ClassVar[Bounds] = {
        "shrinkage": (Text("auto"), NONE, Number(0.0, 1.0)),
        "priors": PRIORS,
        "subspace": SUBSPACE,
    }

    shrinkage: Literal["auto"] | float | None = "auto"
    priors: Priors | ArrayLike = "counts"
    subspace: Subspace = None

    def _measured(self) -> str:
        return super()._measured() if self.subspace is None else "NAS"

    def _shrinks_to_round(self) -> bool:
        return self.shrinkage == "auto"

    def _solve(self, evidence: ClassEvidence) -> DiagonalRule:
        n = denoise.counts(evidence.N, evidence.noise("N"))
        means = denoise.class_means(evidence, n)
        pooled, spread = _pooled_variances(evidence, n)
        if self.shrinkage == "auto":  # a feature that was constant so far may still vary
            weight = _PRIOR_RECORDS / (_PRIOR_RECORDS + n.sum())
            pooled = (1 - weight) * pooled + weight * pooled.mean()
        if evidence.D is None:
            variances = np.broadcast_to(pooled, means.values.shape)
        else:
            variances = _class_variances(evidence, n, pooled, spread, self.shrinkage)
        variances = conditioned(variances, evidence.step)
        self.means_ = means.values + evidence.origin
        self.variances_ = np.ascontiguousarray(variances)
        prior = log_priors(self.priors, n)
        precision = 1 / variances
        weighted = means.values * precision
        bias = prior - (means.values * weighted + np.log(variances)).sum(axis=1) / 2
        return DiagonalRule(precision / 2, weighted, bias, evidence.origin)


_PRIOR_RECORDS = 10.0
"""Weight of the pooled variance against a class's own, and of the mean variance against the pooled one, in records."""


def _pooled_variances(evidence: ClassEvidence, n: Array) -> tuple[Array, float]:
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


def _class_variances(
    evidence: ClassEvidence, n: Array, pooled: Array, spread: float, shrinkage: Literal["auto"] | float | None
) -> Array:
    """Variances per class ``(C, d)``, each pulled toward the pooled one by its noise and its few records."""
    if evidence.D is None:
        raise ValueError("_class_variances needs D")
    noise = evidence.noise("A") ** 2
    own = (evidence.D - (np.square(evidence.A) - noise) / n[:, None]) / n[:, None]
    if shrinkage is None:
        weight = np.zeros((len(n), 1))
    elif shrinkage == "auto":
        weight = (_PRIOR_RECORDS / (_PRIOR_RECORDS + n))[:, None]
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
