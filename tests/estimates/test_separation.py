"""Two classes' distance along weights that follow noise."""

from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from privstats.estimates import softmax
from privstats.estimates.denoise import NoisyClassSums, denoise_spectrum
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.estimates.separation import Separation, _hidden_share, _unknown, separation
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening


@cache
def found(apart: float, sigma: float, further: float = 0.0) -> tuple[Separation, list[np.ndarray]]:
    """The separation of rounds under noise, and the sorted margins of both classes.

    ``further`` times the weights is added to the last gradient.
    """
    chance = np.random.default_rng(0)
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
    g, kappa, sigma = rounds[-1]
    rounds[-1] = (g + further * np.outer([-0.5, 0.5], weights[1] - weights[0]), kappa, sigma)
    law = separation(recipe, sums, whitening, states, rounds, weights, lambda A: np.zeros_like(weights))
    margins = U @ np.diff(whitening.published(weights), axis=0)[0]
    return law, [np.sort(margins[y == k]) for k in (0, 1)]


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("sigma", [0.0, 5.0, 20.0])
def test_the_middle_is_near_the_auc_of_weights_under_noise(apart: float, sigma: float) -> None:
    law, (others, members) = found(apart, sigma)
    actual = float(np.searchsorted(others, members).mean() / len(others))
    assert middle(law) == pytest.approx(actual, abs=0.08)


@pytest.mark.parametrize(("apart", "sigma"), [(2.0, 0.0), (4.0, 0.0), (4.0, 5.0)])
def test_clear_classes_are_as_clear_as_they_are(apart: float, sigma: float) -> None:
    """The variance of all rows in place of that within classes promised .93 for .98."""
    law, (others, members) = found(apart, sigma)
    actual = float(np.searchsorted(others, members).mean() / len(others))
    assert middle(law) == pytest.approx(actual, abs=0.025)


def test_the_last_gradient_moves_the_classes_apart() -> None:
    """Its part along the weights falls as they are further apart than the weights say."""
    fewer, more = (middle(found(1.0, 5.0, further)[0]) for further in (10.0, -10.0))
    assert more > fewer + 0.01


@pytest.mark.parametrize("d", [2, 3, 8, 20])
def test_directions_are_hidden_by_noise_alone(d: int) -> None:
    """Without noise nothing is hidden; a little noise once hid all of three columns and .44 of eight."""
    chance, truth, shares = np.random.default_rng(d), np.diag(np.arange(1.0, d + 1)), []
    for sigma in (1e-3, 1e3 * d):
        draws = []
        for _ in range(40):
            E = chance.normal(size=(d, d)) * sigma
            B = truth + (E + E.T) / 2 + 100 * sigma * np.eye(d)  # so that none of its eigenvalues is below 0
            draws.append(_hidden_share(B, sigma, denoise_spectrum(B, sigma, pull=False).values))
        shares.append(float(np.mean(draws)))
    assert _hidden_share(truth, 0.0, np.diag(truth)) == 0
    assert shares[0] < 0.001
    assert shares[1] > 0.6


def middle(law: Separation) -> float:
    """AUC of the law."""
    return float(ndtr((law.centres[1] - law.centres[0]) / law.spread / np.sqrt(2)))


def test_unknown_rows_lie_about_the_intercept() -> None:
    law = _unknown(np.array([3.0, 4.0, 2.0]), 0.25)
    assert float(np.array([0.75, 0.25]) @ law.centres) == pytest.approx(2 * INTERCEPT)


def test_scores_are_divided_and_shifted() -> None:
    law = Separation(np.array([-1.0, 3.0]), 2.0).scaled(2.0, 1.0)
    assert (law.centres.tolist(), law.spread) == ([0.5, 2.5], 1.0)


@pytest.mark.parametrize(("apart", "sigma"), [(1.0, 0.0), (4.0, 0.0), (1.0, 5.0), (2.0, 20.0)])
def test_centres_and_spread_are_those_of_the_margins(apart: float, sigma: float) -> None:
    law, margins = found(apart, sigma)
    spread = float(np.mean([each.std() for each in margins]))
    assert law.centres == pytest.approx([each.mean() for each in margins], abs=0.25 * spread)
    assert law.spread == pytest.approx(spread, rel=0.15)
