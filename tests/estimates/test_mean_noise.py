"""The noise of the mean predicted probability, against courses that are run again with other noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from privstats.estimates import softmax as refinement
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.mean_noise import mean_noise
from privstats.estimates.recipes import GRADIENT_SHARES, SoftmaxRecipe


@pytest.mark.parametrize(("mu", "clip", "rate"), [(0.3, 0.5, 0.3), (0.3, 1.0, 0.1), (1.0, 0.7, 0.5)])
def test_it_is_the_spread_of_the_mean_over_courses_with_other_noise(mu: float, clip: float, rate: float) -> None:
    chance, n, d = np.random.default_rng(0), 1_500, 8
    X = chance.normal(size=(n, d)) / np.sqrt(d)
    X[:, 0] += 2.0  # a long mean, as rows of Cells have
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (chance.random(n) < expit(X[:, 1:4] @ [6.0, -4.0, 3.0] + np.log(rate / (1 - rate)))).astype(np.intp)
    recipe = SoftmaxRecipe(2, d, n, mu, rounds=4, clip=clip)
    found, predicted = zip(*(_course(recipe, X, y, chance) for _ in range(40)), strict=True)
    assert 0.4 < np.mean(predicted) / np.std(found) < 2.0


def _course(recipe: SoftmaxRecipe, X: np.ndarray, y: np.ndarray, chance: np.random.Generator) -> tuple[float, float]:
    """The mean probability of one course, and its noise as predicted."""
    sigma = {letter: 1 / (recipe.release_mu * np.sqrt(share)) for letter, share in recipe.release_shares.items()}
    onehot = np.eye(2)[y]
    exact = {"N": onehot.sum(axis=0), "A": onehot.T @ X, "B": X.T @ X}
    noisy = {letter: each + sigma[letter] * chance.normal(size=each.shape) for letter, each in exact.items()}
    noisy["B"] = (noisy["B"] + noisy["B"].T) / 2
    sums = NoisyClassSums(**noisy, sigma=sigma)
    whitening = refinement.SoftmaxWhitening.of(sums, recipe.floor)
    U = whitening.rows(X)
    states, rounds = [refinement.started(recipe, sums, whitening)], []
    for _ in range(recipe.rounds):
        before = states[-1]
        g, kappa = refinement.exact_gradient(U, y, whitening.published(before.weights), recipe.clip)
        level = recipe.clip / (recipe.round_mu * np.sqrt(GRADIENT_SHARES["g"]))
        g = g + level * chance.normal(size=g.shape)
        states.append(refinement.refined(recipe, sums, whitening, before, g, kappa, level))
        rounds.append((kappa, level))
    scores = U @ whitening.published(states[-1].weights).T
    spread = mean_noise(recipe, sums, whitening, states, rounds) / (1 - refinement.LDA_SHARE)  # of the rounds alone
    return float(softmax(scores, axis=1)[:, 1].mean()), spread
