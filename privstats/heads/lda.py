"""Noise-aware linear discriminants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from privstats.errors import HeadError
from privstats.estimates.discriminant import Discriminant, Priors, Shrinkage, temperature
from privstats.heads.diagnostics import warn_of_few_records
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import ClassEvidence
from privstats.heads.fitting.subspace import Subspace
from privstats.heads.registry import PRIORS, SHRINKAGE, SUBSPACE, Bounds, Entry, Text
from privstats.heads.rules import LinearRule
from privstats.release import Release


@dataclass(kw_only=True, eq=False, repr=False)
class LDA(ClassHead):
    """Linear discriminant analysis from counts, class sums and one second moment.

    ``w_c = Sigma^-1 mu_c``, ``b_c = log pi_c - mu_c^T Sigma^-1 mu_c / 2``.

    Under noise the scores rank records, and their probabilities are too sure, unless a course calibrated them.

    Args:
        covariance: ``"pooled"``, within classes (GH-OFL section 3.3), or ``"total"``, about the grand mean (FedCGS).
        shrinkage: toward a round covariance: ``"auto"`` (:func:`~privstats.estimates.discriminant.round_prior`),
            ``"oas"``, a number in [0, 1], or None. Columns need like scales. Known noise is removed first in every
            case.
        priors: ``"counts"``, ``"uniform"``, or C probabilities.
        subspace: None, or the Fisher subspace used: ``"auto"`` (C - 1 dimensions), their number, or a share of the
            energy. ``means_`` and ``covariance_`` are then in its coordinates.

    Attributes:
        coef_, intercept_: ``(C, d)`` and ``(C,)``.
        covariance_, means_: ``(d, d)`` and ``(C, d)``.
        shrinkage_: the intensity used.
        temperature_: divisor of all scores, so that confidence equals accuracy under ``priors="counts"``; changes no
            prediction without threshold. 1 unless a course (``Centred``) calibrated it.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]]), np.array([0, 0, 1, 1])
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=2.0)
        >>> release = ps.Release.exact(schema, ps.measure(schema, X, y))
        >>> head = ps.heads.LDA().fit_release(release, labels=["ash", "elm"])
        >>> head.predict([[0.1, 0.1], [0.9, 0.1]]).tolist(), head.score(X, np.array(["ash", "elm"])[y])
        (['ash', 'elm'], 1.0)
    """

    entry: ClassVar[Entry] = Entry(any_of="B", on_device=True)
    bounds: ClassVar[Bounds] = {
        "covariance": (Text("pooled", "total"),),
        "shrinkage": SHRINKAGE,
        "priors": PRIORS,
        "subspace": SUBSPACE,
    }
    has_calibration: ClassVar[bool] = True

    covariance: Literal["pooled", "total"] = "pooled"
    shrinkage: Shrinkage = "auto"
    priors: Priors | ArrayLike = "counts"
    subspace: Subspace = None

    def _solve(self, evidence: ClassEvidence) -> LinearRule:
        n = evidence.counts
        warn_of_few_records(
            "LDA", float(n.sum()), evidence.features, "use NaiveBayes, or fewer features by a public map"
        )
        fitted = Discriminant.of(evidence, n, self.covariance, self.shrinkage)
        self.temperature_ = 1.0
        self.means_, self.shrinkage_ = fitted.means + evidence.origin, fitted.shrinkage
        self.covariance_ = fitted.covariance
        coef, intercept = fitted.scores(evidence.log_priors(self.priors))
        return LinearRule(coef, intercept - coef @ evidence.origin)

    def _calibration(self, release: Release, public: object) -> Callable[[], None]:
        if public is not None or (self.covariance, self.shrinkage, self.subspace) != ("pooled", "auto", None):
            raise HeadError(
                "the last release calibrates LDA() as the course computed it: leave covariance, shrinkage, subspace "
                "and public out, or give None in the place of that release"
            )
        from privstats.kinds.calibration import FACTORS

        return partial(self._divide, temperature(release.moments.t, float(release.sigma["t"]), FACTORS))

    def _divide(self, divisor: float) -> None:
        self.temperature_ = divisor
        rule: Any = self.rule_
        self._adopt(LinearRule(rule.coef / divisor, rule.intercept / divisor))
