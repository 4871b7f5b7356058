"""Persons with several rows: sums of averages have intervals that hold whatever a person's rows share."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import binom, t

import privstats as ps
from privstats.contrib.site_levels import random_intercept_logit, site_round
from privstats.contrib.site_levels.fit import SiteSums, fitted, generalised_q
from privstats.contrib.site_levels.logit import fitted_logit
from privstats.randomness import seeded
from tests import made
from tests.contrib.site_levels.test_logit import ALL, OWN, POOLED, SITES
from tests.lengths import sized
from tests.made import refused

B = np.array([-0.5, 0.8, -0.6])


def rows(sites: int, persons: int, tau: float, own: float, rng: Any) -> tuple[Any, ...]:
    """Return site, columns, outcome and weight of 1 to 5 rows of each person; ``own`` is the part that rows share.

    The first column varies between a person's rows and the second does not.
    """
    number = rng.integers(1, 6, sites * persons)
    person = np.repeat(np.arange(sites * persons), number)
    site, arm = person // persons, rng.choice([-1.0, 1.0], sites * persons)[person]
    X = np.column_stack([np.ones(len(site)), rng.uniform(-1, 1, len(site)), arm])
    residual = math.sqrt(own) * rng.normal(size=sites * persons)[person]
    residual = residual + math.sqrt(1 - own) * rng.normal(size=len(site))
    y = ndtr(residual) < expit(X @ B + tau * rng.normal(size=sites)[site])  # each row alone is logistic
    return site, X, y, 1 / number[person]


def sums_of(site: Any, X: Any, y: Any, weight: Any, noise: float, rng: Any) -> tuple[SiteSums, Any]:
    w = np.zeros(3)
    for _ in range(6):
        m = expit(X @ w)
        w = w + np.linalg.solve((X.T * (weight * m * (1 - m))) @ X, X.T @ (weight * (y - m)))
    m = expit(X @ w)
    one, v, r = np.eye(site.max() + 1)[site], weight * m * (1 - m), weight * (y - m)
    t_s = (one.T * v) @ X + rng.normal(size=(one.shape[1], 3)) * noise * np.array([1, 0.5**0.5, 0.5**0.5])
    half = np.triu(rng.normal(size=(2, 2)) * noise * np.where(np.eye(2), 1, 0.5**0.5))
    G, h = (X[:, 1:].T * v) @ X[:, 1:] + half + np.triu(half, 1).T, X[:, 1:].T @ r + rng.normal(size=2) * 2 * noise
    sy = one.T @ r + rng.normal(size=one.shape[1]) * 2 * noise
    return SiteSums(t_s, sy, G, h, 0.0, noise, 2 * noise, 0.0, averaged=True), w


@pytest.mark.parametrize(("tau", "own", "noise"), [(0.5, 0.9, 0.0), (1.0, 0.5, 2.0), (0.5, 0.0, 2.0)])
def test_intervals_cover_whatever_rows_of_one_person_share(tau: float, own: float, noise: float) -> None:
    rng, runs, missed, off = np.random.default_rng(2), sized(50, 150), np.zeros(3), 0
    for _ in range(runs):
        fit = fitted_logit(*sums_of(*rows(30, 60, tau, own, rng), noise, rng))
        half = t.ppf(0.975, np.minimum(fit.degrees(np.eye(3)), 1e6)) * np.sqrt(np.diag(fit.covariance))
        missed += fit.reported * (np.abs(fit.b - B) > half)
        low, high = fit.tau(0.05)
        off += not low <= tau <= high
    most = binom.ppf(0.999, runs, 0.05)
    assert (missed <= most).all(), missed
    assert off <= most


def test_q_decreases_in_the_residual_variance_so_both_ends_are_safe() -> None:
    sums, _ = sums_of(*rows(20, 40, 0.5, 0.5, np.random.default_rng(3)), 1.0, np.random.default_rng(4))
    fit = fitted_logit(sums, np.zeros(3))
    places = np.arange(20)
    qs = [generalised_q(sums, fit.marginal.b, part, places)(0.2) for part in (0.01, 0.3, 0.7, 1.0)]
    assert qs == sorted(qs, reverse=True)
    alone = replace(fit, sums=replace(sums, averaged=False))
    assert fit.tau(0.05)[0] == pytest.approx(alone.tau(0.05)[0], abs=1e-4)
    assert fit.tau(0.05)[1] > alone.tau(0.05)[1]


def test_the_errors_of_the_intercept_cover_a_person_with_rows_at_many_sites() -> None:
    """Each person has one row at each of ten sites and one residual: squares of sites' sums do not show the sum's."""
    rng, runs, missed, taus = np.random.default_rng(5), sized(60, 150), 0, []
    for _ in range(runs):
        person = np.repeat(np.arange(400), 10)
        site, x = rng.integers(0, 40, 4_000), rng.uniform(-1, 1, 4_000)
        y = 0.5 + 0.3 * x + 0.3 * rng.normal(size=40)[site] + rng.normal(size=400)[person]
        X, one = np.column_stack([np.ones(4_000), x]) / 10**0.5, np.eye(40)[site] / 10**0.5
        y = y / 10**0.5
        sums = SiteSums(
            one.T @ X, one.T @ y, X[:, 1:].T @ X[:, 1:], X[:, 1:].T @ y, float(y @ y), 0, 0, 0, averaged=True
        )
        fit = fitted(sums)
        half = t.ppf(0.975, fit.degrees(np.eye(2))) * np.sqrt(np.diag(fit.covariance))
        missed += abs(fit.b[0] - 0.5) > half[0]
        taus.append(fit.level**0.5)
    assert missed <= binom.ppf(0.999, runs, 0.05)
    assert np.median(taus) == pytest.approx(0.3, abs=0.1)


def test_many_small_sites_bias_no_coefficient_beyond_its_errors() -> None:
    """Sites of 20 persons with 10 independent rows: at a row's residual variance tau was .77 of 1, and const missed."""
    rng, runs, missed, levels = np.random.default_rng(6), sized(10, 25), np.zeros(2), []
    truth = np.array([-1.5, 1.0])
    for _ in range(runs):
        site = np.repeat(np.arange(200), 200)
        X = np.column_stack([np.ones(40_000), rng.uniform(-1, 1, 40_000)])
        y = rng.random(40_000) < expit(X @ truth + rng.normal(size=200)[site])
        w = np.zeros(2)
        for _ in range(6):
            m = expit(X @ w)
            w = w + np.linalg.solve((X.T * (m * (1 - m))) @ X, X.T @ (y - m))
        m = expit(X @ w)
        v, r = m * (1 - m) / 10, (y - m) / 10
        by = [np.column_stack([np.bincount(site, each, 200) for each in (v, v * X[:, 1], r)])][0]
        G, h = np.array([[v @ X[:, 1] ** 2]]), np.array([r @ X[:, 1]])
        fit = fitted_logit(SiteSums(by[:, :2], by[:, 2], G, h, 0.0, 0.0, 0.0, 0.0, averaged=True), w)
        half = t.ppf(0.975, np.minimum(fit.degrees(np.eye(2)), 1e6)) * np.sqrt(np.diag(fit.covariance))
        missed += np.abs(fit.b - truth) > half
        levels.append(fit.level**0.5)
    assert (missed <= binom.ppf(0.999, runs, 0.05)).all(), missed
    assert np.median(levels) == pytest.approx(1.0, abs=0.2)


