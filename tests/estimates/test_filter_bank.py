"""The filters: damped Newton without noise, still where noise hides everything; of a bank the right hypothesis wins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates.filter_bank import Filter, KalmanBank, advanced

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
    assert known.deviation(np.zeros(D), CURVATURE) == pytest.approx(math.sqrt(energy), rel=0.3)
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
    np.testing.assert_allclose(walked(filters(), 8, 1.0, best)[-1], best, atol=0.02)


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
    assert (len(single.others), len(start.others)) == (3 * len(start.evidence) // 4, 0)
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


CAUTION = 0.5


def start(C: int, k: int, seed: int) -> tuple[Filter, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    state = Filter(rng.standard_normal((C, k)), rng.uniform(0.1, 4, k), np.zeros((C, k)))
    return state, rng.standard_normal((C, k)), rng.uniform(0.01, 2, k)


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10_000))
def test_without_noise_it_is_damped_newton_whatever_is_believed(C, k, seed):
    state, gradient, curvature = start(C, k, seed)
    after = advanced(state, gradient, 0.0, curvature, caution=CAUTION)
    np.testing.assert_allclose(after.weights, state.weights - gradient / curvature / (1 + CAUTION))
    np.testing.assert_allclose(after.variance, state.variance * CAUTION / (1 + CAUTION))


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10_000))
def test_noise_without_bound_moves_nothing(C, k, seed):
    state, gradient, curvature = start(C, k, seed)
    after = advanced(state, gradient, 1e30, curvature, caution=CAUTION, centred=True)
    np.testing.assert_allclose(after.weights, state.weights, atol=1e-12)
    np.testing.assert_allclose(after.variance, state.variance)


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10_000), st.floats(0, 1e6), st.floats(0, 1e6))
def test_it_gets_surer_and_more_so_with_less_noise(C, k, seed, one, other):
    state, gradient, curvature = start(C, k, seed)
    less, more = (
        advanced(state, gradient, level, curvature, caution=CAUTION).variance for level in sorted((one, other))
    )
    assert (less <= more).all()
    assert (more <= state.variance).all()
    assert (less > 0).all()


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10_000), st.floats(0, 10))
def test_centred_steps_leave_the_mean_over_classes_alone(C, k, seed, noise):
    state, gradient, curvature = start(C, k, seed)
    after = advanced(state, gradient, noise, curvature, caution=CAUTION, momentum=0.3, centred=True)
    np.testing.assert_allclose(after.weights.mean(axis=0), state.weights.mean(axis=0), atol=1e-9)


@given(st.integers(0, 10_000))
def test_on_a_quadratic_it_converges(seed):
    rng = np.random.default_rng(seed)
    optimum, curvature = rng.standard_normal((3, 5)), rng.uniform(0.1, 1, 5)
    state = Filter(np.zeros((3, 5)), np.ones(5), np.zeros((3, 5)))
    for _ in range(12):
        state = advanced(state, (state.weights - optimum) * curvature, 0.0, curvature, caution=CAUTION, momentum=0.3)
    np.testing.assert_allclose(state.weights, optimum, atol=0.02)


def test_under_noise_it_ends_nearer_to_the_optimum_than_plain_newton():
    rng = np.random.default_rng(0)
    optimum, curvature, sigma = rng.standard_normal((10, 50)), np.full(50, 0.5), 1.0
    state, plain = Filter(np.zeros((10, 50)), np.ones(50), np.zeros((10, 50))), np.zeros((10, 50))
    for _ in range(6):
        noise = sigma * rng.standard_normal((10, 50))
        state = advanced(state, (state.weights - optimum) * curvature + noise, sigma**2, curvature, caution=CAUTION)
        plain = plain - ((plain - optimum) * curvature + noise) / curvature
    assert np.square(state.weights - optimum).sum() < 0.3 * np.square(plain - optimum).sum()
