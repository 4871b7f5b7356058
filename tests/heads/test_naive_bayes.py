"""Naive Bayes equals the textbook without noise and shrinks class variances toward the pooled ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from privstats.heads import NaiveBayes
from tests.heads.conftest import class_release


def test_without_shrinkage_it_is_scikit_learns_gaussian_nb(blobs):
    X, y = blobs()
    ours = NaiveBayes(shrinkage=None).fit(X, y)
    theirs = GaussianNB().fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("statistics", ["NAD", "NAS"])
def test_squares_come_from_d_or_s(blobs, statistics):
    X, y = blobs()
    head = NaiveBayes().fit_release(class_release(X, y, statistics))
    np.testing.assert_allclose(head.variances_, NaiveBayes().fit(X, y).variances_, atol=1e-9)


def test_b_alone_gives_pooled_variances(blobs):
    X, y = blobs()
    head = NaiveBayes(shrinkage=None).fit_release(class_release(X, y, "NAB"))
    within = sum(((X[y == c] - X[y == c].mean(axis=0)) ** 2).sum(axis=0) for c in range(4)) / len(X)
    np.testing.assert_allclose(head.variances_, np.broadcast_to(within, (4, 6)))


def test_full_shrinkage_is_pooled(blobs):
    X, y = blobs()
    variances = NaiveBayes(shrinkage=1.0).fit(X, y).variances_
    np.testing.assert_allclose(variances, np.broadcast_to(variances[0], variances.shape))


def test_a_feature_that_was_constant_so_far_may_still_vary(blobs):
    X, y = blobs()
    head = NaiveBayes().fit(np.c_[X, np.zeros(len(X))], y)
    assert (head.variances_[:, -1] > 1e-4 * head.variances_.mean()).all()


def test_one_record_class_takes_the_pooled_variance_mostly(blobs):
    X, y = blobs(n=60, classes=3)
    X, y = np.r_[X, X[:1]], np.r_[y, 3]
    head = NaiveBayes().fit(X, y)
    assert (head.variances_[3] > 0.1 * head.variances_[:3].min(axis=0)).all()


@given(st.integers(0, 2**32 - 1), st.floats(-2, 5), st.sampled_from(["NAD", "NAB", "NAS"]))
def test_scores_are_finite_at_every_noise_level(seed, level, statistics):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5)) * rng.integers(0, 2, size=5)
    y = np.r_[np.arange(3), rng.integers(3, size=17)]
    release = class_release(X, y, statistics, dict.fromkeys("NABSD", 10.0**level), rng)
    head = NaiveBayes().fit_release(release)
    assert np.isfinite(head.predict_log_proba(X)).all()
    assert (head.variances_ > 0).all()
