"""The softmax's recipe: budgets add up, bounds hold for any matrix, and without noise it finds the optimum."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import check_grad

from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.filter_bank import Filter, advanced
from privstats.estimates.recipes import GRADIENT_CLIP, GRADIENT_SHARES, SoftmaxRecipe, advised_rounds
from privstats.estimates.softmax import (
    INTERCEPT,
    SoftmaxWhitening,
    averaged,
    balanced,
    class_curvature,
    refined,
    started,
)
from tests.estimates.rounds import symmetric_noise

recipes = st.builds(
    SoftmaxRecipe,
    st.integers(2, 200),
    st.integers(1, 600),
    st.integers(1, 10**7),
    st.floats(1e-3, 50),
    st.integers(1, 10),
)
QUIET = {"N": 0.0, "A": 0.0, "B": 0.0}


def unit_rows(n: int, d: int, C: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(C), rng.integers(0, C, n - C)])
    X = rng.standard_normal((C, d))[y] + rng.standard_normal((n, d)) * rng.uniform(0.2, 1.5, d)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def sums_of(X: np.ndarray, y: np.ndarray, C: int, sigma: dict[str, float] = QUIET, seed: int = 0) -> NoisyClassSums:
    rng, d = np.random.default_rng(seed), X.shape[1]
    E = symmetric_noise(rng, d)
    one_hot = np.eye(C)[y]
    return NoisyClassSums(
        one_hot.sum(axis=0) + sigma["N"] * rng.standard_normal(C),
        one_hot.T @ X + sigma["A"] * rng.standard_normal((C, d)),
        X.T @ X + sigma["B"] * E,
        sigma,
    )


def loss_gradient(U: np.ndarray, y: np.ndarray, W: np.ndarray, clip: float = math.inf) -> tuple[np.ndarray, float]:
    """Return the sums of ``q r u'``, r = p - e_y at most ``clip`` long, and of ``q (1 - |p|^2)``."""
    p = np.exp(U @ W.T)
    p /= p.sum(axis=1, keepdims=True)
    r = p - np.eye(len(W))[y]
    q = np.minimum(1, clip / np.linalg.norm(r, axis=1))
    return (q[:, None] * r).T @ U, float((q * (1 - np.square(p).sum(axis=1))).sum())


@given(recipes)
def test_a_course_spends_its_mu_and_no_more(recipe):
    spent = recipe.release_mu**2 + recipe.rounds * recipe.round_mu**2
    assert math.isclose(spent, recipe.mu**2, rel_tol=1e-12)
    assert math.isclose(math.fsum(recipe.release_shares.values()), 1.0)
    assert math.isclose(math.fsum(GRADIENT_SHARES.values()), 1.0)


@given(recipes)
def test_constants_stay_in_their_ranges(recipe):
    assert 2 <= recipe.prior_variance <= 4
    assert 0 < recipe.ridge <= recipe.columns / (4 * recipe.records)


def test_the_recipe_of_digits_is_the_published_one():
    recipe = SoftmaxRecipe(classes=10, features=64, records=1347, mu=1.0)
    assert recipe.signal == pytest.approx(1347 / 80)
    assert recipe.release_shares == {"N": 0.02, "A": 0.4, "B": 0.58}
    assert (recipe.release_mu**2, recipe.prior_variance) == (pytest.approx(0.15), 2.0)
    assert recipe.ridge == pytest.approx((1.5 * 80 / 1347) ** 1.5 * 65 / (4 * 1347))


@pytest.mark.parametrize(("classes", "rho"), [(2, 1.0), (4, 1.0), (10, 0.16), (77, 16 / 77**2)])
def test_without_noise_the_ridge_follows_from_how_many_records_there_are(classes, rho):
    exact = SoftmaxRecipe(classes=classes, features=384, records=1000, mu=math.inf)
    assert exact.ridge == pytest.approx(rho * 385 / 4000)
    few = SoftmaxRecipe(classes=classes, features=384, records=96, mu=math.inf)
    assert few.ridge == pytest.approx(rho / 16 * 385 / 384)  # a quarter of a record per feature
    weak = SoftmaxRecipe(classes=classes, features=384, records=1000, mu=1e6)
    assert weak.ridge < 1e-3 * exact.ridge  # a course's rule is as it was, so its published weights are


