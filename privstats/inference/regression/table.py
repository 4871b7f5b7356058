"""Regression coefficients with intervals that stay valid under noise, for every family."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.cell_design import ColumnCells
from privstats.inference.counts.table import Interval
from privstats.inference.description import Count, level_labels, numbers_of
from privstats.inference.inversion import Errors, holm
from privstats.inference.regression.cell_table import CellTable, cell_table
from privstats.inference.regression.clipping import Saturation
from privstats.inference.regression.interactions import InteractionTest, interaction_tests, slope_row
from privstats.inference.regression.summary import ratios_summary, summarise, tally_of, with_ratios
from privstats.inference.releases import require_level
from privstats.inference.summary import RowTable, Summary, framed, rows_by
from privstats.plan import Plan
from privstats.release import Release

_ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Regression(RowTable):
    """A fitted regression; arrays begin with the intercept.

    A parameter is *not reported* at a level where noise makes its interval unbounded, (-inf, inf). The claim is that
    **at most a fraction alpha of releases report an interval that misses**, under the assumptions in :attr:`assumed`.

    Attributes:
        nobs: possibly noisy, or None.
        df_resid: ``nobs`` minus the number of parameters; :attr:`df` has the degrees of each row's P value.
        scale: estimated residual variance.
        rsquared: None where noise hides it, or for several targets.
        condition_number: as in statsmodels; None for an indefinite Gram matrix.
        cov_type: ``"nonrobust"``, ``"robust"``, ``"quasi-Poisson"``, ``"folds"``, ``"groups"``, ``"REML"`` or
            ``"imputed"``; ``cov_reason`` explains the choice.
        columns: number released, without the constant.
        rounds: counted in the guarantee at the last plan's price.
        counts: plans of the counts that set cut points.
        column_cells: of declared columns, for :meth:`cells`.
        dispersion: of a Poisson regression with robust errors, the counts' variance over their mean (the factor of a
            quasi-Poisson regression) and its standard error from noise alone; NaN where noise hides the mean. With
            ``negative_binomial``, over that model's variance: above 1, a larger alpha fits.
        overdispersion: with that setting, the dispersion alpha of counts of mean m and variance m + alpha m^2, with its
            interval at .05.
        converged: False where rounds ended early, so that further rounds would report more coefficients.
        nobs_sigma: standard error of the noise in ``nobs``.
        df_reason: where rows' degrees of freedom come from, if not from ``df_resid``.

    Example:
        >>> X = np.array([[0.1], [0.2], [0.4], [0.8]])
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> fit = ps.inference.ols(ps.Release.exact(schema, ps.measure(schema, X, np.array([1.2, 1.5, 1.7, 2.7]))))
        >>> fit.names, fit.params.round(2).tolist(), fit.bse.round(2).tolist()
        (('const', 'x0'), [1.0, 2.08], [0.1, 0.21])
    """

    names: tuple[str, ...]
    nobs: float | None
    df_resid: float
    scale: float
    rsquared: float | None
    condition_number: float | None
    saturation_: Saturation | None
    cov_type: str
    cov_reason: str
    notes: tuple[str, ...]
    release: Release
    columns: int
    errors: Errors
    model: str = "Linear regression"
    assumed: str = "the model holds"
    rounds: int = 1
    counts: tuple[Plan | None, ...] = ()
    column_cells: tuple[ColumnCells, ...] = ()
    dispersion: tuple[float, float] | None = None
    overdispersion: Interval | None = field(default=None, kw_only=True)
    converged: bool = field(default=True, kw_only=True)
    nobs_sigma: float = field(default=0.0, kw_only=True)
    df_reason: str = field(default="", kw_only=True)

    @property
    def params(self) -> Array:
        """Estimates per original unit; NaN where hidden at .05 (``errors.estimate`` has all)."""
        return self._shown(_ALPHA)

    @property
    def remark(self) -> str:
        """Meaning of a star, or empty."""
        return ""

    @property
    def bse(self) -> Array:
        """Standard errors, noise included; infinite where undetermined."""
        return self.errors.error

    @property
    def noise_bse(self) -> Array:
        """Standard errors from noise alone."""
        return self.errors.noise_error

    @property
    def df(self) -> Array:
        """Degrees of freedom of Student's law of P values and intervals, ``(m,)``: infinite for the normal law."""
        return np.where(self.errors.df > 0, self.errors.df, np.nan)

    @property
    def tally(self) -> tuple[Count, ...]:
        """Numbers of records, and of events where the model has events, as the table states them."""
        return tally_of(self)

    @property
    def tvalues(self) -> Array:
        """Test statistics of "the parameter is 0"."""
        return self.errors.statistics()

    @property
    def pvalues(self) -> Array:
        """Two-sided p-values: below alpha exactly where the interval at alpha excludes 0."""
        return self.errors.pvalues()

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether the interval at alpha = .05 is bounded."""
        return self.errors.reported(_ALPHA)

    def conf_int(self, alpha: float = _ALPHA, *, about: Literal["population", "sums"] = "population") -> Array:
        """Return intervals, ``(m, 2)``; (-inf, inf) where not reported.

        Args:
            alpha: level, above 0 and at most .5.
            about: ``"population"``: the population that the records sample. ``"sums"``: the exact sums' number, so the
                interval covers noise alone.
        """
        require_level(alpha)
        if about not in ("population", "sums"):
            raise ReleaseError(f"about must be 'population' or 'sums', got {about!r}")
        return np.stack(self.errors.interval(alpha, sampling=about == "population"), axis=1)

    def pvalues_adjusted(self, method: Literal["holm"] = "holm") -> Array:
        """Return Holm's (1979) p-values over all parameters, ``(m,)``; NaN for the intercept."""
        if method != "holm":
            raise ReleaseError(f"method must be 'holm', got {method!r}")
        slopes = slice(int(self.names[0] == "const"), None)
        adjusted = np.full(len(self.names), np.nan)
        adjusted[slopes] = holm(self.pvalues[slopes])
        return adjusted

    def t_test(self, contrast: Any, value: float = 0.0, *, alpha: float = _ALPHA) -> ContrastTest:
        """Test one linear combination of the parameters, and return its interval.

        Args:
            contrast: ``(m,)``, in the order of ``names``.
            value: the combination under the null.
        """
        require_level(alpha)
        rows = self._combined(np.atleast_2d(np.asarray(contrast, dtype=np.float64)), 1)
        (low,), (high,) = rows.interval(alpha)
        reported = bool(rows.reported(alpha)[0])
        estimate = float(rows.estimate[0]) if reported else math.nan
        return ContrastTest(estimate, float(low), float(high), reported, float(rows.pvalues(value)[0]))

    def wald_test(self, contrasts: Any) -> float:
        """Return the p-value of "all these combinations are 0", linearly independent rows ``(r, m)``.

        It uses one residual variance even with ``"folds"``.
        """
        rows = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
        if np.linalg.matrix_rank(rows) < len(rows):
            raise ReleaseError("contrasts must be linearly independent; omit a row that follows from others")
        return self._combined(rows, len(rows)).joint_pvalue()

    def interactions(self) -> tuple[InteractionTest, ...]:
        """Return Wald's test of each interaction; none without :class:`~privstats.transforms.Interactions`."""
        return interaction_tests(self)

    def slope_at(self, column: str, at: Mapping[str, float], *, alpha: float = _ALPHA) -> ContrastTest:
        """Return a column's slope, with its interval, where the other columns of its products have given values.

        Args:
            column: name in the table, such as a treatment's.
            at: one number, in original units, for each column that has a product with it; of a column of texts, 1 for
                the text named in the table and 0 for the first text.

        Raises:
            ReleaseError: an unknown column, or values for other columns than those.

        Example:
            >>> from privstats.transforms import ConstantFeature, Interactions
            >>> names, maps = ("arm", "sex"), (Interactions(((0, 1),)), ConstantFeature(1.0))
            >>> schema = ps.RidgeSchema(4, clip_norm=2.0, target_bound=4.0, transform=maps, feature_names=names)
            >>> X = np.array([[arm, sex] for arm in (0, 1) for sex in (0, 1)] * 50)
            >>> y = X[:, 0] + X[:, 0] * X[:, 1] + np.random.default_rng(0).normal(size=200) / 4
            >>> table = ps.inference.ols(ps.Release.exact(schema, ps.measure(schema, X, y)))
            >>> [round(table.slope_at("arm", {"sex": sex}).value, 1) for sex in (0, 1)]
            [1.0, 2.0]
        """
        return self.t_test(slope_row(self, column, at), alpha=alpha)

    def cells(self, *, reference: Mapping[str, str] | None = None, alpha: float = _ALPHA) -> CellTable:
        """Return contrasts of each declared column's cells with a reference cell.

        Args:
            reference: by column; by default the first with more records than noise could show.

        Raises:
            ReleaseError: not a regression on :class:`~privstats.Cells`, or an unknown column or cell.

        Example:
            >>> cells = ps.Cells((ps.Numeric("age", (40, 65)), ps.Truth("smoker")))
            >>> map_ = (cells, ps.transforms.ConstantFeature(1.0))
            >>> schema = ps.RidgeSchema(cells.width + 1, clip_norm=1.5, target_bound=4.0, transform=map_)
            >>> table = {"age": [30, 50, 70, 35, 45, 80] * 9, "smoker": [0, 0, 1, 1, 1, 0] * 9}
            >>> moments = ps.measure(schema, table, [1.0, 1.5, 2.6, 1.2, 1.6, 2.4] * 9)
            >>> found = ps.inference.ols(ps.Release.exact(schema, moments)).cells()
            >>> found.cells[:4], found.estimate[:4].round(1).tolist()
            (('< 40', '40 to < 65', '>= 65', 'missing'), [0.0, 0.5, 1.4, nan])
        """
        require_level(alpha)
        return cell_table(self, reference or {}, alpha)

    def summary(self, alpha: float = _ALPHA, *, exponentiate: bool = False) -> Summary:
        """Return the table.

        ``exponentiate`` shows odds or rate ratios; a linear model has none (``ReleaseError``).
        """
        require_level(alpha)
        return ratios_summary(self, alpha) if exponentiate else summarise(self, alpha)

    def to_frame(self, alpha: float = _ALPHA, *, exponentiate: bool = False) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        return framed(self.to_rows(alpha, exponentiate=exponentiate))

    def to_rows(self, alpha: float = _ALPHA, *, exponentiate: bool = False) -> list[dict[str, object]]:
        """Return rows; ``exponentiate`` adds ratios, such as ``odds_ratio``."""
        low, high = self.conf_int(alpha).T
        columns: dict[str, Any] = {"term": self.names, **self._levels, "estimate": self._shown(alpha)}
        columns |= {"std_error": self.bse, "noise_std_error": self.noise_bse, "statistic": self.tvalues}
        columns |= {"df": self.df, "p_value": self.pvalues, "conf_low": low, "conf_high": high}
        rows = rows_by({**columns, "reported": self.errors.reported(alpha)})
        rows = [{**row, **numbers_of(self.tally)} for row in rows]
        return with_ratios(rows, self.model) if exponentiate else rows

    @property
    def _levels(self) -> dict[str, list[str]]:
        """The text that a row counts, and the one it is compared with; nothing without declared texts."""
        labels = level_labels(self.release.plan.schema.reading.levels)
        if not labels:
            return {}
        pairs = [labels.get(name, ("", "")) for name in self.names]
        return {"level": [level for level, _ in pairs], "compared_with": [first for _, first in pairs]}

    def _shown(self, alpha: float) -> Array:
        return np.where(self.errors.reported(alpha), self.errors.estimate, np.nan)

    def _combined(self, rows: Array, count: int) -> Errors:
        if rows.shape != (count, len(self.names)) or not np.isfinite(rows).all() or not np.abs(rows).any(axis=1).all():
            raise ReleaseError(f"a contrast holds one finite number for each of {', '.join(self.names)}, not all 0")
        return self.errors.combined(rows)


class ContrastTest(NamedTuple):
    """One linear combination of parameters.

    Attributes:
        value: NaN where not reported.
        low, high: infinite where not reported.
        pvalue: two-sided.

    Example:
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> y = X @ [1.0, 0.5] + np.random.default_rng(1).normal(size=200) / 10
        >>> schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=9.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> fit = ps.inference.ols(ps.Release.exact(schema, ps.measure(schema, X, y)))
        >>> fit.t_test([0.0, 1.0, -1.0]).pvalue < 0.001  # the first slope is larger than the second
        True
    """

    value: float
    low: float
    high: float
    reported: bool
    pvalue: float
