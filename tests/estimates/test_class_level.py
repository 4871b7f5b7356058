"""Shifts of scores bring each class's mean probability to its released share, as far as noise leaves no doubt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax as probabilities

from privstats.estimates.class_level import level_shifts
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.softmax import SoftmaxWhitening
from privstats.transforms import UnitNorm

UNEVEN = (0.6, 0.3, 0.08, 0.02)


def records(shares: tuple[float, ...], n: int = 20_000, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return UnitNorm().apply(rng.normal(size=(n, d))), rng.choice(len(shares), n, p=shares)


def sums_of(X: np.ndarray, y: np.ndarray, classes: int, noise: float = 0.0, seed: int = 0) -> NoisyClassSums:
    onehot, rng = np.eye(classes)[y], np.random.default_rng(seed)
    N = onehot.sum(axis=0) + noise * rng.standard_normal(classes)
    return NoisyClassSums(N, onehot.T @ X, X.T @ X, {"N": noise, "A": 0.0, "B": 0.0})


@pytest.mark.parametrize("shares", [UNEVEN, (0.98, 0.02), (0.995, 0.005)])
@pytest.mark.parametrize("length", [0.0, 1.0, 3.0])
def test_weights_of_equally_likely_classes_get_the_shares_of_the_counts(shares, length):
    X, y = records(shares)
    sums = sums_of(X, y, len(shares), noise=1.0)
    whitening = SoftmaxWhitening.of(sums)
    weights = length * np.random.default_rng(1).normal(size=(len(shares), 6))
    weights[:, -1] = 0.0
    shifts = level_shifts(whitening, sums, weights)
    found = probabilities(whitening.rows(X) @ whitening.published(weights).T + shifts, axis=1).mean(axis=0)
    before = probabilities(whitening.rows(X) @ whitening.published(weights).T, axis=1).mean(axis=0)
    assert shifts.sum() == pytest.approx(0.0, abs=1e-9)
    assert np.abs(np.log(found / shares)).max() < 0.65 < np.abs(np.log(before / shares)).max()


@given(st.integers(0, 1_000), st.floats(0, 0.3))
def test_mean_probabilities_near_the_shares_stay(seed, away):
    """A model of normal scores is no better known than three tenths of a share."""
    X, y = records((0.25,) * 4, n=400, seed=seed)
    sums = sums_of(X, y, 4, noise=1.0)
    level = np.zeros((4, 6))
    level[:, -1] = np.random.default_rng(seed).uniform(-away, away, 4)
    shifts = level_shifts(SoftmaxWhitening.of(sums), sums, level)
    assert np.abs(shifts).max() < 0.3
    if away < 0.01:
        N = np.full(4, 100.0)
        assert not level_shifts(SoftmaxWhitening.of(sums), NoisyClassSums(N, sums.A, sums.B, sums.sigma), level).any()


def test_counts_that_noise_hides_move_nothing():
    X, y = records((0.6, 0.4), n=1_000)
    sums = sums_of(X, y, 2, noise=1_000.0)
    assert not level_shifts(SoftmaxWhitening.of(sums), sums, np.zeros((2, 6))).any()
