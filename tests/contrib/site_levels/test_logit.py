"""A logistic random intercept: its laws are those of samples, its round has equal weights, and its intervals cover."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2, t

import privstats as ps
from privstats.contrib.site_levels import random_intercept_logit, site_round
from privstats.contrib.site_levels.fit import SiteSums, clear_sites, generalised_q
from privstats.contrib.site_levels.logit import Odds, fitted_logit
from privstats.printable import at_most
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from privstats.transforms import Centre, ConstantFeature, Scale
from tests import made
from tests.made import refused

B = np.array([-0.5, 0.8, -0.6])


@pytest.mark.parametrize(("mean", "tau"), [(0.0, 0.4), (-2.0, 1.0), (1.0, 2.0)])
def test_a_law_is_that_of_sampled_levels(mean: float, tau: float) -> None:
    odds, levels = Odds(mean, 1e-3), np.random.default_rng(0).normal(size=400_000)
    law, means = odds.law(tau), expit(odds.usual(tau)[0] + tau * levels)
    assert means.mean() == pytest.approx(expit(mean), abs=2e-3)
    assert law.level == pytest.approx(means.var() / odds.variance**2, rel=0.01)
    away = means - means.mean()
    assert law.kurtosis == pytest.approx(max((away**4).mean() / means.var() ** 2 - 3, -1), abs=0.05)
    assert odds.tau(law.level) == pytest.approx(tau, rel=1e-6)


def test_no_level_is_no_law_and_too_wide_ones_are_infinite() -> None:
    assert (Odds(1.0, 0.5).law(0.0).level, Odds(1.0, 0.5).tau(-0.3), Odds(0.0, 0.5).tau(4.0)) == (0.0, 0.0, math.inf)
    assert Odds(0.3, 0.5).usual(0.0) == pytest.approx((0.3, 1.0))


def test_a_usual_sites_log_odds_are_those_of_the_marginal_regression() -> None:
    """The factor of Zeger, Liang and Albert is 3.5 % off at tau 1; this one is not."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(200_000), rng.normal(size=(200_000, 2))])
    points, mass = np.polynomial.hermite_e.hermegauss(30)
    mean = expit((X @ B)[:, None] + points) @ (mass / mass.sum())
    theta = B.copy()
    for _ in range(8):
        m = expit(X @ theta)
        theta += np.linalg.solve((X.T * (m * (1 - m))) @ X, X.T @ (mean - m))
    m = expit(X @ theta)
    odds, v = X @ theta, m * (1 - m)
    middle = np.average(odds, weights=v)
    own, factor = Odds(middle, math.sqrt(np.average((odds - middle) ** 2, weights=v))).usual(1.0)
    np.testing.assert_allclose(factor * theta[1:], B[1:], rtol=4e-3)
    assert factor * theta[0] + own - factor * middle == pytest.approx(B[0], abs=4e-3)


