"""Diagnostics measure what they name."""

from __future__ import annotations

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
    UnlikeColumnsWarning,
    expected_calibration_error,
    gaussianity,
    gaussianity_of,
    homogeneity,
    log_likelihood,
)
from privstats.moments import quantize
from tests.heads.conftest import class_release


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
    with pytest.raises(DataError, match="does not know"):
        log_likelihood(Constant(0.5), np.zeros((1, 1)), np.array(["perhaps"]))
    with pytest.raises(DataError, match="bins"):
        expected_calibration_error(Constant(0.5), np.zeros((1, 1)), np.array(["yes"]), bins=0)


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
    found = gaussianity(X, np.r_[np.zeros(18), 1, 1])
    assert found.per_class.shape == (1, 2)
    with pytest.raises(DataError, match="four records"):
        gaussianity(np.ones((3, 2)), [0, 0, 0])


def test_power_sums_tell_the_shape_that_the_records_have():
    """Far from zero and skewed, with a class of three records and a constant column, which are left out by both."""
    rng = np.random.default_rng(0)
    X = np.c_[5 + rng.gamma(2.0, size=(603, 3)), np.full(603, 7.0)]
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
    with pytest.raises(MissingStatisticError, match="needs statistics D, T and F, .* plan statistics='NADTF'"):
        gaussianity_of(release)


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
    with pytest.raises(MissingStatisticError, match="S"):
        homogeneity(class_release(X, y, "NAB"))


def test_few_records_are_warned_of_with_a_remedy(blobs):
    X, y = blobs(n=40, d=20)
    with pytest.warns(FewRecordsWarning, match="use RDA or LDA"):
        QDA().fit(X, y)
    with pytest.warns(FewRecordsWarning, match="use NaiveBayes"):
        LDA().fit(X[:15], y[:15])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewRecordsWarning)
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
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnlikeColumnsWarning)
        head.fit(X * units, y)


def test_a_release_never_warns_of_units(blobs):
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnlikeColumnsWarning)
        LDA().fit_release(class_release(X * UNITS, y, "NAB", clip_norm=1e5))
