"""Intervals keep their confidence, ties are coins, thresholds come from other trials than they are measured on."""

import numpy as np
import pytest
from scipy.stats import binomtest

from privstats.dp import Guarantee
from privstats.randomness import seeded
from threat_models.bounds import clopper_pearson, dkw_margin, operating_point, proportion, roc, wins


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (40, 1000)])
def test_clopper_pearson_is_scipys(successes, trials):
    exact = binomtest(successes, trials).proportion_ci(0.9, "exact")
    assert clopper_pearson(successes, trials, 0.9) == pytest.approx((exact.low, exact.high))


def test_no_trials_say_nothing():
    assert clopper_pearson(0, 0, 0.9) == (0.0, 1.0)
    assert proportion(np.array([1.0]), 0.9) == (0.0, 1.0)
    assert dkw_margin(0, 0.9) == 1.0
    assert dkw_margin(200, 0.95) == pytest.approx(0.0960, abs=1e-4)


def test_perfect_worlds_do_not_prove_perfection():
    low, high = proportion(np.ones(20), 0.95)
    assert (round(low, 3), high) == (0.832, 1.0)


def test_the_interval_covers_when_worlds_are_clusters():
    """Each world's rate is itself random (Beta), so counting its members as independent would cover far too rarely."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        rates = rng.beta(0.5 * 0.7, 0.5 * 0.3, 40)
        low, high = proportion(rng.binomial(50, rates) / 50, 0.9)
        inside += low <= 0.7 <= high
    assert inside >= 0.87 * 400


def test_ties_are_coins():
    constant = np.zeros((1, 3000))
    assert wins(constant[0], constant[0, :200], seeded(0)) == pytest.approx(0.5, abs=0.01)
    assert wins(np.array([1.0]), np.array([0.0]), seeded(0)) == 1.0
    assert wins(np.array([0.0]), np.array([1.0]), seeded(0)) == 0.0


def test_a_threshold_is_not_chosen_on_the_trials_that_it_is_measured_on():
    """Even worlds are high, odd ones low: a threshold from all of them would raise no alarm and claim hits."""
    outside = np.tile([5.0, 0.0], 200)[:, None]
    inside = np.tile([5.0, 4.0], 200)[:, None]
    point = operating_point(inside, outside, 0.01, 0.95)
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
    assert best.tpr[0] == 1.0
    assert best.fpr[0] == 0.0
    blind = roc(np.zeros((50, 2)), np.zeros((50, 2)), 0.95)
    assert blind.fpr == blind.tpr == (0.0, 1.0)
    assert 0 < best.margin[0] < 0.25
