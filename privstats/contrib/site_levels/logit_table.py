"""Plan and read the round of scores from which a logistic random intercept by site is fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privstats.contrib.site_levels.checks import check_site_columns
from privstats.contrib.site_levels.fit import FEWEST_DEGREES, SiteSums
from privstats.contrib.site_levels.logit import FEWEST_EFFECTIVE, LogitFit, fitted_logit
from privstats.contrib.site_levels.table import (
    DEGREES,
    EXCLUSIVE,
    LevelErrors,
    LevelsRegression,
    averages_persons,
    check_sites,
    hidden_note,
    persons_note,
    require_no_constant,
    site_places,
)
from privstats.course import history
from privstats.course.newton import weights_after
from privstats.dp import Privacy
from privstats.errors import PlanError, ReleaseError
from privstats.extend.kinds import Published, Values
from privstats.extend.readers import CONSTANT, condition, contrasts_of, require_gaussian, require_records
from privstats.inference.releases import all_sessions, column_names, raw_slopes, reckoned_sigma
from privstats.kinds import ScoreSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import Schema, narrowed

_MODEL = "Logistic regression with a random intercept by site"
_OTHER_ROUNDS = "rounds must be the list that site_round got: the weights follow from these releases"
_PERSONS = (
    "coefficients are of log odds averaged over persons, who weigh the same: with a level of each person's own they "
    "would be further from 0"
)


def site_round(
    rounds: Sequence[Release | None], *, schema: ScoreSchema, sites: Sequence[str | int], **terms: Any
) -> Plan:
    """Return the plan of one more round, with a column per site, at the weights that pooled rounds end in.

    All sites get the pooled intercept as their weight, so :func:`random_intercept_logit` can read the round.

    Args:
        rounds: all releases of a ``Newton`` course of a logistic regression on the same columns without sites. An
            outcome below 8 or above 92 % needs five.
        schema: a ``ScoreSchema`` with a column per site in addition and without a last ``ConstantFeature``;
            ``errors="model"`` spends nothing on a sum that is not read.
        sites: names or indices of all site columns.
        terms: the plan's other settings, such as ``cohort`` and ``privacy``. Promises of rounds and plan compose.

    Raises:
        ReleaseError: other rounds, or other columns or maps than in the rounds.
        PlanError: no promise, without which chosen weights could isolate a record; one that
            :func:`random_intercept_logit` does not read, or of another unit or adjacency than that of the rounds.

    Example:
        :func:`random_intercept_logit` has one.
    """
    present = _present(rounds)
    if not present:
        raise ReleaseError("no round has a release; run the course again")
    _check_promise(terms.get("privacy"), present[-1].plan.privacy)
    pooled, (names, at, chosen) = _logistic(present[-1].plan.schema), _places(_logistic(schema), sites)
    if pooled.constant is None or pooled.features != len(chosen) + 1:
        raise ReleaseError(
            f"the rounds must be on the {len(chosen)} columns besides the sites and a last ConstantFeature, and are on "
            f"{pooled.features} features"
        )
    slopes, level = raw_slopes(schema.transform, len(names))
    before = raw_slopes(pooled.transform, len(chosen))
    same_names = pooled.feature_names is None or pooled.feature_names == tuple(names[j] for j in chosen)
    same_maps = np.array_equal(before[0], slopes[np.ix_(chosen, chosen)]) and np.array_equal(before[1], level[chosen])
    if not (same_names and same_maps):
        raise ReleaseError("schema names or maps the columns besides the sites in another way than the rounds did")
    return Plan(schema=schema, published=_published(rounds, schema, at, chosen), **terms)


def _present(rounds: Sequence[Release | None]) -> list[Release]:
    """Return the rounds that have a sum."""
    return [require_records(each) for each in all_sessions(rounds) if each is not None]


def _published(rounds: Sequence[Release | None], schema: ScoreSchema, at: list[int], chosen: list[int]) -> Published:
    """Return the weights in which the rounds end, with the pooled intercept for every site."""
    present = _present(rounds)
    pooled = _logistic(present[-1].plan.schema)
    found = weights_after(pooled, present)[-1].real
    if pooled.constant is None or len(found) != len(chosen) + 1:
        raise ReleaseError(_OTHER_ROUNDS)
    weights = np.empty(len(at) + len(chosen))
    weights[chosen], weights[at] = found[:-1], found[-1] * pooled.on_grid(pooled.constant) / schema.on_grid(1.0)
    return Published.of({"w": Values.rounded(weights)}, history(rounds))


def random_intercept_logit(
    release: Release, *, sites: Sequence[str | int], rounds: Sequence[Release | None] = ()
) -> LevelsRegression:
    """Fit a logistic regression with a random intercept by site, from the release of a :func:`site_round`.

    Coefficients are log odds ratios within a usual site, as ``glmer``'s; tau is the standard deviation of sites' log
    odds. No sum is new, and fitting costs no privacy. Sites' levels are not estimated: the residual sums of sites are
    compared with their law under normal levels (benchmarks/inference/site_level_numbers.md).

    Args:
        release: of a :func:`site_round`.
        sites: names or indices of all site columns; every record has 1 in exactly one. Do not drop a reference site.
        rounds: the list that :func:`site_round` got: the table states the promise of all rounds together. Omit it only
            if the published weights follow from no release.

    Assumes:
        Log odds are linear with equal slopes at all sites, levels are normal and independent of columns and site sizes,
        records are independent, clipping is negligible, clients are honest. With exponential levels of tau 1 the
        intercept's interval missed up to 17 % of the time and tau's up to 63 %, with heavy tails tau's up to 67 %;
        slopes hold. Where persons' rows are averaged, persons are independent, log odds are those of a row of a random
        person, and rows of one person may share more than their site's level.

    Returns:
        A table whose intervals hold under noise, with degrees of freedom by Satterthwaite (1946). Nothing is reported
        where the published weights are too far for one step, a few sites hold most of the information, or tau seems to
        exceed 5. Tau is not reported with fewer than 5 sites beyond the parameters that have an information clear of
        noise, or where its interval ends beyond 5.

    Raises:
        ReleaseError: other sums or rounds, persons clipped by a number, sites with different published weights, mapped
            or unknown site columns, or what :func:`random_intercept` refuses in sums.

    Example:
        >>> from privstats.contrib.site_levels import random_intercept_logit, site_round
        >>> rng, names, end = np.random.default_rng(0), ("dose", *"ABCDEFGHIJKL"), (ps.transforms.ConstantFeature(1.0),)
        >>> site, x = np.repeat(np.arange(12), 300), rng.uniform(-1, 1, (3_600, 1))
        >>> y = (rng.random(3_600) < 1 / (1 + np.exp(-x[:, 0] - rng.normal(size=12)[site] / 2))).astype(int)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=6.0, delta=1e-6)
        >>> terms = {"cohort": ps.Cohort(2, 2, 3_600), "privacy": privacy}
        >>> pooled = ps.ScoreSchema(2, clip_norm=1.5, transform=end, feature_names=names[:1])
        >>> course = ps.Newton.start(pooled, rounds=3, **terms)
        >>> rounds = ps.simulate(course, [(x[k::2], y[k::2]) for k in range(2)])
        >>> schema = ps.ScoreSchema(13, clip_norm=1.5, feature_names=names, errors="model")
        >>> plan = site_round(rounds, schema=schema, sites=names[1:], **terms)
        >>> own = np.hstack([x, np.eye(12)[site]])
        >>> release = ps.simulate(plan, [(own[k::2], y[k::2]) for k in range(2)])
        >>> fit = random_intercept_logit(release, sites=names[1:], rounds=rounds)
        >>> fit.names, fit.sites, bool(fit.reported.all())
        (('const', 'dose'), 12, True)
    """
    require_gaussian(require_records(release))
    schema = _logistic(release.plan.schema)
    names, at, chosen = _places(schema, sites)
    slopes, level = raw_slopes(schema.transform, len(names))
    one, weights = schema.on_grid(1.0), _weights(release, rounds, at, chosen)
    H, g = np.asarray(release.moments.H), np.asarray(release.moments.g)
    H, sigma = (H + H.T) / 2, reckoned_sigma(release)
    check_site_columns(schema, H, sigma["H"], names, at, [])
    H, g = H / one**2, g / one
    t = np.column_stack([H[at, at], H[np.ix_(at, chosen)]])
    averaged = averages_persons(release)
    sums = SiteSums(
        t, g[at], H[np.ix_(chosen, chosen)], g[chosen], 0.0, sigma["H"] / one**2, sigma["g"] / one, 0.0, averaged
    )  # fmt: skip
    fit = fitted_logit(sums, weights * one)
    rows = contrasts_of(slopes[np.ix_(chosen, chosen)] / one, level[chosen] / one, 1.0)
    rows = np.column_stack([rows[:, -1], rows[:, :-1]])
    reported = fit.reported and math.isfinite(fit.tau(0.05)[1])
    persons = (_PERSONS, persons_note(sums) if reported else "") if averaged else ()
    return LevelsRegression(
        names=(CONSTANT, *(names[j] for j in chosen)),
        nobs=None,
        df_resid=math.inf,
        df_reason=DEGREES,
        scale=1.0,
        rsquared=None,
        condition_number=condition(np.asarray(np.linalg.eigvalsh(sums.gram), np.float64)),
        saturation_=None,
        cov_type="random intercept",
        cov_reason=f"{len(at)} sites, Satterthwaite's degrees of freedom",
        assumed="log odds are linear in the columns with the same slopes and normal levels at all sites, " + EXCLUSIVE,
        notes=tuple(note for note in (_note(fit, reported), *persons, hidden_note(fit.marginal)) if note),
        release=release,
        columns=len(chosen),
        errors=LevelErrors.of(fit, rows),
        converged=fit.near,
        model=_MODEL,
        counts=_plans(rounds),
        tau=math.sqrt(fit.level) if reported else math.nan,
        sites=len(at),
        fit=fit,
    )


def _check_promise(privacy: object, pooled: object) -> None:
    """Refuse, before anything is spent, a promise that cannot be read or does not compose with that of the rounds."""
    if not isinstance(privacy, Privacy):
        raise PlanError("a round of scores needs differential privacy: give privacy=Privacy(...)")
    clipped = privacy.unit == "person" and not privacy.averaged
    if clipped or privacy.client_clip is not None or privacy.pure:
        raise PlanError(
            "a logistic random intercept reads sums of records, or of persons' averages, under Gaussian noise: rows "
            "that are clipped together by one factor have no known mean. Promise persons with person_clip='average', "
            "or records (unit='record', one row per person), without client_clip, at a delta above 0"
        )
    if isinstance(pooled, Privacy) and (pooled.unit, pooled.adjacency) != (privacy.unit, privacy.adjacency):
        raise PlanError(
            f"the rounds promise unit {pooled.unit}, adjacency {pooled.adjacency}, and privacy has unit "
            f"{privacy.unit}, adjacency {privacy.adjacency}: promises compose for one unit and adjacency; give those "
            "of the rounds"
        )


def _logistic(schema: Schema) -> ScoreSchema:
    text = "a logistic random intercept reads scores of a logistic regression, not {}"
    scores = narrowed(schema, ScoreSchema, ReleaseError(text.format(f"a {type(schema).__name__}")))
    if scores.family != "logistic" or scores.missing or scores.by_arm:
        raise ReleaseError(text.format("other scores"))
    return scores


def require_round(plan: Plan) -> None:
    """Refuse plans that :func:`site_round` does not return."""
    require_no_constant(_logistic(plan.schema))
    if plan.published is None or not plan.published.after:
        raise ReleaseError(
            "site-levels reads the releases of a logistic regression's rounds, in order, then that of the round by "
            "site, and the plan follows no rounds: `privstats course sites` plans it"
        )


def _places(schema: ScoreSchema, sites: Sequence[str | int]) -> tuple[tuple[str, ...], list[int], list[int]]:
    """Return the names of all columns, and the indices of the sites' and of the others."""
    require_no_constant(schema)
    names = column_names(schema, schema.features)
    at = site_places(names, sites)
    chosen = [j for j in range(len(names)) if j not in at]
    slopes, level = raw_slopes(schema.transform, len(names))
    check_sites(names, at, chosen, np.column_stack([slopes, level])[at] - np.eye(len(names), len(names) + 1)[at])
    return names, at, chosen


