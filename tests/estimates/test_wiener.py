"""Wiener weights are ridge regression without noise, and shrink to nothing where noise hides everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates.spectrum import NoisyGram, adassp_penalty, denoised_solve


def gram(n: int, d: int, seed: int, sigma: float = 0.0, T: int = 1) -> tuple[NoisyGram, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal((d, T))
    Y = X @ w + 0.1 * rng.standard_normal((n, T))
    upper = np.triu(rng.standard_normal((d, d)))
    E = np.diag(np.diag(upper)) + (np.triu(upper, 1) + np.triu(upper, 1).T) * 2**-0.5
    h, q = X.T @ Y + sigma * rng.standard_normal((d, T)), float((Y**2).sum() + sigma * rng.standard_normal())
    return NoisyGram(X.T @ X + sigma * E, h, q, sigma, sigma, sigma, float(n)), w


@given(st.integers(1, 6), st.integers(1, 3), st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_without_noise_and_with_a_penalty_it_is_ridge_regression(d, T, penalty, seed):
    sums, _ = gram(60, d, seed, T=T)
    expected = np.linalg.solve(sums.G + penalty * np.eye(d), sums.h)
    np.testing.assert_allclose(denoised_solve(sums, penalty).weights, expected, rtol=1e-6, atol=1e-9)


@given(st.integers(1, 8), st.floats(-2, 8), st.integers(0, 1000))
def test_weights_are_finite_at_every_noise_level(d, level, seed):
    sums, _ = gram(30, d, seed, 10.0**level)
    fit = denoised_solve(sums)
    assert np.isfinite(fit.weights).all()
    assert fit.penalty >= 0
    assert fit.gram in ("denoised", "linear")


def test_under_noise_it_is_nearer_to_the_truth_than_plain_least_squares():
    errors = []
    for seed in range(20):
        sums, w = gram(200, 20, seed, 100.0)
        plain = np.linalg.solve(sums.G, sums.h)
        errors.append([np.square(each - w).sum() for each in (denoised_solve(sums).weights, plain)])
    wiener, plain_error = np.median(errors, axis=0)
    assert wiener < 0.7 * plain_error


def test_the_penalty_of_adassp_is_what_lifts_the_least_eigenvalue():
    values, sigma = np.array([1.0, 5.0]), 3.0
    assert adassp_penalty(values, 0.0) == 0.0
    expected = sigma * np.sqrt(2 * np.log(2 * 4 / 0.05)) - 1.0
    assert adassp_penalty(values, sigma) == pytest.approx(expected)
    assert adassp_penalty(np.array([-4.0, 5.0]), sigma) == pytest.approx(expected + 1.0)
