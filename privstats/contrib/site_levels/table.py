"""Read a random intercept by site from a release with a column per site."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privstats.contrib.site_levels.checks import check_site_columns
from privstats.contrib.site_levels.fit import FEWEST_DEGREES, Fit, SiteSums, fitted
from privstats.dp import Privacy
from privstats.errors import ReleaseError
from privstats.extend.readers import (
    CONSTANT,
    MixedErrors,
    chosen_columns,
    condition,
    contrasts_of,
    quantile,
    require_gaussian,
    require_level,
    require_records,
    residual_degrees,
)
from privstats.extend.support import Array
from privstats.heads.evidence import release_gram
from privstats.inference import Regression, Summary
from privstats.inference.evidence import ridge_schema
from privstats.inference.regression.clipping import TargetClip
from privstats.inference.regression.linear import ALIKE
from privstats.inference.releases import column_names, raw_slopes, require_both_columns
from privstats.kinds import RidgeSchema, ScoreSchema
from privstats.release import Release
from privstats.transforms import ConstantFeature

_FEWEST_SITES = 3
EXCLUSIVE = (
    "levels independent of columns and site sizes, each record has 1 in exactly one named site and 0 in the others"
)
"""Assumptions on levels and site columns, for a table."""
DEGREES = "by Satterthwaite (1946)"
"""Where rows' degrees of freedom come from, for a table."""
_LOST = 1e-9  # columns scaled to length 1 are collinear where their Gram matrix has a smaller eigenvalue