def terms(**promise: Any) -> dict[str, Any]:
    person = {"unit": "person", "person_clip": "average"}
    return {
        "cohort": ps.Cohort(2, 2, 400 * SITES),
        "privacy": made.promise(**{"epsilon": 6.0, "delta": 1e-6, **person, **promise}),
    }


def people() -> tuple[Any, Any, Any]:
    """Return rows, outcomes and ids; every third person has three rows, at one site or two."""
    rng = np.random.default_rng(4)
    number = np.where(np.arange(200 * SITES) % 3 == 0, 3, 1)
    person = np.repeat(np.arange(200 * SITES), number)
    site = person % SITES
    site = np.where(rng.random(len(site)) < 0.05, (site + 1) % SITES, site)
    age, levels = rng.uniform(20, 80, len(site)), 0.6 * rng.normal(size=SITES)
    y = ndtr(rng.normal(size=200 * SITES))[person] < expit(0.03 * (age - 50) - 0.5 + levels[site])
    return np.column_stack([age, np.eye(SITES)[site]]), y.astype(int), person


def test_a_promise_per_person_is_planned_and_read() -> None:
    X, y, ids = people()
    halves = [ids % 2 == k for k in range(2)]
    course = ps.Newton.start(POOLED, rounds=3, **terms())
    rounds = ps.simulate(course, [(X[half, :1], y[half], ids[half]) for half in halves], rng=seeded(5))
    plan = site_round(rounds, schema=OWN, sites=ALL, **terms())
    release = ps.simulate(plan, [(X[half], y[half], ids[half]) for half in halves], rng=seeded(6))
    fit = random_intercept_logit(release, sites=ALL, rounds=rounds)
    assert fit.fit.sums.averaged
    assert fit.reported.all()
    assert abs(fit.params[1] - 0.03) < 0.006
    low, high = fit.tau_interval()
    assert 0.2 < low < fit.tau < high < 1.4
    said = " ".join(fit.notes)
    assert "coefficients are of log odds averaged over persons" in said
    assert "rows of one person are averaged" in said
    assert "person" in fit.summary().promise


def test_persons_clipped_by_a_number_are_refused_with_the_remedy() -> None:
    X, y, ids = people()
    course = ps.Newton.start(POOLED, rounds=3, **terms())
    rounds = ps.simulate(course, [(X[:, :1], y, ids), (X[:0, :1], y[:0], ids[:0])], rng=seeded(5))
    number = terms(max_records_per_person=3, person_clip=2)
    refused(
        ps.PlanError, "Promise persons with person_clip='average'", site_round, rounds, schema=OWN, sites=ALL, **number
    )
    plan = replace(site_round(rounds, schema=OWN, sites=ALL, **terms()), privacy=number["privacy"])  # as by a file
    release = ps.simulate(plan, [(X, y, ids), (X[:0], y[:0], ids[:0])], rng=seeded(9))
    refused(ps.ReleaseError, "the plan clips persons", random_intercept_logit, release, sites=ALL)


def test_a_person_with_equal_rows_adds_what_one_row_adds() -> None:
    X, y, ids = people()
    first = np.unique(ids, return_index=True)[1]
    X, y = X[first], y[first]
    course = ps.Newton.start(POOLED, rounds=1, **terms(epsilon=100.0))
    rounds = ps.simulate(course, [(X[:, :1], y, ids[first]), (X[:0, :1], y[:0], first[:0])], rng=seeded(5))
    plan = site_round(rounds, schema=OWN, sites=ALL, **terms(epsilon=100.0))
    sums = []
    for copies in (1, 4):
        each = [np.repeat(array, copies, axis=0) for array in (X, y, np.arange(len(y)))]
        release = ps.simulate(plan, [tuple(each), tuple(array[:0] for array in each)], rng=seeded(6))
        sums.append(random_intercept_logit(release, sites=ALL, rounds=rounds).fit.sums)
    np.testing.assert_allclose(sums[0].t, sums[1].t, atol=1e-3)
    np.testing.assert_allclose(sums[0].sy, sums[1].sy, atol=1e-3)
