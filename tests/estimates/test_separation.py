"""Two classes' distance along weights that follow noise."""

import numpy as np
import pytest
from scipy.special import ndtr

from privstats.estimates import softmax
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.estimates.separation import Separation, separation
from privstats.estimates.softmax import SoftmaxWhitening


def found(apart: float, sigma: float, seed: int) -> tuple[Separation, list[np.ndarray]]:
    """The separation of rounds under noise, and the sorted margins of both classes."""
    chance = np.random.default_rng(seed)
    y = (np.arange(3_000) % 3 == 0).astype(int)
    X = chance.normal(size=(3_000, 30))
    X[:, 0] += apart * y
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    hot, E = np.eye(2)[y], chance.normal(size=(30, 30)) * sigma
    noisy_A = hot.T @ X + sigma * chance.normal(size=(2, 30))
    sums = NoisyClassSums(hot.sum(axis=0), noisy_A, X.T @ X + (E + E.T) / 2, dict.fromkeys("NAB", sigma))
    recipe, whitening = SoftmaxRecipe(2, 30, 3_000, 1.0, 4, 0.5), SoftmaxWhitening.of(sums)
    U, states, rounds = whitening.rows(X), [softmax.started(recipe, sums, whitening)], []
    for _ in range(4):
        g, kappa = softmax.exact_gradient(U, y, whitening.published(states[-1].weights), 0.5)
        g = g + sigma * chance.normal(size=g.shape)
        states.append(softmax.refined(recipe, sums, whitening, states[-1], g, kappa, sigma))
        rounds.append((whitening.turned(g), kappa, sigma))
    weights = states[-1].weights
    law = separation(recipe, sums, whitening, states, rounds, weights, lambda A: np.zeros_like(weights))
    margins = U @ np.diff(whitening.published(weights), axis=0)[0]
    return law, [np.sort(margins[y == k]) for k in (0, 1)]


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("sigma", [0.0, 5.0, 20.0])
def test_the_range_holds_the_auc_of_weights_under_noise(apart: float, sigma: float) -> None:
    law, (others, members) = found(apart, sigma, 0)
    actual = float(np.searchsorted(others, members).mean() / len(others))
    middle = float(ndtr((law.centres[1] - law.centres[0]) / law.spread / np.sqrt(2)))
    assert law.low <= middle <= law.high
    assert law.low - 0.02 <= actual <= law.high + 0.02
    assert middle == pytest.approx(actual, abs=0.08)


def test_scores_are_divided_and_shifted() -> None:
    law = Separation(np.array([-1.0, 3.0]), 2.0, 0.8, 0.9).scaled(2.0, 1.0)
    assert (law.centres.tolist(), law.spread, law.low, law.high) == ([0.5, 2.5], 1.0, 0.8, 0.9)


@pytest.mark.parametrize("sigma", [0.0, 5.0])
def test_centres_and_spread_are_those_of_the_margins(sigma: float) -> None:
    law, margins = found(1.0, sigma, 0)
    spread = float(np.mean([each.std() for each in margins]))
    assert law.centres == pytest.approx([each.mean() for each in margins], abs=0.25 * spread)
    assert law.spread == pytest.approx(spread, rel=0.25)
