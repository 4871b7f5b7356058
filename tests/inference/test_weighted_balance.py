"""The interval of a weighted difference covers the noise of its sums, in standard deviations that are drawn here."""

import numpy as np
import pytest
from scipy import stats

from privstats.estimates.effect import ArmSums
from privstats.inference.treatment_effects.balance import WeightedSums, weighted_balance

SIGMA, TOTAL, DRAWS = 2.0, 400.0, 40_000


def arms(mean: float) -> ArmSums:
    """Return exact sums of 100 records in each arm, of one column with this mean and variance 1."""
    G = np.array([[100 * (1 + mean**2), 100 * mean], [100 * mean, 100.0]])
    return ArmSums((G, G), (np.zeros(2), np.zeros(2)), 1.0, 0.0, 0.0)


@pytest.mark.parametrize("mean", [0.0, 0.8, -1.5])
def test_the_interval_is_as_wide_as_the_noise_of_both_sums(mean: float) -> None:
    """A column's sum less the mean times the constant's sum: noise of both, one of them times the mean."""
    rng = np.random.default_rng(4)
    exact = np.array([30.0, 5.0])
    noisy = exact + SIGMA * rng.standard_normal((DRAWS, 2))
    drawn = np.std((noisy[:, 0] - mean * noisy[:, 1]) / TOTAL)
    ((centre, low, high),) = weighted_balance(arms(mean), WeightedSums(exact, TOTAL, SIGMA, 0.0), 0.05)
    assert centre == pytest.approx((exact[0] - mean * exact[1]) / TOTAL)
    reach = stats.norm.isf(0.025) * drawn
    assert [centre - low, high - centre] == pytest.approx([reach, reach], rel=0.015)


def test_noise_of_the_total_widens_the_interval_by_the_difference() -> None:
    rng = np.random.default_rng(5)
    exact, sigma_total = np.array([300.0, 0.0]), 12.0
    drawn = np.std(exact[0] / (TOTAL + sigma_total * rng.standard_normal(DRAWS)))
    ((centre, low, _),) = weighted_balance(arms(0.0), WeightedSums(exact, TOTAL, 0.0, sigma_total), 0.05)
    assert centre - low == pytest.approx(stats.norm.isf(0.025) * drawn, rel=0.015)
