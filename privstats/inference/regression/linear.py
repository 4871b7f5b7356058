"""Fit a linear regression from a release, with one residual variance or errors from disjoint parts.

Parts are folds, assigned by a public hash of the record, or groups of sites.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from privstats.course.base import Releases
from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.cell_design import gap_note
from privstats.inference.evidence import LinearSums, Parts, linear_sums, ridge_schema
from privstats.inference.inversion import Errors, Inversion, condition, quantile, two_sided
from privstats.inference.regression.clipping import Hidden, TargetClip
from privstats.inference.regression.table import Regression
from privstats.inference.releases import averages_persons, last_of
from privstats.kinds import RidgeSchema
from privstats.release import Release
from privstats.schema import Schema

CovType: TypeAlias = Literal["auto", "nonrobust", "folds"]

_COARSE = 1e-3
_LINEAR = "the model is linear"
ALIKE = "residuals have one variance whatever the columns are"
"""The assumption behind one residual variance for all records."""
FEWEST_PARTS = 8
"""Minimum number of parts; with fewer, the quantiles at so low degrees of freedom are too wide to be useful."""
_UNEVEN_BELOW = 1e-3
_FEW_FOLDS = f"the schema has fewer than {FEWEST_PARTS} folds, or no constant column"


def ols(
    release: Release | Releases,
    *,
    columns: Sequence[str | int] | None = None,
    target: int | None = None,
    records: int | None = None,
    cov_type: CovType = "auto",
    unclipped: bool = False,
    gaps_as_cells: bool = False,
) -> Regression:
    """Fit ordinary least squares from a release of a :class:`~privstats.RidgeSchema`, with intervals that hold under
    noise.

    Fitting costs no privacy, and one release yields every submodel. Nothing is shrunk.

    Args:
        release: with or without noise; or a ``Binned`` course's releases in order, None for a count session without a
            sum: the last one is read, and the guarantee covers all. The plan may map records by ``Centre``, ``Scale``
            and a last ``ConstantFeature``; coefficients are per original unit. With ``Cells`` and a last
            ``ConstantFeature``, parameters are contrasts of cells (:meth:`Regression.cells`).
        columns: names or numbers; all if omitted.
        target: index, where the release has several. All targets then share one residual variance, and intervals are
            conservative.
        records: public number, needed without a constant column.
        cov_type: ``"nonrobust"``: one residual variance, by test inversion. ``"folds"``: valid where the variance
            depends on the columns. ``"auto"``: folds if the schema has at least 8, else nonrobust. F folds have sqrt(F)
            times the noise of one sum, under any choice.
        unclipped: state that every party's clip report counts none. Otherwise no coefficient is reported where more
            than a tenth of normal targets would be beyond the bound.
        gaps_as_cells: report a regression on several columns of ``Cells`` although one of them has gaps. The gaps'
            cell biases contrasts of all columns (the missing-indicator method), so intervals do not cover effects.
            Otherwise no coefficient is reported where a column has more gaps than noise could show.

    Assumes:
        The model is linear, records are independent, clipping is negligible, clients are honest.

    Raises:
        ReleaseError: a release without these sums, or with other cut points than its counts yield.
        DataError: a list of other releases.

    Example:
        >>> X = np.array([[0.1], [0.2], [0.4], [0.8]])
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, X, np.array([1.2, 1.5, 1.7, 2.7])))
        >>> ps.inference.ols(release).params.round(2).tolist()
        [1.0, 2.08]
    """
    if cov_type not in ("auto", "nonrobust", "folds"):
        raise ReleaseError(f"cov_type must be 'auto', 'nonrobust' or 'folds', got {cov_type!r}")
    counts, release = last_of(release)
    sums = linear_sums(release, columns, target, records)
    refusal = _no_folds(sums, release)
    if cov_type == "folds" and refusal:
        raise ReleaseError(f"cov_type 'folds' cannot be had: {refusal}; use cov_type='nonrobust'")
    reason = (refusal or "the schema has folds") if cov_type == "auto" else "as asked"
    errors: tuple[Errors, str] = Inversion(sums.equations, sums.contrasts, sums.equations.degrees), "nonrobust"
    if sums.parts is not None and cov_type != "nonrobust" and not refusal:
        of_parts = Inversion(sums.equations, sums.contrasts, float(len(sums.parts.G) - 1))
        errors = PartErrors(of_parts, sums.parts), "folds"
    return replace(_regression(release, sums, *errors, reason, unclipped, gaps_as_cells), counts=counts)


def _no_folds(sums: LinearSums, release: Release) -> str:
    if averages_persons(release):
        return "rows of one person are in several folds, which are then not independent"
    if sums.parts is None or len(sums.parts.G) < FEWEST_PARTS:
        return _FEW_FOLDS
    if uneven(sums.parts):
        return "records repeat, and the hash puts equal ones into one fold"
    return ""


def _regression(
    release: Release,
    sums: LinearSums,
    errors: Errors,
    cov_type: str,
    reason: str,
    unclipped: bool,
    gaps_as_cells: bool,
) -> Regression:
    schema, equations = ridge_schema(release), sums.equations
    clip = _clip(schema, release, sums, unclipped)
    gaps = sums.cells.gap_columns if sums.cells is not None else []
    if clip.hides or (gaps and not gaps_as_cells):
        errors = Hidden(errors)
    return Regression(
        names=sums.names,
        nobs=sums.records,
        nobs_sigma=sums.records_sigma,
        df_reason=f"{len(sums.parts.G)} folds less 1" if sums.parts is not None and cov_type == "folds" else "",
        df_resid=equations.degrees,
        scale=equations.variance,
        rsquared=explained(sums) if schema.targets == 1 else None,
        condition_number=condition(equations.eigenvalues if sums.cells is None else equations.determined),
        saturation_=clip.saturation,
        cov_type=cov_type,
        cov_reason=reason,
        assumed=_LINEAR if cov_type == "folds" else f"{_LINEAR}, {ALIKE}",
        notes=(
            *gap_note(gaps, gaps_as_cells),
            *_notes(schema, sums, errors, clip),
            *_one_variance(reason),
        ),
        release=release,
        columns=sums.columns,
        errors=errors,
        column_cells=() if sums.cells is None else sums.cells.columns,
    )


def explained(sums: LinearSums) -> float | None:
    """Return R-squared, or None where noise puts it outside 0..1."""
    total = sums.equations.q - sums.records * sums.mean**2
    share = 1 - sums.equations.variance * sums.equations.degrees / total if total > 0 else math.nan
    return share if 0 <= share <= 1 else None


def _one_variance(reason: str) -> list[str]:
    if reason != _FEW_FOLDS:
        return []
    return [
        f"intervals assume that {ALIKE}; where the residual variance is three times as large under a column that few "
        f"records have, they miss that column too often (15 % measured, not 5): plan folds=20, "
        "from which errors need no such assumption"
    ]


def _clip(schema: RidgeSchema, release: Release, sums: LinearSums, unclipped: bool) -> TargetClip:
    if not sums.intercept:
        return TargetClip(None, unclipped)
    square = sums.equations.q / sums.records
    return TargetClip.of(schema, release, sums.mean, square, sums.records, unclipped=unclipped)


def _notes(schema: RidgeSchema, sums: LinearSums, errors: Errors, clip: TargetClip) -> list[str]:
    notes = [clip.note] if clip.note else []
    notes += design_notes(schema, sums, errors) if sums.cells is None else sums.cells.notes(sums.equations)
    if schema.targets > 1:
        notes.append("the residual variance is estimated over all targets together: intervals are conservative")
    return notes


def design_notes(schema: Schema, sums: LinearSums, errors: Errors) -> list[str]:
    """Return warnings about a coarse grid, collinearity or noise."""
    equations, notes = sums.equations, list[str]()
    if sums.records * schema.scale**-2 / 12 * float(np.abs(np.diag(equations.inverse)).max()) > _COARSE:
        notes.append(f"the grid is coarse relative to a column's spread: raise grid_bits from {schema.grid_bits}")
    if len(equations.lost.T):
        hidden = [name for name, size in zip(sums.names, errors.noise_error, strict=True) if math.isinf(size)]
        notes.append(f"columns are collinear: {', '.join(hidden)} cannot be distinguished")
    elif equations.eigenvalues[0] < equations.sigma_G * math.sqrt(2 * len(equations.G)):
        lost = "noise hides the Gram matrix: scale the columns to their public ranges with Scale, "
        notes.append(f"{lost}read fewer columns, or release more records")
    return notes


@dataclass(frozen=True)
class PartErrors:
    """Wald tests and intervals about the full solution, with errors from leaving out one part at a time.

    ``se_j^2 = (F - 1) / F sum_f (w_(f) - w)_j^2`` with w_(f) from the sums without part f, and Student's t with F - 1
    degrees. The parts carry the sums' noise already. A parameter is reported where test inversion reports it at that
    quantile and every G without a part is positive definite.
    """

    inversion: Inversion
    parts: Parts

    @property
    def estimate(self) -> Array:
        """Parameters at the solution, ``(m,)``."""
        return self.inversion.estimate

    @property
    def noise_error(self) -> Array:
        """Noise's standard error, ``(m,)``."""
        return self.inversion.noise_error

    @property
    def df(self) -> Array:
        """Number of parts less 1, ``(m,)``."""
        return self.inversion.df

    @cached_property
    def error(self) -> Array:
        """Standard error, ``(m,)``; infinite where a part's removal leaves it undetermined."""
        F = len(self.parts.G)
        if not self._positive:
            return np.full(len(self.estimate), np.inf)
        moments = (self.inversion.equations.h - self.parts.h) @ self._regular
        solutions = np.linalg.solve(self._remaining, moments[..., None])[..., 0] @ self._regular.T
        moved = solutions @ self.inversion.contrasts.T - self.estimate
        return np.asarray(np.sqrt((F - 1) / F * np.square(moved).sum(axis=0)))

    def reported(self, alpha: float) -> NDArray[np.bool_]:
        """Return whether intervals are bounded."""
        return self.inversion.reported(alpha) & self._positive

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return (estimate - ``null``) / standard error."""
        with np.errstate(invalid="ignore"):
            step = self.estimate - null
            return np.where(step == 0, 0.0, step / self.error)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Return two-sided p-values, at least the level that reports the parameter."""
        least = self.inversion.least_level() if self._positive else np.ones(len(self.estimate))
        return np.maximum(two_sided(np.abs(self.statistics(null)), self.inversion.degrees), least)

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; about exact sums, as :meth:`Inversion.interval`."""
        if not sampling:
            low, high = self.inversion.interval(alpha, sampling=False)
        else:
            margin = quantile(alpha, self.inversion.degrees) * self.error
            low, high = self.estimate - margin, self.estimate + margin
        reported = self.reported(alpha)
        return np.where(reported, low, -np.inf), np.where(reported, high, np.inf)

    def combined(self, rows: Array) -> PartErrors:
        """Return linear combinations, ``(r, m)``."""
        return PartErrors(self.inversion.combined(rows), self.parts)

    def joint_pvalue(self) -> float:
        """Return the joint p-value, with one residual variance."""
        return self.inversion.joint_pvalue()

    @cached_property
    def _regular(self) -> Array:
        """Orthonormal directions in which G is not 0, ``(p, k)``: the others are of empty cells, or collinear."""
        equations = self.inversion.equations
        return equations.regular if equations.lost.size else np.eye(len(equations.G))

    @cached_property
    def _remaining(self) -> Array:
        return np.asarray(self._regular.T @ (self.inversion.equations.G - self.parts.G) @ self._regular)

    @cached_property
    def _positive(self) -> bool:
        values = np.linalg.eigvalsh(self._remaining)
        return bool((values[:, 0] > values.shape[1] * np.finfo(np.float64).eps * values[:, -1]).all())


def uneven(parts: Parts) -> bool:
    """Return whether parts differ more than a hash of distinct records explains."""
    F = len(parts.records)
    expected = parts.records.sum() / F
    spread = np.square(parts.records - expected).sum() / (expected + parts.records_sigma**2)
    return bool(expected <= 0 or chdtrc(F - 1, spread) < _UNEVEN_BELOW)
