"""Denoising is exact without noise, sane under it, and never produces NaN."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates import denoise
from privstats.heads.evidence import class_evidence
from tests.heads.conftest import class_release, gaussian_blobs

finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=2, max_size=20), st.floats(1e-3, 1e4))
def test_counts_are_positive_and_not_more_spread_than_seen(values, sigma):
    N = np.array(values)
    shrunk = denoise.counts(N, sigma)
    assert (shrunk > 0).all()
    assert np.isfinite(shrunk).all()
    assert np.ptp(shrunk) <= np.ptp(N) + 1e-9 * np.abs(N).max()


def test_counts_without_noise_are_the_counts():
    N = np.array([3.0, 1.0, 40.0])
    np.testing.assert_array_equal(denoise.counts(N, 0.0), N)


def test_noisy_counts_are_closer_to_the_truth_than_the_noise():
    rng = np.random.default_rng(0)
    truth = np.full(30, 100.0)
    noisy = truth + 40 * rng.standard_normal((200, 30))
    shrunk = np.array([denoise.counts(row, 40.0) for row in noisy])
    assert np.square(shrunk - truth).mean() < 0.2 * np.square(noisy - truth).mean()


def test_means_are_exact_without_noise_and_better_than_raw_with_it():
    X, y = gaussian_blobs(d=30, classes=6)
    exact, _ = class_evidence(class_release(X, y))
    truth = denoise.class_means(exact, exact.N).values
    np.testing.assert_allclose(truth, exact.A / exact.N[:, None])
    sigma = {"A": 300.0}
    noisy, _ = class_evidence(class_release(X, y, sigma=sigma, rng=np.random.default_rng(1)))
    shrunk = denoise.class_means(noisy, exact.N)
    assert np.square(shrunk.values - truth).sum() < 0.7 * np.square(noisy.A / exact.N[:, None] - truth).sum()
    assert ((shrunk.kept > 0) & (shrunk.kept < 1)).all()


def test_within_scatter_is_unbiased():
    X, y = gaussian_blobs(n=300, d=4, classes=3)
    exact, _ = class_evidence(class_release(X, y))
    truth = denoise.within_scatter(exact, exact.N)
    rng = np.random.default_rng(2)
    draws = [
        denoise.within_scatter(class_evidence(class_release(X, y, sigma={"A": 20.0}, rng=rng))[0], exact.N)
        for _ in range(2000)
    ]
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - truth) < 5 * error + 1e-9).all()
