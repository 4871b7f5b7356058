"""The regression's recipe: budgets add up, rows are bounded, and without noise it ends at least squares."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.estimates.denoise import NoisyGram, denoised_solve, seen_share
from privstats.estimates.recipes import RidgeRecipe
from privstats.estimates.regression import RidgeWhitening, ridge_map, ridge_refined, ridge_settled, ridge_started
from tests.estimates.rounds import ridge_rounds, symmetric_noise

recipes = st.builds(
    RidgeRecipe,
    features=st.integers(1, 600),
    records=st.integers(1, 10**7),
    mu=st.floats(1e-3, 50),
    clip_norm=st.floats(1e-3, 1e3),
    target_bound=st.floats(1e-3, 1e3),
    rounds=st.integers(1, 64),
)


def data(n: int, d: int, seed: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 2, d)
    return X, X @ rng.standard_normal(d) + noise * rng.standard_normal(n)


def sums_of(X: np.ndarray, y: np.ndarray, sigma: float = 0.0, seed: int = 0) -> NoisyGram:
    rng, d = np.random.default_rng(seed), X.shape[1]
    E = symmetric_noise(rng, d)
    h = X.T @ y + sigma * rng.standard_normal(d)
    q = float(y @ y + sigma * rng.standard_normal())
    return NoisyGram(X.T @ X + sigma * E, h[:, None], q, sigma, sigma, sigma, float(len(X)))


@given(recipes)
def test_a_course_spends_its_mu_and_no_more(recipe):
    spent = recipe.release_mu**2 + recipe.mean_share * recipe.mu**2 + recipe.rounds * recipe.round_mu**2
    assert math.isclose(spent, recipe.mu**2, rel_tol=1e-12)
    assert math.isclose(math.fsum(recipe.release_shares.values()), 1.0)
    assert math.isclose(math.fsum(recipe.round_shares.values()), 1.0)
    least = recipe.descends or recipe.mean_share
    assert recipe.release_share == 1 / 64 if least else 0.08 <= recipe.release_share <= 0.3
    assert 0.25 <= recipe.width <= max(2.001, math.sqrt(recipe.records * recipe.mu / recipe.features) / 4)
    assert recipe.clip(1e9) == 2 * recipe.target_bound


def test_strong_noise_wants_signs_and_little_noise_whole_residuals():
    widths = [RidgeRecipe(100, 10_000, mu, 1.0, 1.0, 6).width for mu in (0.01, 0.1, 1.0, 10.0, math.inf)]
    assert widths == sorted(widths)
    assert widths[0] < 0.5
    assert widths[-2:] == [pytest.approx(math.sqrt(1_000) / 4), math.inf]


def test_noise_that_many_rounds_average_out_widens_the_clip_to_one_and_a_quarter_deviations_at_most(monkeypatch):
    monkeypatch.setattr(RidgeRecipe, "_widening", 0.0)  # what skewed residuals need is more
    widths = {
        T: [RidgeRecipe(30, 2_000, mu, 1.0, 1.0, T).width for mu in (0.1, 0.5, 1.0, 2.0, 3.0, math.inf)]
        for T in (11, 12, 48)
    }
    assert all(each == sorted(each) for each in widths.values())
    assert widths[12][1] > 1.3 * widths[11][1]  # though a round has less of the budget
    assert widths[48][3:5] == pytest.approx([1.25, 1.25])
    assert widths[11][3] > 1.3
    assert widths[48][-1] == pytest.approx(2)  # what a round alone wants stays


@given(recipes)
def test_what_the_clip_and_noise_may_move_a_mean_by_vanishes_together(recipe):
    """A clip at g deviations moves a mean by 1 / (4 g) of one at most, and noise moves it by g d / (n mu)."""
    certainty = recipe.records * recipe.mu / recipe.features
    width = replace(recipe, mu=1e6 * recipe.mu).width
    assert 1 / (4 * width) <= 1 / math.sqrt(1e6 * certainty) + 1e-12
    assert width / (1e6 * certainty) <= max(2.001 / (1e6 * certainty), 0.25 / math.sqrt(1e6 * certainty)) + 1e-12


@given(st.integers(1, 8), st.floats(-2, 4), st.integers(0, 10_000))
def test_rows_are_shortened_to_norm_one_and_never_stretched(d, level, seed):
    X, y = data(40, d, seed)
    whitening = RidgeWhitening.of(RidgeRecipe(d, 40, 1.0, 5.0, 5.0, 4), sums_of(X, y, 10.0**level, seed))
    norm = np.linalg.norm(X @ whitening.matrix, axis=1)
    np.testing.assert_allclose(np.linalg.norm(whitening.rows(X), axis=1), np.minimum(norm, 1.0))
    assert (whitening.curvature > 0).all()


def test_under_strong_noise_rows_become_directions_and_without_noise_they_keep_their_length():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000, 8)) * rng.uniform(0.6, 2, 1_000)[:, None]
    whole = {"features": 8, "records": 1_000, "clip_norm": 9.0, "target_bound": 1.0, "rounds": 24}
    drowned, less, exact = (RidgeRecipe(mu=mu, **whole) for mu in (0.05, 0.5, math.inf))
    assert (drowned.mean_length, exact.mean_length) == (0.5, math.inf)
    sums = sums_of(X, X[:, 0])
    rows = [RidgeWhitening.of(recipe, sums).rows(X) for recipe in (drowned, less, exact)]
    short = [(np.linalg.norm(each, axis=1) < 1 - 1e-9).mean() for each in rows]
    assert short[0] < 0.2
    assert 0.5 < short[1] < 0.95
    assert short[2] == 1, "of rows within the clip norm the map leaves all complete"
    assert replace(drowned, rounds=6).mean_length == 1


def test_one_curved_direction_is_considered_where_rounds_are_many_and_noise_is_not_too_strong():
    recipe = RidgeRecipe(100, 8_000, 0.03, 1.0, 1.0, 24)
    assert recipe.signal == pytest.approx(0.24)
    assert recipe.single
    assert not replace(recipe, rounds=6).single
    assert not replace(recipe, mu=0.02).single


def test_a_step_is_as_long_whatever_rows_of_one_length_keep():
    X = np.random.default_rng(0).standard_normal((20_000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ np.array([1.0, -1.0, 0.5, 0.0])
    recipe, sums = RidgeRecipe(4, 20_000, 1.0, 1.0, 9.0, 4), replace(sums_of(X, y), sigma_G=1.0)
    found = []
    for length in (1.0, 0.5, 0.25):
        whitening = replace(RidgeWhitening.of(recipe, sums), mean_length=length)
        state = replace(ridge_started(recipe, sums, whitening), weights=np.zeros(4), clip=9.0)
        state = ridge_refined(recipe, whitening, state, y @ whitening.rows(X), 2e4, (1.0, 1.0))
        found.append(whitening.published(state.weights))
    np.testing.assert_allclose(found[1:], [found[0], found[0]], atol=0.02)
    assert np.linalg.norm(found[0]) > 0.5


def test_a_release_without_any_signal_still_whitens():
    whitening = RidgeWhitening.of(
        RidgeRecipe(3, 10, 1.0, 1.0, 1.0, 4), NoisyGram(np.zeros((3, 3)), np.zeros((3, 1)), 0.0, 0.0, 0.0, 0.0, 10.0)
    )
    assert np.isfinite(whitening.matrix).all()
    assert (whitening.curvature > 0).all()


def test_the_first_weights_are_the_wiener_weights_of_the_release():
    X, y = data(500, 6, 0)
    recipe, sums = RidgeRecipe(6, 500, 1.0, 6.0, 9.0, 4), sums_of(X, y)
    whitening = RidgeWhitening.of(recipe, sums)
    state = ridge_started(recipe, sums, whitening)
    np.testing.assert_allclose(whitening.published(state.weights), denoised_solve(sums).weights[:, 0])
    assert state.clip < recipe.clip(math.sqrt(sums.q / 500))  # these weights explain most of the targets already


def test_rounds_find_least_squares_from_far_away_and_the_clip_follows_the_residuals():
    X, y = data(2_000, 6, 1, noise=1.0)
    recipe, sums = RidgeRecipe(6, 2_000, 30.0, 30.0, 9.0, 20), sums_of(X, y)
    whitening = RidgeWhitening.of(recipe, sums)
    far = replace(ridge_started(recipe, sums, whitening), weights=np.zeros(6))
    states = list(ridge_rounds(recipe, X, y, whitening, far, lambda state: (state.clip / recipe.round_mu, 1.0)))
    found, wanted = whitening.published(states[-1].weights), np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(found, wanted, atol=0.02)
    assert states[-1].deviation == pytest.approx(1.0, rel=0.1)
    assert states[-1].clip == min(recipe.width * states[-1].deviation, 2 * recipe.target_bound)


def test_a_q_that_noise_took_below_zero_does_not_clip_residuals_to_nothing():
    X, y = data(200, 4, 0)
    sums = sums_of(X, y)
    unlucky = replace(sums, q=-50.0, sigma_q=800.0)  # true energy 4: a draw of two thirds of a standard deviation
    recipe = RidgeRecipe(4, 200, 1.0, 6.0, 9.0, 4)
    clips = [ridge_started(recipe, each, RidgeWhitening.of(recipe, each)).clip for each in (sums, unlucky)]
    assert clips[1] > 0.5 * clips[0]


def test_where_noise_hides_the_second_moments_rows_are_not_stretched():
    """A trace below 0 would leave a mean eigenvalue of next to nothing, and a map that is its root's inverse."""
    d, n, sigma = 5, 4_000, 20_000.0
    recipe = RidgeRecipe(d, n, 0.01, 1.0, 1.0, 4)
    hidden = NoisyGram(-200 * np.eye(d), np.zeros((d, 1)), 0.0, sigma, sigma, sigma, float(n))
    noise = sigma / (n * math.sqrt(d))  # standard deviation of the mean eigenvalue
    whitening = RidgeWhitening.of(recipe, hidden)
    assert whitening.values.mean() == pytest.approx(1 / d)  # the posterior mean is above what rows of norm 1 can have
    assert noise > 1
    assert whitening.mean_length * np.linalg.norm(whitening.matrix, 2) == pytest.approx(1)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(0, 1_000))
