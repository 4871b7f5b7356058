"""Noise-aware Gaussian naive Bayes; with B alone all classes share variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.estimates.discriminant import Priors, conditioned
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import ClassEvidence
from privstats.heads.fitting.class_covariance import PRIOR_RECORDS, class_variances, pooled_variances
from privstats.heads.fitting.subspace import Subspace
from privstats.heads.registry import NONE, PRIORS, SUBSPACE, Bounds, Entry, Number, Text
from privstats.heads.rules import DiagonalRule


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayes(ClassHead):
    """Gaussian naive Bayes from (N, A) and D, S or B.

    ``log p(x | c) = -sum_j [(x_j - mu_cj)^2 / v_cj + log v_cj] / 2``; v_c = D_c / N_c - mu_c^2, pulled
    toward the pooled variance.

    Args:
        shrinkage: share of each class variance replaced by the pooled one: a number in [0, 1], None, or ``"auto"``,
            which weighs the pooled variance as ten records. Columns then need like scales.
        priors, subspace: as in ``LDA``; a subspace needs B or S.

    Attributes:
        means_, variances_: ``(C, d)`` each.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> head = ps.heads.NaiveBayes().fit(X, y)
        >>> head.classes_.tolist(), head.predict_proba([[0.5, 0.1]]).round(2).tolist()  # halfway between the means
        (['ash', 'elm'], [[0.5, 0.5]])
    """

    entry: ClassVar[Entry] = Entry(any_of="DB", on_device=True)
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

    def _needs_like_columns(self) -> bool:
        return self.shrinkage == "auto"

    def _solve(self, evidence: ClassEvidence) -> DiagonalRule:
        n, means = evidence.counts, evidence.means
        pooled, spread = pooled_variances(evidence, n)
        if self.shrinkage == "auto":  # a feature that was constant so far may still vary
            weight = PRIOR_RECORDS / (PRIOR_RECORDS + n.sum())
            pooled = (1 - weight) * pooled + weight * pooled.mean()
        if evidence.D is None:
            variances = np.broadcast_to(pooled, means.values.shape)
        else:
            variances = class_variances(evidence, n, pooled, spread, self.shrinkage)
        variances = conditioned(variances, evidence.spacing)
        self.means_ = means.values + evidence.origin
        self.variances_ = np.ascontiguousarray(variances)
        prior = evidence.log_priors(self.priors)
        precision = 1 / variances
        weighted = means.values * precision
        bias = prior - (means.values * weighted + np.log(variances)).sum(axis=1) / 2
        return DiagonalRule(precision / 2, weighted, bias, evidence.origin)
