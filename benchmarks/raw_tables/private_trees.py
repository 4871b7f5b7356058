"""Boosted trees under differential privacy, after Maddock et al., "Federated Boosted Decision Trees with Differential
Privacy", CCS 2022 (arXiv 2210.02910), as a rival on raw tables.

The paper's best variant ("DP-TR", Newton): each tree's columns and cuts are random and read no record. Every record
reaches one leaf of a tree, so the leaves' sums of gradients and Hessians are one Gaussian release per tree. Leaves,
ridge, rate and largest step are those of the authors' code (github.com/Samuel-Maddock/federated-boosted-dp-trees).

Three things are better for the trees than in the paper: cuts are the true quantiles, at no charge; the noise follows
from the exact composition of Gaussian releases; and the noise of a Hessian is 3.3 times smaller than that of a
gradient, because a pair (g, 3.3 h) is no longer than 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.sets import Category, Split
from privstats import dp

__all__ = ["HESSIAN", "RECIPES", "Column", "Recipe", "Tree", "best", "boosted", "coded", "grown", "leaf_sums", "noise"]

Array: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]

HESSIAN = 3.3
"""Factor of a Hessian in a release: with g = p - y and h = p (1 - p), g^2 + (3.3 h)^2 is at most 1 for every p."""
_CUTS = 32


@dataclass(frozen=True)
class Recipe:
    """What the paper varies, and the defaults of the authors' code.

    Attributes:
        trees: how many there are.
        depth: levels of splits.
        columns: how many columns a tree may read, drawn at random; 1: one column after the other; None: all.
        batch: share of the trees that are built on the same gradients, and averaged; 0: one tree at a time.
        rate, ridge, largest: factor of a step, the constant beside the Hessian, and the largest step before the factor.
    """

    trees: int
    depth: int
    columns: int | None = None
    batch: float = 0.0
    rate: float = 0.3
    ridge: float = 1.0
    largest: float = 2.0

    @property
    def together(self) -> int:
        """Number of trees that are built on the same gradients."""
        return max(1, math.ceil(self.batch * self.trees))


RECIPES: Sequence[Recipe] = (
    *(Recipe(*each) for each in product((25, 100, 300), (2, 4), (None, 2))),
    *(Recipe(trees, 2, 1) for trees in (100, 300)),
    *(Recipe(*each, None, 0.25, 1.0) for each in product((100, 300), (2, 4))),
)
"""The grid that is tuned over. Steps of averaged trees are full ones: four of .3 would end far from the optimum."""


@dataclass(frozen=True)
class Column:
    """The codes 1 to ``count`` of a column, of which 0 is a gap.

    Attributes:
        count: number of codes without the gap.
        ordered: whether a split is a cut, or any two groups of codes.
    """

    count: int
    ordered: bool


@dataclass(frozen=True)
class Tree:
    """A complete tree: node k has the children 2 k + 1 and 2 k + 2.

    Attributes:
        depth: levels of splits.
        column: the column that each node reads, ``(2^depth - 1,)``.
        right: whether a code goes to the second child, ``(2^depth - 1, codes)``.
    """

    depth: int
    column: Codes
    right: NDArray[np.bool_]

    def leaf(self, codes: Codes) -> Codes:
        """Return the leaf that each record reaches, from 0."""
        at, rows = np.zeros(len(codes), np.intp), np.arange(len(codes))
        for _ in range(self.depth):
            at = 2 * at + 1 + self.right[at, codes[rows, self.column[at]]]
        return at - len(self.column)


def coded(known: Known, split: Split) -> tuple[list[Column], Codes, Codes]:
    """Return the columns, and the codes of the training and test records with gaps; cuts are true quantiles."""
    whole = pd.concat([split.whole, split.whole_test])
    columns, codes = [], []
    for name, category in known.book.items():
        if category is None:
            levels = np.arange(1, _CUTS) / _CUTS
            cuts = np.unique(np.nanquantile(whole[name].to_numpy(np.float64), levels))
            columns.append(Column(len(cuts) + 1, ordered=True))
            codes.append([_binned(each[name], cuts) for each in (split.gaps, split.gaps_test)])
        else:
            columns.append(Column(len(category.values) + 1, ordered=False))
            codes.append([_listed(each[name], category) for each in (split.gaps, split.gaps_test)])
    train, test = (np.column_stack(each) for each in zip(*codes, strict=True))
    return columns, train, test


def _binned(column: Any, cuts: Array) -> Codes:
    values = column.to_numpy(np.float64)
    return np.where(np.isnan(values), 0, 1 + np.searchsorted(cuts, values, side="left"))


def _listed(column: Any, category: Category) -> Codes:
    places = {value: place for place, value in enumerate(category.values, 1)}
    other = len(places) + 1
    return np.asarray([0 if pd.isna(value) else places.get(value, other) for value in column], np.intp)


def grown(rng: np.random.Generator, columns: Sequence[Column], chosen: Sequence[int], depth: int) -> Tree:
    """Return a random tree over the chosen columns; it reads no record.

    A node splits the codes that can still reach it. A gap goes to either side.
    """
    nodes = 2**depth - 1
    column, right = np.zeros(nodes, np.intp), np.zeros((nodes, 1 + max(each.count for each in columns)), np.bool_)
    reaching = {0: {place: np.arange(1, 1 + columns[place].count) for place in chosen}}
    for node in range(nodes):
        here = reaching.pop(node)
        splits = [place for place, codes in here.items() if len(codes) > 1]
        sides = here, here
        if splits:
            place = splits[rng.integers(len(splits))]
            codes = here[place] if columns[place].ordered else rng.permutation(here[place])
            cut = rng.integers(1, len(codes))
            column[node], right[node, codes[cut:]], right[node, 0] = place, True, rng.random() < 0.5
            sides = {**here, place: codes[:cut]}, {**here, place: codes[cut:]}
        reaching[2 * node + 1], reaching[2 * node + 2] = sides
    return Tree(depth, column, right)


def noise(recipe: Recipe, epsilon: float, delta: float) -> float:
    """Return the standard deviation of each released number: one Gaussian release per tree, of vectors up to 1 long."""
    return math.sqrt(recipe.trees) / dp.gaussian_mu(epsilon, delta)


def leaf_sums(
    leaf: Codes, probabilities: Array, y: Codes, leaves: int, sigma: float, rng: np.random.Generator
) -> Array:
    """Return the noisy sums of g and of ``HESSIAN`` h by leaf, ``(leaves, 2)``.

    One record more or less moves them by at most 1 in length, whatever its probability.
    """
    terms = probabilities - y, HESSIAN * probabilities * (1 - probabilities)
    sums = np.column_stack([np.bincount(leaf, term, leaves) for term in terms])
    return np.asarray(sums + sigma * rng.standard_normal(sums.shape))


def _steps(sums: Array, recipe: Recipe) -> Array:
    """Newton steps of the leaves; 0 where a noisy Hessian is not above 0."""
    hessian = sums[:, 1] / HESSIAN
    steps = -sums[:, 0] / (np.maximum(hessian, 0.0) + recipe.ridge)
    return np.where(hessian > 0, recipe.rate * np.clip(steps, -recipe.largest, recipe.largest), 0.0)


def boosted(
    columns: Sequence[Column],
    codes: Codes,
    y: Codes,
    test: Codes,
    recipe: Recipe,
    sigma: float,
    rng: np.random.Generator,
) -> Array:
    """Return the test records' probabilities of a positive."""
    scores, tested = np.zeros(len(codes)), np.zeros(len(test))
    for start in range(0, recipe.trees, recipe.together):
        places = range(start, min(start + recipe.together, recipe.trees))
        probabilities, steps, steps_test = expit(scores), np.zeros(len(codes)), np.zeros(len(test))
        for place in places:
            tree = grown(rng, columns, _chosen(rng, len(columns), recipe, place), recipe.depth)
            leaf = tree.leaf(codes)
            values = _steps(leaf_sums(leaf, probabilities, y, 2**recipe.depth, sigma, rng), recipe)
            steps += values[leaf]
            steps_test += values[tree.leaf(test)]
        scores += steps / len(places)
        tested += steps_test / len(places)
    return np.asarray(expit(tested))


def _chosen(rng: np.random.Generator, count: int, recipe: Recipe, place: int) -> Sequence[int]:
    if recipe.columns == 1:
        return [place % count]
    if recipe.columns is None or recipe.columns >= count:
        return range(count)
    return [int(each) for each in rng.choice(count, recipe.columns, replace=False)]


def best(known: Known, split: Split, epsilon: float, delta: float) -> Recipe:
    """Return the recipe with the best AUC on a fifth of the training records, at no charge."""
    columns, codes, _ = coded(known, split)
    held = np.random.default_rng(split.seed).random(len(codes)) < 0.2

    def auc(recipe: Recipe) -> float:
        rng = np.random.default_rng(split.seed)
        sigma = noise(recipe, epsilon, delta)
        found = boosted(columns, codes[~held], split.y[~held], codes[held], recipe, sigma, rng)
        return float(roc_auc_score(split.y[held], found))

    return max(RECIPES, key=auc)
