"""Low-rank QDA: Woodbury is the dense inverse, full rank is QDA, rank 0 is LDA or naive Bayes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from privstats.contrib.heads.low_rank import woodbury_rule
from privstats.heads import LDA, QDA, LowRankQDA, NaiveBayes
from tests.heads.conftest import class_release


@given(st.integers(1, 6), st.integers(0, 4), st.integers(1, 4), st.integers(0, 1000))
def test_woodbury_is_the_dense_gaussian_density(d, r, classes, seed):
    rng = np.random.default_rng(seed)
    D, U = rng.uniform(0.2, 2, (classes, d)), rng.standard_normal((classes, d, r))
    means, prior, origin = (
        rng.standard_normal((classes, d)),
        np.log(np.full(classes, 1 / classes)),
        rng.standard_normal(d),
    )
    rule = woodbury_rule(D, U, means, prior, np.eye(d), origin)
    X = rng.standard_normal((9, d))
    dense = np.stack(
        [
            multivariate_normal.logpdf(X, means[c] + origin, np.diag(D[c]) + U[c] @ U[c].T).reshape(-1) + prior[c]
            for c in range(classes)
        ],
        axis=1,
    )
    np.testing.assert_allclose(rule.scores(X), dense + d / 2 * np.log(2 * np.pi), atol=1e-8)


@pytest.mark.parametrize("basis", ["pooled", "features"])
@pytest.mark.parametrize("residual", ["isotropic", "diagonal"])
def test_full_rank_is_qda(blobs, basis, residual):
    X, y = blobs()
    low = LowRankQDA(rank=6, basis=basis, residual=residual, pooled_weight=0.0, shrinkage=0.1).fit(X, y)
    full = QDA(shrinkage=0.1).fit(X, y)
    np.testing.assert_allclose(low.predict_proba(X), full.predict_proba(X), atol=1e-2)
    assert (low.predict(X) == full.predict(X)).mean() > 0.99


def test_rank_zero_is_lda_in_the_pooled_basis_and_naive_bayes_in_the_features(blobs):
    X, y = blobs()
    lda_like = LowRankQDA(rank=0, pooled_weight=1.0, shrinkage=0.1).fit(X, y)
    np.testing.assert_allclose(lda_like.predict_proba(X), LDA(shrinkage=0.1).fit(X, y).predict_proba(X), atol=1e-6)
    diagonal = LowRankQDA(rank=0, basis="features", residual="diagonal", pooled_weight=0.0, shrinkage=None).fit(X, y)
    np.testing.assert_allclose(
        diagonal.predict_proba(X), NaiveBayes(shrinkage=None).fit(X, y).predict_proba(X), atol=1e-6
    )


@pytest.mark.nightly
@pytest.mark.parametrize("residual", ["isotropic", "diagonal", "whole"])
@pytest.mark.parametrize("basis", ["pooled", "features"])
@given(seed=st.integers(0, 2**32 - 1), level=st.floats(-2, 5))
def test_scores_are_finite_at_every_noise_level(basis, residual, seed, level):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5)) * rng.integers(0, 2, size=5)
    y = np.r_[np.arange(3), rng.integers(3, size=17)]
    release = class_release(X, y, "NAS", dict.fromkeys("NAS", 10.0**level), rng)
    head = LowRankQDA(rank=2, basis=basis, residual=residual).fit_release(release)
    assert np.isfinite(head.predict_proba(X)).all()


def test_rank_is_capped_by_the_dimension(blobs):
    X, y = blobs()
    assert LowRankQDA(rank=99).fit(X, y).rule_.factors.shape == (6, 4 * 6)
