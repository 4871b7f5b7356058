"""Where nothing can be learned no regression is worse than the mean, beyond a bound on what its noise costs."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.refinement.prototype import play_ridge
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe
from privstats.heads.estimates.least_squares import eliminate_constant, solve
from privstats.heads.evidence import GramEvidence
from tests.estimates.rounds import symmetric_noise
from tests.heads.worlds import TARGETS, UNLEARNABLE

Way = Callable[[np.ndarray, np.ndarray, float, float, np.random.Generator], np.ndarray]
CONSTANT, NORM = 0.5, 1.25**0.5
TESTED = 5_000
SHARES = {"G": 0.5, "h": 0.48, "q": 0.02}
SETTINGS = [(2_000, 30, 0.3), (2_000, 30, 1.0), (2_000, 3, 0.3)]
NOISIEST = (1_500, 30, 0.1)  # n mu is 41
SCHEDULED = [(500, 3, 0.3), (500, 30, 0.3)]  # n mu is below 40


def by_rounds(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of a course of 24 rounds, the constant's last."""
    recipe = RidgeRecipe(X.shape[1], len(X), mu, NORM, bound, 24, constant=CONSTANT)
    *_, weights = play_ridge(recipe, X, y, rng)
    return weights


def released(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> GramEvidence:
    """Return the sums of one release."""
    bounds = {"G": NORM**2, "h": NORM * bound, "q": bound**2}
    sigma = {name: each / (mu * SHARES[name] ** 0.5) for name, each in bounds.items()}
    d = X.shape[1]
    return GramEvidence(
        G=X.T @ X + sigma["G"] * symmetric_noise(rng, d),
        h=(X.T @ y + sigma["h"] * rng.standard_normal(d))[:, None],
        q=max(float(y @ y + sigma["q"] * rng.standard_normal()), 0.0),
        records=None,
        **{f"sigma_{name}": level for name, level in sigma.items()},
        feature_means=np.zeros(d),
        target_means=np.zeros(1),
        constant=CONSTANT,
    )


def by_one_release(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of one release, the constant's last."""
    solution = solve(released(X, y, mu, bound, rng), "aggregate", "auto")
    return np.append(solution.weights[:-1, 0], solution.intercept / CONSTANT)


def by_its_mean(X: np.ndarray, y: np.ndarray, mu: float, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of the mean that one release knows."""
    level = eliminate_constant(released(X, y, mu, bound, rng)).target_means / CONSTANT
    return np.append(np.zeros(X.shape[1] - 1), level)


def errors_of(way: Way, world: str, n: int, d: int, epsilon: float, draws: int = 8) -> float:
    """Return the mean square error's excess over that of the records' mean."""
    chosen, mu, excess = TARGETS[world], gaussian_mu(epsilon, 1e-6), []
    for seed in range(draws):
        (X, y), (X_test, y_test) = (chosen.records(2 * seed + k, size, d) for k, size in ((0, n), (1, TESTED)))
        one = [np.hstack([rows, np.full((len(rows), 1), CONSTANT)]) for rows in (X, X_test)]
        weights = way(one[0], y, mu, chosen.bound, np.random.default_rng([seed, n]))
        excess.append(np.square(y_test - one[1] @ weights).mean() / np.square(y_test - y.mean()).mean() - 1)
    return float(np.mean(excess))


@pytest.mark.parametrize("world", UNLEARNABLE)
@pytest.mark.parametrize(("n", "d", "epsilon"), SETTINGS)
def test_rounds_are_no_worse_than_a_mean(world, n, d, epsilon):
    chosen = TARGETS[world]
    of_noise = (chosen.bound / (n * gaussian_mu(epsilon, 1e-6))) ** 2 / float(chosen.records(0, n)[1].var())
    assert errors_of(by_rounds, world, n, d, epsilon) < 0.006 + 5 * of_noise


@pytest.mark.parametrize("world", [*UNLEARNABLE, "normal", "curve"])
@pytest.mark.parametrize(("n", "d", "epsilon", "part"), [(*NOISIEST, 15.0)])
def test_the_noisiest_filters_know_how_far_a_level_may_be_off(world, n, d, epsilon, part):
    """The first release has 1/64 of the budget there: its level errs by .7 Y, of which the first round must see all."""
    chosen, mu = TARGETS[world], gaussian_mu(epsilon, 1e-6)
    recipe = RidgeRecipe(d + 1, n, mu, NORM, chosen.bound, 24, constant=CONSTANT)
    assert not recipe.descends
    assert recipe.release_share == 1 / 64
    of_noise = (chosen.bound / (n * mu)) ** 2 / float(chosen.records(0, n)[1].var())
    assert errors_of(by_rounds, world, n, d, epsilon) < part * of_noise


@pytest.mark.parametrize("world", UNLEARNABLE)
@pytest.mark.parametrize(("n", "d", "epsilon", "part"), [(*SCHEDULED[0], 0.15), (*SCHEDULED[1], 0.6)])
def test_slopes_of_a_fixed_schedule_cost_a_part_of_its_noise(world, n, d, epsilon, part):
    """No rule excludes them. Noise moves predictions of a row of norm R by .28 Y at most (``RidgeRecipe.stride``).

    Later steps remove much of what earlier noise added, and the more the fewer columns there are.
    """
    chosen, mu = TARGETS[world], gaussian_mu(epsilon, 1e-6)
    X, y = chosen.records(0, n, d)
    assert RidgeRecipe(d + 1, n, mu, NORM, chosen.bound, 24, constant=CONSTANT).descends
    of_norm = (np.square(X).sum(axis=1).mean() + CONSTANT**2) / NORM**2
    assert errors_of(by_rounds, world, n, d, epsilon) < part * (0.28 * chosen.bound) ** 2 * of_norm / y.var()


@pytest.mark.parametrize("world", UNLEARNABLE)
@pytest.mark.parametrize(("n", "d", "epsilon"), [*SETTINGS, *SCHEDULED])
def test_slopes_of_one_release_cost_little_more_than_its_mean(world, n, d, epsilon):
    """No rule excludes them: on real tables it would lose more than nothing gains."""
    of_mean, whole = (errors_of(way, world, n, d, epsilon, draws=24) for way in (by_its_mean, by_one_release))
    assert whole - of_mean < 0.04 + 1.5 * of_mean


@pytest.mark.parametrize(
    ("way", "world", "epsilon", "at_least"),
    [
        (by_rounds, "normal", 0.3, 0.48),
        (by_rounds, "curve", 0.3, 0.7),
        (by_rounds, "cost", 0.3, 0.02),
        (by_one_release, "normal", 1.0, 0.15),
        (by_one_release, "normal", 3.0, 0.48),
    ],
)
def test_what_can_be_learned_is_learned_under_the_same_noise(way, world, epsilon, at_least):
    assert -errors_of(way, world, 2_000, 30, epsilon) > at_least
