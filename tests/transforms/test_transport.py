"""The transport: one value in a plan, a map at each client, the same bits alone, in company and from torch."""

from dataclasses import replace

import numpy as np
import pytest

from privstats.contrib.alignment import transport
from privstats.errors import SchemaError
from privstats.transforms import Transport, apply, from_builtins, input_features, output_features, to_builtins
from tests.made import refused

D = 6
PLAN = Transport(D, "ab" * 32, 0.4)


def covariance(rng):
    shape = rng.standard_normal((D, D)) + np.eye(D)
    return shape @ shape.T


@pytest.fixture
def client():
    """A client's copy, and the map that it is, in float64."""
    rng = np.random.default_rng(0)
    start, mean = rng.standard_normal(D), rng.standard_normal(D)
    matrix = transport(covariance(rng), covariance(rng))
    return PLAN.bound(start, mean, matrix), lambda X: 0.6 * X + 0.4 * (mean + (X - start) @ matrix)


def test_it_goes_part_of_the_way(client):
    own, exact = client
    X = 5 * np.random.default_rng(1).standard_normal((40, D))
    np.testing.assert_allclose(own.apply(X), exact(X), rtol=1e-5, atol=1e-4)
    stay = replace(PLAN, strength=0.0).bound(np.ones(D), np.zeros(D), np.eye(D))
    np.testing.assert_allclose(stay.apply(X), X, atol=1e-5)


def test_a_row_is_the_same_bits_alone_and_from_torch(client):
    torch = pytest.importorskip("torch")
    own, _ = client
    X = np.random.default_rng(2).standard_normal((33, D))
    whole = own.apply(X)
    assert np.array_equal(np.concatenate([own.apply(X[k : k + 1]) for k in range(33)]), whole)
    assert np.array_equal(own.apply(torch.tensor(X)).numpy(), whole)


def test_the_client_s_copy_is_the_plan_s_value_and_saves_nothing_of_the_client(client):
    own, _ = client
    assert (own, hash(own)) == (PLAN, hash(PLAN))
    assert own.of_a_client
    assert not PLAN.of_a_client
    assert own.local
    assert from_builtins(to_builtins((own,))) == (PLAN,)
    assert set(to_builtins((own,))[0]) == {"kind", "features", "reference", "strength"}
    assert "_way" not in repr(own)
    refused(SchemaError, "is the plan's and has no client", apply, (PLAN,), np.zeros((1, D)))
    assert output_features((PLAN,), D) == output_features((PLAN,)) == input_features((PLAN,), D) == D


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"features": 1}, "features must be an integer of at least 2"),
        ({"reference": "AB" * 32}, "64 lower-case hex digits"),
        ({"reference": 3}, "64 lower-case hex digits"),
        ({"strength": 1.5}, "strength must be a number from 0 to 1"),
        ({"strength": True}, "strength must be a number from 0 to 1"),
    ],
)
def test_wrong_definitions_are_one_sentence(wrong, words):
    refused(SchemaError, words, replace, PLAN, **wrong)
    refused(SchemaError, "takes 6 features but 5 come in", output_features, (PLAN,), 5)
