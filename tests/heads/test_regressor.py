"""What both regressions share: a constant for one party, a warning where there is none, and shapes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from privstats.heads import RefinedRidge, Ridge
from privstats.heads.private import Records
from privstats.heads.regressor import LinearRegressor
from privstats.heads.rules import LinearRule, Preprocessing
from privstats.transforms import ConstantFeature, UnitNorm

X = np.random.default_rng(0).standard_normal((8, 3))
HEADS = [Ridge, RefinedRidge]


@pytest.mark.parametrize("head", HEADS)
def test_one_party_gets_an_intercept_by_a_constant_behind_its_columns(head: type[LinearRegressor]) -> None:
    records = Records.of(X, X[:, 0])
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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head()._warn_without_constant((ConstantFeature(1.0),))
        head(fit_intercept=False)._warn_without_constant(())


@pytest.mark.parametrize("head", HEADS)
def test_one_flat_target_is_predicted_flat(head: type[LinearRegressor]) -> None:
    fitted = head()
    fitted.preprocessing_, fitted.n_features_in_ = Preprocessing(features=3), 3
    for flat, shape in ((True, (8,)), (False, (8, 1))):
        fitted._flat = flat
        fitted._adopt(LinearRule(np.ones((1, 3)), np.array([0.5])))
        assert fitted.predict(X).shape == shape
        assert np.shape(fitted.coef_) == ((3,) if flat else (1, 3))
        np.testing.assert_allclose(np.ravel(fitted.predict(X)), X.sum(axis=1) + 0.5)
