"""Intervals keep their confidence, ties are coins, and ceilings are the closed forms of what a plan promises."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy.stats import binomtest

import privstats as ps
from privstats.dp import Guarantee
from privstats.dp.privacy import MODELS, Drawer
from tests import made
from threat_models import ceilings
from threat_models.adversary import BARE, Adversary
from threat_models.bounds import clopper_pearson, dkw_margin, operating_point, proportion, roc, wins
from threat_models.report import Row, stated

from .conftest import plan_of, promise


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (40, 1000)])
def test_clopper_pearson_is_scipys(successes, trials):
    exact = binomtest(successes, trials).proportion_ci(0.9, "exact")
    assert clopper_pearson(successes, trials, 0.9) == pytest.approx((exact.low, exact.high))


def test_no_trials_say_nothing():
    assert clopper_pearson(0, 0, 0.9) == proportion(np.array([1.0]), 0.9) == (0.0, 1.0)
    assert (dkw_margin(0, 0.9), dkw_margin(200, 0.95)) == (1.0, pytest.approx(0.0960, abs=1e-4))


def test_perfect_worlds_do_not_prove_perfection():
    low, high = proportion(np.ones(20), 0.95)
    assert (round(low, 3), high) == (0.832, 1.0)


def test_the_interval_covers_when_worlds_are_clusters():
    """Each world's rate is itself random (Beta), so counting its members as independent would cover far too rarely."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        low, high = proportion(rng.binomial(50, rng.beta(0.5 * 0.7, 0.5 * 0.3, 40)) / 50, 0.9)
        inside += low <= 0.7 <= high
    assert inside >= 0.87 * 400


def test_ties_are_coins():
    constant = np.zeros((1, 3000))
    assert wins(constant[0], constant[0, :200], ps.randomness.seeded(0)) == pytest.approx(0.5, abs=0.01)
    assert wins(np.array([1.0]), np.array([0.0]), ps.randomness.seeded(0)) == 1.0
    assert wins(np.array([0.0]), np.array([1.0]), ps.randomness.seeded(0)) == 0.0


def test_a_threshold_is_not_chosen_on_the_trials_that_it_is_measured_on():
    """Even worlds are high, odd ones low: a threshold from all of them would raise no alarm and claim hits."""
    outside = np.tile([5.0, 0.0], 200)[:, None]
    point = operating_point(np.tile([5.0, 4.0], 200)[:, None], outside, 0.01, 0.95)
    assert (point.fpr, point.tpr) == (0.0, 0.0)


def test_an_operating_point_keeps_its_rates():
    rng = np.random.default_rng(1)
    point = operating_point(rng.standard_normal((4000, 1)) + 2, rng.standard_normal((4000, 1)), 0.01, 0.95)
    assert point.fpr == pytest.approx(0.01, abs=0.007)
    assert point.tpr_interval[0] < Guarantee(2.0).tpr(point.fpr_interval[1])
    assert point.tpr_interval[1] > Guarantee(2.0).tpr(point.fpr_interval[0])
    assert point.fpr_interval[0] < point.fpr < point.fpr_interval[1]


def test_too_few_strangers_give_no_operating_point():
    assert operating_point(np.ones((50, 1)), np.zeros((50, 1)), 0.01, 0.95) is None
    assert operating_point(np.ones((50, 1)), np.zeros((0, 1)), 0.01, 0.95) is None


def test_the_curve_of_perfect_and_of_blind_scores():
    best = roc(np.ones((50, 2)), np.zeros((50, 2)), 0.95)
    assert (best.tpr[0], best.fpr[0]) == (1.0, 0.0)
    blind = roc(np.zeros((50, 2)), np.zeros((50, 2)), 0.95)
    assert blind.fpr == blind.tpr == (0.0, 1.0)
    assert 0 < best.margin[0] < 0.25


@pytest.mark.parametrize("kept", [Guarantee(0.089), Guarantee(1.666), Guarantee(1.666, 2.0)])
def test_a_guess_is_a_test_with_the_rate_at_which_it_is_right(kept):
    assert ceilings.reconstruction(kept, 0.05) == kept.tpr(0.05)
    assert ceilings.reconstruction(kept, 0.0) == 0.0


def test_the_auc_is_what_two_gaussians_give():
    out, inside = np.random.default_rng(0).standard_normal((2, 200_000))
    assert np.mean(inside + 1.0 > out) == pytest.approx(Guarantee(1.0).auc, abs=0.005)


@pytest.mark.parametrize(
    ("model", "adversary", "factor"),
    [
        ("central", Adversary(), 1),
        ("central", Adversary(sees="transcript"), None),
        ("central", Adversary(sees="cohort"), None),
        ("distributed", Adversary(sees="transcript", colluders=1), 1),
        ("distributed", Adversary(colluders=2), None),
        ("distributed", Adversary(sees="cohort"), None),
        ("local", Adversary(sees="cohort"), 1),
        ("central", Adversary(sees="releases", releases=4), 2),
        ("panel", Adversary(), 1),
        ("panel", Adversary(sees="transcript", colluders=2), 1),
        ("panel", Adversary(sees="cohort"), None),
    ],
)
def test_a_ceiling_stands_where_the_plan_promises_something(model, adversary, factor):
    plan = plan_of(promise(model))
    assert ceilings.guaranteed(plan, adversary) == (None if factor is None else Guarantee(plan.noise.mu * factor))


def test_of_every_drawer_it_is_said_who_sees_no_noise():
    assert set(BARE) == set(get_args(Drawer)) == {row.drawn_by for row in MODELS.values()}


def test_without_dp_there_is_no_ceiling():
    assert ceilings.guaranteed(plan_of(), Adversary()) is None


def test_a_record_of_a_protected_client_is_a_removal_and_an_addition():
    plan = plan_of(promise(unit="client", max_records_per_client=100))
    assert ceilings.guaranteed(plan, Adversary()) == Guarantee(2 * plan.noise.mu)


def test_epsilons_of_a_pure_plan_add_up_over_releases_and_for_a_record_of_a_protected_client():
    pure = made.promise(epsilon=0.5, delta=0.0)
    plan = made.plan(ps.ClassSchema(2, 4, "NA", 1.0), ps.Cohort(3, 3, 100), pure)
    found = ceilings.guaranteed(plan, Adversary(sees="releases", releases=4))
    assert found == Guarantee(2 * plan.noise.mu, 2.0)
    client = replace(pure, unit="client", max_records_per_client=3)
    assert ceilings.guaranteed(replace(plan, privacy=client), Adversary()).pure == 1.0
    known = {"attack": "a", "number": 1, "goal": "b", "adversary": "c", "sees": "release", "metric": "AUC"}
    for kept, written in ((found, 2.0), (Guarantee(0.3), None), (None, None)):
        row = Row(**known, **stated(kept))
        assert (row.guarantee, row.plain()["pure"]) == (kept, written)
