"""Ridge from sums is ridge from records; the penalty choices find what they define; noise is survived."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import RidgeClassifier as SklearnRidgeClassifier
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from privstats.errors import HeadError, MissingStatisticError
from privstats.heads import Ridge, RidgeClassifier
from privstats.transforms import ConstantFeature
from tests.heads.conftest import class_release, ridge_release
from tests.made import refused

pytestmark = pytest.mark.filterwarnings("ignore:this release has no constant feature")


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return train_test_split(X, y, random_state=0)


def with_constant(X, value=0.5):
    return np.c_[X, np.full(len(X), value)]


@pytest.mark.parametrize("penalty", [0.0, 0.01, 1.0, 100.0])
def test_records_give_scikit_learns_ridge(diabetes, penalty):
    X, X_test, y, _ = diabetes
    ours = Ridge(penalty=penalty).fit(X, y)
    theirs = SklearnRidge(alpha=penalty).fit(X, y)
    np.testing.assert_allclose(ours.predict(X_test), theirs.predict(X_test), rtol=1e-7)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)


@given(penalty=st.floats(1e-3, 1e3), seed=st.integers(0, 99), d=st.integers(2, 8), n=st.integers(3, 30))
def test_the_condition_number_is_numpys_and_within_the_papers_corollary_1(penalty, seed, d, n):
    X = np.random.default_rng(seed).normal(size=(n, d)) * np.logspace(-2, 2, d)
    head = Ridge(penalty=penalty, solver="plain", fit_intercept=False).fit(X, X[:, 0])
    system = X.T @ X + penalty * np.eye(d)
    assert head.condition_ == pytest.approx(np.linalg.cond(system), rel=1e-6)
    assert head.condition_ <= np.linalg.eigvalsh(system)[-1] / penalty * (1 + 1e-9)


def test_a_singular_system_has_no_finite_condition_number_and_noise_leaves_one(diabetes):
    X, _, y, _ = diabetes
    assert Ridge(penalty=0.0).fit(np.c_[X, X[:, :1]], y).condition_ == np.inf
    noisy = Ridge().fit_release(ridge_release(X, y, {"G": 0.1, "h": 0.1, "q": 0.1}, np.random.default_rng(0)))
    assert noisy.solver_ == "aggregate"
    assert 1 <= noisy.condition_ < np.inf


@pytest.mark.parametrize("penalty", ["gcv", "evidence", 0.1])
def test_release_with_a_constant_feature_is_ridge_with_an_intercept(diabetes, penalty):
    X, X_test, y, _ = diabetes
    release = ridge_release(with_constant(X), y, transform=(ConstantFeature(0.5),))
    np.testing.assert_allclose(
        Ridge(penalty=penalty).fit_release(release).predict(X_test),
        Ridge(penalty=penalty).fit(X, y).predict(X_test),
        rtol=1e-6,
    )


def test_gcv_is_as_good_as_scikit_learns_cross_validation(diabetes):
    X, X_test, y, y_test = diabetes
    theirs = RidgeCV(np.logspace(-6, 2, 60)).fit(X, y)
    assert Ridge().fit(X, y).score(X_test, y_test) >= theirs.score(X_test, y_test) - 0.01


@pytest.mark.parametrize("constant", [True, False])
def test_fold_sums_choose_what_explicit_cross_validation_chooses(diabetes, constant):
    X, _, y, _ = diabetes
    X = X * 10
    rows, transform = (with_constant(X), (ConstantFeature(0.5),)) if constant else (X, ())
    chosen = Ridge(penalty="folds").fit_release(ridge_release(rows, y, folds=4, transform=transform)).penalty_

    def loss(penalty):
        held = [
            SklearnRidge(alpha=penalty, fit_intercept=constant)
            .fit(X[np.arange(len(X)) % 4 != f], y[np.arange(len(X)) % 4 != f])
            .predict(X[f::4])
            - y[f::4]
            for f in range(4)
        ]
        return sum(float(error @ error) for error in held)

    assert loss(chosen) <= min(loss(chosen * factor) for factor in (0.5, 0.8, 1.25, 2.0))


def test_marginal_likelihood_is_the_likelihood_of_the_records(diabetes):
    X, _, y, _ = diabetes
    X, y = X[:100] * 10, y[:100]
    chosen = Ridge(penalty="evidence", fit_intercept=False).fit(X, y).penalty_

    def log_likelihood(penalty):
        K = X @ X.T / penalty + np.eye(len(X))
        misfit = y @ np.linalg.solve(K, y) / len(y)
        return -np.linalg.slogdet(K)[1] / 2 - len(y) / 2 * np.log(misfit)

    assert log_likelihood(chosen) >= max(log_likelihood(chosen * factor) for factor in (0.5, 0.8, 1.25, 2.0))


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_sums_without_a_count_do_not_make_targets_noisier_than_records_can(noise):
    """With d in the place of n the penalty was 85, and R2 .77 on data that is linear."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((1_000, 5))
    y = X @ [0.3, 0.6, 0.9, 1.2, 1.5] + 0.01 * rng.standard_normal(1_000)
    release = ridge_release(X, y, dict.fromkeys("Gh", noise) if noise else None, rng)
    head = Ridge().fit_release(release)
    assert head.penalty_ < 1
    assert head.score(X, y) > 0.999


