"""Where nothing can be learned rounds are no worse than the mean, beyond what noise costs the mean itself."""

import math

import numpy as np
import pytest

from benchmarks.refinement.prototype import play_ridge
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe
from tests.heads.worlds import TARGETS, UNLEARNABLE

CONSTANT, NORM = 0.5, 1.25**0.5
TESTED, DRAWS = 5_000, 8


def by_rounds(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of a course of 24 rounds."""
    recipe = RidgeRecipe(X.shape[1], len(X), mu, NORM, bound, 24, constant=CONSTANT)
    *_, weights = play_ridge(recipe, X, y, rng)
    return weights


def errors_of(world: str, n: int, d: int, epsilon: float) -> tuple[float, float]:
    """Return the mean square error's excess over that of the mean, and what noise of one sum adds to a mean."""
    chosen, mu, excess = TARGETS[world], gaussian_mu(epsilon, 1e-6), []
    for seed in range(DRAWS):
        (X, y), (X_test, y_test) = (chosen.records(2 * seed + k, size, d) for k, size in ((0, n), (1, TESTED)))
        one = [np.hstack([rows, np.full((len(rows), 1), CONSTANT)]) for rows in (X, X_test)]
        weights = by_rounds(one[0], y, mu, chosen.bound, np.random.default_rng([seed, n]))
        excess.append(np.square(y_test - one[1] @ weights).mean() / np.square(y_test - y.mean()).mean() - 1)
    return float(np.mean(excess)), (chosen.bound / (n * mu)) ** 2 / float(y.var())


@pytest.mark.parametrize("world", UNLEARNABLE)
@pytest.mark.parametrize(("n", "d", "epsilon"), [(2_000, 30, 0.3), (2_000, 30, 1.0), (2_000, 3, 0.3), (500, 3, 0.3)])
def test_rounds_are_no_worse_than_a_mean(world, n, d, epsilon):
    excess, of_noise = errors_of(world, n, d, epsilon)
    assert excess < 0.006 + 5 * of_noise


@pytest.mark.parametrize(("world", "at_least"), [("normal", 0.48), ("curve", 0.7), ("cost", 0.02)])
def test_what_can_be_learned_is_learned_under_the_same_noise(world, at_least):
    excess, _ = errors_of(world, 2_000, 30, 0.3)
    assert -excess > at_least
    assert math.isfinite(excess)
