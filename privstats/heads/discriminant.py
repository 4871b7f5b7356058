"""Linear discriminant analysis from (N, A, B), noise-aware.

Not the quadratic family. The pooled (or, as FedCGS has it, the total) covariance and the class means give one weight
vector per class.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.heads import denoise
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import Array, ClassEvidence
from privstats.heads.rules import LinearRule
from privstats.heads.shrinkage import Priors, Shrinkage, conditioned, log_priors, shrink_values

__all__ = ["LDA"]


class LDA(ClassHead):
    """Linear discriminant analysis from counts, class sums and one second moment.

    ``w_c = Sigma^-1 mu_c``, ``b_c = log pi_c - mu_c^T Sigma^-1 mu_c / 2``.

    Args:
        covariance: ``"pooled"``, the within-class covariance (GH-OFL section 3.3), or ``"total"``, the covariance of
            all records about the grand mean (FedCGS's head).
        shrinkage: ``"auto"`` (:func:`~privstats.heads.shrinkage.round_prior`), ``"oas"``, a number in [0, 1], or None.
            Where the release carries noise, its known level is removed first, whatever is chosen here.
        priors: ``"counts"``, ``"uniform"``, or C probabilities.

    Attributes:
        coef_, intercept_: the linear rule, ``(C, d)`` and ``(C,)``.
        covariance_: the covariance used, ``(d, d)``.
        means_: class means used, ``(C, d)``.
        shrinkage_: the shrinkage used.
        condition_number_: ratio of the largest to the smallest eigenvalue of ``covariance_``.
    """

    _statistics: ClassVar[str] = "NAB"

    def __init__(
        self,
        *,
        covariance: Literal["pooled", "total"] = "pooled",
        shrinkage: Shrinkage = "auto",
        priors: Priors | ArrayLike = "counts",
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.priors = priors

    def _solve(self, evidence: ClassEvidence) -> LinearRule:
        n = denoise.counts(evidence.N, evidence.noise("N"))
        means = denoise.class_means(evidence, n)
        spectrum = denoise.denoise_spectrum(_scatter(self.covariance, evidence, n), evidence.noise("B"))
        values, self.shrinkage_ = shrink_values(spectrum.values / n.sum(), n.sum(), self.shrinkage)
        values = conditioned(values)
        prior = log_priors(self.priors, n)
        self.means_ = means.values + evidence.origin
        self.covariance_ = (spectrum.vectors * values) @ spectrum.vectors.T
        self.condition_number_ = float(values.max() / values.min())
        rule = linear_rule(means.values, spectrum.vectors, values, prior, evidence.origin)
        self.coef_, self.intercept_ = rule.coef, rule.intercept
        return rule


def linear_rule(means: Array, vectors: Array, values: Array, prior: Array, origin: Array) -> LinearRule:
    """The linear rule of Gaussians with means ``(C, d)`` and covariance V diag(values) V^T, for rows not centred."""
    rotated = means @ vectors
    weighted = rotated / values
    coef = weighted @ vectors.T
    return LinearRule(coef, prior - np.einsum("cd,cd->c", rotated, weighted) / 2 - coef @ origin)


def _scatter(kind: str, evidence: ClassEvidence, n: Array) -> Array:
    if kind == "pooled":
        return denoise.within_scatter(evidence, n)
    if kind == "total":
        return denoise.total_scatter(evidence, n)
    raise ValueError(f"covariance must be 'pooled' or 'total', got {kind!r}")
