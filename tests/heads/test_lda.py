"""LDA equals the textbook without noise, beats naive use of noisy moments, and survives singular input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from privstats.heads import LDA
from tests.heads.conftest import class_release, record_noise
from tests.made import refused


def digits_accuracy(digits, head, epsilon, repeats=5):
    X, X_test, y, y_test = digits
    scores = []
    for seed in range(repeats):
        release = class_release(X, y, sigma=record_noise(epsilon), rng=np.random.default_rng(seed), clip_norm=1.0)
        scores.append(head.fit_release(release).score(X_test, y_test))
    return 100 * np.mean(scores)


def test_without_shrinkage_it_is_scikit_learns_lda(blobs):
    X, y = blobs()
    ours = LDA(shrinkage=None).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_, atol=1e-9)


@pytest.mark.parametrize(("epsilon", "least"), [(0.3, 72.0), (1.0, 88.0), (3.0, 91.0)])
def test_digits_stay_accurate_under_noise(digits, epsilon, least):
    assert digits_accuracy(digits, LDA(), epsilon) >= least


def test_digits_without_noise_match_scikit_learn(digits):
    X, X_test, y, y_test = digits
    theirs = LinearDiscriminantAnalysis().fit(X, y).score(X_test, y_test)
    assert abs(LDA().fit_release(class_release(X, y, clip_norm=1.0)).score(X_test, y_test) - theirs) <= 0.01


def test_little_noise_is_no_noise(digits):
    X, X_test, y, _ = digits
    clean = LDA().fit_release(class_release(X, y, clip_norm=1.0)).decision_function(X_test)
    sigma = dict.fromkeys("NAB", 1e-7)
    noisy = class_release(X, y, sigma=sigma, rng=np.random.default_rng(0), clip_norm=1.0)
    np.testing.assert_allclose(LDA().fit_release(noisy).decision_function(X_test), clean, rtol=1e-2)


def test_overwhelming_noise_is_no_worse_than_chance(digits):
    assert digits_accuracy(digits, LDA(), 0.005, repeats=20) > 7.0


@given(st.integers(0, 2**32 - 1), st.floats(-2, 5), st.integers(2, 6), st.integers(2, 9))
def test_scores_are_finite_at_every_noise_level(seed, level, classes, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, d)) * rng.integers(0, 2, size=d)
    y = np.r_[np.arange(classes), rng.integers(classes, size=20 - classes)]
    sigma = dict.fromkeys("NAB", 10.0**level)
    for covariance in ("pooled", "total"):
        head = LDA(covariance=covariance).fit_release(class_release(X, y, sigma=sigma, rng=rng))
        proba = head.predict_proba(X)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("shrinkage", ["auto", None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("covariance", ["pooled", "total"])
def test_exactly_singular_covariance_is_survived(blobs, covariance, shrinkage):
    X, y = blobs()
    X = np.c_[X, np.ones(len(X)), X[:, 0], np.zeros(len(X))]
    head = LDA(covariance=covariance, shrinkage=shrinkage).fit_release(class_release(X, y))
    plain = LDA(covariance=covariance, shrinkage=shrinkage).fit(X[:, :-3], y)
    assert np.isfinite(head.decision_function(X)).all()
    assert head.score(X, y) >= plain.score(X[:, :-3], y) - 0.1


def test_one_record_classes_are_survived(blobs):
    X, y = blobs(n=40, classes=4)
    X, y = np.r_[X, X[:1] + 50], np.r_[y, 4]
    assert LDA().fit(X, y).predict(X[-1:]) == [4]


def test_total_covariance_is_the_covariance_of_all_records(blobs):
    X, y = blobs()
    head = LDA(covariance="total", shrinkage=None).fit(X, y)
    np.testing.assert_allclose(head.covariance_, np.cov(X.T, bias=True), atol=1e-10)


def test_priors(blobs):
    X, y = blobs()
    counts = LDA().fit(X, y)
    np.testing.assert_allclose(counts.intercept_, LDA(priors=np.bincount(y) / len(y)).fit(X, y).intercept_)
    assert not np.allclose(counts.intercept_, LDA(priors="uniform").fit(X, y).intercept_)
    for wrong in ("median", [0.5, 0.5], [-1, 1, 1, 1]):
        refused(ValueError, "priors must be", LDA(priors=wrong).fit, X, y)


def test_features_far_from_zero_lose_no_accuracy(blobs):
    X, y = blobs()
    near, far = LDA().fit(X, y), LDA().fit(X + 1e6, y)
    np.testing.assert_allclose(far.decision_function(X + 1e6), near.decision_function(X), atol=1e-4)