def sums_of(
    sites: int, size: int, tau: float, noise: float, rng: Any, start: Any = None, usual: Any = B
) -> tuple[SiteSums, Any]:
    """Return one run's sums at the pooled regression's weights, or at ``start``, and these weights."""
    sizes = np.maximum(rng.poisson(size, sites), 5)
    sizes[: sites // 5] = 5
    site = np.repeat(np.arange(sites), sizes)
    X = np.column_stack([np.ones(len(site)), rng.uniform(-1, 1, (len(site), 2))])
    y = rng.random(len(site)) < expit(X @ usual + tau * rng.normal(size=sites)[site])
    w = np.zeros(3) if start is None else np.array(start)
    for _ in range(6 if start is None else 0):
        m = expit(X @ w)
        w = w + np.linalg.solve((X.T * (m * (1 - m))) @ X, X.T @ (y - m))
    m = expit(X @ w)
    one, v, r = np.eye(sites)[site], m * (1 - m), y - m
    half = np.triu(rng.normal(size=(2, 2)) * noise * np.where(np.eye(2), 1, 0.5**0.5))
    return SiteSums(
        (one.T * v) @ X + rng.normal(size=(sites, 3)) * noise * np.array([1, 0.5**0.5, 0.5**0.5]),
        one.T @ r + rng.normal(size=sites) * 2 * noise,
        (X[:, 1:].T * v) @ X[:, 1:] + half + np.triu(half, 1).T,
        X[:, 1:].T @ r + rng.normal(size=2) * 2 * noise,
        0.0,
        noise,
        2 * noise,
        0.0,
    ), w


@pytest.mark.parametrize(("sites", "tau", "noise"), [(30, 1.0, 0.0), (40, 0.5, 2.0), (30, 0.0, 2.0)])
def test_intervals_cover(sites: int, tau: float, noise: float) -> None:
    rng, runs, missed, off, levels = np.random.default_rng(2), 200, np.zeros(3), 0, []
    for _ in range(runs):
        fit = fitted_logit(*sums_of(sites, 120, tau, noise, rng))
        half = t.ppf(0.975, np.minimum(fit.degrees(np.eye(3)), 1e6)) * np.sqrt(np.diag(fit.covariance))
        missed += fit.reported * (np.abs(fit.b - B) > half)
        low, high = fit.tau(0.05)
        off += not low <= tau <= high
        levels.append(fit.level**0.5)
    assert (missed / runs < 0.1).all(), missed / runs
    assert off / runs < 0.1
    assert np.median(levels) == pytest.approx(tau, abs=0.2)


def test_bounded_means_change_the_degrees_of_tau() -> None:
    """Mean outcomes near a half vary less in the fourth moment than normal ones, so tau's interval is shorter."""
    fit = fitted_logit(*sums_of(30, 200, 1.0, 0.0, np.random.default_rng(0)))
    places = clear_sites(fit.sums)

    def excess(tau: float, share: float) -> float:
        level = fit.odds.law(tau).level
        q = generalised_q(fit.sums, fit.marginal.b, 1 - level * fit.odds.variance, places)(level)
        return float(q - chi2.isf(share, len(places) - 3))

    low, high = (brentq(excess, 0.1, 5, args=(share,)) for share in (0.025, 0.975))
    own = fit.tau(0.05)
    assert low < own[0] < 1.0 < own[1] < high - 0.2


def test_far_weights_few_large_sites_and_noise_report_nothing() -> None:
    rng = np.random.default_rng(3)
    far = fitted_logit(*sums_of(30, 200, 0.5, 0.0, rng, start=(1.5, 0.0, 0.0)))
    assert not far.near
    assert (far.reported, far.tau(0.05)) == (False, (0.0, math.inf))
    sums, w = sums_of(12, 100, 0.5, 0.0, rng)
    few = replace(sums, t=sums.t * np.append(np.ones(10), [40.0, 40.0])[:, None])
    assert not fitted_logit(few, w).spread
    assert not fitted_logit(*sums_of(12, 30, 0.5, 60.0, rng)).reported


@pytest.mark.parametrize(("intercept", "reported"), [(-3.4, False), (-2.0, True)])
def test_rare_outcomes_need_nearer_weights(intercept: float, reported: bool) -> None:
    """Under noise, a step that is near enough for an outcome of some 15 % is not for one of 4 %."""
    usual = np.array([intercept, *B[1:]])

    def share_near(start: Any) -> float:
        seeds = map(np.random.default_rng, range(12))
        return float(np.mean([fitted_logit(*sums_of(30, 400, 0.3, 1.5, rng, start, usual)).near for rng in seeds]))

    far = share_near(usual + np.array([0.1, -0.15, 0.1]))
    assert far > 0.8 if reported else far < 0.4
    assert share_near(None) > 0.8  # at the pooled regression's weights


SITES = 16
NAMES = ("age", *(f"site {k}" for k in range(SITES)))
ALL = NAMES[1:]
LAST = (ConstantFeature(1.0),)


def records(size: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    site = np.repeat(np.arange(SITES), size)
    age = rng.uniform(20, 80, len(site))
    y = rng.random(len(site)) < expit(0.03 * (age - 50) - 0.5 + 0.6 * rng.normal(size=SITES)[site])
    return np.column_stack([age, np.eye(SITES)[site]]), y.astype(int)


def maps(sites: int) -> tuple[Any, ...]:
    return Centre((50.0, *[0.0] * sites)), Scale((30.0, *[1.0] * sites))


POOLED = ps.ScoreSchema(2, clip_norm=1.5, transform=maps(0) + LAST, feature_names=NAMES[:1], errors="model")
OWN = ps.ScoreSchema(1 + SITES, clip_norm=1.5, transform=maps(SITES), feature_names=NAMES, errors="model")


def terms(**promise: Any) -> dict[str, Any]:
    return {
        "cohort": ps.Cohort(2, 2, 300 * SITES),
        "privacy": made.promise(**{"epsilon": 6.0, "delta": 1e-6, **promise}),
    }


@pytest.fixture(scope="module")
def pooled() -> list[ps.Release]:
    (X, y), course = records(), ps.Newton.start(POOLED, rounds=3, **terms())
    return ps.simulate(course, [(X[k::2, :1], y[k::2]) for k in range(2)], rng=seeded(5))


@pytest.fixture(scope="module")
def release(pooled: list[ps.Release]) -> ps.Release:
    X, y = records()
    plan = site_round(pooled, schema=OWN, sites=ALL, **terms())
    return ps.simulate(plan, [(X[k::2], y[k::2]) for k in range(2)], rng=seeded(6))


def test_a_table_is_of_a_usual_site_in_original_units(pooled: Any, release: ps.Release) -> None:
    fit = random_intercept_logit(release, sites=ALL, rounds=pooled)
    assert fit.names == ("const", "age")
    assert (np.abs(fit.params - [-2.0, 0.03]) < [1.0, 0.006]).all()  # const at age 0
    low, high = fit.tau_interval()
    assert 0.2 < low < fit.tau < high < 1.3
    said = str(fit.summary())
    assert "Logistic regression with a random intercept by site" in said
    assert "all 4 rounds" in said
    assert "Warning: intercept and tau assume normal levels" in said
    odds = fit.to_rows(exponentiate=True)[0]["odds_ratio"]
    assert odds == pytest.approx(math.exp(fit.params[1]))
    by_number = random_intercept_logit(release, sites=range(1, 1 + SITES), rounds=pooled)
    assert by_number.summary().head == fit.summary().head


def test_a_site_that_nobody_has_costs_nothing(pooled: Any, release: ps.Release) -> None:
    (X, y), names = records(), (*NAMES, "nobody's")
    schema = replace(OWN, features=2 + SITES, transform=maps(SITES + 1), feature_names=names)
    plan = site_round(pooled, schema=schema, sites=names[1:], **terms())
    X = np.column_stack([X, np.zeros(len(X))])
    one_more = ps.simulate(plan, [(X[k::2], y[k::2]) for k in range(2)], rng=seeded(6))
    found, without = (
        random_intercept_logit(each, sites=sites, rounds=pooled)
        for each, sites in ((one_more, names[1:]), (release, ALL))
    )
    assert found.reported.all()
    assert (np.abs(found.params - without.params) < without.bse).all()
    ends = [np.append(np.diff(fit.conf_int()).ravel(), np.diff(fit.tau_interval())) for fit in (found, without)]
    assert (ends[0] < 1.15 * ends[1]).all()


def test_sums_are_those_of_each_site(pooled: Any) -> None:
    """Read under little noise; the first site has a tenth of the records."""
    X, y = records()
    X, y = X[270:], y[270:]
    plan = site_round(pooled, schema=OWN, sites=ALL, **terms(epsilon=100.0))
    fit = random_intercept_logit(
        ps.simulate(plan, [(X, y), (X[:0], y[:0])], rng=seeded(14)), sites=ALL, rounds=pooled
    ).fit
    weights = plan.published.read()["w"].real
    u = np.column_stack([(X[:, 0] - 50) / 30, X[:, 1:]])
    mean = expit(u @ weights)
    np.testing.assert_allclose(fit.sums.sy, X[:, 1:].T @ (y - mean), atol=0.5)
    np.testing.assert_allclose(fit.sums.t[:, 0], X[:, 1:].T @ (mean * (1 - mean)), atol=0.5)
    np.testing.assert_allclose(fit.sums.t[:, 1], X[:, 1:].T @ (u[:, 0] * mean * (1 - mean)), atol=0.5)


def test_the_round_publishes_the_pooled_intercept_for_every_site(pooled: Any, release: ps.Release) -> None:
    weights = release.plan.published.read()["w"].real
    assert np.ptp(weights[1:]) == 0
    table = ps.inference.logit(pooled)
    at_fifty = table.errors.estimate[0] + 50 * table.errors.estimate[1]
    assert weights[1] == pytest.approx(at_fifty, abs=0.3)
    assert release.plan.published.after


def test_a_coarse_grids_1_changes_no_estimate(pooled: Any) -> None:
    X, y = records()
    fits = []
    for bits in (6, 16):
        coarse = replace(OWN, grid_bits=bits, clip_norm=1.9)
        plan = site_round(pooled, schema=coarse, sites=ALL, **terms(epsilon=100.0))
        release = ps.simulate(plan, [(X, y), (X[:0], y[:0])], rng=seeded(7))
        fits.append(random_intercept_logit(release, sites=ALL, rounds=pooled))
    np.testing.assert_allclose(fits[0].params, fits[1].params, rtol=0.03)
    np.testing.assert_allclose(fits[0].noise_bse, fits[1].noise_bse, rtol=0.2)


def test_a_release_from_a_file_gets_its_weights_from_the_rounds(
    pooled: Any, release: ps.Release, tmp_path: Any
) -> None:
    release.save(tmp_path / "site.release")
    again = ps.Release.load(tmp_path / "site.release")
    assert again.plan.published.values is None
    fits = [random_intercept_logit(each, sites=ALL, rounds=pooled) for each in (release, again)]
    np.testing.assert_array_equal(fits[0].params, fits[1].params)


def test_other_rounds_are_refused(pooled: Any) -> None:
    rest = {"schema": OWN, "sites": NAMES[1:], **terms()}
    refused(ps.PlanError, "needs differential privacy", site_round, pooled, **{**rest, "privacy": ps.NoPrivacy()})
    refused(ps.ReleaseError, "no round has a release", site_round, [None, None], **rest)
    refused(ps.ReleaseError, "must be on the 2 columns besides", site_round, pooled, **{**rest, "sites": NAMES[2:]})
    other = replace(OWN, transform=(Centre((40.0, *[0.0] * SITES)), Scale((30.0, *[1.0] * SITES))))
    refused(ps.ReleaseError, "names or maps the columns", site_round, pooled, **{**rest, "schema": other})
    other = replace(OWN, feature_names=("dose", *NAMES[1:]))
    refused(ps.ReleaseError, "names or maps the columns", site_round, pooled, **{**rest, "schema": other})


def test_other_releases_are_refused(pooled: Any, release: ps.Release) -> None:
    def read(plan: ps.Plan) -> ps.Release:
        return replace(release, plan=plan)

    refused(ps.ReleaseError, "must be a Release", random_intercept_logit, "x", sites=ALL)
    refused(ps.ReleaseError, "hold no ConstantFeature", random_intercept_logit, pooled[-1], sites=[0])
    refused(ps.ReleaseError, "sites must be a list", random_intercept_logit, release, sites="site 0")
    refused(ps.ReleaseError, "'age', which is a site|maps the site", random_intercept_logit, release, sites=NAMES[:-1])
    weights = release.plan.published.read()["w"].real.copy()
    weights[2] += 0.1
    plan = replace(release.plan, published=Published.of({"w": Values.rounded(weights)}))
    refused(ps.ReleaseError, "different weights for the sites", random_intercept_logit, read(plan), sites=ALL)
    bare = replace(release.plan, published=replace(release.plan.published, values=None, after=""))
    refused(ps.ReleaseError, "the release holds no published weights", random_intercept_logit, read(bare), sites=ALL)
    wrong = replace(release.plan, published=replace(release.plan.published, values=None, sha256="0" * 64))
    refused(
        ps.ReleaseError, "end in others than its plan names", random_intercept_logit, read(wrong), sites=ALL,
        rounds=pooled,
    )  # fmt: skip
    ridge = ps.RidgeSchema(3, clip_norm=2.0, target_bound=2.0)
    sums = ps.Release.exact(ridge, ps.measure(ridge, np.eye(3), np.ones(3)))
    refused(ps.ReleaseError, "not a RidgeSchema", random_intercept_logit, sums, sites=[0, 1, 2])
    for other in ([], pooled[:2]):
        refused(ps.ReleaseError, "rounds must be the list", random_intercept_logit, release, sites=ALL, rounds=other)
    X, y = records()
    twice = X.copy()
    twice[:300, 2] = 1
    shared = ps.simulate(release.plan, [(twice, y), (X[:0], y[:0])], rng=seeded(8))
    refused(
        ps.ReleaseError, "share records|rows were shortened", random_intercept_logit, shared, sites=ALL, rounds=pooled
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "person", "max_records_per_person": 3, "person_clip": 2},
        {"unit": "client", "max_records_per_client": 4, "client_clip": 3.0},
        {"delta": 0.0},
    ],
)
def test_a_promise_that_no_reader_accepts_is_refused_before_it_is_spent(pooled: Any, wrong: Any) -> None:
    promise = terms(**wrong)
    refused(
        ps.PlanError,
        "reads sums of records, or of persons' averages",
        site_round,
        pooled,
        schema=OWN,
        sites=ALL,
        **promise,
    )


