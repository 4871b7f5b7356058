"""Where nothing can be learned no regression is worse than the mean, beyond a bound on what its noise costs."""

import numpy as np
import pytest

from benchmarks.refinement.unlearnable import (
    CONSTANT,
    DELTA,
    NORM,
    Way,
    by_its_mean,
    by_one_release,
    by_rounds,
    excess,
)
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe
from tests.heads.worlds import TARGETS, UNLEARNABLE
from tests.lengths import checkered

SETTINGS = [(2_000, 30, 0.3), (2_000, 30, 1.0), (2_000, 3, 0.3)]
NOISIEST = (1_500, 30, 0.1)  # n mu is 41
SCHEDULED = [(500, 3, 0.3), (500, 30, 0.3)]  # n mu is below 40


def errors_of(way: Way, world: str, n: int, d: int, epsilon: float, draws: int = 8) -> float:
    """Return the mean square error's excess over that of the records' mean."""
    return float(excess(way, world, n, d, epsilon, draws).mean())


@pytest.mark.parametrize(("world", "setting"), checkered(list(UNLEARNABLE), SETTINGS))
def test_rounds_are_no_worse_than_a_mean(world, setting):
    n, d, epsilon = setting
    chosen = TARGETS[world]
    of_noise = (chosen.bound / (n * gaussian_mu(epsilon, DELTA))) ** 2 / float(chosen.records(0, n)[1].var())
    assert errors_of(by_rounds, world, n, d, epsilon) < 0.006 + 5 * of_noise


@pytest.mark.parametrize("world", [*UNLEARNABLE, "normal", "curve"])
@pytest.mark.parametrize(("n", "d", "epsilon", "part"), [(*NOISIEST, 5.0)])
def test_the_noisiest_filters_know_how_far_a_level_may_be_off(world, n, d, epsilon, part):
    """The first release has 1/64 of the budget there: its level errs by .7 Y, of which the first round must see all."""
    chosen, mu = TARGETS[world], gaussian_mu(epsilon, DELTA)
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
    chosen, mu = TARGETS[world], gaussian_mu(epsilon, DELTA)
    X, y = chosen.records(0, n, d)
    assert RidgeRecipe(d + 1, n, mu, NORM, chosen.bound, 24, constant=CONSTANT).descends
    of_norm = (np.square(X).sum(axis=1).mean() + CONSTANT**2) / NORM**2
    assert errors_of(by_rounds, world, n, d, epsilon) < part * (0.28 * chosen.bound) ** 2 * of_norm / y.var()


@pytest.mark.parametrize(("world", "setting"), checkered(list(UNLEARNABLE), [*SETTINGS, *SCHEDULED]))
def test_slopes_of_one_release_cost_little_more_than_its_mean(world, setting):
    """No rule excludes them: on real tables it would lose more than nothing gains."""
    n, d, epsilon = setting
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
