"""Refine a ridge regression by a few noisy gradients (docs/refinement.md); any prefix of the rounds yields a head."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import validate_data

from privstats.course import Releases
from privstats.course.read_recipe import recipe_of
from privstats.course.recipes import RidgeRounds
from privstats.errors import ReleaseError
from privstats.estimates import regression
from privstats.estimates.denoise import NoisyGram
from privstats.estimates.recipes import RidgeRecipe
from privstats.heads.evidence import Array
from privstats.heads.private import FitPromise, arrays
from privstats.heads.provenance import EXACT, UNKNOWN, Provenance, behind_counts, present
from privstats.heads.registry import SWITCH, Bounds, Entry, Whole, check_parameters
from privstats.heads.regressor import LinearRegressor
from privstats.heads.rules import LinearRule, Preprocessing, local, take_columns
from privstats.progress import progress_bar


@dataclass(kw_only=True, eq=False, repr=False)
class RefinedRidge(LinearRegressor):
    """Linear regression of one target from a ``Rounds`` course: least squares as noise falls.

    Rounds clip residuals and shorten rows, at widths that grow with n mu / d (``RidgeRecipe.width``). Sums of complete
    residuals set the level: the first release's, and of twelve and more rounds the first and the last ones. So
    mean prediction and slopes converge to those of least squares as records or epsilon grow. Where noise is strong for
    the number of columns, ``width_`` states the clip, and the model is Huber's estimate. From n mu = 40 on, slopes that
    noise alone may explain are excluded: where nothing can be learned, the model is close to a mean under equal noise.

    Args:
        rounds: T, for :meth:`fit` and :meth:`fit_private`.
        fit_intercept: append a constant column in these fits; a course's transform ends in ``ConstantFeature`` instead.

    Attributes:
        coef_, intercept_: ``(d,)`` and a float.
        rounds_: gradient rounds used.
        clip_: next round's residual clip.
        width_: that clip in residual standard deviations, where it is below 2, else None. Where n mu is below 40 the
            deviation is unknown, and a quarter of ``target_bound`` stands for it.

    Example:
        >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (4_000, 2))
        >>> bounds = {"clip_norm": 1.3, "target_bound": 1.5, "expected_records": 4_000}
        >>> promise = {"epsilon": 8.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged"}
        >>> head = ps.heads.RefinedRidge(rounds=4).fit_private(X, X @ [1.0, -0.5], **promise, **bounds)
        >>> np.abs(head.predict([[0.5, 0.0], [0.0, 0.5]]) - [0.5, -0.25]).max() < 0.2
        np.True_
    """

    entry: ClassVar[Entry] = Entry(task="ridge", after_rounds=True)
    bounds: ClassVar[Bounds] = {"rounds": (Whole(1),), "fit_intercept": SWITCH}

    rounds: int = 24
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on local records X ``(n, d)``, y ``(n,)``, without noise or bounds: the rounds end at least squares."""
        check_parameters(self, self.bounds)
        X, y = validate_data(self, *local(X, y), dtype=np.float64, y_numeric=True)
        self.preprocessing_, self.provenance_ = Preprocessing(features=X.shape[1]), EXACT
        norm = float(np.sqrt(np.square(X).sum(axis=1)).max()) or 1.0
        rows = np.hstack([X, np.full((len(X), 1), norm / 2)]) if self.fit_intercept else X
        weights = self._fit_rows(rows, np.asarray(y, np.float64), 1.25 * norm, norm / 2)
        if not self.fit_intercept:
            return self._settle(weights, 0.0)
        return self._settle(weights[:-1], float(weights[-1] * norm / 2))

    def fit_release(self, release: Any) -> Self:
        """Fit on a course's first release alone."""
        return self.fit_releases([release])

    def fit_releases(self, releases: Releases) -> Self:
        """Fit on a course's releases so far; post-processing, so it costs no privacy.

        Args:
            releases: in order, at least the first; None for rounds without a sum.

        Raises:
            ReleaseError: not releases of one regression course, or nothing finite follows from them.
        """
        check_parameters(self, self.bounds)
        before, behind = behind_counts(releases) if isinstance(releases, list | tuple) else ([], releases)
        have = present(behind)
        recipe = recipe_of(behind)
        if not isinstance(recipe, RidgeRounds):
            raise ReleaseError("these are releases of classes; use heads.RefinedSoftmax")
        self._warn_without_constant(recipe.first.transform)
        take_columns(self, Preprocessing.of_release(have[0]))
        self.provenance_ = UNKNOWN
        _, states = recipe.states(have)
        self.rounds_, self.clip_ = len(states) - 1, states[-1].clip
        self._settle(recipe.weights(have), 0.0)
        self.width_ = recipe.constants.robust_width
        self.provenance_ = Provenance.of([*before, *have])  # last: where no rule follows, an earlier one is still there
        return self

    def _fit_under(self, promise: FitPromise, X: Any, y: Any, target_bound: float) -> Self:
        maps, norm = promise.rows(unit=False)
        records = arrays(X, y, maps)
        schema = self._schema(records, maps, norm, target_bound, promise.grid_bits)
        rows = promise.counted(records)
        self.releases_, course = promise.releases("rounds", schema, rows.n, records, rounds=self.rounds)
        return self.fit_releases(self.releases_)._assuming(rows.assumed, course)

    def _fit_rows(self, X: Array, y: Array, norm: float, constant: float) -> Array:
        n, d = X.shape
        bound = float(np.abs(y).max()) or 1.0
        last = constant if self.fit_intercept else None
        recipe = RidgeRecipe(d, n, math.inf, norm, bound, self.rounds, constant=last)
        levels = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0}
        sums = NoisyGram(G=X.T @ X, h=(X.T @ y)[:, None], q=float(y @ y), records=float(n), **levels)
        whitening = regression.RidgeWhitening.of(recipe, sums)
        state, U = regression.ridge_started(recipe, sums, whitening), whitening.rows(X)
        with progress_bar("rounds", self.rounds) as advance:
            for _ in range(self.rounds):
                residuals = y - X @ whitening.published(state.weights)
                gradient = np.clip(residuals, -state.clip, state.clip) @ U
                within = float((np.abs(residuals) <= state.clip).sum())
                state = regression.ridge_refined(recipe, whitening, state, gradient, within, (0.0, 0.0))
                advance(1)
        self.rounds_, self.clip_ = self.rounds, state.clip
        return regression.ridge_settled(recipe, whitening, state)

    def _settle(self, weights: Array, intercept: float) -> Self:
        if not (np.isfinite(weights).all() and math.isfinite(intercept)):
            raise ReleaseError("RefinedRidge found no finite weights; the sums overflow float64, rescale the features")
        self.flat_ = True
        self._adopt(LinearRule(np.ascontiguousarray(weights[None, :]), np.array([intercept])))
        return self