@pytest.mark.parametrize(("mu", "T"), [(1e-6, 4), (0.699, 4), (0.7, 6), (math.inf, 6)])
def test_a_large_budget_is_worth_more_rounds(mu, T):
    assert advised_rounds(mu) == T


@given(st.integers(2, 5), st.integers(1, 12), st.floats(-2, 3), st.integers(0, 10_000))
def test_rows_have_norm_one_for_any_noisy_release(C, d, level, seed):
    X, y = unit_rows(30, d, C, seed)
    whitening = SoftmaxWhitening.of(sums_of(X, y, C, {"N": 1.0, "A": 10.0**level, "B": 10.0**level}, seed))
    assert (whitening.scale > 0).all()
    assert np.isfinite(whitening.matrix).all()
    U = whitening.rows(X)
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), 1.0)
    np.testing.assert_allclose(U[:, -1], INTERCEPT)
    assert whitening.curvature.min() >= 1.5 / (d + 1)


@given(recipes)
def test_the_floor_is_what_noise_and_sample_can_make_of_equal_eigenvalues_and_never_above_their_mean(recipe):
    """It falls with every record and every bit of budget, so it is 1 for all below some number of them."""
    assert 0 < recipe.floor <= 1
    assert replace(recipe, records=4 * recipe.records).floor <= recipe.floor
    if recipe.signal >= 10:  # where the shares of the release stay as they are
        assert replace(recipe, mu=2 * recipe.mu).floor <= recipe.floor
    exact = replace(recipe, mu=math.inf)
    assert exact.floor == pytest.approx(min(1.0, 2 * math.sqrt(recipe.features / recipe.records)))


