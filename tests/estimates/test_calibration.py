"""The temperature is where confidence meets the hits."""

import math

import numpy as np
import pytest

from privstats.estimates.softmax import temperature
from privstats.kinds.calibration import FACTORS


def sums(sharpness: float, n: int = 20_000, classes: int = 5) -> np.ndarray:
    """Hits and confidence of records whose labels are drawn from the softmax of ``sharpness`` times their scores."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n, classes)) * 2

    def probabilities(factor: float) -> np.ndarray:
        p = np.exp(factor * scores)
        return p / p.sum(axis=1, keepdims=True)

    chance = probabilities(sharpness).cumsum(axis=1)
    labels = (rng.random((n, 1)) > chance).sum(axis=1)
    sure = [probabilities(factor).max(axis=1).sum() for factor in FACTORS]
    return np.array([(scores.argmax(axis=1) == labels).sum() - sure[0], *np.diff(sure)])


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 1.3, 3.0])
def test_scores_that_are_off_by_a_factor_are_set_right(sharpness: float) -> None:
    for sigma in (0.0, 3.0):
        assert temperature(sums(sharpness), sigma, FACTORS) == pytest.approx(1 / sharpness, rel=0.06)


def test_noise_that_explains_the_gap_leaves_the_temperature_near_one() -> None:
    """Of draws of noise alone: without the posterior a third of them end at one of the outermost factors."""
    rng, right = np.random.default_rng(1), sums(1.0, n=500)
    drawn = [right + 60.0 * rng.normal(size=len(FACTORS)) for _ in range(200)]
    logs = np.abs(np.log([[temperature(each, sigma, FACTORS) for sigma in (60.0, 0.0)] for each in drawn]))
    assert logs[:, 0].max() < 0.6
    assert np.square(logs[:, 0]).mean() < 0.15 * np.square(logs[:, 1]).mean()


@pytest.mark.parametrize("first", [12.0, -30.0])
def test_the_posterior_is_that_of_the_definition(first: float) -> None:
    """By a sum over a grid of its own: prior N(0, .3^2) of log s, and the gap is N(0, i sigma^2) there.

    Beyond the outermost factors is as at them, where a gap below 0 at the first explains itself, and one above 0 at the
    last.
    """
    t, sigma, factors = np.array([first, 7.0, 9.0, 4.0]), 5.0, (0.5, 0.9, 1.4, 2.6)
    low, high = math.log(0.5), math.log(2.6)
    top = bottom = 0.0
    for s in np.linspace(-2.0, 2.0, 40_001):
        place = min(max(s, low), high)
        i = min(np.searchsorted(np.log(factors), place, side="right") - 1, 2)
        part = (place - math.log(factors[i])) / math.log(factors[i + 1] / factors[i])
        gap = t[0] - t[1 : i + 1].sum() - part * t[i + 1]
        gap = max(gap, 0.0) if s < low else min(gap, 0.0) if s > high else gap
        variance = sigma**2 * (i + 1 + part)
        weight = math.exp(-(gap**2) / (2 * variance) - s**2 / 0.18) / math.sqrt(variance)
        top, bottom = top + weight * place, bottom + weight
    assert temperature(t, sigma, factors) == pytest.approx(math.exp(-top / bottom), rel=1e-3)


def test_confidence_that_is_too_high_at_every_factor_takes_the_first_one_and_too_low_the_last() -> None:
    """However little noise there is: the variance of the gap rises with the factor, and would favour the last."""
    high, low = (np.array([gap, *[100.0] * 10]) for gap in (-2_000.0, 2_000.0))
    for sigma in (0.0, 1.0, 10.0, 50.0):
        assert temperature(high, sigma, FACTORS) == pytest.approx(1 / FACTORS[0])
    for sigma in (0.0, 10.0):
        assert temperature(low, sigma, FACTORS) == pytest.approx(1 / FACTORS[-1])


def test_sums_that_say_nothing_leave_the_temperature_at_one():
    """Separable records are right and as sure at every factor: the boldest one was taken."""
    assert temperature(np.zeros(11), 0.0, FACTORS) == 1.0
    assert temperature(np.r_[30.0, 30.0, np.zeros(9)], 0.0, FACTORS) == 1.0
    assert temperature(np.r_[0.0, np.ones(10)], 0.0, FACTORS) == pytest.approx(1 / FACTORS[0])
