"""The methods behind SLOT-Align are what their papers say, and its map does what it is said to do."""

import numpy as np
import pytest

from benchmarks.alignment.digits5 import digits5
from benchmarks.papers.slot.alignment import World, contraction
from benchmarks.papers.slot.downstream import DOWNSTREAM
from privstats import heads


@pytest.fixture(scope="module")
def world():
    return World.draw(digits5("convolutions", most=60, features=16), 0.5, np.random.default_rng(0))


def rng():
    return np.random.default_rng(0)


def test_fedcgs_of_the_summed_moments_is_lda_of_all_records(world):
    head = heads.LDA(covariance="total").fit(world.clients.all_rows, world.clients.all_labels)
    X, _ = world.tests[0]
    agreed = DOWNSTREAM["FedCGS"](world.shards, rng())(X) == head.predict(X)
    assert agreed.mean() > 0.95  # its sums lie on a grid


@pytest.mark.parametrize("method", list(DOWNSTREAM))
def test_every_method_learns_from_clients_of_one_distribution(method):
    draws = np.random.default_rng(1)
    means = 4 * draws.standard_normal((3, 8))
    y = draws.integers(0, 3, (4, 60))
    shards = [(means[labels] + draws.standard_normal((60, 8)), labels) for labels in y]
    *trained, (X, truth) = shards
    assert (DOWNSTREAM[method](trained, rng())(X) == truth).mean() > 0.9


def test_averaging_keeps_nothing_of_a_class_that_nobody_saw():
    draws = np.random.default_rng(1)
    shards = [(draws.standard_normal((20, 4)) + 3 * k, np.full(20, k)) for k in range(2)]
    predict = DOWNSTREAM["O-FedAvg"](shards, rng())
    assert set(predict(draws.standard_normal((50, 4)))) == {0}  # one class a client: no weights at all


def test_a_client_of_two_classes_gives_each_half_of_the_difference():
    draws = np.random.default_rng(1)
    y = draws.integers(3, 5, 80)
    X = draws.standard_normal((80, 4)) + 3.0 * (y == 4)[:, None]
    assert (DOWNSTREAM["O-FedAvg"]([(X, y)], rng())(X) == y).mean() > 0.9


def test_maps_go_their_share_of_the_way_on_the_geodesic(world):
    assert contraction(world, 0.4) < 1e-9


def test_without_strength_nothing_moves(world):
    X, _ = world.tests[0]
    stay, *_ = world.maps(world.clients.reference(1), strength=0.0)
    np.testing.assert_allclose(stay(X), X, atol=1e-12)


def test_a_share_of_no_way_is_no_alignment(world):
    reference, train = world.mean_covariance(), DOWNSTREAM["FedCGS"]
    assert world.accuracy(train, reference, 0, 0.0) == pytest.approx(world.accuracy(train, None, 0), abs=0.5)


def test_the_whole_way_gives_every_client_the_common_mean(world):
    for move, rows in zip(world.maps(world.mean_covariance(), strength=1.0), world.clients.rows, strict=True):
        np.testing.assert_allclose(move(rows).mean(axis=0), world.clients.mean, atol=1e-9)
