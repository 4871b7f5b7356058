"""A client as one Gaussian: exact counts and sums, Ledoit and Wolf's weight, whole symmetric matrices."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

import privstats as ps
from privstats.kinds.gaussians import client_gaussian
from privstats.records.opened import Opened
from privstats.schema.public_values import Published, Values
from tests.made import refused

D = 5
SCHEMA = ps.GaussianSchema(D, 40.0, shrinkage="ledoit-wolf", rounds=1, grid_bits=18)


def rows(count=70, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, D)) @ rng.standard_normal((D, D)) + 3


@pytest.mark.parametrize("count", [2, 4, 70, 5000])
def test_the_weight_is_ledoit_and_wolfs(count):
    X = rows(count)
    found = client_gaussian(SCHEMA, Opened(SCHEMA.reading, X, None))
    expected, _ = ledoit_wolf(X)
    np.testing.assert_allclose(found.covariance / SCHEMA.scale**2, expected, rtol=1e-3, atol=1e-3)
    assert found.records == count


@pytest.mark.parametrize("shrinkage", [0.0, 0.25, 1.0])
def test_a_public_weight_is_that_weight(shrinkage):
    X = rows()
    found = (
        client_gaussian(replace(SCHEMA, shrinkage=shrinkage), Opened(SCHEMA.reading, X, None)).covariance
        / SCHEMA.scale**2
    )
    plain = np.cov(X.T, bias=True)
    expected = (1 - shrinkage) * plain + shrinkage * np.trace(plain) / D * np.eye(D)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_transforms_and_the_clip_come_first():
    X = rows()
    schema = replace(SCHEMA, transform=(ps.transforms.CentreRows(),), clip_norm=4.0)
    seen = X - X.mean(axis=1, keepdims=True)
    seen *= np.minimum(1, 4.0 / np.linalg.norm(seen, axis=1))[:, None]
    found = client_gaussian(schema, Opened(schema.reading, X, None))
    np.testing.assert_allclose(found.total / schema.scale, seen.sum(axis=0), atol=1e-2)
    np.testing.assert_allclose(found.covariance / schema.scale**2, ledoit_wolf(seen)[0], atol=1e-3)


def test_records_that_do_not_vary_and_none_at_all():
    assert not client_gaussian(SCHEMA, Opened(SCHEMA.reading, np.ones((4, D)), None)).covariance.any()
    empty = ps.measure(SCHEMA, np.zeros((0, D)), None)
    assert empty.records == 0
    assert not ps.encoding.flatten(empty).any()
    there = replace(SCHEMA, reference=True, among=(0,))
    published = Published.of({"S": Values.rounded(np.eye(D), 48)})
    assert not ps.encoding.flatten(ps.measure(there, np.zeros((0, D)), None, published=published)).any()


def test_labels_are_not_looked_at_and_what_was_not_measured_is_refused():
    moments = ps.measure(SCHEMA, rows(), None)
    assert moments == ps.measure(SCHEMA, rows(), np.zeros(70))
    refused(ps.DataError, "count of at least 0", ps.kinds.GaussianMoments, SCHEMA, -1, moments.x, moments.V)
    refused(ps.DataError, "X", ps.measure, SCHEMA, [(rows(), None)], None)
