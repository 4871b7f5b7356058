"""Fit linear regressions over sites that differ in level, from sums within sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.evidence import CONSTANT, LinearSums, Parts, contrasts_of, residual_degrees
from privstats.inference.inversion import Errors, Inversion, NormalEquations, condition
from privstats.inference.regression.linear import ALIKE, PartErrors, design_notes, explained
from privstats.inference.regression.restricted_likelihood import LEVELS, MixedErrors, Reml, pull_weights
from privstats.inference.regression.table import Regression
from privstats.inference.releases import (
    chosen_columns,
    column_names,
    raw_slopes,
    require_both_columns,
    require_records,
)
from privstats.kinds import SitesSchema
from privstats.release import Release
from privstats.schema import narrowed
from privstats.transforms import ConstantFeature

_BETWEEN = 0.5
_DEGREES = {
    "groups": "{} groups of sites less 1",
    "REML": "sites less parameters that vary between sites, or records less sites and parameters",
}
"""Where degrees of freedom come from, by the kind of errors."""


def fixed_effects(
    release: Release,
    *,
    columns: Sequence[str | int] | None = None,
    cov_type: Literal["auto", "nonrobust", "groups"] = "auto",
) -> Regression:
    """Fit a linear regression with one level per site, from a release of a :class:`~privstats.SitesSchema`.

    **Slopes that differ by site** make these intervals too short: slopes of .1 to .3 with standard deviation .1 over
    sites are covered at 75 % where 95 is claimed. ``SitesSchema(groups=F)`` leaves out one group of sites at a time
    instead, with F - 1 degrees of freedom. Those errors need no assumption inside a site, but are somewhat too short
    (91 % measured) where sites differ much in size or in a column's spread.

    Numbers are those of a dummy per site: no intercept, no column constant within every site, and R-squared within
    sites.

    Args:
        release: with or without noise, of ``pulls=(0,)``. The plan may map columns by ``Centre`` and ``Scale``;
            coefficients are in original units.
        cov_type: ``"nonrobust"``: one residual variance, by test inversion. ``"groups"``: from the schema's groups.
            ``"auto"``: groups where there are some.

    Assumes:
        The model is linear; without groups slopes are equal at all sites and residuals homoscedastic. Records are
        independent, clipping is negligible, clients are honest and each is one site.

    Raises:
        ReleaseError: a release without these sums.

    Example:
        >>> from privstats.session import aggregate_unmasked
        >>> schema = ps.SitesSchema(2, clip_norm=8.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
        >>> x = np.array([[0.1], [0.2], [0.4], [0.8]])
        >>> parts = [ps.measure(schema, x, 2 * x[:, 0] + level) for level in (0.5, -1.0, 2.0)]
        >>> print(ps.inference.fixed_effects(aggregate_unmasked(plan, parts)).params.round(2))
        [2.]
    """
    if cov_type not in ("auto", "nonrobust", "groups"):
        raise ReleaseError(f"cov_type must be 'auto', 'nonrobust' or 'groups', got {cov_type!r}")
    sums = _fixed_sums(release, columns)
    if cov_type == "nonrobust" or (cov_type == "auto" and sums.parts is None):
        total = Inversion(sums.equations, sums.contrasts, sums.equations.degrees)
        reason = "as asked" if cov_type == "nonrobust" else "the schema has no groups of sites"
        return _with_levels(release, sums, total, ("nonrobust", reason), f"the same slopes at all sites, {ALIKE}")
    if sums.parts is None:
        raise ReleaseError("cov_type 'groups' cannot be had: the schema has no groups of sites; measure groups=8")
    groups = len(sums.parts.G)
    if len({site % groups for site in release.survivors}) < groups:
        raise ReleaseError(
            "every site of some group vanished, so the groups give no errors; use cov_type='nonrobust', if slopes are "
            "the same at all sites"
        )
    energy = np.einsum("fii->f", sums.parts.G)
    reason = f"{groups} groups of sites, the largest with {energy.max() / energy.sum():.0%} of the columns' variation"
    errors = PartErrors(Inversion(sums.equations, sums.contrasts, float(groups - 1)), sums.parts)
    return _with_levels(release, sums, errors, ("groups", reason), "slopes that may differ by site")


def _with_levels(release: Release, sums: LinearSums, errors: Errors, cov: tuple[str, str], slopes: str) -> Regression:
    words = ("Regression with fixed site effects", f"a linear model with {slopes}")
    return Regression(**_fields(release, sums, errors, cov, words), rsquared=explained(sums))


def _fields(
    release: Release, sums: LinearSums, errors: Errors, cov: tuple[str, str], words: tuple[str, str]
) -> dict[str, Any]:
    equations = sums.equations
    return {
        "names": sums.names,
        "nobs": sums.records,
        "nobs_sigma": sums.records_sigma,
        "df_reason": _DEGREES.get(cov[0], "").format(0 if sums.parts is None else len(sums.parts.G)),
        "df_resid": equations.degrees,
        "scale": equations.variance,
        "condition_number": condition(equations.eigenvalues),
        "saturation_": None,
        "cov_type": cov[0],
        "cov_reason": cov[1],
        "notes": tuple(design_notes(release.plan.schema, sums, errors)),
        "release": release,
        "columns": sums.columns,
        "errors": errors,
        "model": words[0],
        "assumed": words[1],
    }


@dataclass(frozen=True, eq=False)
class MixedRegression(Regression):
    """A regression with a random intercept.

    Attributes:
        group_var: variance of the sites' levels.

    Example:
        >>> pulls, sites = (0.4, 4.0, 30.0, 400.0), np.random.default_rng(0)
        >>> schema = ps.SitesSchema(3, clip_norm=16.0, pulls=pulls, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(20, 20, 2_000), privacy=ps.NoPrivacy())
        >>> X, levels = sites.uniform(-1, 1, (20, 50, 1)), sites.normal(size=(20, 1))
        >>> y = 2 * X[:, :, 0] + levels + sites.normal(size=(20, 50)) / 10
        >>> parts = [ps.measure(schema, *site) for site in zip(X, y, strict=True)]
        >>> fit = ps.inference.mixed(ps.session.aggregate_unmasked(plan, parts), sizes=(20, 100))
        >>> round(fit.group_var, 1)  # variance of the sites' levels
        0.1
    """

    group_var: float = 0.0


def mixed(
    release: Release, sizes: tuple[int, int] = (10, 1000), *, columns: Sequence[str | int] | None = None
) -> MixedRegression:
    """Fit a linear regression with a random intercept by site, by REML.

    With ``pulls=(.4, 4, 30, 400)`` and sites within ``sizes``, results are within a tenth of a standard error of pooled
    REML; with three pulls within a fifth. Releases must be exact: noise would hide the smallest eigenvalues.
    :func:`fixed_effects` needs one pull, reveals less and works under noise, but not for columns constant within sites.

    The intercept, and columns with more than half of their variance between sites, have as degrees of freedom the
    number of sites minus that of these parameters.

    Args:
        release: exact, of two to four ``pulls`` above 0 and a transform that ends in ``ConstantFeature``.
        sizes: minimum and maximum records of a site; a public guess.

    Assumes:
        A linear model with equal slopes at all sites, homoscedastic residuals, normal levels independent of the
        columns, independent records, negligible clipping, honest clients.

    Raises:
        ReleaseError: a release without these sums.

    Example:
        >>> pulls, sites = (0.4, 4.0, 30.0, 400.0), np.random.default_rng(0)
        >>> schema = ps.SitesSchema(3, clip_norm=16.0, pulls=pulls, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(20, 20, 2_000), privacy=ps.NoPrivacy())
        >>> X, levels = sites.uniform(-1, 1, (20, 50, 1)), sites.normal(size=(20, 1))
        >>> y = 2 * X[:, :, 0] + levels + sites.normal(size=(20, 50)) / 10
        >>> parts = [ps.measure(schema, *site) for site in zip(X, y, strict=True)]
        >>> fit = ps.inference.mixed(ps.session.aggregate_unmasked(plan, parts), sizes=(20, 100))
        >>> fit.names, fit.params.round(1).tolist(), round(fit.group_var, 1)
        (('const', 'x0'), [-0.2, 2.0], 0.1)
    """
    schema = sites_schema(release)
    require_pulls(schema)
    sites, sums, reml = len(release.survivors), *_mixed_sums(release, schema, columns, _checked_sizes(sizes))
    place = reml.best
    if place is None or sums.records <= sites + len(sums.names):
        raise ReleaseError(
            f"{sums.records:.0f} records of {sites} sites do not determine {len(sums.names)} columns: some are "
            "collinear, or there are too few records; read fewer columns=[...]"
        )
    errors = _mixed_errors(sums, reml, place, sites)
    group_var = sums.equations.variance / float(LEVELS[place])
    words = (
        "Regression with a random intercept by site",
        f"a linear model with the same slopes and normal levels at all sites, {ALIKE}",
    )
    cov = ("REML", f"{sites} sites, variance of their levels {group_var:.4g}")
    fields = _fields(release, sums, errors, cov, words)
    if place in (0, len(LEVELS) - 1):
        fields["notes"] += ("the variance of the levels is at the end of the range that is searched",)
    return MixedRegression(**fields, rsquared=None, group_var=group_var)


def _checked_sizes(sizes: object) -> tuple[int, int]:
    pair = isinstance(sizes, tuple | list) and len(sizes) == 2 and all(type(size) is int for size in sizes)
    if not pair or not 1 <= sizes[0] < sizes[1]:  # type: ignore[index]
        raise ReleaseError("sizes must be the fewest and the most records of a site, such as (10, 1000)")
    return tuple(sizes)  # type: ignore[arg-type, return-value]


def _mixed_sums(
    release: Release, schema: SitesSchema, columns: Sequence[str | int] | None, sizes: tuple[int, int]
) -> tuple[LinearSums, Reml]:
    last = schema.transform[-1]
    assert isinstance(last, ConstantFeature)  # noqa: S101  mixed has refused others
    raw = schema.features - 2
    names = column_names(schema, raw)
    chosen = chosen_columns(names, columns)
    places = [*chosen, raw, raw + 1]
    unit = np.array([1.0] * (len(places) - 1) + [schema.target_scale])
    Q = release.moments.Q[:, places][:, :, places] * np.outer(unit, unit)
    reml = Reml(np.tensordot(pull_weights(schema.pulls, sizes), Q, axes=1), last.value, release.moments.N)
    T = reml.T[reml.best or 0]
    require_both_columns(schema.transform, names, chosen)
    slopes, level = raw_slopes(schema.transform, raw)
    records = release.moments.N
    equations = NormalEquations(T[:-1, :-1], T[:-1, -1], float(T[-1, -1]), 0.0, 0.0, 0.0, records - len(chosen) - 1)
    contrasts = contrasts_of(slopes[np.ix_(chosen, chosen)], level[chosen], last.value)
    sums = LinearSums(equations, (CONSTANT, *(names[j] for j in chosen)), contrasts, records, 0.0, raw, None)
    return sums, reml


def sites_schema(release: object) -> SitesSchema:
    """Return the schema; refuse sums not within sites."""
    schema = require_records(release).plan.schema
    refusal = ReleaseError(
        f"this reader reads sums within sites, and the release measures a {type(schema).__name__}; measure a "
        "SitesSchema"
    )
    return narrowed(schema, SitesSchema, refusal)


def require_pulls(schema: SitesSchema) -> None:
    """Refuse sums that do not determine a random intercept."""
    if len(schema.pulls) < 2 or not isinstance(schema.transform[-1] if schema.transform else None, ConstantFeature):
        raise ReleaseError(
            "a random intercept needs exact sums of two to four pulls above 0 and a transform that ends in "
            "ConstantFeature; measure these, or read inference.fixed_effects with a pull of 0"
        )


def require_no_pull(schema: SitesSchema) -> None:
    """Refuse sums that do not determine fixed effects."""
    if schema.pulls != (0.0,):
        raise ReleaseError(
            f"fixed effects need sums with a pull of 0, and the release has {schema.pulls}; read inference.mixed, or "
            "measure pulls=(0,)"
        )


def _mixed_errors(sums: LinearSums, reml: Reml, place: int, sites: int) -> MixedErrors:
    equations = sums.equations
    moving = reml.moving(sums.contrasts, place) > _BETWEEN
    moving[0] = True
    within, between = sums.records - sites - len(sums.names), sites - int(moving.sum())
    degrees = np.where(moving, between, within).astype(np.float64)
    covariance = equations.variance * sums.contrasts @ equations.inverse @ sums.contrasts.T
    return MixedErrors(sums.contrasts @ equations.solution, covariance, degrees)


def _fixed_sums(release: Release, columns: Sequence[str | int] | None) -> LinearSums:
    # A silent site costs a degree of freedom.
    schema = sites_schema(release)
    require_no_pull(schema)
    names = column_names(schema, schema.features - 1)
    chosen = chosen_columns(names, columns)
    require_both_columns(schema.transform, names, chosen)
    slopes, _ = raw_slopes(schema.transform, schema.features - 1)
    blocks = _Blocks.of(release, schema, chosen)
    sites = len(release.survivors)
    parameters = f"{sites} sites and {len(chosen)} columns"
    degrees = residual_degrees(blocks.records, release.sigma["N"], sites + len(chosen), parameters)
    return LinearSums(
        equations=blocks.equations(math.sqrt(schema.groups) * release.sigma["Q"], schema.target_scale, degrees),
        names=tuple(names[j] for j in chosen),
        contrasts=slopes[np.ix_(chosen, chosen)],
        records=blocks.records,
        mean=0.0,
        columns=schema.features - 1,
        parts=None if schema.groups == 1 else blocks.parts(),
        records_sigma=release.sigma["N"],
    )


@dataclass(frozen=True, eq=False)
class _Blocks:
    G: Array
    h: Array
    q: float
    records: float

    @classmethod
    def of(cls, release: Release, schema: SitesSchema, chosen: list[int]) -> _Blocks:
        Q, unit = release.moments.Q, schema.target_scale
        G, h = Q[:, chosen][:, :, chosen], unit * Q[:, chosen, -1]
        return cls(G, h, unit**2 * float(Q[:, -1, -1].sum()), release.moments.N)

    def equations(self, sigma: float, unit: float, degrees: float) -> NormalEquations:
        return NormalEquations(
            self.G.sum(axis=0),
            self.h.sum(axis=0),
            self.q,
            sigma_G=sigma,
            sigma_h=sigma * unit / math.sqrt(2),
            sigma_q=sigma * unit**2,
            degrees=degrees,
        )

    def parts(self) -> Parts:
        return Parts(self.G, self.h, np.full(len(self.G), math.nan), math.nan)
