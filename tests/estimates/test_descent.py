"""A fixed schedule of steps, where n mu is so small that the filters of a regression would guess every size."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.refinement.prototype import play_ridge
from privstats.estimates.denoise import NoisyGram, denoised_solve
from privstats.estimates.recipes import RidgeRecipe
from privstats.estimates.regression import (
    DescentState,
    RidgeState,
    RidgeWhitening,
    ridge_refined,
    ridge_settled,
    ridge_started,
)

descents = st.builds(
    RidgeRecipe,
    features=st.integers(1, 60),
    records=st.integers(1, 1_000),
    mu=st.floats(1e-3, 0.039),
    clip_norm=st.floats(0.1, 10),
    target_bound=st.floats(0.1, 10),
    rounds=st.integers(1, 64),
)


def hidden(recipe: RidgeRecipe, seed: int = 0) -> NoisyGram:
    """Sums of nothing, with the noise that the recipe's first release has."""
    rng, d = np.random.default_rng(seed), recipe.features
    R, Y, mu, shares = recipe.clip_norm, recipe.target_bound, recipe.release_mu, recipe.release_shares
    sigma = {
        f"sigma_{name}": bound / (mu * math.sqrt(shares[name]))
        for name, bound in zip("Ghq", (R * R, R * Y, Y * Y), strict=True)
    }
    E = rng.standard_normal((d, d))
    noise = rng.standard_normal((d, 1)), float(rng.standard_normal())
    return NoisyGram(
        sigma["sigma_G"] * (E + E.T) / 2,
        sigma["sigma_h"] * noise[0],
        sigma["sigma_q"] * noise[1],
        records=float(recipe.records),
        **sigma,
    )


@pytest.mark.parametrize(("records", "descends"), [(399, True), (400, False)])
def test_n_mu_decides_and_the_first_release_then_gets_the_least_that_a_course_can_give(records, descends):
    recipe = RidgeRecipe(20, records, 0.1, 1.0, 1.0, 24)
    assert recipe.descends is descends
    assert (recipe.release_share == 1 / 64) is descends
    sums = hidden(recipe)
    state = ridge_started(recipe, sums, RidgeWhitening.of(recipe, sums))
    assert isinstance(state, DescentState if descends else RidgeState)


@given(descents, st.integers(0, 1_000))
def test_rows_become_directions_whatever_the_first_release_says(recipe, seed):
    whitening = RidgeWhitening.of(recipe, hidden(recipe, seed))
    rows = np.random.default_rng(seed).standard_normal((20, recipe.features))
    rows *= (recipe.clip_norm * np.linspace(0.26, 1, 20) / np.linalg.norm(rows, axis=1))[:, None]
    np.testing.assert_allclose(np.linalg.norm(whitening.rows(rows), axis=1), 1)


@given(descents, st.integers(0, 1_000))
def test_a_step_goes_down_the_gradient_and_turns_no_prediction_by_more_than_the_bound(recipe, seed):
    sums, rng = hidden(recipe, seed), np.random.default_rng(seed)
    whitening = RidgeWhitening.of(recipe, sums)
    state = ridge_started(recipe, sums, whitening)
    np.testing.assert_allclose(whitening.published(state.weights), denoised_solve(sums).weights[:, 0], atol=1e-12)
    way = rng.standard_normal(recipe.features)
    way *= recipe.records / np.linalg.norm(way)  # every residual beyond the clip, every row the same direction
    sigma = state.clip / (recipe.round_mu * math.sqrt(recipe.round_shares["g"]))
    for taken in range(recipe.rounds):
        after = ridge_refined(recipe, whitening, state, state.clip * way, 0.0, (sigma, 1.0))
        step = whitening.published(after.weights) - whitening.published(state.weights)
        assert after.rounds == taken + 1
        assert after.clip == state.clip == recipe.sign_clip >= 0.05 * recipe.target_bound
        assert step @ way > 0
        assert recipe.clip_norm * np.linalg.norm(step) <= recipe.target_bound * (1 + 1e-9)
        state = after
    assert recipe.stride(recipe.rounds) == 0
    np.testing.assert_array_equal(ridge_settled(recipe, whitening, state), whitening.published(state.weights))


@given(descents, st.floats(1, 10))
def test_all_steps_together_add_noise_of_a_part_of_the_bound_whatever_noise_a_release_holds(recipe, more):
    """Under replace-one or local noise a release holds a multiple of the recipe's, and steps are so much shorter."""
    sigma = more * recipe.target_bound / (recipe.records * recipe.round_mu * math.sqrt(recipe.round_shares["g"]))
    strides = [recipe.stride(taken, more) for taken in range(recipe.rounds)]
    assert sigma * recipe.features * math.hypot(*strides) <= 0.381 * recipe.target_bound
    sums = hidden(recipe)
    whitening = RidgeWhitening.of(recipe, sums)
    state = ridge_started(recipe, sums, whitening)
    way = np.full(recipe.features, recipe.records * state.clip)
    held = more * state.clip / (recipe.round_mu * math.sqrt(recipe.round_shares["g"]))
    plain, noisier = (
        whitening.published(ridge_refined(recipe, whitening, state, way, 0.0, (level, 1.0)).weights - state.weights)
        for level in (held / more, held)
    )
    np.testing.assert_allclose(noisier * strides[0] ** -1, plain / recipe.stride(0), rtol=1e-6)


def test_a_handful_of_records_stays_where_it_began():
    """Of 20 columns, 30 records tell nothing at epsilon .1; what all steps add stays far below the targets' bound."""
    recipe = RidgeRecipe(20, 30, 0.0325, 1.0, 1.0, 24)
    sigma = 1 / (30 * recipe.round_mu * math.sqrt(recipe.round_shares["g"]))
    assert sigma * 20 * math.hypot(*(recipe.stride(taken) for taken in range(24))) < 0.05


@pytest.mark.ci
@pytest.mark.parametrize(("d", "n", "decay"), [(5, 300, 0.0), (20, 1_000, 1.0), (60, 600, 2.0)])
def test_a_small_cohort_learns_more_by_a_schedule_than_by_filters(d, n, decay, monkeypatch):
    """Designs that were made up: the errors of eight courses at epsilon .1, against those of the filters."""
    errors: dict[bool, list[float]] = {True: [], False: []}
    for seed, fixed in itertools.product(range(8), (True, False)):
        rng = np.random.default_rng([seed, d])
        sizes = np.arange(1, d + 1) ** -decay
        X = rng.standard_normal((n + 1_000, d)) * np.sqrt(sizes / sizes.sum())
        X *= np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
        y = X @ rng.standard_normal(d)
        y = np.clip(y / y.std() + 0.3 * rng.standard_normal(len(y)), -3, 3)
        monkeypatch.setattr("privstats.estimates.recipes._LEAST_CERTAINTY", 40.0 if fixed else 0.0)
        recipe = RidgeRecipe(d, n, 0.0325, 1.5, 3.0, 24, mean=False)
        *_, weights = play_ridge(recipe, X[:n], y[:n], np.random.default_rng(seed))
        errors[fixed].append(float(np.square(y[n:] - X[n:] @ weights).mean()))
    assert np.mean(errors[True]) < 0.9 * np.mean(errors[False])
