"""Every head keeps scikit-learn's contract, and the release path keeps the user's labels and public map."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import privstats as ps
from privstats import heads
from privstats.errors import DataError, HeadError, ReleaseError
from privstats.heads.registry import HEADS, named
from privstats.transforms import CentreRows, UnitNorm
from tests.heads.conftest import FakeRelease, GramMoments, class_release, quick
from tests.made import refused

CLASSIFIERS = [quick(name) for name in named("classes")]
CLOSED_FORMS = [quick(name) for name in named("classes", trained=False)]
TRAINED = CLASSIFIERS[len(CLOSED_FORMS) :]
EVERY_CHECK = [
    pytest.param(
        estimator,
        check,
        id=f"{type(estimator).__name__}-{getattr(check, 'func', check).__name__}-{i}",
        marks=pytest.mark.nightly if (place + i) % 2 else (),
    )
    for place, head in enumerate([*map(quick, HEADS), heads.LDA(covariance="total")])
    for i, (estimator, check) in enumerate(estimator_checks_generator(head))
]
"""Each head has half of the checks by day, and each check half of the heads; the night has the other pairs."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("estimator", "check"), EVERY_CHECK)
def test_scikit_learn_contract_holds(estimator, check):
    check(estimator)


@pytest.mark.parametrize("head", CLOSED_FORMS, ids=repr)
def test_release_without_noise_gives_the_same_predictions_as_the_records(head, blobs):
    X, y = blobs()
    release = class_release(X, y, "NAS")
    local = clone(head).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(clone(head).fit_release(release).predict_proba(X), local, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("head", TRAINED, ids=repr)
def test_synthetic_heads_hardly_feel_the_rounding_between_release_and_records(head, blobs):
    X, y = blobs()
    local = clone(head).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(clone(head).fit_release(class_release(X, y, "NAS")).predict_proba(X), local, atol=0.01)


@pytest.mark.parametrize("head", CLASSIFIERS, ids=repr)
def test_suppressed_classes_are_absent_and_labels_are_the_users(head, blobs):
    X, y = blobs(classes=4)
    fitted = clone(head).fit_release(class_release(X, y, "NAS", suppressed=(1,)), labels=["a", "b", "c", "d"])
    assert fitted.classes_.tolist() == ["a", "c", "d"]
    assert set(fitted.predict(X)) <= {"a", "c", "d"}
    assert fitted.predict_proba(X).shape == (len(X), 3)


@pytest.mark.parametrize("head", CLASSIFIERS, ids=repr)
def test_one_remaining_class_is_always_predicted(head, blobs):
    X, y = blobs(classes=3)
    fitted = clone(head).fit_release(class_release(X, y, "NAS", suppressed=(0, 2)))
    assert (fitted.predict(X) == 1).all()
    assert (fitted.predict_proba(X) == 1).all()


@pytest.mark.parametrize("head", CLASSIFIERS, ids=repr)
def test_nothing_left_is_a_named_error(head, blobs):
    X, y = blobs(classes=3)
    with pytest.raises(ReleaseError, match="every class is suppressed"):
        clone(head).fit_release(class_release(X, y, "NAS", suppressed=(0, 1, 2)))


def test_wrong_moments_name_the_right_head(blobs):
    X, y = blobs()
    release = class_release(X, y)
    refused(ReleaseError, "RidgeClassifier", heads.Ridge().fit_release, release)
    ridge = FakeRelease(release.plan, GramMoments(X[None], X[None], X[None]), {})
    refused(ReleaseError, r"heads\.Ridge", heads.LDA().fit_release, ridge)


def test_values_that_are_not_finite_are_refused(blobs):
    X, y = blobs()
    release = class_release(X, y)
    release.moments.A[0, 0] = np.nan
    refused(ReleaseError, "statistic A", heads.LDA().fit_release, release)


def test_wrong_dimension_at_predict_is_refused(blobs):
    X, y = blobs()
    refused(ValueError, "features", heads.LDA().fit_release(class_release(X, y)).predict, X[:, :-1])


def test_labels_must_name_every_class_once(blobs):
    X, y = blobs(classes=4)
    refused(DataError, "4 classes", heads.LDA().fit_release, class_release(X, y), labels=["a", "b", "c", "c"])


def test_head_applies_the_transform_and_the_clip_of_its_release(blobs):
    X, y = blobs()
    rows = X - X.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fitted = heads.LDA().fit_release(class_release(rows, y, transform=(CentreRows(), UnitNorm())))
    np.testing.assert_allclose(fitted.predict_proba(X), fitted.predict_proba(rows), atol=1e-9)
    clipped = heads.LDA().fit_release(class_release(X, y, clip_norm=1.0))
    long = X * 10
    short = long / np.maximum(np.linalg.norm(long, axis=1, keepdims=True), 1.0)
    np.testing.assert_allclose(clipped.predict_proba(long), clipped.predict_proba(short), atol=1e-9)


def test_transform_of_bad_rows_is_refused(blobs):
    X, y = blobs()
    fitted = heads.LDA().fit_release(class_release(X, y, transform=(CentreRows(),)))
    refused(DataError, "finite", fitted.predict, np.full_like(X, np.nan))
    refused(DataError, "columns but the head takes", fitted.predict, X[:, :-1])


def test_torch_rows_are_numpy_rows(blobs):
    torch = pytest.importorskip("torch")
    X, y = blobs()
    fitted = heads.LDA().fit(torch.tensor(X, requires_grad=True), torch.tensor(y))
    np.testing.assert_array_equal(fitted.predict(torch.tensor(X)), fitted.predict(X))


def test_heads_stand_in_pipelines_and_clone(blobs):
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), heads.LDA(shrinkage=0.1)).fit(X, y)
    assert clone(pipeline).get_params()["lda__shrinkage"] == 0.1
    assert pipeline.score(X, y) > 0.7


@pytest.mark.parametrize("head", [ps.heads.LDA(), ps.heads.RefinedSoftmax()])
def test_a_rare_class_is_found_from_its_share_on_and_costs_nothing_more(head):
    rng = np.random.default_rng(0)
    y = (rng.random(4_000) < 0.05).astype(int)
    X = rng.normal(size=(4_000, 3)) + y[:, None]
    columns = tuple(ps.Numeric(f"x{k}", (-1, 0, 1, 2)) for k in range(3))
    given = {"columns": columns, "classes": (0, 1), "expected_records": 4_000}
    head.fit_private(X, y, epsilon=3.0, delta=1e-5, adjacency="add-remove", ledger="uncharged", **given)
    assert head.prevalence_[1] == pytest.approx(0.05, abs=0.02)
    likeliest, found = head.predict(X), head.predict(X, threshold="prevalence")
    assert likeliest[y == 1].mean() + 0.2 < found[y == 1].mean()
    assert found[y == 1].mean() > 0.5
    assert found[y == 0].mean() < 0.5
    own = float(head.prevalence_[1])
    np.testing.assert_array_equal(found, head.predict(X, threshold=own))
    np.testing.assert_array_equal(found == 1, head.predict_proba(X)[:, 1] >= own)
    for wrong in (0, 1.0, True, "share", float("nan")):
        with pytest.raises(HeadError, match="threshold must be above 0"):
            head.predict(X, threshold=wrong)


def test_a_threshold_is_of_two_classes():
    head = ps.heads.LDA().fit(np.eye(3).repeat(4, axis=0), np.arange(12) // 4)
    with pytest.raises(HeadError, match="a threshold is one of two classes, and this head has 3"):
        head.predict(np.eye(3), threshold="prevalence")
