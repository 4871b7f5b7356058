"""Ridge regression refined by a few noisy gradients (docs/refinement.md).

From the releases of a course (``Rounds``) to a regressor; ``estimates.regression`` has the recipe between rounds. Any
prefix of the rounds gives a head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import validate_data

from privstats.course import Releases
from privstats.course.alone import private_releases, single_party_plan
from privstats.course.paid import Paid
from privstats.course.recipe_reading import recipe_of
from privstats.course.recipes import RidgeRounds
from privstats.dp.privacy import Adjacency
from privstats.errors import ReleaseError
from privstats.estimates import regression
from privstats.estimates.ridge_recipe import RidgeRecipe
from privstats.estimates.spectrum import NoisyGram
from privstats.heads.declared import course_over, rows_behind
from privstats.heads.evidence import Array
from privstats.heads.private import RowCount, arrays, central, owners_terms
from privstats.heads.provenance import EXACT, UNKNOWN, Provenance
from privstats.heads.registry import SWITCH, Bounds, Entry, Whole, check_parameters
from privstats.heads.regressor import LinearRegressor
from privstats.heads.release_list import behind_counts, present
from privstats.heads.rules import LinearRule, Preprocessing, local, take_columns
from privstats.progress import progress_bar
from privstats.transforms import Column, Transform

__all__ = ["RefinedRidge"]


@dataclass(kw_only=True, eq=False, repr=False)
class RefinedRidge(LinearRegressor):
    """Linear regression of one target, from an ordinary release and a few masked gradients.

    Args:
        rounds: T, of :meth:`fit` and :meth:`fit_private`; a course has its own. Alone they cost a pass over the records
            each, so there are more than among parties.
        fit_intercept: :meth:`fit` and :meth:`fit_private` put a constant behind the columns. A course has an intercept
            where its transform ends in a ``ConstantFeature``.

    Attributes:
        coef_: as of :class:`Ridge`, ``(d,)``.
        intercept_: a float.
        rounds_: gradient rounds used.
        clip_: the clip of a next round's residuals: about their size, or Y / 20 where n mu is below 40.

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
        """Fit on local records, without noise or bounds; X ``(n, d)``, y ``(n,)``.

        Residuals are clipped as in a course, so far outliers count less than in least squares.

        Raises:
            HeadError: a parameter out of its bounds.
        """
        check_parameters(self, self.bounds)
        X, y = validate_data(self, *local(X, y), dtype=np.float64, y_numeric=True)
        self.preprocessing_, self.provenance_ = Preprocessing(features=X.shape[1]), EXACT
        norm = float(np.sqrt(np.square(X).sum(axis=1)).max()) or 1.0
        rows = np.hstack([X, np.full((len(X), 1), norm / 2)]) if self.fit_intercept else X
        weights = self._fit_rows(rows, np.asarray(y, np.float64), 1.25 * norm)
        if not self.fit_intercept:
            return self._settle(weights, 0.0)
        return self._settle(weights[:-1], float(weights[-1] * norm / 2))

    def fit_release(self, release: Any) -> Self:
        """Fit on the first release of a course, before its gradient rounds; otherwise as :meth:`fit_releases`."""
        return self.fit_releases([release])

    def fit_releases(self, releases: Releases) -> Self:
        """Fit on all releases of a course so far, using their noise levels; post-processing, so it costs no privacy.

        Args:
            releases: of the rounds of one course, in order, at least the first; None for rounds without a sum.

        Raises:
            ReleaseError: not releases of one course of a regression, or nothing finite follows from them.
            HeadError: a parameter out of its bounds.
            DataError: not a list of releases.
        """
        check_parameters(self, self.bounds)
        before, behind = behind_counts(releases) if isinstance(releases, list | tuple) else ([], releases)
        have = present(behind)
        recipe = recipe_of(have)
        if not isinstance(recipe, RidgeRounds):
            raise ReleaseError("these are releases of classes; use heads.RefinedSoftmax")
        self._warn_without_constant(recipe.first.transform)
        take_columns(self, Preprocessing.of_release(have[0]))
        self.provenance_ = UNKNOWN
        whitening, states = recipe.states(have)
        self.rounds_, self.clip_ = len(states) - 1, states[-1].clip
        self._settle(whitening.published(states[-1].weights), 0.0)
        self.provenance_ = Provenance.of([*before, *have])  # last: where no rule follows, an earlier one is still there
        return self

    @owners_terms
    def fit_private(
        self,
        X: Any,
        y: Any = None,
        *,
        epsilon: float,
        delta: float,
        clip_norm: float | None = None,
        target_bound: float,
        adjacency: Adjacency,
        columns: Sequence[Column] | None = None,
        transform: Sequence[Transform] = (),
        grid_bits: int = 12,
        max_records: int | None = None,
        expected_records: int | None = None,
        ledger: Paid = None,
        dataset: str | None = None,
    ) -> Self:
        """Fit on one party's own records with differential privacy: the head may be shown, the records need not be.

        Trust: the party that runs this sees the records and adds the noise. The exact sums are not kept. **The number
        of rows is treated as public**, to a power of two, unless ``expected_records`` or ``max_records`` is given: the
        recipe depends on it, the noise does not.

        Args:
            X, y: arrays, tables or files, as ``privstats.measure`` takes them; every round reads them again.
            epsilon, delta: the promise for one record, of the first release and all rounds together.
            clip_norm, target_bound, adjacency, columns, transform, grid_bits, max_records, ledger, dataset: as in
                ``Ridge.fit_private``.
            expected_records: n, from public knowledge; ``columns`` need it. If omitted, ``max_records``; without that,
                the nearest power of two to the number of rows, which is then taken for public
                (``AssumedPublicWarning`` under ``"add-remove"``).

        Guarantee:
            The whole head is computed from the releases of one course, which together are (epsilon, delta)-DP for one
            record under ``adjacency``. Number and names of the columns are public, and the number of rows to a power of
            two unless ``expected_records`` or ``max_records`` is given (``provenance_.assumed_public``).

        Attributes set: those of :meth:`fit_releases`, and ``releases_``, what was released.

        Raises:
            HeadError, SchemaError, PlanError, DataError, LedgerError: as in ``ClassHead.fit_private``.
        """
        check_parameters(self, self.bounds)
        maps, norm = rows_behind(columns, transform, clip_norm, expected_records, unit=False)
        records = arrays(X, y, maps)
        schema = self._schema(records, maps, norm, target_bound, grid_bits)
        whole = single_party_plan(schema, central(epsilon, delta, adjacency), max_records=max_records)
        rows = RowCount.of(records, expected_records, max_records, adjacency)
        course = course_over(whole, "rounds", rows.n, rounds=self.rounds)
        self.releases_ = private_releases(course, records.X, records.y, ledger=ledger, dataset=dataset)
        return self.fit_releases(self.releases_)._assuming(rows.assumed, course.digest)

    def _fit_rows(self, X: Array, y: Array, norm: float) -> Array:
        """The recipe without noise, in real numbers: weights ``(d,)``."""
        n, d = X.shape
        bound = float(np.abs(y).max()) or 1.0
        recipe = RidgeRecipe(d, n, math.inf, norm, bound, self.rounds)
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
        return whitening.published(state.weights)

    def _settle(self, weights: Array, intercept: float) -> Self:
        if not (np.isfinite(weights).all() and math.isfinite(intercept)):
            raise ReleaseError("RefinedRidge found no finite weights; the sums overflow float64, rescale the features")
        self._flat = True
        self._adopt(LinearRule(np.ascontiguousarray(weights[None, :]), np.array([intercept])))
        return self
