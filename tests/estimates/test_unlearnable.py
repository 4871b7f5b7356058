"""Where nothing can be learned no regression is worse than the mean, beyond what noise costs the mean itself."""

import math

import numpy as np
import pytest

from benchmarks.refinement.prototype import play_ridge
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe
from privstats.heads.estimates.least_squares import solve
from privstats.heads.evidence import GramEvidence
from tests.estimates.rounds import symmetric_noise
from tests.heads.worlds import TARGETS, UNLEARNABLE

CONSTANT, NORM = 0.5, 1.25**0.5
TESTED, DRAWS = 5_000, 8


def by_rounds(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of a course of 24 rounds."""
    recipe = RidgeRecipe(X.shape[1], len(X), mu, NORM, bound, 24, constant=CONSTANT)
    *_, weights = play_ridge(recipe, X, y, rng)
    return weights


def by_release(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of one release with the shares of a ridge schema."""
    n, d = X.shape
    sigma = {
        letter: size / (mu * share**0.5)
        for letter, size, share in (("G", NORM**2, 0.5), ("h", NORM * bound, 0.48), ("q", bound**2, 0.02))
    }
    evidence = GramEvidence(
        G=X.T @ X + sigma["G"] * symmetric_noise(rng, d),
        h=(X.T @ y + sigma["h"] * rng.standard_normal(d))[:, None],
        q=max(0.0, float(y @ y + sigma["q"] * rng.standard_normal())),
        sigma_G=sigma["G"],
        sigma_h=sigma["h"],
        sigma_q=sigma["q"],
        records=None,
        feature_means=np.zeros(d),
        target_means=np.zeros(1),
        constant=CONSTANT,
    )
    found = solve(evidence, "aggregate", "auto")
    return np.append(found.weights[:-1, 0], found.intercept / CONSTANT)


def errors_of(fit, world: str, n: int, d: int, epsilon: float) -> tuple[float, float]:
    """Return the mean square error's excess over that of the mean, and what noise of one sum adds to a mean."""
    chosen, mu, excess = TARGETS[world], gaussian_mu(epsilon, 1e-6), []
    for seed in range(DRAWS):
        (X, y), (X_test, y_test) = (chosen.records(2 * seed + k, size, d) for k, size in ((0, n), (1, TESTED)))
        one = [np.hstack([rows, np.full((len(rows), 1), CONSTANT)]) for rows in (X, X_test)]
        weights = fit(one[0], y, mu, chosen.bound, np.random.default_rng([seed, n]))
        excess.append(np.square(y_test - one[1] @ weights).mean() / np.square(y_test - y.mean()).mean() - 1)
    return float(np.mean(excess)), (chosen.bound / (n * mu)) ** 2 / float(y.var())


@pytest.mark.parametrize("world", UNLEARNABLE)
@pytest.mark.parametrize(("n", "d", "epsilon"), [(2_000, 30, 0.3), (2_000, 30, 1.0), (2_000, 3, 0.3), (500, 3, 0.3)])
def test_rounds_are_no_worse_than_a_mean(world, n, d, epsilon):
    excess, of_noise = errors_of(by_rounds, world, n, d, epsilon)
    assert excess < 0.006 + 5 * of_noise


@pytest.mark.parametrize("world", UNLEARNABLE)
@pytest.mark.parametrize(("n", "d", "epsilon"), [(2_000, 30, 0.3), (2_000, 30, 1.0), (2_000, 3, 0.3)])
def test_one_release_is_no_worse_than_the_mean_that_it_holds(world, n, d, epsilon):
    """Its constant is .5 of a norm of 1.12 and h has .48 of the budget: its mean has ten times the noise variance."""
    excess, of_noise = errors_of(by_release, world, n, d, epsilon)
    assert excess < 0.01 + 14 * of_noise


@pytest.mark.parametrize(("world", "at_least"), [("normal", 0.48), ("curve", 0.7), ("cost", 0.02)])
def test_what_can_be_learned_is_learned_under_the_same_noise(world, at_least):
    excess, _ = errors_of(by_rounds, world, 2_000, 30, 0.3)
    assert -excess > at_least
    assert math.isfinite(excess)
