"""Curvature from gradients: found where it shows, and the first release's where noise explains as much."""

import numpy as np
import pytest

from privstats.estimates.filter_bank import Curvature, GradientHistory

D = 20
DIAGONAL = np.full(D, 1 / D)


def hidden(top: float) -> np.ndarray:
    """Mean curvature in all directions but one, of which nothing can be seen on the diagonal."""
    direction = np.random.default_rng(7).standard_normal(D)
    direction /= np.linalg.norm(direction)
    return np.diag(DIAGONAL) + (top - 1 / D) * np.outer(direction, direction)


def history(K: np.ndarray, noise: float, rounds: int = 8, seed: int = 0) -> GradientHistory:
    rng = np.random.default_rng(seed)
    found, best = GradientHistory.empty(D), rng.standard_normal(D)
    for _ in range(rounds):
        point = rng.standard_normal(D)
        found = found.on(point, K @ (best - point) + noise * rng.standard_normal(D), noise)
    return found


def test_differences_of_gradients_show_a_direction_that_the_release_hid():
    K = hidden(0.8)
    found = history(K, 0.01).curvature(DIAGONAL)
    assert found.values.max() > 5 * DIAGONAL.max()  # a part of it: of twenty dimensions the walk has seen seven
    top = found.vectors[:, found.values.argmax()]
    assert top @ K @ top > 0.5
    assert history(K, 0.01, rounds=40).curvature(DIAGONAL).values.max() == pytest.approx(0.8, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_what_noise_explains_as_well_changes_nothing(seed):
    found = history(np.diag(DIAGONAL), 0.3, seed=seed).curvature(DIAGONAL)
    np.testing.assert_allclose(found.values, DIAGONAL, rtol=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_no_direction_is_flatter_than_the_flattest_known(seed):
    diagonal = np.linspace(0.02, 0.08, D)
    assert history(0.001 * np.eye(D), 1e-3, seed=seed).curvature(diagonal).values.min() >= 0.02


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_one_gradient_or_exact_ones_leave_the_diagonal(noise):
    diagonal = np.linspace(0.02, 0.08, D)
    for known in (GradientHistory.empty(D), history(hidden(0.8), noise, rounds=1), history(hidden(0.8), 0.0, rounds=3)):
        np.testing.assert_allclose(np.sort(known.curvature(diagonal).values), diagonal)


def test_the_inverse_and_its_noise_are_the_matrix_ones():
    rng = np.random.default_rng(1)
    values, vectors = np.linalg.eigh(hidden(0.8))
    inverse, gradient, sigma = np.linalg.inv(hidden(0.8)), rng.standard_normal(D), rng.uniform(1, 2, D)
    curvature = Curvature(values, vectors)
    np.testing.assert_allclose(curvature.solved(gradient), inverse @ gradient)
    np.testing.assert_allclose(curvature.noise(sigma) ** 2, np.diag(inverse @ np.diag(sigma**2) @ inverse))
    np.testing.assert_allclose(curvature.noise(2.0), curvature.noise(np.full(D, 2.0)))
