"""Diagnostics measure what they name."""

import warnings

import numpy as np
import pytest
from scipy.stats import kurtosis, skew

import privstats as ps
from privstats.errors import DataError, MissingStatisticError
from privstats.heads import (
    LDA,
    QDA,
    RDA,
    FewRecordsWarning,
    NaiveBayes,
    OneClassWarning,
    RefinedSoftmax,
    UnlikeColumnsWarning,
    expected_calibration_error,
    gaussianity,
    gaussianity_of,
    homogeneity,
    log_likelihood,
)
from privstats.heads.registry import head_class, named
from privstats.heads.rules import LinearRule
from privstats.moments import quantize
from tests.heads.conftest import class_release
from tests.made import refused


class Constant:
    """A head that always gives the same probabilities."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, yes):
        self.row = np.array([1 - yes, yes])

    def predict_proba(self, X):
        return np.tile(self.row, (len(X), 1))

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))


def test_log_likelihood_is_the_mean_log_probability_of_the_labels():
    y = np.array(["yes", "no", "yes", "yes"])
    assert log_likelihood(Constant(0.8), np.zeros((4, 1)), y) == pytest.approx((3 * np.log(0.8) + np.log(0.2)) / 4)


@pytest.mark.parametrize(
    ("yes", "share", "error"), [(0.75, 0.75, 0.0), (0.9, 0.5, 0.4), (1.0, 1.0, 0.0), (0.6, 0.9, 0.3)]
)
def test_calibration_error_is_the_gap_between_confidence_and_accuracy(yes, share, error):
    y = np.where(np.arange(100) < 100 * share, "yes", "no")
    assert expected_calibration_error(Constant(yes), np.zeros((100, 1)), y) == pytest.approx(error)


def test_labels_unknown_to_the_head_are_refused():
    refused(DataError, "does not know", log_likelihood, Constant(0.5), np.zeros((1, 1)), np.array(["perhaps"]))
    refused(DataError, "bins", expected_calibration_error, Constant(0.5), np.zeros((1, 1)), np.array(["yes"]), bins=0)


def test_student_scores_are_better_calibrated_on_heavy_tails():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=6000)
    X = 2 * np.eye(12)[y] + rng.standard_normal((6000, 12)) / np.sqrt(rng.chisquare(5, (6000, 1)) / 5)
    train, test = slice(0, 1500), slice(1500, None)
    student, gauss = (RDA(degrees=nu).fit(X[train], y[train]) for nu in (5.0, None))
    assert log_likelihood(student, X[test], y[test]) > log_likelihood(gauss, X[test], y[test])
    assert expected_calibration_error(student, X[test], y[test]) < 0.2


def test_gaussianity_is_scipys_skewness_and_kurtosis(blobs):
    X, y = blobs()
    found = gaussianity(X, y)
    skewness = np.array([np.abs(skew(X[y == c])) for c in range(4)])
    excess = np.array([np.abs(kurtosis(X[y == c])) for c in range(4)])
    assert found.skewness == pytest.approx((skewness.mean(), np.median(skewness), np.quantile(skewness, 0.9)))
    assert found.kurtosis == pytest.approx((excess.mean(), np.median(excess), np.quantile(excess, 0.9)))
    np.testing.assert_allclose(found.per_class, np.c_[skewness.mean(axis=1), excess.mean(axis=1)])


def test_gaussianity_leaves_out_what_has_no_shape():
    X = np.c_[np.random.default_rng(0).standard_normal(20), np.ones(20)]
    assert gaussianity(X, np.r_[np.zeros(18), 1, 1]).per_class.shape == (1, 2)
    refused(DataError, "four records", gaussianity, np.ones((3, 2)), [0, 0, 0])


def test_power_sums_tell_the_shape_that_the_records_have():
    """Far from zero and skewed, with a class of three records and a constant column, which are left out by both."""
    X = np.c_[5 + np.random.default_rng(0).gamma(2.0, size=(603, 3)), np.full(603, 7.0)]
    y = np.r_[np.arange(600) % 2, 2, 2, 2]
    schema = ps.ClassSchema(3, 4, "NADTF", clip_norm=40.0)
    found = gaussianity_of(ps.Release.exact(schema, ps.measure(schema, X, y)))
    rounded = quantize(schema, X) / schema.scale
    expected = gaussianity(rounded, y)
    assert found.skewness == pytest.approx(expected.skewness, rel=1e-7)
    assert found.kurtosis == pytest.approx(expected.kurtosis, rel=1e-7)
    np.testing.assert_allclose(found.per_class, expected.per_class, rtol=1e-7)
    assert found.kurtosis == pytest.approx(gaussianity(X, y).kurtosis, rel=0.01)


@pytest.mark.parametrize("statistics", ["NA", "NATF", "NAD", "NADT", "NADF"])
def test_shapes_without_their_power_sums_are_refused(statistics):
    schema = ps.ClassSchema(2, 2, statistics, clip_norm=4.0)
    release = ps.Release.exact(schema, ps.measure(schema, np.ones((8, 2)), np.arange(8) % 2))
    refused(MissingStatisticError, "needs statistics D, T and F, .* plan statistics='NADTF'", gaussianity_of, release)


def test_power_sums_of_classes_that_are_left_out_tell_no_shape():
    schema = ps.ClassSchema(2, 2, "NASTF", clip_norm=4.0)
    X, y = np.random.default_rng(1).normal(size=(40, 2)), np.arange(40) % 8 == 0
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 40), privacy=ps.NoPrivacy(), min_count=10)
    release = ps.simulate(plan, [(X[k::2], y[k::2].astype(int)) for k in range(2)])
    assert gaussianity_of(release).per_class.shape == (1, 2)
    with pytest.raises(DataError, match="four records and a feature that varies"):
        gaussianity_of(ps.Release.exact(schema, ps.measure(schema, np.ones((8, 2)), np.arange(8) % 2)))


def test_homogeneity_tells_equal_covariances_from_different_ones(blobs):
    X, y = blobs(n=8000)
    different = homogeneity(class_release(X, y, "NAS"))
    same = np.random.default_rng(0).standard_normal((8000, 6)) + 3 * np.eye(6)[y]
    equal = homogeneity(class_release(same, y, "NAS"))
    assert equal.divergence.max() < 0.01 < different.divergence.min()
    assert (equal.condition_numbers < different.condition_numbers).all()
    refused(MissingStatisticError, "S", homogeneity, class_release(X, y, "NAB"))


def test_few_records_are_warned_of_with_a_remedy(blobs):
    X, y = blobs(n=40, d=20)
    with pytest.warns(FewRecordsWarning, match="use RDA or LDA"):
        QDA().fit(X, y)
    with pytest.warns(FewRecordsWarning, match="use NaiveBayes"):
        LDA().fit(X[:15], y[:15])
    with warnings.catch_warnings(action="error", category=FewRecordsWarning):
        LDA().fit(X, y)
        RDA().fit(X, y)


UNITS = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1000.0])


@pytest.mark.parametrize("head", [LDA(), QDA(), RDA(), LDA(shrinkage=0.2), NaiveBayes()], ids=repr)
def test_a_head_that_shrinks_warns_of_columns_in_other_units(blobs, head):
    X, y = blobs()
    with pytest.warns(UnlikeColumnsWarning, match=f"{type(head).__name__} shrinks.*Scale.*shrinkage=None") as said:
        head.fit(X * UNITS, y)
    assert [each.filename for each in said] == [__file__], "the warning points at the caller"


@pytest.mark.parametrize(
    ("head", "units"),
    [(LDA(), 1), (LDA(shrinkage=None), UNITS), (RDA(shrinkage=0.0), UNITS), (NaiveBayes(shrinkage=0.5), UNITS)],
    ids=repr,
)
def test_columns_alike_or_no_shrinkage_to_a_round_covariance_warn_of_nothing(blobs, head, units):
    X, y = blobs()
    X[:, 0] = 1.0
    with warnings.catch_warnings(action="error", category=UnlikeColumnsWarning):
        head.fit(X * units, y)


def flat(n=300, centre=60.0):
    """Two classes of unlike size that a clip of nearly every row leaves one direction of."""
    return np.random.default_rng(4).normal(size=(n, 3)) + centre, (np.arange(n) % 5 == 0).astype(int)


@pytest.mark.parametrize("head", [LDA(), RDA(), QDA()], ids=repr)
def test_a_head_that_predicts_one_class_says_so_where_it_predicts(head):
    X, y = flat()
    head.fit_release(class_release(X, y, "NABS", clip_norm=3.0), labels=["elm", "ash"])
    name = type(head).__name__
    with pytest.warns(OneClassWarning, match=f"^{name} predicts class '(elm|ash)' for all 300 rows, and") as said:
        (only,) = set(head.predict(X))
    assert [each.filename for each in said] == [__file__], "the warning points at the caller"
    assert f"'{only}'" in str(said[0].message)
    assert "At the mean of every class it predicts " in head.card()
    with pytest.warns(OneClassWarning):
        head.score(X, np.array(["elm", "ash"])[y])
    with warnings.catch_warnings(action="error", category=OneClassWarning):
        head.predict(X[:19])


def test_a_head_that_tells_classes_apart_says_nothing_of_rows_of_one_class(blobs):
    X, y = blobs()
    with warnings.catch_warnings(action="error", category=OneClassWarning):
        head = LDA().fit_release(class_release(X, y, "NAB", clip_norm=20.0))
        head.predict(np.repeat(X[:1], 50, axis=0))
        assert "At the mean of every class" not in head.card()
        LDA(priors="uniform").fit_release(class_release(*flat(), "NAB", clip_norm=300.0)).predict(flat()[0])


def test_rows_of_which_the_head_itself_expects_others_are_told_and_rows_that_it_is_sure_of_are_not():
    """Class means apart, but every row between them: the larger class takes all."""
    rng = np.random.default_rng(0)
    y = (np.arange(500) % 5 == 0).astype(int)
    X = rng.normal(size=(500, 2)) + np.c_[6.0 * y, 0 * y]
    head = LDA().fit_release(class_release(X, y, "NAB", clip_norm=30.0))
    between = np.c_[np.linspace(2.6, 2.9, 50), np.zeros(50)]
    with pytest.warns(OneClassWarning, match="for all 50 rows, and expects about [0-9]+% of them in others"):
        head.predict(between)
    with warnings.catch_warnings(action="error", category=OneClassWarning):
        head.predict(X[y == 0][:99])
        head.score(X[y == 0], np.zeros(400, int))
        head.predict(between[:19])
    with pytest.warns(OneClassWarning, match="for all 400 rows, and takes 20% of records for others before it sees"):
        head.predict(np.repeat(X[y == 0][:1], 400, axis=0))


def test_many_classes_are_looked_at_until_two_are_found(monkeypatch):
    centres = np.eye(100, 20)
    seen = []
    monkeypatch.setattr(LinearRule, "best", lambda self, X: seen.append(len(X)) or self.scores(X).argmax(axis=1))
    assert LinearRule(centres, np.zeros(100)).sole(centres) is None
    assert seen == [64]
    assert LinearRule(centres, np.arange(100.0) ** 2).sole(centres) == 99
    assert sum(seen) == 64 + 100


def test_a_refined_softmax_says_it_too_and_forgets_it_with_the_release():
    X, y = flat()
    terms = {"epsilon": 8.0, "delta": 1e-5, "adjacency": "add-remove", "classes": (0, 1, 2), "expected_records": 300}
    head = RefinedSoftmax(rounds=1).fit_private(X, np.zeros(300, int), ledger="uncharged", **terms)
    with pytest.warns(OneClassWarning, match="^RefinedSoftmax predicts class 0 for all 300 rows"):
        head.predict(X)
    with warnings.catch_warnings(action="error", category=OneClassWarning):
        head.fit(X, y).predict(np.repeat(X[:1], 50, axis=0))


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_coordinates_of_an_encoder_that_vary_by_rounding_alone_are_constant(blobs, scale, dtype):
    """MiniLM's sentence embeddings have two coordinates of 0 or -6e-8 beside 382 of some .4: no unit is to blame."""
    X, y = blobs()
    X /= np.linalg.norm(X, axis=1)[:, None]
    X[:, 0] = -6e-8 * (np.arange(len(X)) % 2)
    X[:, 1] = 0.0
    with warnings.catch_warnings(action="error", category=UnlikeColumnsWarning):
        LDA().fit(X.astype(dtype).astype(np.float64) * scale, y)
    X[:, 0] = 1e-5 * np.arange(len(X)) / len(X)
    with pytest.warns(UnlikeColumnsWarning):
        LDA().fit(X * scale, y)


def test_all_columns_constant_warn_of_nothing():
    with warnings.catch_warnings(action="error", category=UnlikeColumnsWarning):
        LDA().fit(np.full((6, 2), 3.0), np.arange(6) % 2)


def test_a_release_never_warns_of_units(blobs):
    X, y = blobs()
    with warnings.catch_warnings(action="error", category=UnlikeColumnsWarning):
        LDA().fit_release(class_release(X * UNITS, y, "NAB", clip_norm=1e5))


SILENT = {"RidgeClassifier": "it penalises weights and shrinks no covariance"}


@pytest.mark.parametrize("name", named("classes", trained=False))
def test_a_head_warns_of_units_where_its_probabilities_depend_on_them(blobs, name):
    X, y = blobs()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = head_class(name)().fit(X * UNITS, y).predict_proba(X * UNITS)
    warned = any(each.category is UnlikeColumnsWarning for each in caught)
    depends = np.abs(found - head_class(name)().fit(X, y).predict_proba(X)).max() > 1e-6
    assert (warned, depends) == ((False, True) if name in SILENT else (depends, depends))
