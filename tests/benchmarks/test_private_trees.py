"""Boosted private trees as a rival: what a record can move, the noise that hides it, and that they are no straw man."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from benchmarks.raw_tables import private_trees
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.private_trees import HESSIAN, RECIPES, Column, Recipe, boosted, coded, grown, leaf_sums
from benchmarks.raw_tables.sets import splits
from privstats import dp

COLUMNS = (Column(32, ordered=True), Column(5, ordered=False), Column(2, ordered=False), Column(9, ordered=True))
SHAPES = [(depth, columns) for depth in (1, 2, 4) for columns in ((0,), (1, 3), range(4))]


def codes_of(rng, count):
    return np.column_stack([rng.integers(0, 1 + each.count, count) for each in COLUMNS])


@pytest.mark.parametrize(("depth", "chosen"), SHAPES)
def test_one_record_moves_the_sums_of_a_tree_by_at_most_one(depth, chosen):
    rng = np.random.default_rng(depth)
    codes, y = codes_of(rng, 40), rng.integers(0, 2, 40)
    probabilities = expit(rng.normal(0, 4, 40))
    tree = grown(rng, COLUMNS, chosen, depth)

    def sums(kept):
        leaf = tree.leaf(codes[kept])
        return leaf_sums(leaf, probabilities[kept], y[kept], 2**depth, 0.0, rng)

    everyone = np.arange(40)
    moved = [np.linalg.norm(sums(everyone) - sums(np.delete(everyone, one))) for one in everyone]
    expected = np.hypot(probabilities - y, HESSIAN * probabilities * (1 - probabilities))
    np.testing.assert_allclose(moved, expected, atol=1e-9)
    assert max(moved) <= 1


def test_the_bound_holds_for_every_probability_and_nearly_is_the_largest_factor():
    probabilities = np.linspace(0, 1, 100_001)

    def longest(factor):
        hessian = factor * probabilities * (1 - probabilities)
        return max(np.hypot(probabilities - y, hessian).max() for y in (0, 1))

    assert longest(HESSIAN) == 1
    assert longest(1.02 * HESSIAN) > 1


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize("epsilon", [0.3, 8.0])
def test_the_noise_of_all_trees_is_worth_the_promise(recipe, epsilon):
    sigma = private_trees.noise(recipe, epsilon, 1e-6)
    assert dp.gaussian_epsilon(np.sqrt(recipe.trees) / sigma, 1e-6) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(
    "recipe", [Recipe(30, 4), Recipe(30, 2, 2), Recipe(30, 2, 1), Recipe(30, 2, None, 0.25)], ids=str
)
def test_every_tree_is_released_once_with_that_noise_and_nothing_else_reads_a_record(recipe, monkeypatch):
    released, real = [], private_trees.leaf_sums

    def recorded(leaf, probabilities, y, leaves, sigma, rng):
        found = real(leaf, probabilities, y, leaves, sigma, rng)
        released.append((found - real(leaf, probabilities, y, leaves, 0.0, rng), sigma))
        return found

    monkeypatch.setattr(private_trees, "leaf_sums", recorded)
    rng = np.random.default_rng(0)
    codes, y = codes_of(rng, 200), rng.integers(0, 2, 200)
    boosted(COLUMNS, codes, y, codes, recipe, 7.0, np.random.default_rng(1))
    assert len(released) == recipe.trees
    assert {sigma for _, sigma in released} == {7.0}
    drawn = np.concatenate([each.ravel() for each, _ in released])
    assert drawn.std() == pytest.approx(7.0, rel=4 / np.sqrt(2 * len(drawn)))
    assert len(np.unique(drawn)) == len(drawn)


def test_trees_follow_from_the_generator_alone(monkeypatch):
    there, real = [], private_trees.grown
    monkeypatch.setattr(private_trees, "grown", lambda *given: there.append(real(*given)) or there[-1])
    rng = np.random.default_rng(0)
    for count in (200, 3):
        codes = codes_of(rng, count)
        boosted(COLUMNS, codes, rng.integers(0, 2, count), codes, Recipe(5, 3), 1.0, np.random.default_rng(1))
    for one, other in zip(there[:5], there[5:], strict=True):
        np.testing.assert_array_equal(one.column, other.column)
        np.testing.assert_array_equal(one.right, other.right)


def test_a_node_splits_codes_that_reach_it():
    rng = np.random.default_rng(2)
    (column,) = columns = (Column(16, ordered=True),)
    for _ in range(20):
        tree = grown(rng, columns, (0,), 4)
        leaf = tree.leaf(np.arange(1, 1 + column.count)[:, None])
        assert (np.diff(leaf) >= 0).all()  # cuts are of ordered codes
        assert len(np.unique(leaf)) >= 5  # a node without a cut sends all records to one side


@pytest.fixture(scope="module")
def crossed():
    """A table whose target needs two columns at once."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(100, 15, 2_000), rng.choice(["a", "b", "c"], 2_000)
    columns = pd.DataFrame({"left": left, "right": right, "idle": rng.normal(size=2_000)})
    return columns, ((left > 100) ^ (right == "a")).astype(np.intp)


def scored(crossed, recipe, epsilon):
    known = Known.of(crossed[0])
    (split,) = splits(*crossed, [0])
    columns, codes, test = coded(known, split)
    sigma = private_trees.noise(recipe, epsilon, 1e-6)
    found = boosted(columns, codes, split.y, test, recipe, sigma, np.random.default_rng(0))
    return roc_auc_score(split.y_test, found)


def test_codes_tell_gaps_listed_values_and_bins(crossed):
    known = Known.of(crossed[0])
    (split,) = splits(*crossed, [0])
    columns, codes, test = coded(known, split)
    assert columns == [Column(32, ordered=True), Column(4, ordered=False), Column(32, ordered=True)]
    np.testing.assert_array_equal(codes == 0, split.gaps.isna().to_numpy())
    assert (codes.max(axis=0) <= [each.count for each in columns]).all()
    assert len(test) == len(split.y_test)
    there = codes[:, 0] > 0
    order = np.argsort(split.gaps["left"].to_numpy()[there], kind="stable")
    assert (np.diff(codes[there, 0][order]) >= 0).all()
    sizes = np.bincount(codes[there, 0])[1:]
    assert sizes.max() < 2 * sizes.min()  # cuts are quantiles


def test_deep_trees_find_what_two_columns_tell_and_one_column_does_not(crossed):
    assert scored(crossed, Recipe(100, 4), 1e4) > 0.85  # a tenth of the cells is missing
    assert scored(crossed, Recipe(100, 4), 8.0) > 0.75
    assert scored(crossed, Recipe(100, 4, 1), 1e4) < 0.72  # each column alone tells something


def test_the_best_recipe_is_the_best_on_held_out_training_records(crossed, monkeypatch):
    known = Known.of(crossed[0])
    (split,) = splits(*crossed, [0])
    grid = (Recipe(25, 2, 1), Recipe(100, 4), Recipe(25, 1))
    monkeypatch.setattr(private_trees, "RECIPES", grid)
    assert private_trees.best(known, split, 1e4, 1e-6) == grid[1]
