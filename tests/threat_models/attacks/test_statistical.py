"""Attacks 6 to 9 reproduce their facts; the tables with many trials are in ``benchmarks/attacks``."""

import numpy as np
import pytest

import privstats as ps
from privstats.randomness import seeded
from threat_models.adversary import Adversary
from threat_models.attack import attacks_named
from threat_models.attacks.population import population, whitener
from threat_models.evaluate import Effort, evaluate
from threat_models.game import Game
from threat_models.world import Pool, Setting, draw

from ..conftest import plan_of, promise, records, ridge_plan

D = 16


@pytest.fixture(scope="module")
def gaussian():
    X = np.random.default_rng(0).standard_normal((6000, D)) / (np.sqrt(D) * 2)
    y = np.r_[np.zeros(5996, int), np.ones(4, int)]
    schema = ps.ClassSchema(2, D, "NAS", 1.0, grid_bits=14)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 20_000), privacy=ps.NoPrivacy())
    return Pool.split(X, y, seeded(0), public=0.6).of(plan)


def play(field, name, n, trials=30):
    attack = attacks_named([name])[0]
    return Game(field, Setting(field.plan, n, min(n, 25)), trials, 1).play([attack], attack.needs)[0]


@pytest.mark.ci
@pytest.mark.parametrize("n", [4, 16, 100])
def test_the_likelihood_ratio_on_sums_is_at_its_theory(gaussian, n):
    row = play(gaussian, "mean-ratio", n)
    assert row.measured == pytest.approx(ps.dp.Guarantee(np.sqrt(D / n)).auc, abs=0.035)
    assert row.baseline == pytest.approx(0.5, abs=0.06)


@pytest.mark.ci
@pytest.mark.parametrize("n", [60, 400])
def test_the_quadratic_attack_is_at_its_theory(gaussian, n):
    assert play(gaussian, "quadratic", n).measured == pytest.approx(
        ps.dp.Guarantee(np.sqrt(D * (D + 1) / 2 / n)).auc, abs=0.05
    )


def test_second_moments_betray_members_long_after_sums_do_not(gaussian):
    assert play(gaussian, "quadratic", 60).measured > play(gaussian, "mean-ratio", 60).measured + 0.1


def test_members_lie_in_the_span_until_there_are_more_than_dimensions(gaussian):
    assert play(gaussian, "span-leverage", D - 2).measured == 1.0
    assert play(gaussian, "span-leverage", D + 4).measured > 0.97
    assert 0.5 < play(gaussian, "span-leverage", 20 * D).measured < 0.75


def test_many_random_cohorts_give_everybodys_sums():
    pool = Pool.split(*records(160, 6), seeded(0))
    plan = plan_of(cohort=ps.Cohort(6, 4, 200))
    row = evaluate(plan, attacks_named(["random-cohorts"]), pool, Effort(trials=160, seed=1)).rows[0]
    assert row.measured > 0.9


def test_attacks_on_sessions_do_not_apply_where_nobody_may_vanish():
    plan = plan_of(cohort=ps.Cohort(3, 3, 200))
    pool = Pool.split(*records(160, 6), seeded(0))
    for row in evaluate(
        plan, attacks_named(["differencing", "random-cohorts", "joined-label"]), pool, Effort(trials=8, seed=1)
    ).rows:
        assert (row.verdict, row.measured) == ("does not apply", None)
        assert "lets nobody vanish" in row.note


@pytest.mark.nightly
def test_many_releases_add_up():
    """At epsilon 1: one release hides, sixteen do not, and each number of releases keeps under its own ceiling."""
    from threat_models.evaluate import sweep

    pool = Pool.split(*records(40, 6), seeded(0))
    attack = attacks_named(["repeated-releases"])
    plan = plan_of(promise(), statistics="NA", cohort=ps.Cohort(2, 2, 100))
    report = sweep(plan, attack, pool, "releases", [1, 4, 64], Effort(trials=90, records=3, seed=1))
    one, _, many = (row.measured for row in report.rows)
    assert one < 0.7 < many
    ceilings = [row.ceiling for row in report.rows]
    assert ceilings[0] < ceilings[1] < ceilings[2]
    assert not report.violated


def test_without_a_public_sample_there_is_no_whitening(gaussian):
    world = draw(gaussian, Setting(gaussian.plan, 10, 2), Adversary(), 0, True, seeded(0))
    blind = Adversary(knows="none").view(world)
    mean, inverse = population(blind, 0)
    assert not mean.any()
    assert np.array_equal(inverse, np.eye(D))
    assert np.array_equal(whitener(blind), np.eye(D))


def test_whitening_a_class_that_the_sample_lacks_uses_the_mean_of_all(gaussian):
    world = draw(gaussian, Setting(gaussian.plan, 10, 2), Adversary(), 0, True, seeded(0))
    view = Adversary().view(world)
    assert np.allclose(population(view, 9)[0], view.public[0].mean(axis=0))
    W = whitener(view)
    assert np.allclose(W @ (view.public[0].T @ view.public[0] / len(view.public[0])) @ W.T, np.eye(D), atol=1e-8)


def test_ridge_sums_have_a_span_and_a_second_moment_too():
    from threat_models.data import synthetic_pool

    plan = ridge_plan()
    field = synthetic_pool(plan, seeded(0)).of(plan)
    for name in ("span-leverage", "quadratic"):
        attack = attacks_named([name])[0]
        assert Game(field, Setting(plan, 6, 3), 20, 1).play([attack], attack.needs)[0].measured > 0.6


def test_pooled_second_moments_are_read_where_no_class_has_its_own():
    pool = Pool.split(*records(160, 6), seeded(0))
    plan = plan_of(statistics="NAB")
    for name in ("span-leverage", "quadratic"):
        attack = attacks_named([name])[0]
        assert Game(pool.of(plan), Setting(plan, 3, 3), 20, 1).play([attack], attack.needs)[0].measured > 0.6
