"""QDA and RDA equal the textbook without noise, meet LDA at full pooling, and survive noise and singular input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from privstats.heads import LDA, QDA, RDA
from tests.heads.conftest import class_release, gaussian_mu

pytestmark = pytest.mark.filterwarnings("ignore::privstats.heads.FewRecordsWarning")


def biased_covariances(X, y):
    return [np.cov(X[y == c].T, bias=True) for c in np.unique(y)]


def test_qda_without_shrinkage_is_the_gaussian_density(blobs):
    X, y = blobs()
    scores = QDA(shrinkage=None).fit(X, y)._scores(X)
    for c, covariance in enumerate(biased_covariances(X, y)):
        density = multivariate_normal.logpdf(X, X[y == c].mean(axis=0), covariance) + np.log((y == c).mean())
        difference = scores[:, c] - density
        np.testing.assert_allclose(difference, difference[0], atol=1e-7)
    shift = (
        scores
        - np.c_[
            [
                multivariate_normal.logpdf(X, X[y == c].mean(axis=0), S) + np.log((y == c).mean())
                for c, S in enumerate(biased_covariances(X, y))
            ]
        ].T
    )
    np.testing.assert_allclose(shift, shift[0, 0], atol=1e-7)


def test_qda_agrees_with_scikit_learn(blobs):
    X, y = blobs(n=2000)
    ours, theirs = QDA(shrinkage=None).fit(X, y), QuadraticDiscriminantAnalysis().fit(X, y)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.995
    assert abs(ours.score(X, y) - theirs.score(X, y)) < 0.003


def test_rda_scores_are_students_t(blobs):
    X, y = blobs()
    head = RDA(shrinkage=None, pooled_weight=0.5, degrees=7).fit(X, y)
    own = biased_covariances(X, y)
    pooled = sum((y == c).mean() * S for c, S in enumerate(own))
    reference = np.stack(
        [
            # a t density with shape matrix S; scipy's normalisation is common to all classes but for the determinant
            multivariate_t.logpdf(X, X[y == c].mean(axis=0), (S + pooled) / 2, df=7) + np.log((y == c).mean())
            for c, S in enumerate(own)
        ],
        axis=1,
    )
    shift = head._scores(X) - reference
    np.testing.assert_allclose(shift, shift[0, 0], atol=1e-7)


def test_full_pooling_with_gaussian_scores_is_lda(blobs):
    X, y = blobs()
    rda = RDA(pooled_weight=1.0, degrees=None, shrinkage=0.1).fit(X, y)
    np.testing.assert_allclose(rda.predict_proba(X), LDA(shrinkage=0.1).fit(X, y).predict_proba(X), atol=1e-8)


def test_predict_is_the_argmax_of_the_float64_scores_even_where_float32_cannot_tell(blobs):
    X, y = blobs(n=4000, d=8, classes=7, spread=0.2)
    head = QDA().fit(X, y)
    middle = np.repeat(head.means_.mean(axis=0, keepdims=True), 50, axis=0)
    rows = np.r_[X, middle + 1e-7 * np.random.default_rng(0).standard_normal(middle.shape), X * 1e6]
    np.testing.assert_array_equal(head.predict(rows), head.classes_[head._scores(rows).argmax(axis=1)])


@pytest.mark.parametrize("head", [QDA(), RDA(), QDA(shrinkage=None), RDA(shrinkage=None)], ids=repr)
@pytest.mark.parametrize("flat", ["nowhere", "one class", "all classes"])
def test_predict_is_the_argmax_however_flat_a_class_is(head, flat, blobs):
    X, y = blobs(n=2000, d=20, classes=6, spread=0.35)
    X = 0.05 * X + 0.2
    if flat != "nowhere":
        X[(y == 2) | (flat == "all classes"), 3] = 0.8
    near = X + 1e-3 * np.random.default_rng(1).standard_normal(X.shape)
    rows = np.r_[X, near]
    for fitted in (head.fit(X, y), head.fit_release(class_release(np.round(X * 4096) / 4096, y, "NAS"))):
        np.testing.assert_array_equal(fitted.predict(rows), fitted.decision_function(rows).argmax(axis=1))


def test_batches_do_not_change_scores(blobs):
    X, y = blobs(n=2500)
    head = RDA().fit(X, y)
    np.testing.assert_allclose(head._scores(X)[1000:1030], head._scores(X[1000:1030]), rtol=1e-12)


@pytest.mark.parametrize("head", [QDA(), RDA(), QDA(shrinkage="oas")], ids=repr)
def test_singular_classes_are_survived(head, blobs):
    X, y = blobs(n=80, d=6, classes=4)
    X = np.c_[X, np.ones(len(X)), X[:, :1], np.zeros((len(X), 3))]
    X, y = np.r_[X, X[:1] * 3], np.r_[y, 4]  # a class of one record
    assert np.isfinite(head.fit(X, y).predict_proba(X)).all()
    assert head.score(X, y) > 0.5


@given(st.integers(0, 2**32 - 1), st.floats(-2, 5), st.sampled_from([0.0, 0.5, 1.0, "auto"]))
def test_scores_are_finite_at_every_noise_level(seed, level, pooled_weight):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5)) * rng.integers(0, 2, size=5)
    y = np.r_[np.arange(3), rng.integers(3, size=17)]
    release = class_release(X, y, "NAS", dict.fromkeys("NAS", 10.0**level), rng)
    assert np.isfinite(RDA(pooled_weight=pooled_weight).fit_release(release).predict_proba(X)).all()


def test_noise_turns_qda_into_lda_and_not_into_nonsense(blobs):
    X, y = blobs(n=4000, d=10, classes=4)
    release = class_release(X, y, "NAS", {"N": 5.0, "A": 30.0, "S": 3000.0}, np.random.default_rng(0))
    exact = QDA().fit(X, y).score(X, y)
    noisy = QDA().fit_release(release).score(X, y)
    assert noisy > 0.8 * exact
    assert noisy >= LDA().fit_release(release).score(X, y) - 0.05


def test_a_direction_that_noise_has_flattened_does_not_cost_a_class(blobs):
    X, y = blobs(n=4000, d=10, classes=4)
    sigma = {"N": 15.0, "A": 90.0, "S": 9000.0}
    unlucky = np.random.default_rng(150)  # of 300 draws the one that lost a class when eigenvalues were cut at 0
    head = QDA().fit_release(class_release(X, y, "NAS", sigma, unlucky))
    assert min(head.score(X[y == c], y[y == c]) for c in range(4)) > 0.7


@pytest.mark.parametrize("unlucky", [0, 26, 33])
def test_a_class_whose_covariance_is_noise_alone_is_not_lost(digits, unlucky):
    """Draws in which a class was never predicted while two hundredths of the noise in S counted as its covariance."""
    X, X_test, y, y_test = digits
    mu = gaussian_mu(0.3, 1e-5)
    sigma = {name: (mu * share**0.5) ** -1 for name, share in {"N": 0.02, "A": 0.85, "S": 0.13}.items()}
    release = class_release(X, y, "NAS", sigma, np.random.default_rng(unlucky))
    lda, qda = ([h.score(X_test[y_test == c], y_test[y_test == c]) for c in range(10)] for h in fitted(release))
    assert all(own > 0.1 for own, linear in zip(qda, lda, strict=True) if linear > 0.5)


def fitted(release):
    return LDA().fit_release(release), QDA().fit_release(release)


def test_little_noise_is_no_noise(blobs):
    X, y = blobs()
    clean = QDA().fit_release(class_release(X, y, "NAS"))._scores(X)
    noisy = class_release(X, y, "NAS", dict.fromkeys("NAS", 1e-7), np.random.default_rng(0))
    np.testing.assert_allclose(QDA().fit_release(noisy)._scores(X), clean, rtol=1e-3, atol=1e-3)


def test_rda_pools_more_where_class_covariances_differ_by_chance_alone():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 60)
    X = rng.standard_normal((4, 12))[y] + rng.standard_normal((240, 12))
    alike = RDA().fit(X, y)
    different = RDA().fit(X * np.where((y % 2 == 0)[:, None], 4.0, np.linspace(0.2, 4, 12)), y)
    assert alike.pooled_weight_ > 0.89
    assert (different.pooled_weight_, RDA(pooled_weight=0.3).fit(X, y).pooled_weight_) == (0.8, 0.3)
