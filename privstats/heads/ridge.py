"""Noise-aware ridge regression and classification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import validate_data

from privstats.errors import HeadError, ReleaseError
from privstats.estimates import denoise
from privstats.heads.estimator import ClassHead
from privstats.heads.evidence import Array, ClassEvidence, GramEvidence, Released, records_gram, release_gram
from privstats.heads.fitting.least_squares import Penalty, Solver, solve
from privstats.heads.private import FitPromise, OwnRecords, arrays, opened_by
from privstats.heads.provenance import EXACT, UNKNOWN, Provenance, behind_cut_points, present
from privstats.heads.registry import (
    NONE,
    SWITCH,
    Bounds,
    Constraints,
    Entry,
    Number,
    Text,
    Whole,
    check_parameters,
    head_class,
)
from privstats.heads.regressor import LinearRegressor
from privstats.heads.row_count import counted_first
from privstats.heads.rules import LinearRule, Preprocessing, local, take_columns

if TYPE_CHECKING:
    from privstats.course import Releases
    from privstats.release import Release

_SOLVERS: Constraints = (Text("auto", "aggregate", "plain", "adassp", "wiener"),)


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(MultiOutputMixin, LinearRegressor):
    """Ridge regression from a Gram matrix and a moment vector: ``w = (G + penalty I)^-1 h``.

    Args:
        solver: ``"plain"`` excludes directions lost in the noise; ``"adassp"`` (Wang 2018) adds a penalty sized to the
            noise; ``"wiener"`` is :func:`~privstats.estimates.denoise.denoised_solve`; ``"aggregate"`` averages adassp,
            smaller penalties, wiener and zero weights by estimated risk; ``"auto"`` is aggregate for noisy releases,
            else plain. With solver and penalty ``"auto"``, :meth:`fit_private` of one target refines by rounds like
            :class:`RefinedRidge`, at the same charge; they end at least squares as noise falls, and ``width_`` states
            where they do not. Under ``"add-remove"`` without ``expected_records`` a noisy count
            of the records, 1/64 of mu^2, comes first; ``"replace-one"`` with ``max_records`` has one release.
        penalty: a number >= 0, ``"gcv"``, ``"evidence"`` (marginal likelihood), ``"folds"`` (fold sums), or ``"auto"``:
            evidence for noisy sums, else folds if released, else GCV, or evidence without a count.
        fit_intercept: centre records in :meth:`fit`; a release needs a final ``ConstantFeature``.
        records: number of records for GCV, if nothing else yields it.

    Attributes:
        coef_, intercept_: ``(T, d)`` and ``(T,)``, or ``(d,)`` and a float for one target.
        penalty_: for an aggregate, that of the largest share.
        solver_: ``"rounds"`` has no penalty or condition (NaN).
        condition_: condition number ``(l_max + penalty) / (l_min + penalty)`` of the centred system (denoised under
            ``"wiener"``), at most ``(l_max + penalty) / penalty`` (corollary 1 of the one-shot ridge paper); infinite
            if singular.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 2.0, 4.0, 5.0])
        >>> head = ps.heads.Ridge(solver="plain", penalty=0.0).fit(X, y)
        >>> head.predict([[2.0, 0.0]]).round(2).tolist(), head.coef_.round(2).tolist()
        ([7.0], [3.0, 1.0])
    """

    entry: ClassVar[Entry] = Entry(task="ridge", on_device=True)
    bounds: ClassVar[Bounds] = {
        "solver": _SOLVERS,
        "penalty": (Number(), Text("auto", "gcv", "evidence", "folds")),
        "fit_intercept": SWITCH,
        "records": (NONE, Whole(1)),
    }

    solver: Solver = "auto"
    penalty: Penalty = "auto"
    fit_intercept: bool = True
    records: int | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on local records, y ``(n,)``, ``(n, T)`` or a column of X, without clipping, rounding or noise."""
        check_parameters(self, self.bounds)
        X, y = validate_data(self, *local(X, y), dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self.preprocessing_, self.provenance_ = Preprocessing(features=X.shape[1]), EXACT
        return self._build(records_gram(X, y.reshape(len(y), -1), self.fit_intercept), flat=y.ndim == 1)

    def fit_release(self, release: Released | Releases) -> Self:
        """Fit on a release of ridge moments; post-processing, so it costs no privacy.

        The intercept is the weight of a final ``ConstantFeature``; without one there is none, and a warning unless
        ``fit_intercept`` is False.

        Args:
            release: ridge moments; or all releases of a ``Binned`` course over such a plan, in order, None for a
                missing sum. The last one is used; the promise is that of all.

        Raises:
            ReleaseError: class moments, values not finite, or wrong cut points.
            HeadError, DataError: not a release, other lists, or a parameter out of its bounds.
        """
        check_parameters(self, self.bounds)
        sources, release = behind_cut_points(release)
        evidence = release_gram(release, self.records)
        self._warn_without_constant(release.plan.schema.transform)
        take_columns(self, Preprocessing.of_release(release))
        self.provenance_ = UNKNOWN
        self._build(evidence, flat=evidence.h.shape[1] == 1)
        self.provenance_ = Provenance.of(sources)  # last: where no rule follows, an earlier one is still there
        return self

    def _fit_under(self, promise: FitPromise, X: Any, y: Any, target_bound: float) -> Self:
        stated, plain = promise.expected_records is not None, (self.solver, self.penalty) == ("auto", "auto")
        public = stated or (promise.adjacency == "replace-one" and promise.max_records is None)
        plain = plain and (isinstance(y, str) or np.ndim(y) == 1)
        if public and plain:
            return self._refined(promise, X, y, target_bound)
        if stated and not promise.declared:
            raise HeadError(
                "expected_records serves declared columns, and rounds of one target, solver='auto' and penalty='auto', "
                "whose records are no batches: leave it out"
            )
        maps, norm = promise.rows(unit=False)
        counted = opened_by(maps)
        records = (arrays if counted else OwnRecords.of)(X, y, maps)
        schema = self._schema(records, maps, norm, target_bound, promise.grid_bits)
        if not counted:
            counts = plain and promise.adjacency == "add-remove"
            if counts and (first := counted_first(promise, schema, records)) is not None:
                rest, count = first
                return self._refined(rest, X, y, target_bound, count)
            self.release_ = promise.release(schema, records)
            return self.fit_release(self.release_)
        self.releases_, course = promise.releases(None, schema, promise.counted(records).n, records)
        self.fit_release(self.releases_)  # refuses a last session without a sum
        *_, self.release_ = (each for each in self.releases_ if each is not None)
        return self._assuming((), course)

    def _refined(self, promise: FitPromise, X: Any, y: Any, target_bound: float, count: Release | None = None) -> Self:
        better: Any = head_class("RefinedRidge")(fit_intercept=self.fit_intercept)
        better._fit_under(promise, X, y, target_bound)
        own = better.get_params(deep=False)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        self.__dict__.update({name: value for name, value in vars(better).items() if name not in own})
        self.solver_, self.penalty_, self.condition_ = "rounds", math.nan, math.nan
        if count is not None:
            self.releases_ = [count, *self.releases_]
            self.provenance_ = Provenance.of(present(self.releases_), self.provenance_.course)
        *_, self.release_ = (each for each in self.releases_ if each is not None)
        return self

    def _build(self, evidence: GramEvidence, flat: bool) -> Self:
        solution = solve(evidence, self.solver, self.penalty)
        if not (np.isfinite(solution.weights).all() and np.isfinite(solution.intercept).all()):
            raise ReleaseError("Ridge found no finite solution: the moments overflow float64; rescale the features")
        self.penalty_, self.solver_, self.condition_ = solution.penalty, solution.solver, solution.condition
        self.flat_ = flat
        self._adopt(LinearRule(np.ascontiguousarray(solution.weights.T), solution.intercept))
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeClassifier(ClassHead):
    """Least squares on one-hot targets, from class moments: G = B and h = A, both centred by the counts.

    Args:
        solver, penalty: as in :class:`Ridge`, without fold sums.

    Attributes:
        coef_, intercept_: ``(C, d)`` and ``(C,)``; scores estimate class probabilities.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> ps.heads.RidgeClassifier().fit(X, y).predict([[0.1, 0.1], [0.9, 0.1]]).tolist()
        ['ash', 'elm']
    """

    entry: ClassVar[Entry] = Entry(any_of="B", on_device=True)
    bounds: ClassVar[Bounds] = {"solver": _SOLVERS, "penalty": (Number(), Text("auto", "gcv", "evidence"))}
    uses_public: ClassVar[bool] = False
    sure_under_noise: ClassVar[bool] = False
    softmax: ClassVar[bool] = False

    solver: Solver = "auto"
    penalty: Penalty = "auto"

    def _solve(self, evidence: ClassEvidence) -> LinearRule:
        n = evidence.counts
        total, share = n.sum(), n / n.sum()
        centre = evidence.A.sum(axis=0) / total
        gram = GramEvidence(
            G=denoise.total_scatter(evidence, n),
            h=(evidence.A - n[:, None] * centre).T,
            q=float(total - n @ share),
            sigma_G=evidence.noise("B"),
            sigma_h=evidence.noise("A"),
            sigma_q=0.0,  # one-hot targets: q follows from the counts
            records=float(total),
            feature_means=centre,
            target_means=share,
        )
        solution = solve(gram, self.solver, self.penalty)
        self.penalty_, self.solver_, self.condition_ = solution.penalty, solution.solver, solution.condition
        coef = np.ascontiguousarray(solution.weights.T)
        return LinearRule(coef, solution.intercept - coef @ evidence.origin)

    def _probabilities(self, scores: Array) -> Array:
        """Project scores to the simplex (Duchi et al. 2008)."""
        ordered = -np.sort(-scores, axis=1)
        excess = np.cumsum(ordered, axis=1) - 1
        support = (ordered - excess / np.arange(1, scores.shape[1] + 1) > 0).sum(axis=1)
        threshold = np.take_along_axis(excess, support[:, None] - 1, axis=1) / support[:, None]
        return np.asarray(np.maximum(scores - threshold, 0.0))

    def _log_probabilities(self, scores: Array) -> Array:
        with np.errstate(divide="ignore"):  # a probability of exactly 0 has logarithm -inf, as scikit-learn has it
            return np.asarray(np.log(self._probabilities(scores)))