@dataclass(frozen=True, eq=False)
class LevelsRegression(Regression):
    """A regression with a random intercept by site; :func:`random_intercept` has an example.

    Attributes:
        tau: estimated standard deviation of the sites' levels; NaN where its interval is not reported.
        sites: number of sites.
        fit: estimates before columns are mapped back; None only by default.
    """

    tau: float = math.nan
    sites: int = 0
    fit: Fit | None = None

    def tau_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the interval of the sites' standard deviation; (0, inf) where it is not reported.

        Q of the sites' residual sums is inverted (Viechtbauer 2007), with the noise's known variance in theirs.
        """
        require_level(alpha)
        if self.fit is None or math.isnan(self.tau):
            return 0.0, math.inf
        return self.fit.tau(alpha)

    def summary(self, alpha: float = 0.05, *, exponentiate: bool = False) -> Summary:
        """Return the table; its head has tau, where that is reported, and no R-squared.

        ``exponentiate`` shows odds ratios; a linear model has none (``ReleaseError``).
        """
        table = super().summary(alpha, exponentiate=exponentiate)
        head = tuple(line for line in table.head if line[0] != "R-squared")
        return replace(table, head=(*head, *self._tau_line(alpha)))

    def _tau_line(self, alpha: float) -> tuple[tuple[str, str], ...]:
        low, high = self.tau_interval(alpha)
        if self.fit is None or math.isinf(high):
            return ()
        found = f"{self.tau:.3g} ({100 * (1 - alpha):g}% interval {low:.3g} to {high:.3g})"
        return (("tau", f"{found}, standard deviation of levels, from {self.fit.clear} of {self.sites} sites"),)


def random_intercept(
    release: Release,
    *,
    sites: Sequence[str | int],
    columns: Sequence[str | int] | None = None,
    unclipped: bool = False,
) -> LevelsRegression:
    """Fit a linear regression with a random intercept by site, from a release of a :class:`~privstats.RidgeSchema`.

    One column per site is 1 for the site's records and 0 for others. Its products with other columns and the target are
    the site's counts and sums, so no further sum is released. Fitting costs no privacy. docs/site_levels.md
    has a worked example. ``ps.inference.mixed`` reads exact sums instead that do not show sites, and
    ``ps.inference.fixed_effects`` has less noise for slopes within sites.

    Args:
        release: with or without noise, without ``ConstantFeature``: the site columns sum to 1. Other columns may be
            mapped by ``Centre`` and ``Scale``; coefficients are per original unit. A target centred by public knowledge
            needs less noise.
        sites: names or indices of all site columns; every record has 1 in exactly one. Do not drop a reference site.
        columns: names or indices of the regressors; all other columns if omitted. A column that may be a site, since
            it is not mapped and its products with the named sites are noise alone, cannot be left out.
        unclipped: state that every party's clip report counts none, as for ``ps.inference.ols``.

    Assumes:
        The model is linear with equal slopes at all sites, residuals have one variance, levels are normal and
        independent of columns and site sizes, records are independent, clipping is negligible, clients are honest.
        Where levels are not normal, tau's interval misses too often: 24 % measured with exponential levels, 40 % with
        heavy tails (t, 3 degrees). Where two sites hold most records, the intercept's does: 8 % measured.

    Returns:
        A table whose intervals hold under noise, with degrees of freedom by Satterthwaite (1946). Tau is not reported
        with fewer than 5 sites beyond the parameters that have a count clear of noise. Where persons' rows are
        averaged, tau's interval allows for rows of one person that share all of their residual, or nothing.

    Raises:
        ReleaseError: other sums, Laplace noise, several targets, a constant column, or mapped or unknown site columns.
            Also where the sums show records in two sites or in none, or rows shortened to ``clip_norm``: clipping
            shortens a record's 1 too. It shows only on average: shortening of few rows stays unseen.

    Example:
        >>> from privstats.contrib.site_levels import random_intercept
        >>> rng = np.random.default_rng(0)
        >>> site, x = np.repeat(np.arange(20), 50), rng.uniform(-1, 1, (1_000, 1))
        >>> y = 2 * x[:, 0] + rng.normal(size=20)[site] / 2 + rng.normal(size=1_000)
        >>> schema = ps.RidgeSchema(21, clip_norm=1.5, target_bound=9.0)
        >>> moments = ps.measure(schema, np.hstack([x, np.eye(20)[site]]), y)
        >>> fit = random_intercept(ps.Release.exact(schema, moments), sites=range(1, 21))
        >>> fit.names, fit.params[1:].round(1).tolist()
        (('const', 'x0'), [2.1])
    """
    require_gaussian(require_records(release))
    schema = ridge_schema(release)
    require_one_target(schema)
    evidence = release_gram(release, None)
    names = column_names(schema, schema.features)
    at = site_places(names, sites)
    chosen = [j for j in range(len(names)) if j not in at] if columns is None else chosen_columns(names, columns)
    require_both_columns(schema.transform, names, chosen)
    slopes, level = raw_slopes(schema.transform, len(names))
    maps = np.column_stack([slopes, level]) - np.eye(len(names), len(names) + 1)
    check_sites(names, at, chosen, maps[at])
    check_site_columns(
        schema,
        evidence.G,
        evidence.sigma_G,
        names,
        at,
        [j for j, row in enumerate(maps) if not row.any() and j not in (*at, *chosen)],
    )
    one = schema.on_grid(1.0)
    sums = _sums(evidence, at, chosen, one, averages_persons(release))
    records, deviation = float(sums.t[:, 0].sum()), sums.sigma_G * math.sqrt(len(at))
    degrees = residual_degrees(records, deviation, len(at) + len(chosen), f"{len(at)} sites and {len(chosen)} columns")
    _check_collinear(sums)
    fit = fitted(sums)
    rows = contrasts_of(slopes[np.ix_(chosen, chosen)] / one, level[chosen] / one, 1.0)
    rows = np.column_stack([rows[:, -1], rows[:, :-1]])
    mean, square = float(sums.sy.sum()) / records, sums.q / records
    clip = TargetClip.of(schema, release, mean, square, records, unclipped=unclipped)
    reported = fit.reported and not clip.hides and math.isfinite(fit.tau(0.05)[1])
    notes = (clip.note, *_tau_notes(fit, reported), hidden_note(fit))
    return LevelsRegression(
        names=(CONSTANT, *(names[j] for j in chosen)),
        nobs=records,
        nobs_sigma=deviation,
        df_reason=DEGREES,
        df_resid=degrees,
        scale=fit.residual,
        rsquared=None,
        condition_number=condition(np.linalg.eigh(sums.gram)[0]),
        saturation_=clip.saturation,
        cov_type="random intercept",
        cov_reason=f"{len(at)} sites, Satterthwaite's degrees of freedom",
        assumed=f"a linear model with the same slopes and normal levels at all sites, {EXCLUSIVE}, {ALIKE}",
        notes=tuple(note for note in notes if note),
        release=release,
        columns=len(names) - len(at),
        errors=clip.errors(LevelErrors.of(fit, rows)),
        model="Regression with a random intercept by site",
        tau=math.sqrt(fit.level) if reported else math.nan,
        sites=len(at),
        fit=fit,
    )


@dataclass(frozen=True, eq=False)
class LevelErrors(MixedErrors):
    """Tests and intervals of combinations of a fit's parameters, ``rows @ fit.b``: all are reported, or none."""

    fit: Fit
    rows: Array

    @classmethod
    def of(cls, fit: Fit, rows: Array) -> LevelErrors:
        """Return the errors of combinations ``(m, p + 1)``; infinite, with no degrees, where none is reported."""
        if not fit.reported:
            return cls(rows @ fit.b, np.diag(np.full(len(rows), np.inf)), np.zeros(len(rows)), fit, rows)
        return cls(rows @ fit.b, rows @ fit.covariance @ rows.T, fit.degrees(rows), fit, rows)

    @property
    def noise_error(self) -> Array:
        """Standard errors from noise alone, ``(m,)``."""
        noise = np.einsum("ij,jk,ik->i", self.rows, self.fit.noise, self.rows)
        return np.sqrt(np.where(self.degrees > 0, noise, np.inf))

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; about exact sums, with the noise's error alone."""
        if sampling:
            return super().interval(alpha)
        margin = quantile(alpha, math.inf) * self.noise_error
        return self.estimate - margin, self.estimate + margin

    def combined(self, rows: Array) -> LevelErrors:
        """Return linear combinations, ``(r, m)``."""
        return self.of(self.fit, rows @ self.rows)