def test_several_targets(diabetes):
    X, X_test, y, _ = diabetes
    Y = np.c_[y, -2 * y, X[:, 0]]
    ours, theirs = Ridge(penalty=1.0).fit(X, Y), SklearnRidge(alpha=1.0).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X_test), theirs.predict(X_test), rtol=1e-7)
    release = ridge_release(with_constant(X), Y, transform=(ConstantFeature(0.5),))
    np.testing.assert_allclose(Ridge(penalty=1.0).fit_release(release).predict(X_test), theirs.predict(X_test))


def test_gcv_without_a_count_says_how_to_give_one(diabetes):
    X, _, y, _ = diabetes
    release = ridge_release(X, y)
    refused(MissingStatisticError, "records=", Ridge(penalty="gcv").fit_release, release)
    assert Ridge(penalty="gcv", records=len(X)).fit_release(release).penalty_ > 0
    assert Ridge().fit_release(release).penalty_ > 0


def test_folds_choose_the_penalty_only_where_they_carry_no_noise(diabetes):
    X, _, y, _ = diabetes
    exact = ridge_release(X, y, folds=4)
    noisy = ridge_release(X, y, dict.fromkeys("Gh", 0.1), np.random.default_rng(0), folds=4)
    for release, best in ((exact, "folds"), (noisy, "evidence")):
        chosen = Ridge(solver="wiener").fit_release(release).penalty_
        assert chosen == Ridge(solver="wiener", penalty=best).fit_release(release).penalty_
    assert chosen != Ridge(solver="wiener", penalty="folds").fit_release(noisy).penalty_


def test_folds_penalty_without_folds_says_so(diabetes):
    X, _, y, _ = diabetes
    refused(MissingStatisticError, "folds", Ridge(penalty="folds").fit_release, ridge_release(X, y))


@pytest.mark.parametrize("solver", ["aggregate", "plain", "adassp", "wiener"])
def test_solvers_beat_one_that_does_not_know_of_the_noise(diabetes, solver):
    X, X_test, y, y_test = diabetes
    X, X_test, y, y_test = X * 4, X_test * 4, y / 350, y_test / 350
    sigma, errors = {"G": 15.0, "h": 4.0}, []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        release = ridge_release(with_constant(X), y, sigma, rng, transform=(ConstantFeature(0.5),))
        unaware = np.linalg.solve(release.moments.G + 1e-6 * np.eye(11), release.moments.h)[:, 0]
        predictions = Ridge(solver=solver).fit_release(release).predict(X_test), with_constant(X_test) @ unaware
        errors.append([np.square(prediction - y_test).mean() for prediction in predictions])
    ours, theirs = np.median(errors, axis=0)
    assert ours < 0.8 * theirs
    assert ours < 1.3 * y_test.var()


@pytest.mark.parametrize("solver", ["aggregate", "plain", "adassp", "wiener"])
def test_no_draw_of_strong_noise_sends_predictions_far_away(diabetes, solver):
    X, X_test, y, y_test = diabetes
    X, X_test, y, y_test = X * 4, X_test * 4, y / 350, y_test / 350
    scores = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        sigma = {"G": 12.0, "h": 8.0, "q": 24.0}
        release = ridge_release(with_constant(X), y, sigma, rng, transform=(ConstantFeature(0.5),))
        scores.append(Ridge(solver=solver).fit_release(release).score(X_test, y_test))
    assert min(scores) > -5
    assert np.mean(scores) > -0.3


