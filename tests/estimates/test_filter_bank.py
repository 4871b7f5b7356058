"""The bank: hypotheses that are right win, and what none of them covers does no harm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates.filter_bank import KalmanBank

D = 6
CURVATURE = np.full(D, 1 / D)


def filters(stretch: float = 1.0, energy: tuple[float, float] = (1.0, 1e3), bound: float = 2.0) -> KalmanBank:
    return KalmanBank.of(CURVATURE, np.ones(D), stretch, energy, bound)


def walked(start: KalmanBank, rounds: int, curvature: float, best: np.ndarray) -> list[np.ndarray]:
    """Exact unclipped gradients where all curvatures are ``curvature`` times what the bank takes them for."""
    points = [np.zeros(D)]
    for _ in range(rounds):
        way = curvature * (best - points[-1])
        start = start.pointed(points[-1], way, np.full(D, 1e-2), 1.0, CURVATURE)
        points.append(start.mean)
    return points


def test_before_any_gradient_weights_explain_what_the_hypothesis_says():
    start = filters(8.0, bound=2.0)
    assert start.belief.sum() == pytest.approx(1)
    np.testing.assert_array_equal(start.mean, np.zeros(D))
    np.testing.assert_allclose(start.energies(np.zeros(D), CURVATURE).max(), 4.0)
    np.testing.assert_allclose(sorted(set(start.stretch)), [1, 6 ** (1 / 3), 6 ** (2 / 3), 6])  # no more than d
    assert set(filters(1.0).stretch) == {1.0}


@pytest.mark.parametrize("energy", [0.01, 0.3, 3.0])
def test_the_targets_energy_is_read_off_the_release_where_noise_lets_it(energy):
    known, hidden = filters(energy=(energy, 1e-3)), filters(energy=(energy, 1e3))
    size = known.deviation(np.zeros(D), CURVATURE)
    assert size == pytest.approx(math.sqrt(energy), rel=0.3)
    assert hidden.deviation(np.zeros(D), CURVATURE) == pytest.approx(
        filters().deviation(np.zeros(D), CURVATURE), rel=1e-3
    )


@pytest.mark.parametrize("deviation", [0.1, 0.5, 1.5])
def test_counts_tell_how_large_residuals_are(deviation):
    told, origin, clip = filters(), np.zeros(D), 0.5
    for _ in range(6):
        share = math.erf(clip / deviation / math.sqrt(2))
        told = told.counted(origin, (share, 0.01), clip, 10_000, CURVATURE)
        clip = told.deviation(origin, CURVATURE)
    assert clip == pytest.approx(deviation, rel=0.2)


def test_gradients_lead_to_the_optimum():
    best = np.linspace(-1, 1, D)
    points = walked(filters(), 8, 1.0, best)
    np.testing.assert_allclose(points[-1], best, atol=0.02)


def test_hidden_curvature_is_noticed_before_steps_run_away():
    """Curvature four times what it looks makes every Newton step four times too long."""
    best = np.linspace(-1, 1, D)
    off = [np.linalg.norm(points[-1] - best) for points in (walked(filters(s), 8, 4.0, best) for s in (1.0, 6.0))]
    assert off[0] > 1
    assert off[1] < 0.1


def test_one_curved_direction_does_not_stop_the_others():
    """Gradients are long in one direction; all being as curved would mean that the others are known already."""
    long, best = np.full(D, D**-0.5), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    curvature = np.eye(D) + (D - 1) * np.outer(long, long)
    left = []
    for single in (False, True):
        point = np.zeros(D)
        told = KalmanBank.of(CURVATURE, np.ones(D), float(D), (1.0, 1e3), 2.0, single=single)
        for _ in range(24):
            told = told.pointed(point, curvature @ (best + 2 * long - point), np.full(D, 1.0), 1.0, CURVATURE)
            point = told.mean
        away = best + 2 * long - point
        assert abs(away @ long) < 0.1
        left.append(np.linalg.norm(away - (away @ long) * long))
    assert left[1] < left[0] - 0.1


def test_one_curved_direction_is_as_likely_as_that_all_are():
    start, single = filters(6.0), KalmanBank.of(CURVATURE, np.ones(D), 6.0, (1.0, 1e3), 2.0, single=True)
    assert len(single.others) == 3 * len(start.evidence) // 4
    assert len(start.others) == 0
    for stretch in set(start.stretch):
        assert single.belief[single.stretch == stretch].sum() == pytest.approx(
            start.belief[start.stretch == stretch].sum()
        )
    last = single.stretch[-len(single.others) :, None]
    np.testing.assert_allclose(single.others, last * single.variance[-len(single.others) :])
    exact = KalmanBank.of(CURVATURE, np.ones(D), 1.0, (1.0, 1e3), 2.0, single=True)
    np.testing.assert_array_equal(exact.evidence, filters(1.0).evidence)  # nothing is hidden, and nothing is added


def test_clipping_is_allowed_for():
    best, half = np.linspace(-1, 1, D), filters()
    half = half.pointed(np.zeros(D), 0.5 * best, np.full(D, 1e-3), 0.5, CURVATURE)
    whole = filters().pointed(np.zeros(D), best, np.full(D, 2e-3), 1.0, CURVATURE)
    np.testing.assert_allclose(half.mean, whole.mean, rtol=1e-9)


@given(
    st.floats(-1e6, 1e6),
    st.floats(0, 1e3),
    st.floats(-1e3, 1e3),
    st.floats(1, 1e6),
    st.floats(1e-6, 1e3),
    st.sampled_from([0.0, 1e-9, 1.0, 1e6]),
    st.booleans(),
)
def test_whatever_a_round_says_beliefs_stay_numbers(energy, error, share, stretch, clip, noise, single):
    told, point = KalmanBank.of(CURVATURE, np.ones(D), stretch, (energy, error), 2.0, single=single), np.ones(D)
    for _ in range(3):
        told = told.counted(point, (share, noise), clip, 100, CURVATURE)
        attenuation = told.within(point, clip, CURVATURE)
        told = told.pointed(point, np.full(D, share), np.full(D, noise), attenuation, CURVATURE)
        assert np.isfinite(told.belief).all()
        assert np.isfinite(told.mean).all()
        assert 0 < told.deviation(told.mean, CURVATURE) < math.inf
        point = told.mean
