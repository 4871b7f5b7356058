"""Denoising is exact without noise and never NaN; the discriminant that a course publishes is that of the head."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.estimates import denoise, discriminant
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.discriminant import Discriminant, log_priors, published_weights, temperature
from privstats.heads.evidence import class_evidence
from privstats.kinds.calibration import FACTORS
from tests.heads.conftest import class_release, gaussian_blobs


def test_it_is_the_head_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 5)) + np.eye(3, 5)[y]
    for noise in (0.0, 20.0):
        release = class_release(X, y, sigma=dict.fromkeys("NAB", noise), rng=np.random.default_rng(0))
        real = release.moments
        sigma = {letter: float(release.sigma.get(letter, 0.0)) for letter in "NAB"}
        sums = NoisyClassSums(real.N, real.A, real.B, sigma)
        n = denoise.counts(sums.N, sums.noise("N"))
        coef, intercept = Discriminant.of(sums, n).scores(log_priors("counts", n))
        head = ps.heads.LDA().fit_release(release)
        np.testing.assert_array_equal(coef, head.coef_)
        np.testing.assert_array_equal(intercept, head.intercept_)


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_weights_of_units_give_rows_of_norm_1_the_same_probabilities(classes: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coef, intercept = 30 * rng.normal(size=(classes, d)), 100 * rng.normal(size=classes)
    x = rng.normal(size=d)
    x /= np.linalg.norm(x)
    found = 4 * published_weights(coef, intercept) @ np.append(math.sqrt(0.99) * x, 0.1)
    own = coef @ x + intercept
    np.testing.assert_allclose(found - found.max(), own - own.max(), atol=1e-9)
    np.testing.assert_allclose(published_weights(coef, intercept).sum(axis=0), 0.0, atol=1e-9)


def test_a_discriminant_that_is_far_too_bold_is_set_right_and_noise_alone_moves_nothing_far() -> None:
    """Hits 58 %, confidence 93 % as it is: the temperature is beyond what a prior around 1 of width .3 would admit."""
    rng = np.random.default_rng(0)
    scores = 12 * rng.normal(size=(4_000, 5))
    sure = np.exp(scores / 8) / np.exp(scores / 8).sum(axis=1, keepdims=True)
    labels = (rng.random((4_000, 1)) > sure.cumsum(axis=1)).sum(axis=1)
    top = scores.max(axis=1, keepdims=True)
    confidence = [(1 / np.exp(factor / 4 * (scores - top)).sum(axis=1)).sum() for factor in FACTORS]
    sums = np.array([(scores.argmax(axis=1) == labels).sum() - confidence[0], *np.diff(confidence)])
    assert temperature(sums, 0.0, FACTORS) == pytest.approx(8.0, rel=0.1)
    assert temperature(sums, 20.0, FACTORS) == pytest.approx(8.0, rel=0.15)
    assert 0.7 < temperature(sums, 1e6, FACTORS) < 1.6


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
    noisy, _ = class_evidence(class_release(X, y, sigma={"A": 300.0}, rng=np.random.default_rng(1)))
    shrunk = denoise.class_means(noisy, exact.N)
    assert np.square(shrunk.values - truth).sum() < 0.7 * np.square(noisy.A / exact.N[:, None] - truth).sum()
    assert ((shrunk.retained > 0) & (shrunk.retained < 1)).all()


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


def _exact(seed: int, classes: int, d: int, records: int) -> tuple[NoisyClassSums, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, records)
    X = (rng.normal(size=(records, d)) + 3 * rng.normal(size=(classes, d))[y]) * rng.uniform(0.1, 4, d)
    onehot = np.eye(classes)[y]
    sums = NoisyClassSums(onehot.sum(axis=0), onehot.T @ X, X.T @ X, dict.fromkeys("NAB", 0.0))
    return sums, denoise.counts(sums.N, 0.0)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 12), st.integers(8, 60))
@pytest.mark.parametrize("shrinkage", ["auto", "oas", 0.3])
@pytest.mark.parametrize("covariance", ["pooled", "total"])
def test_without_noise_a_factored_covariance_gives_what_its_spectrum_gives(
    covariance: Any, shrinkage: Any, seed: int, classes: int, d: int, records: int
) -> None:
    sums, n = _exact(seed, classes, d, records)
    found = Discriminant.of(sums, n, covariance, shrinkage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discriminant, "_factored", lambda *_: None)
        spectral = Discriminant.of(sums, n, covariance, shrinkage)
    assert found.shrinkage == pytest.approx(spectral.shrinkage, rel=1e-9)
    np.testing.assert_allclose(found.covariance, spectral.covariance, rtol=1e-8, atol=1e-9 * found.covariance.max())
    ours, theirs = found.scores(np.zeros(classes)), spectral.scores(np.zeros(classes))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7 * np.abs(other).max())


def test_little_shrinkage_no_variance_and_sums_of_no_records_are_left_to_the_spectrum() -> None:
    sums, n = _exact(0, 3, 4, 40)
    assert discriminant._factored(sums.A / n[:, None], sums.B, 40.0, None) is None
    assert discriminant._factored(sums.A / n[:, None], 0 * sums.B, 40.0, "auto") is None
    assert discriminant._factored(sums.A / n[:, None], np.diag([9.0, 9.0, 9.0, -26.0]), 40.0, 0.5) is None
    assert np.isfinite(Discriminant.of(replace(sums, B=0 * sums.B), n).weights).all()


@pytest.mark.parametrize("covariance", ["pooled", "total"])
def test_a_scatter_that_was_overwritten_before_its_factor_failed_is_formed_again(covariance: Any) -> None:
    sums, n = _exact(0, 3, 4, 40)
    impossible = replace(sums, B=sums.B - 40 * np.trace(sums.B) * np.eye(4)[:, :1] @ np.eye(4)[:1])
    impossible.B[1:, 1:] += 50 * np.trace(sums.B) * np.eye(3)
    found = Discriminant.of(impossible, n, covariance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discriminant, "_factored", lambda *_: None)
        spectral = Discriminant.of(impossible, n, covariance)
    assert np.array_equal(found.covariance, spectral.covariance)
    assert np.array_equal(found.weights, spectral.weights)


@pytest.mark.parametrize("d", [7, 256, 600])
def test_scatters_are_exactly_symmetric_at_any_number_of_tiles(d: int) -> None:
    sums, n = _exact(3, 5, d, 40)
    found = denoise.within_scatter(sums, n)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, sums.B - (sums.A / n[:, None]).T @ sums.A, atol=1e-9 * np.abs(sums.B).max())
    before = np.array(sums.B)
    total = denoise.total_scatter(sums, n)
    assert np.array_equal(total, total.T)
    grand = sums.A.sum(axis=0)
    np.testing.assert_allclose(total, sums.B - np.outer(grand, grand) / n.sum(), atol=1e-9 * np.abs(sums.B).max())
    denoise.within_scatter(sums, n)
    assert np.array_equal(sums.B, before)  # the released sums stay as they are
