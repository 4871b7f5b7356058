"""Linear discriminant analysis from (N, A, B), noise-aware.

The pooled covariance (or the total one, as in FedCGS) and the class means give one weight vector per class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.estimates.spectrum import denoise_spectrum
from privstats.heads.diagnostics import warn_of_few_records
from privstats.heads.estimates import denoise
from privstats.heads.estimates.shrinkage import Priors, Shrinkage, conditioned, log_priors, shrink_values
from privstats.heads.estimates.subspace import Subspace
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import Array, ClassEvidence
from privstats.heads.registry import PRIORS, SHRINKAGE, SUBSPACE, Bounds, Entry, Text
from privstats.heads.rules import LinearRule

__all__ = ["LDA"]


@dataclass(kw_only=True, eq=False, repr=False)
class LDA(ClassHead):
    """Linear discriminant analysis from counts, class sums and one second moment.

    ``w_c = Sigma^-1 mu_c``, ``b_c = log pi_c - mu_c^T Sigma^-1 mu_c / 2``.

    Args:
        covariance: ``"pooled"``, the within-class covariance (GH-OFL section 3.3), or ``"total"``, the covariance of
            all records about the grand mean (FedCGS's head).
        shrinkage: ``"auto"`` (:func:`~privstats.heads.estimates.shrinkage.round_prior`), ``"oas"``, a number in [0, 1],
            or None. It is toward a round covariance, so columns must have like scales: put ``transforms.Centre`` and
            ``Scale`` by public ranges into the transform, or a ``StandardScaler`` in front of an exact ``fit``, or set
            None. Where the release carries noise, its known level is removed first in every case.
        priors: ``"counts"``, ``"uniform"``, or C probabilities.
        subspace: None for all features, or the Fisher subspace to live in: ``"auto"`` (C - 1 dimensions), a number of
            dimensions, or a share of the energy. ``means_`` and ``covariance_`` are then in its coordinates.

    Attributes:
        coef_, intercept_: the linear rule, ``(C, d)`` and ``(C,)``.
        covariance_: the covariance used, ``(d, d)``.
        means_: class means used, ``(C, d)``.
        shrinkage_: the shrinkage used.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]]), np.array([0, 0, 1, 1])
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=2.0)
        >>> release = ps.Release.exact(schema, ps.measure(schema, X, y))
        >>> head = ps.heads.LDA().fit_release(release, labels=["ash", "elm"])
        >>> head.predict([[0.1, 0.1], [0.9, 0.1]]).tolist(), head.score(X, np.array(["ash", "elm"])[y])
        (['ash', 'elm'], 1.0)
    """

    entry: ClassVar[Entry] = Entry(any_of="B")
    bounds: ClassVar[Bounds] = {
        "covariance": (Text("pooled", "total"),),
        "shrinkage": SHRINKAGE,
        "priors": PRIORS,
        "subspace": SUBSPACE,
    }

    covariance: Literal["pooled", "total"] = "pooled"
    shrinkage: Shrinkage = "auto"
    priors: Priors | ArrayLike = "counts"
    subspace: Subspace = None

    def _solve(self, evidence: ClassEvidence) -> LinearRule:
        n = denoise.counts(evidence.N, evidence.noise("N"))
        warn_of_few_records(
            "LDA", float(n.sum()), evidence.features, "use NaiveBayes, or fewer features by a public map"
        )
        means = denoise.class_means(evidence, n)
        spectrum = denoise_spectrum(_scatter(self.covariance, evidence, n), evidence.noise("B"))
        values, self.shrinkage_ = shrink_values(spectrum.values / n.sum(), n.sum(), self.shrinkage)
        values = conditioned(values)
        prior = log_priors(self.priors, n)
        self.means_ = means.values + evidence.origin
        self.covariance_ = (spectrum.vectors * values) @ spectrum.vectors.T
        return linear_rule(means.values, spectrum.vectors, values, prior, evidence.origin)


def linear_rule(means: Array, vectors: Array, values: Array, prior: Array, origin: Array) -> LinearRule:
    """The linear rule of Gaussians with means ``(C, d)`` and covariance V diag(values) V^T, for rows not centred."""
    rotated = means @ vectors
    weighted = rotated / values
    coef = weighted @ vectors.T
    return LinearRule(coef, prior - np.einsum("cd,cd->c", rotated, weighted) / 2 - coef @ origin)


def _scatter(kind: str, evidence: ClassEvidence, n: Array) -> Array:
    return denoise.within_scatter(evidence, n) if kind == "pooled" else denoise.total_scatter(evidence, n)
