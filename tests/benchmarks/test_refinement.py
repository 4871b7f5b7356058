"""What refinement is compared with is what it says: clipped gradients, and the same course in real numbers."""

import numpy as np
import pytest

from benchmarks.data import private_tasks
from benchmarks.refinement import exactness, gradient, regression
from benchmarks.refinement.library import CENTRAL, DISTRIBUTED, course_of, played
from benchmarks.refinement.prototype import class_release
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.softmax import SoftmaxRecipe, SoftmaxWhitening


@pytest.fixture(scope="module")
def digits():
    (task,) = private_tasks(bundled_only=True)
    return task.transformed()


def descended(X, y, recipe):
    """The definition, a record at a time: clipped gradients of the cross entropy, heavy ball."""
    rows = np.hstack([X, np.ones((len(X), 1))])
    W = velocity = np.zeros((int(y.max()) + 1, rows.shape[1]))
    for _ in range(recipe.steps):
        total = np.zeros_like(W)
        for x, label in zip(rows, y, strict=True):
            p = np.exp(W @ x) / np.exp(W @ x).sum()
            own = np.outer(p - np.eye(len(W))[label], x)
            total += own * min(1, recipe.clip / np.linalg.norm(own))
        velocity = recipe.momentum * velocity + total / len(rows)
        W = W - recipe.rate * velocity
    return W


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_without_noise_many_recipes_at_once_are_clipped_gradient_descent(digits, momentum):
    X, X_test, y, y_test = digits
    recipes = [gradient.Recipe(rate, clip, momentum, 4, 1.0) for rate in (0.5, 4.0) for clip in (0.3, 1.0)]
    split = (X[:80], X_test, y[:80], y_test)
    scores = gradient.train(split, recipes, 0.0, np.random.default_rng(0))[:, 0]
    tests = np.hstack([X_test, np.ones((len(X_test), 1))])
    for recipe, score in zip(recipes, scores, strict=True):
        guess = (tests @ descended(X[:80], y[:80], recipe).T).argmax(axis=1)
        assert score == pytest.approx((guess == y_test).mean(), abs=0.005)


def test_a_part_of_the_records_stands_for_all_with_the_noise_of_all(digits):
    """With the noise of a million records the same hundred rows teach as without noise."""
    X, X_test, y, y_test = digits
    split, recipes = (X[:100], X_test, y[:100], y_test), [gradient.Recipe(4.0, 1.0, 0.0, 20, 1.0)]
    exact, many, few = (
        float(gradient.train(split, recipes, noise, np.random.default_rng(0), records=records)[0, 0])
        for noise, records in ((0.0, 100), (20.0, 10**6), (20.0, 100))
    )
    assert many == pytest.approx(exact, abs=0.01)
    assert few < exact - 0.1


@pytest.mark.slow
def test_full_batches_compose_as_gaussians_and_sampled_ones_need_less_noise():
    assert gradient.noise_multiplier(1.0, 1e-5, 1.0, 100) == pytest.approx(10 / gaussian_mu(1.0, 1e-5))
    pytest.importorskip("opacus")
    assert gradient.noise_multiplier(1.0, 1e-5, 0.1, 100) < 0.2 * gradient.noise_multiplier(1.0, 1e-5, 1.0, 100)


def test_the_three_ways_sum_the_same_gradient(digits):
    X, _, y, _ = digits
    recipe = SoftmaxRecipe(10, 64, len(X), gaussian_mu(1.0, 1e-5))
    whitening = SoftmaxWhitening.of(class_release(recipe, X, y, np.random.default_rng(0)))
    weights = np.random.default_rng(1).standard_normal((10, 65))
    sums = [way(whitening, weights) for way in exactness.ways(digits, 1.0).values()]
    (real, kappa), *others = sums
    for G, k in others:
        assert np.linalg.norm(G - real) < 2e-3 * np.linalg.norm(real)
        assert k == pytest.approx(kappa, rel=2e-3)
    np.testing.assert_allclose(others[0][0], real, atol=1e-9)


def test_silent_clients_are_missing_from_their_node_alone(digits):
    X, _, y, _ = digits
    course = course_of(digits, 8.0, 1e-5, 2, DISTRIBUTED)
    releases = played(course, X, y, DISTRIBUTED, seed=0)
    assert [len(release.survivors) for release in releases] == [18, 18, 18]
    central = played(course_of(digits, 8.0, 1e-5, 2), X, y, CENTRAL, seed=0)
    assert central[0].moments.N.sum() == pytest.approx(len(X), abs=60)
    assert releases[0].moments.N.sum() == pytest.approx(0.9 * len(X), abs=60)


def test_without_noise_descent_on_squares_ends_at_least_squares():
    problem = regression.PROBLEMS[1]
    X, X_test, y, y_test = problem.clipped(0)
    recipe = regression.Recipe(0.1, 1.0, 0.9, 3000)
    last, tail = regression.descended(problem, (X, X_test, y, y_test), [recipe], 0.0, np.random.default_rng(0))
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    for weights in (last[0], tail[0]):
        assert np.square(y - X @ weights).mean() < 1.02 * np.square(y - X @ least).mean()