def test_little_noise_is_no_noise(diabetes):
    X, X_test, y, _ = diabetes
    clean = Ridge(penalty="evidence", solver="wiener").fit_release(ridge_release(X, y)).predict(X_test)
    noisy = ridge_release(X, y, {"G": 1e-8, "h": 1e-8}, np.random.default_rng(0))
    np.testing.assert_allclose(Ridge(solver="wiener").fit_release(noisy).predict(X_test), clean, rtol=1e-3, atol=1e-2)
    assert np.abs(Ridge().fit_release(noisy).predict(X_test) - clean).mean() < 0.05 * clean.std()


@given(st.integers(0, 2**32 - 1), st.floats(-2, 6), st.sampled_from(["auto", "aggregate", "plain", "adassp", "wiener"]))
def test_weights_are_finite_at_every_noise_level(seed, level, solver):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 4)) * rng.integers(0, 2, size=4)
    y = rng.standard_normal(12)
    release = ridge_release(X + 1e-9, y, dict.fromkeys("Gh", 10.0**level), rng)
    assert np.isfinite(Ridge(solver=solver).fit_release(release).predict(X)).all()
    constant = ridge_release(
        with_constant(X), y, dict.fromkeys("Gh", 10.0**level), rng, transform=(ConstantFeature(0.5),)
    )
    assert np.isfinite(Ridge(solver=solver).fit_release(constant).predict(X)).all()


@pytest.mark.parametrize("level", [0.0, 1e-3, 1e3])
def test_targets_that_are_all_zero_are_survived(diabetes, level):
    X, _, y, _ = diabetes
    X = X * 1e8
    release = ridge_release(X, 0 * y, {"G": level, "h": level}, np.random.default_rng(0))
    head = Ridge(solver="wiener").fit_release(release)
    assert np.isfinite(head.penalty_)
    assert np.abs(head.predict(X)).max() <= 1e-3 * level


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"solver": "svd"}, "solver"), ({"penalty": -1.0}, "penalty"), ({"penalty": "best"}, "penalty")],
)
def test_unknown_settings_are_refused(diabetes, wrong, message):
    X, _, y, _ = diabetes
    refused(ValueError, message, Ridge(**wrong).fit, X, y)


@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_class_moments_give_scikit_learns_ridge_classifier(blobs, penalty):
    X, y = blobs()
    ours = RidgeClassifier(penalty=penalty).fit_release(class_release(X, y))
    theirs = SklearnRidgeClassifier(alpha=penalty).fit(X, y)
    np.testing.assert_allclose(2 * ours.decision_function(X) - 1, theirs.decision_function(X), atol=1e-7)


def test_classifier_scores_become_the_nearest_probabilities(blobs):
    X, y = blobs()
    head = RidgeClassifier().fit(X, y)
    proba = head.predict_proba(X)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(head.classes_[proba.argmax(axis=1)], head.predict(X))


@given(st.integers(0, 2**32 - 1), st.floats(-2, 5))
def test_classifier_is_finite_at_every_noise_level(seed, level):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5)) * rng.integers(0, 2, size=5)
    y = np.r_[np.arange(3), rng.integers(3, size=17)]
    head = RidgeClassifier().fit_release(class_release(X, y, sigma=dict.fromkeys("NAB", 10.0**level), rng=rng))
    assert np.isfinite(head.predict_proba(X)).all()


def test_a_release_without_a_constant_feature_warns_that_there_is_no_intercept():
    from privstats import ClassSchema, Cohort, NoPrivacy, Plan, RidgeSchema, measure, simulate
    from privstats.transforms import ConstantFeature

    X = np.random.default_rng(0).normal(size=(400, 3))
    y = X @ np.arange(3.0) + 7

    def released(schema):
        plan = Plan(schema=schema, cohort=Cohort(2, 2, 400), privacy=NoPrivacy())
        return simulate(plan, [(X[k::2], y[k::2]) for k in range(2)])

    bare = released(RidgeSchema(3, clip_norm=10.0, target_bound=20.0))
    with pytest.warns(UserWarning, match="no constant feature, so the model has no intercept"):
        assert Ridge().fit_release(bare).score(X, y) < 0
    complete = released(RidgeSchema(4, clip_norm=10.0, target_bound=20.0, transform=(ConstantFeature(1.0),)))
    assert Ridge().fit_release(complete).score(X, y) > 0.99
    for thing in ("release.safetensors", measure(ClassSchema(2, 3, "NAB", 1.0), X, (y > 7).astype(int)), X):
        refused(HeadError, "release must be a Release", Ridge().fit_release, thing)
        refused(HeadError, "release must be a Release", RidgeClassifier().fit_release, thing)