def test_any_round_leaves_finite_weights_and_a_clip_above_zero(size, within, seed):
    X, y = data(40, 4, seed)
    recipe, sums = RidgeRecipe(4, 40, 1.0, 5.0, 5.0, 4), sums_of(X, y, 3.0, seed)
    whitening = RidgeWhitening.of(recipe, sums)
    state = ridge_refined(
        recipe, whitening, ridge_started(recipe, sums, whitening), np.full(4, size), within, (1.0, 2.0)
    )
    assert np.isfinite(state.weights).all()
    assert 0 < state.clip <= 2 * recipe.target_bound


def test_noise_that_hides_everything_leaves_a_course_near_where_it_began():
    """Size of residuals, G and h are all under the noise: nothing is learnt, and nothing is made up."""
    X, y = data(2_000, 5, 3)
    recipe, sums = RidgeRecipe(5, 2_000, 0.02, 6.0, 9.0, 8), sums_of(X, y, 2e5, 3)
    whitening = RidgeWhitening.of(recipe, sums)
    first = ridge_started(recipe, sums, whitening)
    *_, last = ridge_rounds(
        recipe,
        X,
        y,
        whitening,
        first,
        lambda state: (state.clip / (recipe.round_mu * 0.97), 1 / (recipe.round_mu * 0.22)),
    )
    assert np.square(y - X @ whitening.published(last.weights)).mean() < 2 * np.square(y).mean()