@pytest.mark.parametrize(("d", "n", "mu"), [(24, 20_000, math.inf), (24, 20_000, 0.5), (40, 4_000, 2.0)])
def test_round_rows_have_no_eigenvalue_farther_from_the_mean_than_the_floor_and_some_nearly_there(d, n, mu):
    """Rows of no direction, whose eigenvalues differ by noise and chance alone, drawn anew."""
    recipe = SoftmaxRecipe(2, d, n, mu)
    sigma = 0.0 if math.isinf(mu) else 1 / (recipe.release_mu * math.sqrt(recipe.release_shares["B"]))
    y = np.arange(n) % 2
    farthest = []
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal((n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        B = sums_of(X, y, 2, {"N": 0.0, "A": 0.0, "B": sigma}, seed).B / n
        farthest.append(np.abs(np.linalg.eigvalsh(B) * d - 1).max())
    assert 0.75 * recipe.floor < np.mean(farthest) < 1.2 * recipe.floor < 1


def test_a_long_mean_no_longer_keeps_the_other_directions_from_being_whitened():
    """As in a table of columns between -1 and 1 with a constant: one eigenvalue holds nearly all of the trace."""
    C, d, n = 2, 12, 5_000
    X = np.column_stack([0.1 * np.random.default_rng(0).uniform(-1, 1, (n, d - 1)), np.ones(n)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    sums, recipe = sums_of(X, y, C), SoftmaxRecipe(C, d, n, 1e6)
    plain, whitened = (SoftmaxWhitening.of(sums, floor) for floor in (1.0, recipe.floor))
    told = [w.values * np.square(w.scale) / w.spread for w in (plain, whitened)]
    assert told[0][:-1].sum() < 0.4 < 0.6 < told[1][:-1].sum()
    found = []
    for whitening in (plain, whitened):
        U, state = whitening.rows(X), started(recipe, sums, whitening)
        for _ in range(4):
            G, kappa = loss_gradient(U, y, whitening.published(state.weights))
            state = refined(recipe, sums, whitening, state, G, kappa, 0.0)
        scores = U @ whitening.published(state.weights).T
        found.append(_loss(scores, y))
    assert found[1] < 0.8 * found[0]


def _loss(scores: np.ndarray, y: np.ndarray) -> float:
    return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]).mean())


@pytest.mark.parametrize("floor", [1e-3, 0.3, 1.0])
def test_what_a_release_hides_itself_is_no_less_than_its_floor(floor):
    X, y = unit_rows(400, 8, 2, 0)
    for level in (0.0, 0.1, 1.0, 30.0):
        sums = sums_of(X, y, 2, {"N": 0.0, "A": 0.0, "B": level})
        hidden = level * 8 * math.sqrt(16) / sums.records
        assert SoftmaxWhitening.of(sums, floor).floor == pytest.approx(min(1.0, max(floor, hidden)))


def test_a_row_of_zeros_gives_the_intercept_alone():
    X, y = unit_rows(40, 6, 3, 0)
    whitening = SoftmaxWhitening.of(sums_of(X, y, 3))
    np.testing.assert_array_equal(whitening.rows(np.zeros((1, 6))), [[0, 0, 0, 0, 0, 0, INTERCEPT]])


def test_a_release_without_any_signal_whitens_by_the_identity():
    whitening = SoftmaxWhitening.of(NoisyClassSums(np.zeros(2), np.zeros((2, 3)), np.zeros((3, 3)), QUIET))
    np.testing.assert_allclose(whitening.matrix, np.eye(3) * whitening.scale[0])


@given(st.integers(0, 10_000))
def test_published_scores_are_those_of_the_filters_coordinates(seed):
    X, y = unit_rows(50, 7, 3, seed)
    whitening = SoftmaxWhitening.of(sums_of(X, y, 3))
    W = np.random.default_rng(seed).standard_normal((3, 8))
    inner = X @ (whitening.vectors * whitening.scale)
    unit = math.sqrt(1 - INTERCEPT**2) * inner / np.linalg.norm(inner, axis=1, keepdims=True)
    direct = unit @ W[:, :-1].T + INTERCEPT * W[:, -1]
    np.testing.assert_allclose(whitening.rows(X) @ whitening.published(W).T, direct)
    np.testing.assert_allclose(whitening.turned(whitening.published(W)), W, atol=1e-12)


def test_equal_eigenvalues_leave_the_published_matrix_where_it_was():
    """Five equal eigenvalues: V may be any basis of their plane, and is another one after a change of 1e-15."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    B = (Q * np.array([5.0] * 5 + list(range(6, 13)))) @ Q.T
    E = rng.standard_normal((12, 12)) * 1e-15
    first, other = (
        SoftmaxWhitening.of(NoisyClassSums(np.ones(2), np.zeros((2, 12)), (M + M.T) / 2, QUIET)) for M in (B, B + E)
    )
    assert np.abs(first.vectors * first.scale - other.vectors * other.scale).max() > 1e-3
    np.testing.assert_allclose(first.matrix, other.matrix, atol=1e-12)


def test_the_free_update_is_the_gradient_at_zero():
    """Where all rows have one norm after M, what follows from N and A is what a round at W = 0 would release."""
    C, d = 3, 5
    X, y = unit_rows(60, d, C, 1)
    sums = sums_of(X, y, C)
    flat = SoftmaxWhitening(np.eye(d), np.full(d, 1 / d), np.ones(d))  # M = I: every row keeps its norm of 1
    recipe = SoftmaxRecipe(C, d, 60, 0.01)  # so little that all classes have one curvature
    G, kappa = loss_gradient(flat.rows(X), y, np.zeros((C, d + 1)))
    zero = np.zeros((C, d + 1))
    fresh = Filter(zero, recipe.prior_variance * flat.curvature.mean() / flat.curvature, zero)
    by_round = refined(recipe, sums, flat, fresh, G, kappa, 0.0)
    np.testing.assert_allclose(started(recipe, sums, flat).weights, by_round.weights, atol=1e-12)


def test_without_noise_a_course_reaches_the_optimum_of_the_logistic_loss():
    C, d, n = 3, 6, 600
    X, y = unit_rows(n, d, C, 2)
    sums, recipe = sums_of(X, y, C), SoftmaxRecipe(C, d, n, 1e6)
    whitening = SoftmaxWhitening.of(sums)
    U, state = whitening.rows(X), started(recipe, sums, whitening)
    first = np.abs(loss_gradient(U, y, whitening.published(state.weights))[0]).max()
    for _ in range(300):
        G, kappa = loss_gradient(U, y, whitening.published(state.weights))
        state = refined(recipe, sums, whitening, state, G, kappa, 0.0)
    assert np.abs(loss_gradient(U, y, whitening.published(state.weights))[0]).max() < 0.01 * first


def test_the_gradient_of_these_tests_is_one():
    X, y = unit_rows(20, 3, 3, 3)
    U = np.hstack([X, np.ones((20, 1))])

    def loss(flat: np.ndarray) -> float:
        scores = U @ flat.reshape(3, 4).T
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(20), y]).sum())

    at = np.random.default_rng(0).standard_normal(12)
    assert check_grad(loss, lambda W: loss_gradient(U, y, W.reshape(3, 4))[0].ravel(), at) < 1e-4


def banded(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table of seven questions with three answers: the first tells class 0, how many high answers tells the others.

    The last class, the lowest sums, holds about one record in forty.
    """
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 3, size=(n, 7))
    total = answers[:, 1:].sum(axis=1) + 0.01 * rng.random(n)
    low, high = np.quantile(total, [0.04, 0.5])
    y = np.where(answers[:, 0] == 0, 0, np.where(total < low, 3, np.where(total < high, 1, 2)))
    X = np.hstack([*(np.eye(3)[column] for column in answers.T), np.ones((n, 1))])
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.parametrize("mu", [1.0, 1e3])
@pytest.mark.parametrize("seed", range(3))
def test_a_rare_class_is_found_where_classes_are_to_count_alike(mu, seed):
    X, y = banded(4_000, seed)
    assert 80 < (y == 3).sum() < 130
    sums, recipe = sums_of(X, y, 4), SoftmaxRecipe(4, X.shape[1], len(y), mu, 6)
    whitening = SoftmaxWhitening.of(sums, recipe.floor)
    U, state = whitening.rows(X), started(recipe, sums, whitening)
    for _ in range(recipe.rounds):
        G, kappa = loss_gradient(U, y, whitening.published(state.weights), GRADIENT_CLIP)
        state = refined(recipe, sums, whitening, state, G, kappa, 0.0)
    told = (U @ balanced(whitening.published(state.weights), sums.N).T).argmax(axis=1)
    found = [(told == c)[y == c].mean() for c in range(4)]
    assert found[3] > 0.3, found  # none with one curvature for all
    assert min(found[:3]) > 0.8


