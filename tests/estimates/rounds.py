"""Noise and rounds that the tests of this room share."""

from collections.abc import Callable, Iterator

import numpy as np

from privstats.estimates.recipes import RidgeRecipe
from privstats.estimates.regression import RidgeState, RidgeWhitening, ridge_map, ridge_refined


def symmetric_noise(rng: np.random.Generator, d: int) -> np.ndarray:
    """Return symmetric noise ``(d, d)``: variance 1 on the diagonal and 1/2 beside it, as second moments have."""
    upper = np.triu(rng.standard_normal((d, d)))
    return np.diag(np.diag(upper)) + (np.triu(upper, 1) + np.triu(upper, 1).T) * 2**-0.5


def ridge_rounds(
    recipe: RidgeRecipe,
    X: np.ndarray,
    y: np.ndarray,
    whitening: RidgeWhitening,
    state: RidgeState,
    noise: Callable[[RidgeState], tuple[float, float]],
) -> Iterator[RidgeState]:
    """Yield the state after each round; ``noise`` gives the standard deviations of a round's gradient and count."""
    rng = np.random.default_rng(0)
    for _ in range(recipe.rounds):
        residual, U = y - X @ whitening.published(state.weights), X @ ridge_map(recipe, whitening, state)
        U = U / np.maximum(np.linalg.norm(U, axis=1), 1.0)[:, None]
        sigma = noise(state)
        G = np.clip(residual, -state.clip, state.clip) @ U + sigma[0] * rng.standard_normal(recipe.features)
        within = float((np.abs(residual) <= state.clip).sum()) + sigma[1] * rng.standard_normal()
        state = ridge_refined(recipe, whitening, state, G, within, sigma)
        yield state