def require_one_target(schema: RidgeSchema) -> None:
    """Refuse several targets, and a constant column."""
    if schema.targets > 1:
        raise ReleaseError(f"the release has {schema.targets} targets, and a random intercept needs one; measure one")
    require_no_constant(schema)


def require_no_constant(schema: RidgeSchema | ScoreSchema) -> None:
    """Refuse a constant column."""
    if any(isinstance(map_, ConstantFeature) for map_ in schema.transform):
        raise ReleaseError("the transform must hold no ConstantFeature: site columns sum to 1; omit it")


def require_site_columns(schema: RidgeSchema | ScoreSchema) -> None:
    """Refuse maps that mix columns, and too few columns for the sites and a regressor."""
    slopes, level = raw_slopes(schema.transform, schema.features)
    maps = np.column_stack([slopes, level]) - np.eye(schema.features, schema.features + 1)
    if (~maps.any(axis=1)).sum() < _FEWEST_SITES or schema.features == _FEWEST_SITES:
        raise ReleaseError(
            f"site-levels reads a column of 0 and 1 for each of at least {_FEWEST_SITES} sites, which no map changes, "
            f"and a regressor; the plan has {schema.features} columns"
        )


def site_places(names: Sequence[str], sites: Sequence[str | int]) -> list[int]:
    """Return the indices of site columns; refuse what is no list of columns."""
    if isinstance(sites, str) or not isinstance(sites, Sequence) or not sites:
        raise ReleaseError("sites must be a list of column names or numbers, such as ['north', 'south', 'west']")
    return chosen_columns(names, sites)


def check_sites(names: Sequence[str], at: list[int], chosen: list[int], maps: Array) -> None:
    """Refuse too few sites, sites that are regressors or mapped, and no regressors."""
    if len(at) < _FEWEST_SITES:
        raise ReleaseError(f"sites must name at least {_FEWEST_SITES} columns, got {len(at)}; use ps.inference.ols")
    if both := [names[j] for j in chosen if j in at]:
        raise ReleaseError(f"columns names {both[0]!r}, which is a site; leave it out")
    if not chosen:
        raise ReleaseError("columns must name at least one column besides the sites; measure one more")
    if mapped := [names[j] for j, row in zip(at, maps, strict=True) if row.any()]:
        raise ReleaseError(f"the plan maps the site column {mapped[0]!r}; give it a centre of 0 and a scale of 1")


def _check_collinear(sums: SiteSums) -> None:
    """Refuse exact sums of collinear columns; under noise the fit reports nothing."""
    if sums.sigma_G > 0:
        return
    lengths = np.sqrt(np.diag(sums.gram))
    if not lengths.all() or np.linalg.eigvalsh(sums.gram / np.outer(lengths, lengths))[0] < _LOST:
        raise ReleaseError("columns are collinear, or one is 0 for all records; read fewer columns=[...]")


def averages_persons(release: Release) -> bool:
    """Return whether the sums are of persons' averages."""
    privacy = release.plan.privacy
    return isinstance(privacy, Privacy) and privacy.averaged


def _sums(evidence: Any, at: list[int], chosen: list[int], one: float, averaged: bool) -> SiteSums:
    """Return sums by site of rows and targets over ``one``, which is a record's 1 in its site column on the grid.

    Sites then count 1 per record, columns are in units of ``one``, and every deviation is exact.

    Args:
        evidence: from ``release_gram``.
    """
    G, h = evidence.G / one**2, evidence.h[:, 0] / one
    return SiteSums(
        t=np.column_stack([G[at, at], G[np.ix_(at, chosen)]]),
        sy=h[at],
        G=G[np.ix_(chosen, chosen)],
        h=h[chosen],
        q=evidence.q,
        sigma_G=evidence.sigma_G / one**2,
        sigma_h=evidence.sigma_h / one,
        sigma_q=evidence.sigma_q,
        averaged=averaged,
    )


def persons_note(sums: SiteSums) -> str:
    """Return a sentence on tau where persons' rows are averaged, or empty."""
    if not sums.averaged:
        return ""
    return (
        "rows of one person are averaged, and sums do not show how much they share: tau is the middle of what the sums "
        "allow, and intervals allow for all of it"
    )


def _tau_notes(fit: Fit, reported: bool) -> tuple[str, ...]:
    if reported:
        return (
            "tau's interval assumes normal levels: with exponential or heavy-tailed ones it missed in up to 40 %",
            persons_note(fit.sums),
        )
    wanted = fit.sums.t.shape[1] + FEWEST_DEGREES
    return (
        f"tau, the standard deviation of the sites' levels, is not reported: {fit.clear} sites have a count clear of "
        f"noise, and at least {wanted} are needed, with levels that noise does not hide; use more or larger sites",
    )


def hidden_note(fit: Fit) -> str:
    """Return a sentence on coefficients that noise hides, or empty."""
    if fit.reported:
        return ""
    return (
        "noise hides the sums by site, so no coefficient is reported; use larger sites, fewer columns or a larger "
        "epsilon, or measure for ps.inference.fixed_effects"
    )
