"""What both regressions share: a constant for one party, a warning where there is none, and shapes."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_selection import SelectFromModel

from privstats.heads import LDA, QDA, Private, RefinedRidge, Ridge, RidgeClassifier, load
from privstats.heads.private import OwnRecords
from privstats.heads.regressor import LinearRegressor
from privstats.heads.rules import LinearRule, Preprocessing, take_columns
from privstats.transforms import (
    Centre,
    CentreRows,
    ConstantFeature,
    GaussianProjection,
    RandomReLU,
    Scale,
    UnitNorm,
    output_features,
)

X = np.random.default_rng(0).standard_normal((8, 3))
HEADS = [Ridge, RefinedRidge]


@pytest.mark.parametrize("head", HEADS)
def test_one_party_gets_an_intercept_by_a_constant_behind_its_columns(head: type[LinearRegressor]) -> None:
    records = OwnRecords.of(X, X[:, 0])
    schema = head()._schema(records, (UnitNorm(),), 2.0, 3.0, 12)
    assert schema.transform == (UnitNorm(), ConstantFeature(1.0))
    assert (schema.features, schema.targets, schema.target_bound) == (4, 1, 3.0)
    assert schema.clip_norm == pytest.approx(np.hypot(2.0, 1.0))
    plain = head(fit_intercept=False)._schema(records, (), 2.0, 3.0, 12)
    assert (plain.transform, plain.features, plain.clip_norm) == ((), 3, 2.0)
    own = head()._schema(records, (ConstantFeature(0.5),), 2.0, 3.0, 12)
    assert (own.transform, own.clip_norm) == ((ConstantFeature(0.5),), 2.0)


@pytest.mark.parametrize("head", HEADS)
def test_an_intercept_that_is_asked_for_and_not_there_is_said(head: type[LinearRegressor]) -> None:
    with pytest.warns(UserWarning, match="no constant feature, so the model has no intercept"):
        head()._warn_without_constant(())
    with warnings.catch_warnings(action="error"):
        head()._warn_without_constant((ConstantFeature(1.0),))
        head(fit_intercept=False)._warn_without_constant(())


@pytest.mark.parametrize("head", HEADS)
def test_one_flat_target_is_predicted_flat(head: type[LinearRegressor]) -> None:
    fitted = head()
    fitted.preprocessing_, fitted.n_features_in_ = Preprocessing(features=3), 3
    for flat, shape in ((True, (8,)), (False, (8, 1))):
        fitted.flat_ = flat
        fitted._adopt(LinearRule(np.ones((1, 3)), np.array([0.5])))
        assert (fitted.predict(X).shape, np.shape(fitted.coef_)) == (shape, (3,) if flat else (1, 3))
        np.testing.assert_allclose(np.ravel(fitted.predict(X)), X.sum(axis=1) + 0.5)


MAPS = {
    "constant": (ConstantFeature(1.5),),
    "scaled": (Centre((1.0, 2e6, 0.0)), Scale((2.0, 1e6, 0.5)), ConstantFeature(0.5)),
    "rows": (CentreRows(), ConstantFeature(0.5)),
    "projected": (GaussianProjection(7, 3, 2), ConstantFeature(0.5)),
    "twice": (ConstantFeature(0.5), Scale((1.0, 2.0, 3.0, 4.0)), ConstantFeature(-1.0)),
}


@pytest.mark.parametrize("maps", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("head", HEADS)
def test_coefficients_are_those_of_the_columns_and_the_intercept_is_no_column(head, targets, maps) -> None:
    features = output_features(maps, 3)
    fitted = head()
    take_columns(fitted, Preprocessing(features, maps, 1e9, ("a", "b", "c")))
    fitted.flat_ = targets == 1
    rng = np.random.default_rng(1)
    fitted._adopt(LinearRule(rng.normal(size=(targets, features)), rng.normal(size=targets)))
    assert np.shape(fitted.coef_) == ((3,) if targets == 1 else (targets, 3))
    assert np.shape(fitted.intercept_) == (() if targets == 1 else (targets,))
    np.testing.assert_allclose(X @ fitted.coef_.T + fitted.intercept_, fitted.predict(X), rtol=1e-9, atol=1e-9)
    assert (fitted.n_features_in_, fitted.feature_names_in_.tolist()) == (3, ["a", "b", "c"])


def test_behind_a_curved_map_coefficients_are_those_of_the_columns_that_it_gives() -> None:
    for maps, columns in (((UnitNorm(), ConstantFeature(0.5)), 3), ((RandomReLU(7, 3, 5), ConstantFeature(0.5)), 5)):
        fitted = Ridge()
        take_columns(fitted, Preprocessing(columns + 1, maps))
        fitted.flat_ = True
        fitted._adopt(LinearRule(np.arange(1.0, columns + 2)[None], np.array([0.25])))
        assert fitted.coef_.tolist() == list(range(1, columns + 1))
        assert (fitted.intercept_, fitted.n_features_in_) == (0.25 + 0.5 * (columns + 1), 3)


TERMS = {"epsilon": 50.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged", "clip_norm": 1.8}
LINE = np.random.default_rng(3).uniform(-1, 1, (4_000, 3))
TARGET = LINE @ [1.0, -0.5, 0.0] + 2.0


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (Ridge(), {}),
        (RefinedRidge(rounds=2), {"expected_records": 4_000}),
        (Private(Ridge(), target_bound=4.0, **TERMS), None),
        (Private(RefinedRidge(rounds=2), target_bound=4.0, expected_records=4_000, **TERMS), None),
    ],
    ids=["Ridge", "RefinedRidge", "Private", "Private refined"],
)
def test_a_private_regression_is_a_citizen_of_scikit_learn(head, more, tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame(LINE, columns=["age", "dose", "none"])
    fitted = (
        head.fit(frame, TARGET) if more is None else head.fit_private(frame, TARGET, target_bound=4.0, **TERMS, **more)
    )
    np.testing.assert_allclose(fitted.coef_, [1.0, -0.5, 0.0], atol=0.1)
    assert (fitted.intercept_, fitted.n_features_in_) == (pytest.approx(2.0, abs=0.1), 3)
    assert fitted.feature_names_in_.tolist() == ["age", "dose", "none"]
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(fitted.predict(frame[["none", "dose", "age"]]), fitted.predict(LINE), rtol=1e-12)
    assert SelectFromModel(fitted, prefit=True, threshold=0.25).transform(LINE).shape == (len(LINE), 2)
    fitted.save(tmp_path / "head")
    again = load(tmp_path / "head")
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert (again.n_features_in_, again.feature_names_in_.tolist()) == (3, fitted.feature_names_in_.tolist())


def test_a_search_for_columns_fits_a_private_regression_of_its_own() -> None:
    private = Private(Ridge(), target_bound=4.0, **TERMS)
    assert SelectFromModel(private, threshold=0.25).fit(LINE, TARGET).get_support().tolist() == [True, True, False]


def test_names_of_an_earlier_fit_are_forgotten() -> None:
    pandas = pytest.importorskip("pandas")
    head = Ridge().fit_private(pandas.DataFrame(LINE, columns=list("abc")), TARGET, target_bound=4.0, **TERMS)
    head.fit_private(LINE, TARGET, target_bound=4.0, **TERMS)
    assert not hasattr(head, "feature_names_in_")
    with warnings.catch_warnings(action="error"):
        head.predict(LINE)


@pytest.mark.parametrize("make", [LDA, RidgeClassifier])
def test_a_linear_classifier_has_the_weights_of_the_columns_too(make) -> None:
    alike = (Centre((0.0, 10.0, 0.0)), Scale((1.0, 100.0, 1.0)))
    rows, y = LINE * [1.0, 100.0, 1.0] + [0.0, 10.0, 0.0], (TARGET > 2.0).astype(int)
    head = make().fit_private(rows, y, classes=(0, 1), transform=alike, **TERMS)
    scores = rows @ head.coef_.T + head.intercept_
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], head.decision_function(rows), rtol=1e-7, atol=1e-7)
    assert head.n_features_in_ == 3


def test_a_rule_that_is_not_linear_has_no_weights() -> None:
    head = QDA().fit(LINE, (TARGET > 2.0).astype(int))
    assert not hasattr(head, "coef_")
    with pytest.raises(AttributeError, match="its rule is not linear"):
        _ = head.intercept_
    assert not hasattr(Ridge(), "coef_")
    assert not hasattr(Private(Ridge(), target_bound=4.0, **TERMS), "coef_")