def _weights(release: Release, rounds: Sequence[Release | None], at: list[int], chosen: list[int]) -> Any:
    """Return the published intercept and slopes; refuse other rounds than they follow from.

    A release file names its plan's weights by digest alone, so they are computed again from the rounds.
    """
    published = release.plan.published
    if published is None or published.after != (history(rounds).hex() if rounds else ""):
        raise ReleaseError(_OTHER_ROUNDS)
    if published.values is None:
        again = _published(rounds, _logistic(release.plan.schema), at, chosen) if rounds else None
        if again is None or again.sha256 != published.sha256:
            raise ReleaseError(
                "the release holds no published weights, and the rounds end in others than its plan names; pass the "
                "list of rounds that site_round got, or release.plan with the values in the plan's .values file"
            )
        published = again
    weights = published.read()["w"].real
    if np.ptp(weights[at]) > 0:
        raise ReleaseError("the plan publishes different weights for the sites; plan the round with site_round")
    return np.append(weights[at[0]], weights[chosen])


def _plans(rounds: Sequence[Release | None]) -> tuple[Plan, ...]:
    """Return the plans of all pooled sessions; one without a sum has spent what each round costs."""
    sessions = all_sessions(rounds)
    last = next((each.plan for each in reversed(sessions) if each is not None), None)
    return tuple(each.plan if each is not None else last for each in sessions if last is not None)


def _note(fit: LogitFit, reported: bool) -> str:
    if not fit.near:
        return (
            "the published weights are too far from the estimates for one step, so no coefficient is reported: plan "
            "more pooled rounds, or spend more of the promise on them"
        )
    if not fit.spread:
        return (
            f"the sites amount to {fit.effective:.2g} of equal size, fewer than {FEWEST_EFFECTIVE:g}, so no "
            "coefficient is reported: few large sites do not average over levels"
        )
    if reported:
        return (
            "intercept and tau assume normal levels: with exponential or heavy-tailed ones the intercept's interval "
            "missed up to 17 % of the time and tau's up to 67 %"
        )
    if math.isinf(fit.level):
        return "tau seems to exceed 5, or noise hides it, so no coefficient is reported"
    wanted = fit.sums.t.shape[1] + FEWEST_DEGREES
    return (
        "tau, the standard deviation of the sites' log odds, is not reported: its interval is empty or has no end "
        f"below 5, or fewer than {wanted} sites have an information clear of noise; use more or larger sites"
    )
