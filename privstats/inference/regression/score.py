"""Fit logistic and Poisson regressions from a ``Newton`` course's last round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privstats.course.newton import weights_after
from privstats.errors import ReleaseError
from privstats.inference.cell_design import declared_cells, gap_note
from privstats.inference.declared_levels import declared_levels
from privstats.inference.evidence import CONSTANT, cell_design, contrasts_of
from privstats.inference.inversion import NormalEquations, condition
from privstats.inference.last_step import LastStep, ended_early, is_robust, last_step, notes_on, settled
from privstats.inference.regression.clipping import Hidden, Saturation, cut_notes
from privstats.inference.regression.overdispersion import overdispersion, share_cut
from privstats.inference.regression.table import Regression
from privstats.inference.releases import column_names, counted_before, present_releases, raw_slopes
from privstats.kinds import ScoreSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import narrowed

_TITLES = {"logistic": "Logistic regression", "poisson": "Poisson regression"}
_MEAN = {"logistic": "log odds are linear in the columns", "poisson": "log mean counts are linear in the columns"}
_EQUAL = "the variance of counts with equal columns equals their mean"
_ONE_MULTIPLE = "the variance of counts with equal columns is one multiple of their mean"
_CLEAR = 4.0  # the multiple is used where it is this many standard deviations of its noise
_SURE = 8.0  # the dispersion is reported where the sum of means exceeds this many standard deviations of its noise
_OVERDISPERSED = (
    f"intervals assume that {_EQUAL}; where counts vary more (overdispersion), intervals miss more often than stated "
    '(14 to 18 % measured, not 5, at two to three times the mean): plan errors="robust", which assumes no variance'
)


def logit(releases: Sequence[Release | None], *, gaps_as_cells: bool = False) -> Regression:
    """Fit a logistic regression from all releases of a ``Newton`` course.

    Coefficients are log odds ratios per original unit. Intervals and p-values include the next Newton step's possible
    change. A coefficient is reported only where that change is at most two standard errors and its information has
    settled: unconverged rounds report none. Rare outcomes need a public ``rate=`` and more rounds; a log odds ratio of
    5 needs eight. With ``Cells`` and a last ``ConstantFeature``, parameters are contrasts of cells
    (:meth:`Regression.cells`).

    Args:
        releases: of every round, in order; None for one without a sum. A ``Binned`` course begins with its counts.
        gaps_as_cells: as for :func:`ols`.

    Raises:
        ReleaseError: no release, releases of another regression, or out of order.

    Example:
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Newton.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, (4_000, 1))
        >>> y = (rng.random(4_000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
        >>> releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])])
        >>> ps.inference.logit(releases).names
        ('const', 'x0')
    """
    return _regression(releases, "logistic", gaps_as_cells)


def poisson(
    releases: Sequence[Release | None], *, gaps_as_cells: bool = False, quasi_poisson: bool = False
) -> Regression:
    """Fit a Poisson regression from all releases of a ``Newton`` course; coefficients are log rate ratios.

    Counts above ``target_bound`` were truncated, which pulls coefficients toward 0. With an ``exposure`` the intercept
    is the log of the rate per unit of exposure, as with R's ``offset(log(exposure))``. With ``negative_binomial``
    records weigh as in a negative binomial regression of that dispersion, and errors stay robust: intervals hold
    whatever the variance is, and ``dispersion`` is the variance over that model's. With ``overdispersion`` the table
    has the dispersion of a negative binomial model with an interval, and coefficients are as without it.

    Args:
        releases, gaps_as_cells: as for :func:`logit`.
        quasi_poisson: compute errors of a quasi-Poisson regression, which assumes that the variance of counts is one
            multiple of their mean. They read one entry of J, so under noise intervals are narrower than robust ones.

    Raises:
        ReleaseError: as for :func:`logit`; with ``quasi_poisson`` also where rounds have ``errors="model"``, no
            intercept or ``negative_binomial``, or where noise hides the multiple.

    Example:
        >>> from privstats import randomness
        >>> constant = (ps.transforms.ConstantFeature(1.0),)
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, family="poisson", target_bound=20.0, transform=constant)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Newton.start(schema, ps.Cohort(2, 2, 8_000), privacy)
        >>> X = np.linspace(-1, 1, 8_000)[:, None]
        >>> y = np.random.default_rng(0).poisson(np.exp(X[:, 0]))
        >>> releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=randomness.seeded(0))
        >>> ps.inference.poisson(releases).params.round(1).tolist()  # log rate ratios
        [0.0, 1.0]
    """
    return _regression(releases, "poisson", gaps_as_cells, quasi=quasi_poisson)


def _regression(
    releases: Sequence[Release | None], family: str, gaps_as_cells: bool, *, quasi: bool = False
) -> Regression:
    counts, releases = _behind_counts(releases)
    present = _present(releases, family)
    last, schema = present[-1], _schema(present[-1], family)
    weights = [each.real for each in weights_after(schema, present)[: len(present)]]
    if declared_cells(schema) is not None:
        H = np.asarray(last.moments.H)
        design = cell_design(schema, (H + H.T) / 2, last.sigma["H"])
        names, rows, columns, cells = design.names, design.rows, design.cells, design.columns
    else:
        design, cells, columns = None, (), schema.features - (schema.constant is not None)
        constant = None if schema.constant is None else schema.on_grid(schema.constant)
        rows = contrasts_of(*raw_slopes(schema.transform, columns), constant)
        names = (*(() if schema.constant is None else (CONSTANT,)), *column_names(schema, columns))
    levels = declared_levels(schema) if design is None else None
    given = (present, weights, schema.clip_norm, rows, design)
    errors = last_step(*given, levels=levels)
    dispersed = family == "poisson" and is_robust(last) and schema.constant is not None
    dispersion = _dispersion(errors.equations) if dispersed else None
    if quasi and schema.negative_binomial is not None:
        raise ReleaseError(
            "quasi_poisson assumes a variance of one multiple of the mean, and these rounds weigh records by "
            "negative_binomial: omit quasi_poisson"
        )
    if quasi:
        errors = last_step(*given, variance=_multiple(dispersion), levels=levels)
    errors = _per_exposure(errors, names, schema)
    notes, fields = notes_on(errors, names=names), fields_of_rounds(present, errors)
    fields |= {"dispersion": dispersion, **({"cov_type": "quasi-Poisson"} if quasi else {})}
    if schema.overdispersion is not None:
        read = settled(present, errors.earlier)
        found = overdispersion(read, schema)
        found = found if errors.arrived[errors.identified].all() else found._replace(reported=False)
        fields["overdispersion"] = found
        if found.reported:
            fields["saturation_"] = Saturation(share_cut(read, schema, found.value), math.nan)
            notes += cut_notes(fields["saturation_"], schema.outcome)
    modelled = family == "poisson" and not is_robust(last)
    if design is not None:
        gaps = design.gap_columns
        notes = gap_note(gaps, gaps_as_cells) + notes_on(errors, design.read, names)
        notes += design.notes(errors.inversion.equations, weighted=True)
        fields["converged"] = not ended_early(errors, design.read)
        fields["errors"] = Hidden(errors) if gaps and not gaps_as_cells else errors
    return Regression(
        **fields,
        names=names,
        notes=(*notes, *([_OVERDISPERSED] if modelled else [])),
        columns=columns,
        model=_TITLES[family],
        assumed=", ".join((_mean_of(schema), *([_EQUAL] if modelled else []), *([_ONE_MULTIPLE] if quasi else []))),
        rounds=len(releases),
        counts=counts,
        column_cells=cells,
    )


def _multiple(dispersion: tuple[float, float] | None) -> float:
    """Return the variance over the mean as quasi-Poisson errors use it, at least 1.

    At a relative error d of the variance an interval of 95 % misses in 5 + 14 d^2 % (the second derivative of its
    level), so in under 6 % at a quarter.
    """
    if dispersion is None:
        raise ReleaseError(
            'quasi_poisson needs rounds with errors="robust" and an intercept, which give the variance over the mean; '
            "omit it"
        )
    ratio, error = dispersion
    if not ratio >= _CLEAR * error:
        raise ReleaseError(
            "noise hides the variance over the mean, so quasi_poisson has no errors: omit it, or plan more records, a "
            "smaller target_bound or a larger epsilon"
        )
    return max(ratio, 1.0)


def _mean_of(schema: ScoreSchema) -> str:
    if schema.exposure is None:
        return _MEAN[schema.family]
    return f"log rates are linear in the columns, and mean counts are proportional to {schema.exposure}"


def _per_exposure(errors: LastStep, names: Sequence[str], schema: ScoreSchema) -> LastStep:
    """Return the intercept per unit of exposure; rounds have it per largest exposure."""
    if schema.exposure_bound is None:
        return errors
    shift = np.array([math.log(schema.exposure_bound) * (name == CONSTANT) for name in names])
    return replace(errors, offset=errors.offset - shift)


def _dispersion(equations: NormalEquations) -> tuple[float, float]:
    """Return the sum of squared residuals over the sum of means, from the constant's entries, and the noise's error."""
    assert equations.score_variance is not None  # noqa: S101  the errors are robust
    squares, means = float(equations.score_variance[-1, -1]), float(equations.G[-1, -1])
    if means <= _SURE * equations.sigma_G:
        return math.nan, math.inf
    ratio = squares / means
    return ratio, math.hypot(equations.sigma_J, ratio * equations.sigma_G) / means


def fields_of_rounds(rounds: Sequence[Release], errors: LastStep) -> dict[str, Any]:
    """Return the fields that rounds determine."""
    return {
        "nobs": None,
        "df_resid": math.inf,
        "scale": 1.0,
        "rsquared": None,
        "condition_number": condition(errors.inversion.equations.determined),
        "saturation_": None,
        "cov_type": "robust" if is_robust(rounds[-1]) else "nonrobust",
        "cov_reason": f"one step after {len(rounds) - 1} rounds",
        "release": rounds[-1],
        "errors": errors,
        "converged": not ended_early(errors),
    }


def _behind_counts(releases: Sequence[Release | None]) -> tuple[tuple[Plan | None, ...], Sequence[Release | None]]:
    listed = isinstance(releases, Sequence) and not isinstance(releases, Release)
    return counted_before(list(releases)) if listed else ((), releases)


def _present(releases: Sequence[Release | None], family: str) -> list[Release]:
    present = present_releases(releases)
    if not present:
        raise ReleaseError("no round has a release, so there is nothing to read; run the course again")
    for release in present:
        _schema(release, family)
    return present


def _schema(release: Release, family: str) -> ScoreSchema:
    schema = release.plan.schema
    text = f"this reader reads rounds of a {family} regression, and the release measures a {type(schema).__name__}"
    score = narrowed(schema, ScoreSchema, ReleaseError(text))
    if score.family != family:
        raise ReleaseError(f"{text} of family {score.family!r}")
    return score