@given(
    st.lists(st.integers(0, 5_000), min_size=2, max_size=5), st.floats(-12, 0), st.floats(-4, 1), st.integers(0, 10_000)
)
@example([0, 1], -3.0, 0.0, 0)
def test_no_class_has_more_curvature_than_the_mean_of_all_or_less_than_its_noise_allows(counts, noise, width, seed):
    """For any counts: none, one class alone, equal ones."""
    C, d, noise = len(counts), 5, 10.0**noise
    X, y = unit_rows(60, d, C, seed)
    sums = replace(sums_of(X, y, C), N=np.array(counts, float))
    recipe, whitening = SoftmaxRecipe(C, d, 60, 50.0), SoftmaxWhitening.of(sums)
    state = started(recipe, sums, whitening)
    state = replace(state, variance=10.0**width * state.variance)
    assert recipe.least_curvature < 1
    mean = (0.2 + recipe.ridge) * whitening.curvature
    found = class_curvature(recipe, sums, whitening, state, 0.2, noise)
    assert found.shape == (C, d + 1)
    assert (found <= mean).all()
    assert (found >= np.minimum(mean, np.sqrt(noise / (1.5 * state.variance)))).all()
    assert (found >= np.minimum(mean, recipe.ridge * whitening.curvature)).all()
    if sum(counts) > max(counts):  # of one class alone no share differs but by rounding
        order = np.argsort(np.minimum(counts, sum(counts) - np.array(counts)))
        assert (np.diff(found[order], axis=0) >= -1e-12 * mean).all()  # the rarer, the less


