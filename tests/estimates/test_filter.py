"""The filter is damped Newton without noise, stands still under noise that hides everything, and only gets surer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates.filter_bank import Filter, advanced

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
