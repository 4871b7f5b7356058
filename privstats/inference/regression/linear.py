"""Linear regression from a release. ``inversion`` and ``parts`` compute its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from privstats.course.base import Releases
from privstats.dp import Privacy
from privstats.errors import ReleaseError
from privstats.inference.evidence import LinearSums, last_of, linear_sums, ridge_schema
from privstats.inference.inversion import Errors, Inversion, condition
from privstats.inference.regression.clipping import Hidden, Saturation, clip_note, hides, saturation_of
from privstats.inference.regression.parts import FEWEST_PARTS, PartErrors, uneven
from privstats.inference.regression.table import Regression
from privstats.release import Release
from privstats.schema import RidgeSchema, Schema

__all__ = ["CovType", "design_notes", "explained", "ols"]

CovType: TypeAlias = Literal["auto", "nonrobust", "folds"]

_COARSE = 1e-3


def ols(
    release: Release | Releases,
    *,
    columns: Sequence[str | int] | None = None,
    target: int | None = None,
    records: int | None = None,
    cov_type: CovType = "auto",
    unclipped: bool = False,
) -> Regression:
    """Ordinary least squares from a release of a :class:`~privstats.RidgeSchema`, with intervals that hold under noise.

    Post-processing of the release, so it costs no privacy; one release gives every submodel. Unlike
    :class:`privstats.heads.Ridge` it shrinks nothing: an interval of a penalised coefficient would cover its
    expectation, which is not the coefficient.

    Args:
        release: with or without noise; or those of a ``Binned`` course over such a plan, in order, None for a count
            session without a sum: the last one is read, and the promise is that of all. The plan may map records by
            ``Centre``, ``Scale`` and a last ``ConstantFeature``; coefficients are per unit of the columns as they came
            in. Or by ``Cells`` and a last ``ConstantFeature``: parameters are contrasts of cells, which
            :meth:`Regression.cells` shows by column; behind cut points that were found, of the cells between these.
        columns: names or numbers of the columns in the model; all if omitted.
        target: which target, where the release has several. Their energy is released together, so the residual variance
            of all replaces that of one, and intervals are conservative.
        records: number of records, public; needed where no constant column gives it.
        cov_type: ``"nonrobust"``: one residual variance, by test inversion. ``"folds"``: from the schema's folds, valid
            where the variance depends on the columns, and several times wider under noise. ``"auto"``: folds where the
            release carries no noise and has at least 8, else nonrobust.
        unclipped: say that no target was clipped, because every party's clip report counts none. Otherwise no
            coefficient is told where more than a tenth of the targets would be beyond the bound if they were normal:
            two moments do not show whether values were clipped or lie just inside.

    Assumes:
        The model is linear, records are independent, clipping is negligible, clients are honest. Noise is no
        assumption: it is in the interval.

    Raises:
        ReleaseError: a release without these sums, with the remedy; sums behind other cut points than the counts give.
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
    noisy = "the release carries noise" if sums.equations.sigma_G > 0 else ""
    reason = (noisy or refusal or "the release carries no noise") if cov_type == "auto" else "as asked"
    if sums.parts is not None and (cov_type == "folds" or (cov_type == "auto" and not refusal and not noisy)):
        of_parts = Inversion(sums.equations, sums.contrasts, float(len(sums.parts.G) - 1))
        return _regression(release, sums, PartErrors(of_parts, sums.parts), "folds", reason, unclipped)
    whole = Inversion(sums.equations, sums.contrasts, sums.equations.degrees)
    return replace(_regression(release, sums, whole, "nonrobust", reason, unclipped), counts=counts)


def _no_folds(sums: LinearSums, release: Release) -> str:
    """The reason why folds give no errors; empty where they do."""
    if isinstance(release.plan.privacy, Privacy) and release.plan.privacy.averaged:
        return "rows of one person lie in several folds, which are not independent then"
    if sums.cells is not None:
        return "folds of declared columns have cells without records"
    if sums.parts is None or len(sums.parts.G) < FEWEST_PARTS:
        return f"the schema has fewer than {FEWEST_PARTS} folds, or no constant column"
    if uneven(sums.parts):
        return "records repeat, and the hash puts equal ones into one fold"
    return ""


def _regression(
    release: Release, sums: LinearSums, errors: Errors, cov_type: str, reason: str, unclipped: bool
) -> Regression:
    schema, equations = ridge_schema(release), sums.equations
    saturation = saturation_of(schema, release, sums)
    if hides(saturation, unclipped):
        errors = Hidden(errors)
    return Regression(
        names=sums.names,
        nobs=sums.records,
        df_resid=equations.degrees,
        scale=equations.variance,
        rsquared=explained(sums) if schema.targets == 1 else None,
        condition_number=condition(equations.eigenvalues if sums.cells is None else equations.determined),
        saturation_=saturation,
        cov_type=cov_type,
        cov_reason=reason,
        notes=tuple(_notes(schema, sums, errors, saturation, unclipped)),
        release=release,
        columns=sums.columns,
        errors=errors,
        column_cells=() if sums.cells is None else sums.cells.columns,
    )


def explained(sums: LinearSums) -> float | None:
    """R-squared, or None where noise puts it outside 0..1."""
    total = sums.equations.q - sums.records * sums.mean**2
    share = 1 - sums.equations.variance * sums.equations.degrees / total if total > 0 else math.nan
    return share if 0 <= share <= 1 else None


def _notes(
    schema: RidgeSchema, sums: LinearSums, errors: Errors, saturation: Saturation | None, unclipped: bool
) -> list[str]:
    notes = list[str]()
    if said := clip_note(saturation, unclipped):
        notes.append(said)
    notes += design_notes(schema, sums, errors) if sums.cells is None else sums.cells.notes(sums.equations)
    if schema.targets > 1:
        notes.append("the residual variance is that of all targets together: intervals are conservative")
    return notes


def design_notes(schema: Schema, sums: LinearSums, errors: Errors) -> list[str]:
    """Warnings about the columns: a coarse grid, collinearity, a Gram matrix lost in noise."""
    equations, notes = sums.equations, list[str]()
    if sums.records * schema.scale**-2 / 12 * float(np.abs(np.diag(equations.inverse)).max()) > _COARSE:
        notes.append(f"the grid is coarse beside a column's spread: raise grid_bits from {schema.grid_bits}")
    if len(equations.lost.T):
        hidden = [name for name, size in zip(sums.names, errors.noise_error, strict=True) if math.isinf(size)]
        notes.append(f"columns are collinear: {', '.join(hidden)} cannot be told apart")
    elif equations.eigenvalues[0] < equations.sigma_G * math.sqrt(2 * len(equations.G)):
        lost = "the Gram matrix is not told apart from its noise: scale the columns to their public ranges with Scale, "
        notes.append(f"{lost}read fewer columns, or release more records")
    return notes
