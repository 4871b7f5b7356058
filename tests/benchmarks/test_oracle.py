"""The rival whose setting the test set chooses is DP-GD, with the noise that its promise needs."""

import math

import numpy as np
import pytest

from privstats.contrib.sweep.rivals.private_descent import Recipe

torch = pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.peers import oracle  # noqa: E402 - needs torch
from benchmarks.refinement import gradient  # noqa: E402

MU = 0.8


@pytest.fixture(scope="module")
def split(digits):
    X, X_test, y, y_test = digits
    return X[:400], X_test, y[:400], y_test


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    return train_test_split(X / np.linalg.norm(X, axis=1, keepdims=True), y, random_state=0)


def setting(rate=4.0, clip=0.3, momentum=0.9, tail=0.5, share=0.0, damping=1.0):
    return torch.tensor([[rate, clip, momentum, tail, share, damping]])


@pytest.mark.parametrize(("tail", "column"), [(0.0, 0), (0.5, 1)])
def test_without_noise_it_is_the_search_of_the_refinement_benchmark(split, tail, column):
    """That search has rows of norm sqrt 2, so half the rate and sqrt 2 times the clip are the same steps."""
    ours = oracle.accuracies(oracle.Records.of(split, "cpu"), setting(tail=tail), 30, math.inf, 0)
    recipe = Recipe(rate=2.0, clip=0.3 * 2**0.5, momentum=0.9, steps=30, sample=1.0)
    theirs = gradient.train(split, [recipe], 0.0, np.random.default_rng(0))
    assert float(ours[0]) == pytest.approx(float(theirs[0, column]), abs=0.005)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_step_has_the_noise_of_its_promise(split, share):
    """Its noise multiplier is sqrt(T / (1 - share)) / mu, over a sum that one record moves by the clip."""
    records, one = oracle.Records.of(split, "cpu"), setting(rate=1.0, momentum=0.0, tail=0.0, share=share, damping=1e9)
    weights = oracle.train(records, one.expand(400, 6), 1, MU, 0) * (1e9 if share else 1.0)
    expected = 0.3 / (MU * (1 - share) ** 0.5) / len(records.rows)
    assert float(weights.std(dim=0).mean()) == pytest.approx(expected, rel=0.02)


def test_the_second_moment_has_the_noise_that_its_share_pays_for(split):
    records, chance = oracle.Records.of(split, "cpu"), torch.Generator().manual_seed(0)
    n, k = records.rows.shape
    exact = records.rows.T @ records.rows
    inverse = records.inverses(exact[None], torch.ones(1))[0]
    torch.testing.assert_close(inverse, torch.linalg.inv(exact * (k / n) + torch.eye(k)), rtol=1e-3, atol=1e-3)
    noise = records.noisy_moments(torch.full((300,), 5.0), chance) - exact
    assert torch.equal(noise, noise.mT)
    assert float(noise.diagonal(dim1=1, dim2=2).std()) == pytest.approx(5.0, rel=0.02)
    assert float(noise[:, 0, 1:].std()) == pytest.approx(5.0 / 2**0.5, rel=0.02)


def test_the_winner_is_repeated_on_fresh_noise(split):
    found = oracle.best(oracle.Records.of(split, "cpu"), MU, 6, 0)
    assert found["settings"] == 6
    assert found["selection's gain"] == pytest.approx(found["chosen"] - found["repeated"])
    assert found == oracle.best(oracle.Records.of(split, "cpu"), MU, 6, 0)