@pytest.mark.parametrize("mu", [0.05, 0.11, 1.0])
def test_what_machines_round_differently_stays_far_below_what_parties_refuse(mu):
    """Parties refuse weights that are off by 2^-16; other kernels move G by some 1e-15 of its size."""
    X, y = data(400, 12, 5)
    recipe = RidgeRecipe(12, 400, mu, 6.0, 9.0, 12)
    sums = sums_of(X, y, 36 / recipe.release_mu, 5)
    moved = replace(sums, G=sums.G * (1 + 1e-14 * np.ones((12, 12)) * (np.add.outer(range(12), range(12)) % 3)))
    published = []
    for each in (sums, moved):
        whitening = RidgeWhitening.of(recipe, each)
        first = ridge_started(recipe, each, whitening)
        *_, last = ridge_rounds(
            recipe, X, y, whitening, first, lambda state: (state.clip / recipe.round_mu, 4 / recipe.round_mu)
        )
        published.append(whitening.published(last.weights))
    ours, theirs = published
    assert np.abs(ours - theirs).max() < 2**-24 * np.abs(ours).max()


def skewed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform rows with a last constant of .5, and costs that grow with the first column."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.uniform(-1, 1, (n, 3)) / 3**0.5, np.full((n, 1), 0.5)])
    return X, np.minimum(rng.lognormal(0, 1, n) * (1 + X[:, 0]), 20.0)


@given(st.floats(0.05, 20), st.integers(0, 1_000))
def test_without_noise_residuals_of_any_shape_have_mean_zero(clip, seed):
    """The clip alone would leave a mean below the targets' own."""
    X, y = skewed(300, seed)
    recipe, sums = RidgeRecipe(4, 300, 1.0, 1.2, 20.0, 4, constant=0.5), sums_of(X, y)
    whitening = RidgeWhitening.of(recipe, sums)
    state = replace(ridge_started(recipe, sums, whitening), clip=clip)
    settled = ridge_settled(recipe, whitening, state)
    assert (y - X @ settled).mean() == pytest.approx(0.0, abs=1e-9)