@given(st.floats(-6, 6), st.floats(-6, 6))
def test_a_step_is_longest_at_the_least_curvature_that_noise_allows(variance, noise):
    """Less curvature shortens the step; so it would be no caution to go below."""
    S, s = np.full(1, 10.0**variance), 10.0**noise
    at = s / math.sqrt(1.5 * S[0])
    lengths = [
        abs(
            advanced(Filter(np.zeros(1), S, np.zeros(1)), np.ones(1), s**2, np.full(1, at * by), caution=0.5).weights[0]
        )
        for by in (0.5, 0.9, 1.0, 1.1, 2.0)
    ]
    assert max(lengths) == lengths[2]


@given(recipes)
def test_where_noise_leaves_no_class_less_curvature_all_have_one(recipe):
    assert 0 < recipe.least_curvature <= 1
    assert replace(recipe, records=2 * recipe.records).least_curvature <= recipe.least_curvature
    least = replace(recipe, mu=1e-9).least_curvature
    assert (least, replace(recipe, mu=math.inf).least_curvature) == (1, 0)
    sums = sums_of(*unit_rows(20, 3, 2, 0), 2)
    told = replace(recipe, classes=2, features=3)
    whitening = SoftmaxWhitening.of(sums)
    found = class_curvature(told, sums, whitening, started(told, sums, whitening), 0.3, 0.0)
    assert found.shape == ((4,) if told.least_curvature == 1 else (2, 4))


@given(st.integers(2, 4), st.integers(2, 6), st.integers(0, 10_000), st.floats(-3, 3))
def test_any_round_leaves_finite_weights(C, d, seed, level):
    """Whatever a round releases: an enormous gradient, a negative curvature, none."""
    X, y = unit_rows(30, d, C, seed)
    sums, recipe = sums_of(X, y, C, {"N": 5.0, "A": 5.0, "B": 5.0}, seed), SoftmaxRecipe(C, d, 30, 1.0)
    whitening = SoftmaxWhitening.of(sums)
    state = started(recipe, sums, whitening)
    rng = np.random.default_rng(seed)
    for kappa in (-1e9, 0.0, 1e9):
        sigma = 10.0**level
        state = refined(recipe, sums, whitening, state, sigma * rng.standard_normal((C, d + 1)), kappa, sigma)
    assert np.isfinite(state.weights).all()
    assert (state.variance > 0).all()


def test_averaging_keeps_the_length_and_leans_to_the_discriminant():
    rng = np.random.default_rng(0)
    X, y = unit_rows(80, 5, 3, 0)
    whitening = SoftmaxWhitening.of(sums_of(X, y, 3))
    W = rng.standard_normal((3, 6))
    W -= W.mean(axis=0)
    coef, intercept = rng.standard_normal((3, 5)), rng.standard_normal(3)
    L = (averaged(whitening, W, coef, intercept) - 0.85 * W) / 0.15
    inner = whitening.curvature
    np.testing.assert_allclose((np.square(L) * inner).sum(), (np.square(W) * inner).sum())
    stretched = L[:, :-1] * (whitening.scale * whitening.stretch)
    np.testing.assert_allclose(L.mean(axis=0), 0, atol=1e-12)
    centred = (coef - coef.mean(axis=0)) @ whitening.vectors
    np.testing.assert_allclose(stretched / stretched[0, 0], centred / centred[0, 0])
    np.testing.assert_array_equal(averaged(whitening, W, np.zeros((3, 5)), np.zeros(3)), W)


def test_balanced_weights_forget_how_many_records_a_class_had():
    X, y = unit_rows(50, 4, 2, 0)
    whitening = SoftmaxWhitening.of(sums_of(X, y, 2))
    W = np.random.default_rng(0).standard_normal((2, 5))
    counts = np.array([40.0, 10.0])
    U = whitening.rows(X)
    np.testing.assert_allclose(U @ balanced(W, counts).T, U @ W.T - np.log(counts))
