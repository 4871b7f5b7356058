"""What a noisy mean of directions tells of their second moments, and where a regression's course measures one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.refinement.prototype import play_ridge
from privstats.estimates.denoise import NoisyGram, NoisyMean
from privstats.estimates.recipes import MEAN_SHARE, RidgeRecipe
from privstats.estimates.regression import DescentState, RidgeWhitening, ridge_refined

sizes = st.integers(1, 40)


def of(recipe: RidgeRecipe, mean: NoisyMean | None) -> RidgeWhitening:
    d = recipe.features
    noise = {"sigma_G": 1.0, "sigma_h": 1.0, "sigma_q": 1.0}
    sums = NoisyGram(np.eye(d) * recipe.records / d, np.zeros((d, 1)), 1.0, records=float(recipe.records), **noise)
    return RidgeWhitening.of(recipe, sums, mean)


@given(sizes, st.floats(0, 2), st.floats(0, 1), st.integers(0, 1_000))
def test_it_is_a_spectrum_of_sum_one_whose_first_vector_is_the_mean_or_all_alike(d, length, noise, seed):
    way = np.random.default_rng(seed).standard_normal(d)
    vectors, values = NoisyMean(way * (length / np.linalg.norm(way)), noise).spectrum
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(d), atol=1e-12)
    assert math.isclose(values.sum(), 1, rel_tol=1e-12)
    assert values.min() >= (1 - 0.98) / d
    ahead = length**2 - d * noise**2
    if ahead <= 0:
        assert (values == 1 / d).all()
    else:
        np.testing.assert_allclose(np.abs(vectors[:, 0] @ way), np.linalg.norm(way))
        assert (values[1:] == values[-1]).all()
        most = min(ahead, 0.98)
        assert math.isclose(values[0] - values[-1], most**2 / length**2 if d > 1 else 0, abs_tol=1e-9)


def test_without_noise_it_is_the_second_moments_of_rows_that_vary_alike_about_their_mean():
    rows = np.random.default_rng(0).standard_normal((20_000, 40))
    rows[:, 0] += 6
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    vectors, values = NoisyMean(rows.mean(axis=0), 0.0).spectrum
    np.testing.assert_allclose(np.diag(vectors.T @ (rows.T @ rows / len(rows)) @ vectors), values, atol=0.03)


@pytest.mark.parametrize(("d", "noise"), [(2, 0.3), (20, 0.2), (100, 0.1)])
def test_where_rows_have_no_mean_hardly_anything_is_taken_for_one(d, noise):
    """Although the noisy one is as long as a real one would be."""
    rng = np.random.default_rng(0)
    values = np.array([NoisyMean(noise * rng.standard_normal(d), noise).spectrum[1] for _ in range(400)])
    assert (values[:, 0] - values[:, 1]).mean() < 0.08


def test_the_map_stretches_what_lies_across_the_mean():
    """And keeps the trace."""
    recipe = RidgeRecipe(10, 1_000, 0.0325, 1.5, 1.0, 24)
    assert recipe.mean_share == MEAN_SHARE
    way = np.eye(10)[3]
    flat, told = of(recipe, None), of(recipe, NoisyMean(0.9 * way, 0.0))
    np.testing.assert_allclose(flat.matrix, np.eye(10) * flat.matrix[0, 0], atol=1e-12)
    assert math.isclose(told.values.sum(), flat.values.sum())
    across = np.eye(10)[0]
    assert told.matrix[3, 3] < flat.matrix[3, 3] < told.matrix[0, 0]
    rows = told.rows(np.stack([across, way]) / 10)
    assert np.linalg.norm(rows[0]) > 2 * np.linalg.norm(rows[1])


@given(
    st.builds(
        RidgeRecipe,
        features=st.integers(1, 200),
        records=st.integers(1, 10**6),
        mu=st.floats(1e-3, 5),
        clip_norm=st.just(1.0),
        target_bound=st.just(1.0),
        rounds=st.integers(1, 128),
        mean=st.booleans(),
    )
)
def test_a_mean_is_measured_where_g_is_hidden_and_the_parts_add_up(recipe):
    certainty, d = recipe.records * recipe.mu, recipe.features
    early, later = 5 * math.sqrt(d) <= certainty < 40, certainty >= 40 and certainty < 0.3 * d**1.5
    assert bool(recipe.mean_share) is (recipe.mean and (early or (later and recipe.rounds >= 12)))
    spent = recipe.release_mu**2 + recipe.mean_share * recipe.mu**2 + recipe.rounds * recipe.round_mu**2
    assert math.isclose(spent, recipe.mu**2, rel_tol=1e-12)
    if recipe.mean_share:
        assert recipe.release_share == 1 / 64


@given(st.integers(1, 300), st.integers(1, 10**5), st.integers(1, 64), st.booleans())
def test_of_two_budgets_the_larger_never_gives_the_first_release_less(d, n, T, mean):
    """So one course alone has a first release of a certain mu."""
    mus = np.geomspace(1e-4, 10, 80)
    first = [RidgeRecipe(d, n, float(mu), 1.0, 1.0, T, mean=mean).release_mu for mu in mus]
    assert (np.diff(first) > 0).all()


@given(st.integers(2, 60), st.integers(1, 64), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.1), st.integers(0, 99))
def test_behind_a_mean_steps_turn_and_blur_a_row_as_far_as_the_map_stretches_it(d, rounds, part, length, noise, seed):
    """And it stretches no row of norm R further than those across the mean; with it all noise together is .39 Y."""
    least, rng = 5 * math.sqrt(d) * (1 + 1e-12), np.random.default_rng(seed)  # n mu is rounded, at d = 39 down
    certainty = least + part * (39.9 - least)
    recipe = RidgeRecipe(d, 1_000_000, certainty / 1e6, 2.0, 3.0, rounds)
    assert recipe.descends
    assert recipe.mean_share
    way, row = (each / np.linalg.norm(each) for each in rng.standard_normal((2, d)))
    mean = NoisyMean(length * way, noise)
    whitening, values = of(recipe, mean), mean.spectrum[1]
    stretched = np.linalg.norm(whitening.matrix @ (recipe.clip_norm * row)) * whitening.mean_length
    assert stretched <= (1 - (values[0] - values[-1])) ** -0.5 * (1 + 1e-9)
    sigma = 0.15 / (recipe.round_mu * math.sqrt(recipe.round_shares["g"]))
    start, gradient = DescentState(np.zeros(d), 0.15), 0.15e6 * rng.standard_normal(d) / math.sqrt(d)
    gradient /= max(1, np.linalg.norm(gradient) / 0.15e6)
    after = ridge_refined(recipe, whitening, start, gradient, 0.0, (sigma, 1.0))
    turned = abs(recipe.clip_norm * row @ whitening.published(after.weights))
    assert turned <= recipe.target_bound * stretched * (1 + 1e-9)
    blurred = sigma * math.hypot(*(recipe.stride(taken) for taken in range(rounds))) * d / (1e6 * 0.15)
    assert blurred <= (0.29 if rounds >= 24 else 0.39)


@pytest.mark.ci
@pytest.mark.parametrize(("d", "n", "gain"), [(30, 1_150, 0.9), (40, 2_000, 0.95)])
def test_records_with_a_mean_are_learned_better(d, n, gain):
    """Designs that were made up, entries with a sign: the errors of six courses at epsilon .1, with and without."""
    errors: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(6):
        rng = np.random.default_rng([seed, d])
        X = rng.standard_normal((n + 1_000, d)) * 0.3 + 0.6
        X /= math.sqrt(d)
        y = X @ rng.standard_normal(d)
        y = np.clip((y - y.mean()) / y.std() + 0.3 * rng.standard_normal(len(y)), -3, 3)
        for mean, found in errors.items():
            recipe = RidgeRecipe(d, n, 0.0325, 1.0, 3.0, 24, mean=mean)
            assert bool(recipe.mean_share) is mean
            *_, weights = play_ridge(recipe, X[:n], y[:n], np.random.default_rng(seed))
            found.append(float(np.square(y[n:] - X[n:] @ weights).mean()))
    assert np.mean(errors[True]) < gain * np.mean(errors[False])
