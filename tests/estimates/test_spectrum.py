"""Spectra and Wiener weights: exact without noise, sane under it, and never NaN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import truncnorm

from privstats.estimates.denoise import NoisyGram, adassp_penalty, denoise_spectrum, denoised_solve, positive_part
from tests.estimates.rounds import symmetric_noise

finite = st.floats(-1e6, 1e6)


@given(finite, st.floats(1e-3, 1e6))
def test_positive_part_is_the_truncated_posterior_mean(estimate, error):
    ratio = estimate / error
    got = float(positive_part(estimate, error))
    assert got > 0
    assert got >= estimate
    if ratio > -20:
        np.testing.assert_allclose(got, truncnorm.mean(-ratio, np.inf, loc=estimate, scale=error), rtol=1e-6)


@given(finite)
def test_positive_part_without_error_is_the_positive_part(estimate):
    assert float(positive_part(estimate, 0.0)) == max(estimate, 0.0)


def test_spectrum_is_exact_without_noise():
    M = np.cov(np.random.default_rng(3).standard_normal((8, 40)))
    spectrum = denoise_spectrum(M, 0.0)
    np.testing.assert_allclose((spectrum.vectors * spectrum.values) @ spectrum.vectors.T, M, atol=1e-12)
    assert (spectrum.lost, spectrum.risk) == (0.0, 0.0)


@given(st.integers(2, 40), st.floats(-3, 4), st.integers(0, 1000))
def test_denoised_spectrum_is_positive_and_ordered(d, level, seed):
    raw = np.random.default_rng(seed).standard_normal((d, d))
    spectrum = denoise_spectrum((raw + raw.T) / 2, 10.0**level)
    assert (spectrum.values >= 0).all()
    assert (np.diff(spectrum.values) >= -1e-9 * (1 + spectrum.values.max())).all()
    assert 0 <= spectrum.lost <= 1
    assert spectrum.risk >= 0


def test_denoising_lowers_the_error_of_a_noisy_covariance():
    rng = np.random.default_rng(4)
    d, sigma = 60, 1.0
    truth = np.diag(np.linspace(0, 20, d))
    E = sigma * symmetric_noise(rng, d)
    spectrum = denoise_spectrum(truth + E, sigma, pull=False)
    estimate = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
    error = np.square(estimate - truth).sum()
    assert error < 0.9 * np.square(E).sum()
    np.testing.assert_allclose(spectrum.risk, error, rtol=0.5)


def test_all_noise_becomes_round():
    spectrum = denoise_spectrum(np.eye(30) + 5 * symmetric_noise(np.random.default_rng(5), 30), 5.0)
    assert np.ptp(spectrum.values) < 0.2 * spectrum.values.mean() + 1e-12 or spectrum.lost > 0.5


def test_a_lucky_draw_of_strong_noise_is_not_taken_for_a_spectrum():
    rng = np.random.default_rng(6)
    d, sigma = 64, 10.0
    truth = np.diag(np.linspace(0, 4, d))
    signal = np.square(truth - 2 * np.eye(d)).sum()
    for _ in range(100):
        spectrum = denoise_spectrum(truth + sigma * symmetric_noise(rng, d), sigma)
        estimate = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
        assert spectrum.lost > 0.4
        assert np.square(estimate - estimate.trace() / d * np.eye(d)).sum() < 6 * signal


def gram(n: int, d: int, seed: int, sigma: float = 0.0, T: int = 1) -> tuple[NoisyGram, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal((d, T))
    Y = X @ w + 0.1 * rng.standard_normal((n, T))
    E = symmetric_noise(rng, d)
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
