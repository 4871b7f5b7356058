"""Quadratic discriminants from (N, A, S)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from privstats.estimates.discriminant import Priors, Shrinkage
from privstats.heads.diagnostics import warn_of_few_records
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import Array, ClassEvidence
from privstats.heads.fitting.class_covariance import ClassCovariances, one_blas_thread, real_share
from privstats.heads.fitting.subspace import Subspace, discriminant_directions
from privstats.heads.registry import NONE, PRIORS, SHRINKAGE, SUBSPACE, WEIGHT, Bounds, Entry, Number, Text
from privstats.heads.rules import QuadraticRule

_MOST_SCREENED = 0.4
_LEAST_POOLED, _MOST_POOLED, _LESS_POOLED = 0.8, 0.92, 0.24


@dataclass(kw_only=True, eq=False, repr=False)
class _Quadratic(ClassHead):
    shrinkage: Shrinkage = "auto"
    priors: Priors | ArrayLike = "counts"
    subspace: Subspace = None

    def _fit_quadratic(self, evidence: ClassEvidence, pooled_weight: float, degrees: float | None) -> QuadraticRule:
        n, means = evidence.counts, evidence.means
        records = (1 - pooled_weight) * float(n.min()) + pooled_weight * float(n.sum())
        remedy = "use RDA or LDA, or subspace='auto'" if pooled_weight == 0 else "use LDA or NaiveBayes"
        warn_of_few_records(type(self).__name__, records, evidence.features, remedy)
        with one_blas_thread():
            covariances = ClassCovariances.of(evidence, pooled_weight, self.shrinkage)
            self.means_ = means.values + evidence.origin
            whitened = (means.values - means.grand) @ covariances.basis
            turn, screened = _telling_first(whitened, n)
            return QuadraticRule.of(
                values=covariances.values,
                vectors=turn.T @ covariances.vectors,
                means=whitened @ turn,
                prior=evidence.log_priors(self.priors),
                projection=covariances.basis @ turn,
                origin=evidence.origin + means.grand,
                degrees=degrees or 0.0,
                screened=screened,
            )


def _telling_first(whitened: Array, n: Array) -> tuple[Array, int]:
    """Return a rotation that puts directions of differing means first, and their number (0 if these are most)."""
    d = whitened.shape[1]
    directions, _, _ = discriminant_directions(whitened, n, "auto")
    turn = np.linalg.svd(directions, full_matrices=True)[0]
    turn[:, : directions.shape[1]] = directions
    screened = directions.shape[1]
    return turn, screened if len(n) > 1 and screened <= d * _MOST_SCREENED else 0


class QDA(_Quadratic):
    """Quadratic discriminant analysis from counts, class sums and class second moments.

    ``log pi_c - log det Sigma_c / 2 - (x - mu_c)^T Sigma_c^-1 (x - mu_c) / 2`` (GH-OFL section 3.3).

    Args:
        shrinkage: of class covariances toward ``tr / d I``, as in ``LDA``, by the class's own count.
        priors, subspace: as in ``LDA``.

    Attributes:
        means_: ``(C, d)``.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> ps.heads.QDA().fit(X, y).predict([[0.1, 0.1], [0.9, 0.1]]).tolist()
        ['ash', 'elm']
    """

    entry: ClassVar[Entry] = Entry(any_of="S", on_device=True)
    bounds: ClassVar[Bounds] = {"shrinkage": SHRINKAGE, "priors": PRIORS, "subspace": SUBSPACE}

    def _solve(self, evidence: ClassEvidence) -> QuadraticRule:
        return self._fit_quadratic(evidence, 0.0, None)


@dataclass(kw_only=True, eq=False, repr=False)
class RDA(_Quadratic):
    """Regularised discriminant analysis (Friedman 1989): class covariances pulled toward the pooled one.

    ``Sigma_c(w) = (1 - w) Sigma_c + w Sigma``, then toward a round covariance. Scores are those of Student's t: heavier
    tails penalise distant records less.

    Args:
        pooled_weight: w in [0, 1]: 0 is QDA, 1 is LDA; ``"auto"`` is ``max(.8, .92 - .24 r)``, r the share of
            differences between class covariances beyond sampling
            (:func:`~privstats.heads.fitting.class_covariance.real_share`). .8 was near the best on six data sets.
        shrinkage: as in :class:`QDA`, by the effective count ``(1 - w) N_c + w N``.
        degrees: Student's t degrees of freedom; None for Gaussian scores.
        priors, subspace: as in ``LDA``.

    Attributes:
        means_: ``(C, d)``.
        pooled_weight_: the weight used.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> head = ps.heads.RDA().fit(X, y)
        >>> head.predict([[0.1, 0.1], [0.9, 0.1]]).tolist(), head.predict_proba([[0.5, 0.1]]).round(2).tolist()
        (['ash', 'elm'], [[0.5, 0.5]])
    """

    entry: ClassVar[Entry] = Entry(any_of="S", on_device=True)
    bounds: ClassVar[Bounds] = {
        "pooled_weight": (Text("auto"), *WEIGHT),
        "shrinkage": SHRINKAGE,
        "degrees": (NONE, Number(closed=False)),
        "priors": PRIORS,
        "subspace": SUBSPACE,
    }

    pooled_weight: Literal["auto"] | float = "auto"
    degrees: float | None = 10.0

    def _solve(self, evidence: ClassEvidence) -> QuadraticRule:
        weight = self.pooled_weight
        if isinstance(weight, str):
            with one_blas_thread():
                weight = max(_LEAST_POOLED, _MOST_POOLED - _LESS_POOLED * real_share(evidence, evidence.counts))
        self.pooled_weight_ = float(weight)
        return self._fit_quadratic(evidence, self.pooled_weight_, self.degrees)
