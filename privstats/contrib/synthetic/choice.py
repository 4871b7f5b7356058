"""Choose the pairs of columns that are measured: a public rule over released counts, so it spends nothing.

Source: McKenna, Mullins, Sheldon, Miklau, AIM (2022). Their score is the distance of a pair's table from the model, in
records, less what its noise adds. There one curator draws a pair by its exact score. Here every pair has been released
under the promise already, so the rule reads noisy tables and draws nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from privstats.contrib.synthetic.junction_tree import Array, JunctionTree

Pair = tuple[int, int]

MAX_CELLS = 1 << 16
"""Cells of a junction tree: a fit of several hundred steps then takes seconds."""
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_DIGITS = 9
_CHANCE = 1.0
"""Standard deviations of a score that noise and chance may make."""
NOISE_WEIGHT = 0.25
"""Part of a table's noise that remains after the fit, which makes all tables agree."""


@dataclass(frozen=True, eq=False)
class Screened:
    """Noisy tables of all pairs.

    Attributes:
        tables: counts of each pair of variables, in records.
        sigma: noise standard deviation of a count.
        sizes: cells of each variable in the model.
        noise: noise standard deviation of the next session, where it measures one pair.
    """

    tables: Mapping[Pair, Array]
    sigma: float
    sizes: tuple[int, ...]
    noise: float

    @cached_property
    def shares(self) -> dict[Pair, Array]:
        """Probabilities near each table: negative counts are 0."""
        return {pair: _shares(table) for pair, table in self.tables.items()}

    @cached_property
    def alone(self) -> dict[int, Array]:
        """Probabilities of each variable: the mean over its pairs."""
        sides: dict[int, list[Array]] = {}
        for (a, b), table in self.tables.items():
            sides.setdefault(a, []).append(table.sum(axis=1))
            sides.setdefault(b, []).append(table.sum(axis=0))
        return {each: _shares(np.mean(sums, axis=0)) for each, sums in sides.items()}

    def score(self, pair: Pair, expected: Array) -> float:
        """Return by how many records a table is away from expected shares, less what noise adds on average.

        Chance adds like noise: two columns that do not go together differ from independence by chance, too. The score
        is 0 where noise and chance alone pass it in one of six pairs.
        """
        table = self.tables[pair]
        counts = max(float(table.sum()), 0.0) * expected
        variance = self.sigma**2 + counts
        away = float(np.abs(table - counts).sum() - _MEAN_ABSOLUTE * np.sqrt(variance).sum())
        hidden = away < _CHANCE * math.sqrt((1 - 2 / math.pi) * float(variance.sum()))
        return 0.0 if hidden else round(away, _DIGITS)

    def conditional(self, b: int, a: int) -> Array:
        """Return the probabilities of b given a, ``(cells of a, cells of b)``."""
        joint = self.shares[a, b] if a < b else self.shares[b, a].T
        sums = joint.sum(axis=1, keepdims=True)
        return np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), self.alone[b])


def chosen_pairs(screened: Screened) -> tuple[Pair, ...]:
    """Return the pairs to measure: a tree of the largest scores, then pairs that this tree explains least.

    A pair is added while the junction tree stays small, and while the sum of the scores less the noise of the next
    session grows: its noise grows with the square root of the number of pairs.

    Example:
        >>> from privstats.contrib.synthetic.choice import Screened, chosen_pairs
        >>> alike, apart = np.array([[50.0, 0.0], [0.0, 50.0]]), np.full((2, 2), 25.0)
        >>> chosen_pairs(Screened({(0, 1): alike, (0, 2): apart, (1, 2): apart}, 1.0, (2, 2, 2), 1.0))
        ((0, 1),)
    """
    alone = screened.alone
    scores = {pair: screened.score(pair, np.outer(alone[pair[0]], alone[pair[1]])) for pair in screened.tables}
    tree = _tree(scores, len(screened.sizes))
    extra = {pair: screened.score(pair, _along(screened, tree, pair)) for pair in scores if pair not in tree}
    ranked = [*((scores[pair], pair) for pair in tree), *sorted(((s, p) for p, s in extra.items()), key=_ranked)]
    return _worth(screened, ranked)


def _worth(screened: Screened, ranked: Sequence[tuple[float, Pair]]) -> tuple[Pair, ...]:
    """Return the leading pairs with the largest total score above noise; the best pair where none exceeds it."""
    selected, gain, cells, best, worth = list[Pair](), 0.0, 0, 1, -math.inf
    for score, pair in ranked:
        if (selected and not score) or JunctionTree(screened.sizes, (*selected, pair)).cells > MAX_CELLS:
            continue
        selected.append(pair)
        gain += score
        cells += math.prod(screened.sizes[each] for each in pair)
        noise = _MEAN_ABSOLUTE * screened.noise * math.sqrt(len(selected)) * cells
        if gain - NOISE_WEIGHT * noise > worth:
            best, worth = len(selected), gain - NOISE_WEIGHT * noise
    return tuple(sorted(selected[:best]))


def _ranked(scored: tuple[float, Pair]) -> tuple[float, Pair]:
    return -scored[0], scored[1]


def _tree(scores: Mapping[Pair, float], variables: int) -> tuple[Pair, ...]:
    """Return the spanning tree of the largest scores, largest first (Kruskal)."""
    group, out = list(range(variables)), list[Pair]()
    for _, (a, b) in sorted(((score, pair) for pair, score in scores.items()), key=_ranked):
        if group[a] != group[b]:
            out.append((a, b))
            group = [group[a] if each == group[b] else each for each in group]
    return tuple(out)


def _along(screened: Screened, tree: Sequence[Pair], pair: Pair) -> Array:
    """Return a pair's shares as the tree explains them, along its path."""
    path = _path(tree, *pair)
    steps = screened.conditional(path[1], path[0])
    for before, after in pairwise(path[1:]):
        steps = steps @ screened.conditional(after, before)
    return screened.alone[pair[0]][:, None] * steps


def _path(tree: Sequence[Pair], start: int, end: int) -> list[int]:
    paths = [[start]]
    while paths[-1][-1] != end:
        path = paths.pop()
        near = (sum(pair) - path[-1] for pair in tree if path[-1] in pair)
        paths = [*paths, *([*path, each] for each in near if each not in path)]
    return paths[-1]


def _shares(counts: Array) -> Array:
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(counts.shape, 1 / counts.size)
