"""Spectra are exact without noise, sane under it, and never NaN."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import truncnorm

from privstats.estimates.spectrum import denoise_spectrum, positive_part

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
    rng = np.random.default_rng(3)
    M = np.cov(rng.standard_normal((8, 40)))
    spectrum = denoise_spectrum(M, 0.0)
    np.testing.assert_allclose((spectrum.vectors * spectrum.values) @ spectrum.vectors.T, M, atol=1e-12)
    assert (spectrum.lost, spectrum.risk) == (0.0, 0.0)


@given(st.integers(2, 40), st.floats(-3, 4), st.integers(0, 1000))
def test_denoised_spectrum_is_positive_and_ordered(d, level, seed):
    rng = np.random.default_rng(seed)
    raw = rng.standard_normal((d, d))
    spectrum = denoise_spectrum((raw + raw.T) / 2, 10.0**level)
    assert (spectrum.values >= 0).all()
    assert (np.diff(spectrum.values) >= -1e-9 * (1 + spectrum.values.max())).all()
    assert 0 <= spectrum.lost <= 1
    assert spectrum.risk >= 0


def test_denoising_lowers_the_error_of_a_noisy_covariance():
    rng = np.random.default_rng(4)
    d, sigma = 60, 1.0
    truth = np.diag(np.linspace(0, 20, d))
    upper = np.triu(rng.standard_normal((d, d)))
    E = sigma * (np.diag(np.diag(upper)) + (np.triu(upper, 1) + np.triu(upper, 1).T) * 2**-0.5)
    spectrum = denoise_spectrum(truth + E, sigma, pull=False)
    estimate = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
    error = np.square(estimate - truth).sum()
    assert error < 0.9 * np.square(E).sum()
    np.testing.assert_allclose(spectrum.risk, error, rtol=0.5)


def test_all_noise_becomes_round():
    upper = np.triu(np.random.default_rng(5).standard_normal((30, 30)))
    E = np.diag(np.diag(upper)) + (np.triu(upper, 1) + np.triu(upper, 1).T) * 2**-0.5
    spectrum = denoise_spectrum(np.eye(30) + 5 * E, 5.0)
    assert np.ptp(spectrum.values) < 0.2 * spectrum.values.mean() + 1e-12 or spectrum.lost > 0.5


def test_a_lucky_draw_of_strong_noise_is_not_taken_for_a_spectrum():
    rng = np.random.default_rng(6)
    d, sigma = 64, 10.0
    truth = np.diag(np.linspace(0, 4, d))
    signal = np.square(truth - 2 * np.eye(d)).sum()
    for _ in range(100):
        upper = np.triu(rng.standard_normal((d, d)))
        E = sigma * (np.diag(np.diag(upper)) + (np.triu(upper, 1) + np.triu(upper, 1).T) * 2**-0.5)
        spectrum = denoise_spectrum(truth + E, sigma)
        estimate = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
        assert spectrum.lost > 0.4
        assert np.square(estimate - estimate.trace() / d * np.eye(d)).sum() < 6 * signal