def test_noise_above_what_a_clip_can_hide_moves_no_level():
    X, y = skewed(2_000, 0)
    recipe = RidgeRecipe(4, 2_000, 1.0, 1.2, 20.0, 4, constant=0.5)
    moved = []
    for seed in range(50):
        sums = replace(sums_of(X, y, 2e4, seed), G=X.T @ X, sigma_G=0.0)
        whitening = RidgeWhitening.of(recipe, sums)
        state = replace(ridge_started(recipe, sums, whitening), weights=np.zeros(4), deviation=2.0, clip=6.0)
        moved.append(0.5 * ridge_settled(recipe, whitening, state)[-1])
    noise = 2e4 / (0.5 * 2_000)
    assert noise == 20
    assert np.std(moved) < 2  # of the noise 20; a shift of 1 / 6 deviations is the most that a clip explains


@given(st.floats(2, 8), st.integers(0, 1_000))
def test_no_draw_of_a_first_release_moves_a_level_if_it_errs_by_more_than_residuals_vary(deviations, seed):
    """One draw in twenty exceeds two deviations: no shift by a clip explains it there."""
    X, y = skewed(300, seed)
    recipe, exact = RidgeRecipe(4, 300, 1.0, 1.2, 20.0, 4, constant=0.5), sums_of(X, y)
    whitening = RidgeWhitening.of(recipe, exact)
    state = replace(ridge_started(recipe, exact, whitening), deviation=2.0, clip=6.0)
    state = replace(state, history=state.history.on(np.zeros(4), np.zeros(4), 1.0))
    noise = 20.0 * 0.5 * 300  # of h; 20 of its mean target
    levels = []
    for drawn in (0.0, deviations * noise):
        sums = replace(exact, h=exact.h + drawn * np.eye(4)[:, 3:], sigma_h=noise)
        levels.append(0.5 * ridge_settled(recipe, whitening, replace(state, sums=sums))[-1])
    assert abs(levels[1] - levels[0]) < 0.1


@given(st.floats(-1.5, 1.5), st.floats(0.05, 2.0))
def test_the_first_round_for_the_level_clips_no_mean_residual_that_the_release_may_have_left(drawn, noise):
    """Otherwise noise of the release that exceeds the clip would stay in the level, and leak into slopes."""
    recipe, d, n = RidgeRecipe(31, 1_500, 0.0275, 1.2, 1.0, 24, constant=0.5), 31, 1_500.0
    h = np.eye(d)[:, 30:] * drawn * noise * 0.5 * n
    sums = NoisyGram(np.eye(d) * n / 25, h, 0.0, 0.3 * n, noise * 0.5 * n, 0.9 * n, n)
    whitening = RidgeWhitening.of(recipe, sums)
    state = ridge_started(recipe, sums, whitening)
    level = 0.5 * whitening.published(state.weights)[-1]
    assert recipe.level_rounds == 2
    assert abs(level) <= state.clip
    assert state.level == pytest.approx(noise**2 / (1 + noise**2))


