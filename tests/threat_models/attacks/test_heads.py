"""A published head is its moments: exactly for Gaussian ones, for ridge from several penalties."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from privstats import heads as ours
from privstats.errors import DataError
from tests.made import refused
from threat_models.attacks.heads import (
    baseline,
    from_quadratic_rule,
    moments_of_covariances,
    moments_of_variances,
    pooled_moment,
    ridge_sums,
    unshrink,
    unshrink_singular,
)


def blobs(n=300, d=6, C=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % C
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.standard_normal((C, d))[y], y


def sums(X, y):
    classes = np.unique(y)
    N = np.array([(y == c).sum() for c in classes])
    A = np.stack([X[y == c].sum(axis=0) for c in classes])
    S = np.stack([X[y == c].T @ X[y == c] for c in classes])
    return N, A, S, np.einsum("cii->ci", S)


def error(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def test_scikit_learns_quadratic_discriminants_are_their_moments():
    X, y = blobs()
    head = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    N, A, S, _ = sums(X, y)
    ddof = 1 if np.isclose(np.trace(head.covariance_[0]), np.trace(np.cov(X[y == 0].T))) else 0  # by its version
    found = moments_of_covariances(head.priors_ * len(X), head.means_, np.array(head.covariance_), ddof=ddof)
    assert error(found.N, N) < 1e-12
    assert error(found.A, A) < 1e-12
    assert error(found.second, S) < 1e-12


def test_scikit_learns_naive_bayes_is_its_moments():
    X, y = blobs(seed=1)
    head = GaussianNB().fit(X, y)
    N, A, _, D = sums(X, y)
    found = moments_of_variances(head.class_count_, head.theta_, head.var_, added=head.epsilon_)
    assert error(found.A, A) < 1e-12
    assert error(found.second, D) < 1e-12


def test_scikit_learns_linear_discriminants_are_b():
    X, y = blobs(seed=2)
    head = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    assert error(pooled_moment(head.priors_ * len(X), head.means_, head.covariance_), X.T @ X) < 1e-12


def test_our_quadratic_head_is_its_moments_from_what_its_file_holds():
    X, y = blobs(seed=3)
    head = ours.QDA(shrinkage=None).fit(X, y)
    N, A, S, _ = sums(X, y)
    found = from_quadratic_rule(head.rule_.arrays(), len(X))
    assert error(found.N, N) < 1e-9
    assert error(found.A, A) < 1e-9
    assert error(found.second, S) < 1e-9


def test_our_automatic_shrinkage_is_no_protection():
    X, y = blobs(seed=4)
    N, A, S, _ = sums(X, y)
    shrunk = from_quadratic_rule(ours.QDA().fit(X, y).rule_.arrays(), len(X))
    assert error(shrunk.second, S) > 1e-3
    means = shrunk.A / shrunk.N[:, None]
    covariances = shrunk.second / shrunk.N[:, None, None] - means[:, :, None] * means[:, None, :]
    d = X.shape[1]
    plain = np.stack([unshrink(Sigma, d / (d + 2 * n)) for Sigma, n in zip(covariances, N, strict=True)])
    assert error(moments_of_covariances(N, means, plain).second, S) < 1e-9


def test_our_naive_bayes_and_linear_discriminants_are_their_moments():
    X, y = blobs(seed=5)
    N, A, _, D = sums(X, y)
    bayes = ours.NaiveBayes(shrinkage=None).fit(X, y)
    assert error(moments_of_variances(N, bayes.means_, bayes.variances_).second, D) < 1e-9
    lda = ours.LDA().fit(X, y)
    assert error(pooled_moment(N, lda.means_, unshrink(lda.covariance_, lda.shrinkage_)), X.T @ X) < 1e-9


def test_a_head_in_a_subspace_keeps_what_it_dropped():
    X, y = blobs(d=8, seed=6)
    arrays = ours.QDA(subspace=2).fit(X, y).rule_.arrays()
    refused(DataError, "keeps 2 of 8", from_quadratic_rule, arrays, len(X))


@pytest.mark.parametrize("n", [30, 200])
def test_ledoit_wolf_unshrinks(n):
    X = np.random.default_rng(n).standard_normal((n, 50)) * np.linspace(1, 3, 50)
    shrunk, intensity = ledoit_wolf(X)
    centred = X - X.mean(axis=0)
    assert error(unshrink(shrunk, intensity), centred.T @ centred / n) < 1e-12


def test_of_few_records_the_intensity_need_not_be_published():
    X = np.random.default_rng(7).standard_normal((30, 50))
    shrunk, intensity = ledoit_wolf(X)
    plain, found = unshrink_singular(shrunk)
    centred = X - X.mean(axis=0)
    assert found == pytest.approx(intensity, rel=1e-9)
    assert error(plain, centred.T @ centred / 30) < 1e-9
    assert np.array_equal(unshrink_singular(np.zeros((3, 3)))[0], np.zeros((3, 3)))


def test_an_intensity_of_one_leaves_nothing():
    refused(DataError, "nothing but the trace", unshrink, np.eye(3), 1.0)


def test_a_path_of_penalties_is_the_gram_matrix():
    """Digits to ten one-hot targets by scikit-learn's ridge: nine penalties give more columns than dimensions."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0] / 16
    Y = np.eye(10)[y]
    penalties = np.geomspace(0.1, 1e4, 12)
    path = np.stack([Ridge(p, fit_intercept=False, solver="cholesky").fit(X, Y).coef_.T for p in penalties])
    found = ridge_sums(penalties, path)
    assert found.condition > 1
    assert error(found.G, X.T @ X) < 1e-9
    assert error(found.h, X.T @ Y) < 1e-9


def test_too_few_penalties_give_the_gram_matrix_only_where_the_weights_point():
    X, y = blobs(d=12, seed=8)
    G, h = X.T @ X, X.T @ np.eye(3)[y]
    path = np.stack([np.linalg.solve(G + p * np.eye(12), h) for p in (1.0, 10.0)])
    found = ridge_sums(np.array([1.0, 10.0]), path)
    change = path[1] - path[0]
    assert error(found.G @ change, G @ change) < 1e-6
    assert error(found.G, G) > 0.05
    public = len(X) * baseline(blobs(d=12, seed=8)[0][:40])  # some of the same people, say
    helped = ridge_sums(np.array([1.0, 10.0]), path, prior=public)
    assert error(helped.G @ change, G @ change) < 1e-6
    assert error(helped.G, G) < error(public, G)
    refused(DataError, "two different numbers", ridge_sums, np.array([1.0]), path[:1])


def test_a_target_that_is_nothing_adds_nothing():
    G, h = np.diag([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 0.0]])
    path = np.stack([np.linalg.solve(G + p * np.eye(2), h) for p in (0.5, 1.0, 2.0)])
    assert error(ridge_sums(np.array([0.5, 1.0, 2.0]), path).G, G) < 1e-9


def test_the_public_sample_alone_is_not_the_second_moment():
    X, _ = blobs(seed=9)
    public, _ = blobs(seed=10)
    assert error(baseline(X), X.T @ X / len(X)) == 0
    assert error(baseline(public), X.T @ X / len(X)) > 0.3
