"""A client as one Gaussian: exact counts and sums, Ledoit and Wolf's weight, whole symmetric matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

import privstats as ps
from privstats.encoding import flatten, unflatten
from privstats.errors import DataError
from privstats.moments import GaussianMoments
from privstats.moments.gaussians import RealGaussianMoments, client_gaussian
from privstats.schema.public_values import Published, Values
from privstats.transforms import CentreRows

D = 5
SCHEMA = ps.GaussianSchema(D, 40.0, shrinkage="ledoit-wolf", rounds=1, grid_bits=18)


def rows(count=70, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, D)) @ rng.standard_normal((D, D)) + 3


@pytest.mark.parametrize("count", [2, 4, 70, 5000])
def test_the_weight_is_ledoit_and_wolfs(count):
    X = rows(count)
    found = client_gaussian(SCHEMA, X)
    expected, _ = ledoit_wolf(X)
    np.testing.assert_allclose(found.covariance / SCHEMA.scale**2, expected, rtol=1e-3, atol=1e-3)
    assert found.records == count


@pytest.mark.parametrize("shrinkage", [0.0, 0.25, 1.0])
def test_a_public_weight_is_that_weight(shrinkage):
    X = rows()
    found = client_gaussian(replace(SCHEMA, shrinkage=shrinkage), X).covariance / SCHEMA.scale**2
    plain = np.cov(X.T, bias=True)
    expected = (1 - shrinkage) * plain + shrinkage * np.trace(plain) / D * np.eye(D)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_transforms_and_the_clip_come_first():
    X = rows()
    schema = replace(SCHEMA, transform=(CentreRows(),), clip_norm=4.0)
    seen = X - X.mean(axis=1, keepdims=True)
    seen *= np.minimum(1, 4.0 / np.linalg.norm(seen, axis=1))[:, None]
    found = client_gaussian(schema, X)
    np.testing.assert_allclose(found.total / schema.scale, seen.sum(axis=0), atol=1e-2)
    np.testing.assert_allclose(found.covariance / schema.scale**2, ledoit_wolf(seen)[0], atol=1e-3)


def test_records_that_do_not_vary_and_none_at_all():
    same = client_gaussian(SCHEMA, np.ones((4, D)))
    assert not same.covariance.any()
    empty = ps.measure(SCHEMA, np.zeros((0, D)), None)
    assert empty.records == 0
    assert not flatten(empty).any()
    there = replace(SCHEMA, reference=True, among=(0,))
    published = Published.of({"S": Values.rounded(np.eye(D), 48)})
    assert not flatten(ps.measure(there, np.zeros((0, D)), None, published=published)).any()


def test_values_keep_what_they_are():
    moments = ps.measure(SCHEMA, rows(), None)
    assert moments == ps.measure(SCHEMA, rows(), np.zeros(70))  # labels are not looked at
    assert moments != ps.measure(SCHEMA, rows(seed=1), None)
    assert unflatten(SCHEMA, flatten(moments)) == moments
    assert moments.real() == moments.real()
    assert moments != 3
    assert moments.real() != 3
    assert RealGaussianMoments(1.0) != RealGaussianMoments(2.0)
    assert repr(moments) == f"GaussianMoments(features={D}, reference=False)"
    assert moments.records == moments.N == 70
    assert np.array_equal(moments.V, moments.V.T)


def test_what_was_not_measured_is_refused():
    moments = ps.measure(SCHEMA, rows(), None)
    with pytest.raises(DataError, match=r"V must have shape \(5, 5\)"):
        GaussianMoments(SCHEMA, 3, moments.x)
    with pytest.raises(DataError, match=r"x must have shape \(5,\)"):
        GaussianMoments(SCHEMA, 3, moments.x[:2], moments.V)
    with pytest.raises(DataError, match="count of at least 0"):
        GaussianMoments(SCHEMA, -1, moments.x, moments.V)
    with pytest.raises(DataError, match="X"):
        ps.measure(SCHEMA, [(rows(), None)], None)