def test_promises_that_do_not_compose_are_refused(pooled: Any) -> None:
    other = terms(adjacency="replace-one")
    refused(ps.PlanError, "promises compose for one unit", site_round, pooled, schema=OWN, sites=ALL, **other)


def test_a_pooled_round_without_a_sum_is_charged() -> None:
    """A lost round has spent what each round costs; a list that leaves it out costs the same."""
    X, y = records()
    course = ps.Newton.start(POOLED, rounds=3, retries=1, **terms())

    def lost(round_: Any) -> ps.Release | None:
        parts = [(X[k::2, :1], y[k::2]) for k in range(2)]
        return None if round_.place == 1 else ps.simulate(round_.plan, parts, rng=seeded(12 + round_.place))

    rounds = ps.course.run(course, lost)
    promises = set()
    for sessions in (rounds, [each for each in rounds if each]):
        plan = site_round(sessions, schema=OWN, sites=ALL, **terms())
        release = ps.simulate(plan, [(X[k::2], y[k::2]) for k in range(2)], rng=seeded(16))
        promises.add(random_intercept_logit(release, sites=ALL, rounds=sessions).summary().promise)
    epsilon = ps.dp.gaussian_epsilon(math.hypot(course.mu, plan.noise.mu), 1e-6)
    assert len(promises) == 1
    assert f"epsilon {at_most(epsilon)}, delta 1e-06, all 5 rounds" in promises.pop()


def test_notes_name_the_remedy(pooled: Any) -> None:
    X, y = records()
    plan = replace(
        site_round(pooled, schema=OWN, sites=ALL, **terms()),
        published=Published.of({"w": Values.rounded(np.append(0.0, np.full(SITES, 2.0)))}),
    )
    release = ps.simulate(plan, [(X, y), (X[:0], y[:0])], rng=seeded(10))
    fit = random_intercept_logit(release, sites=ALL)
    assert not fit.reported.any()
    assert "plan more pooled rounds" in str(fit.summary())
    weak = site_round(pooled, schema=OWN, sites=ALL, **terms(epsilon=0.1))
    release = ps.simulate(weak, [(X, y), (X[:0], y[:0])], rng=seeded(11))
    hidden = random_intercept_logit(release, sites=ALL, rounds=pooled)
    assert not hidden.reported.any()
    assert "noise hides the sums by site" in str(hidden.summary())