def test_few_large_residuals_and_few_counts_do_not_narrow_the_clip():
    """Of 2 % ones, 98 % of residuals are near 0: counts within a narrow clip say that all are small."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.uniform(-1, 1, (20_000, 3)) / 3**0.5, np.full((20_000, 1), 0.5)])
    y = (rng.random(20_000) < 0.02).astype(float)
    recipe, sums = RidgeRecipe(4, 20_000, 1.0, 1.2, 1.0, 24), sums_of(X, y, 1.0)
    whitening = RidgeWhitening.of(recipe, sums)
    first = ridge_started(recipe, sums, whitening)
    *_, last = ridge_rounds(recipe, X, y, whitening, first, lambda state: (state.clip / recipe.round_mu, 5.0))
    assert last.deviation == pytest.approx(y.std(), rel=0.05)
    assert (X @ whitening.published(last.weights)).mean() == pytest.approx(y.mean(), rel=0.02)


@pytest.mark.parametrize(("n", "tolerance"), [(2_000, 0.08), (20_000, 0.02)])
@pytest.mark.parametrize("mu", [0.3, 2.0])
def test_rounds_of_skewed_targets_end_at_least_squares(n, tolerance, mu):
    recipe, errors = RidgeRecipe(4, n, mu, 1.2, 20.0, 24, constant=0.5), []
    for seed in range(4):
        X, y = skewed(n, seed)
        rng, bounds = np.random.default_rng(seed), {"G": 1.2**2, "h": 1.2 * 20, "q": 400.0}
        levels = {
            name: bounds[name] / (recipe.release_mu * share**0.5) for name, share in recipe.release_shares.items()
        }
        sums = NoisyGram(
            X.T @ X + levels["G"] * symmetric_noise(rng, 4),
            (X.T @ y + levels["h"] * rng.standard_normal(4))[:, None],
            float(y @ y + levels["q"] * rng.standard_normal()),
            levels["G"],
            levels["h"],
            levels["q"],
            float(n),
        )
        whitening = RidgeWhitening.of(recipe, sums)
        first = ridge_started(recipe, sums, whitening)
        noise = recipe.round_mu * recipe.round_shares["g"] ** 0.5, recipe.round_mu * recipe.round_shares["kappa"] ** 0.5
        *_, last = ridge_rounds(
            recipe, X, y, whitening, first, lambda state, noise=noise: (state.clip / noise[0], 1 / noise[1])
        )
        fitted = X @ ridge_settled(recipe, whitening, last)
        least = X @ np.linalg.lstsq(X, y, rcond=None)[0]
        errors.append([(fitted - y).mean() / y.std(), np.square(fitted - least).mean() / y.var()])
    assert np.abs(errors).mean(axis=0).tolist() <= [tolerance, tolerance**1.5]


@pytest.mark.parametrize(("constant", "rounds", "mu", "level"), [(0.5, 24, 0.1, 2), (0.5, 12, 0.1, 1)])
def test_the_first_round_and_the_last_sum_residuals_alone(constant, rounds, mu, level):
    X, y = skewed(2_000, 0)
    recipe, sums = RidgeRecipe(4, 2_000, mu, 1.2, 20.0, rounds, constant=constant), sums_of(X, y, 100.0)
    whitening = RidgeWhitening.of(recipe, sums)
    first = ridge_started(recipe, sums, whitening)
    states = [first, *ridge_rounds(recipe, X, y, whitening, first, lambda state: (state.clip / recipe.round_mu, 5.0))]
    maps = [ridge_map(recipe, whitening, state) for state in states[:-1]]
    alone = [np.count_nonzero(each) == 1 for each in maps]
    assert alone == [True] + [False] * (rounds - 1 - level) + [True] * level
    np.testing.assert_allclose(np.abs(X @ maps[0]).sum(axis=1), 1.0)
    assert states[1].level < states[0].level
    assert states[-1].level < states[-1 - level].level


@pytest.mark.parametrize("change", [{"constant": None}, {"rounds": 11}, {"mu": 0.01}, {"mu": 10.0}])
def test_no_round_is_for_the_level_alone_where_none_gains(change):
    """Without a constant, of few rounds, in a fixed schedule, and where the clip is wide."""
    recipe = replace(RidgeRecipe(4, 2_000, 0.1, 1.2, 20.0, 24, constant=0.5), **change)
    assert recipe.level_rounds == 0


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=50), st.floats(0, 100))
def test_the_retained_share_is_0_for_noise_and_1_from_two_deviations_on(by_noise, energy):
    noise = np.array(by_noise)
    spread = math.sqrt(2 * float(np.square(noise).sum()))
    share = seen_share(energy, noise)
    assert (share == 0) == (energy <= noise.sum())
    assert (share == 1) == (energy - noise.sum() >= 2 * spread) or share == pytest.approx(1)


@pytest.mark.parametrize(("d", "at_most"), [(1, 0.6), (3, 1.0), (30, 5.4), (300, 43.0)])
def test_slopes_of_nothing_cost_a_small_part_of_their_noise(d, at_most):
    energies = np.random.default_rng(d).chisquare(d, 20_000)
    shares = np.array([seen_share(each, np.ones(d)) for each in energies])
    assert np.mean(np.square(shares) * energies) < at_most


@pytest.mark.parametrize("d", [3, 8, 30, 300])
@pytest.mark.parametrize("signal", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0])
def test_reduced_slopes_are_no_worse_than_complete_ones_or_lose_no_more_than_is_hidden(d, signal):
    """The signal is in units of 2 sqrt(2 d), the energy up to which slopes lose; all of it is in one column."""
    hidden = 2 * (2 * d) ** 0.5
    noisy = np.random.default_rng(d).standard_normal((4_000, d))
    noisy[:, 0] += (signal * hidden) ** 0.5
    reduced = noisy * np.array([[seen_share(each, np.ones(d))] for each in np.square(noisy).sum(axis=1)])
    reduced[:, 0] -= (signal * hidden) ** 0.5
    assert np.square(reduced).sum(axis=1).mean() < 1.15 * max(d, hidden)
