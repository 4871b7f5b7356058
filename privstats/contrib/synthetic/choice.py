"""Choose the pairs of columns to measure, by a public rule over released counts that spends nothing.

Source: McKenna, Mullins, Sheldon, Miklau, AIM (2022): a pair's distance from the model, less noise.
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
"""Cells of a junction tree; a fit then takes seconds."""
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_DIGITS = 9
_CHANCE = 1.0
"""Standard deviations of a score that noise and chance may make."""
NOISE_WEIGHT = 0.25
"""Part of a table's noise that remains after the fit."""


@dataclass(frozen=True, eq=False)
class Screened:
    """Noisy tables of all pairs.

    Attributes:
        tables: counts per pair.
        sigma: noise standard deviation of a count.
        sizes: cells of each variable in the model.
        noise: sigma of the next session for a single pair.
    """

    tables: Mapping[Pair, Array]
    sigma: float
    sizes: tuple[int, ...]
    noise: float

    @cached_property
    def shares(self) -> dict[Pair, Array]:
        """Probabilities near each table."""
        return {pair: _shares(table) for pair, table in self.tables.items()}

    @cached_property
    def alone(self) -> dict[int, Array]:
        """Probabilities of each variable."""
        sides: dict[int, list[Array]] = {}
        for (a, b), table in self.tables.items():
            sides.setdefault(a, []).append(table.sum(axis=1))
            sides.setdefault(b, []).append(table.sum(axis=0))
        return {each: _shares(np.mean(sums, axis=0)) for each, sums in sides.items()}

    def score(self, pair: Pair, expected: Array) -> float:
        """Return a table's estimated distance from expected shares, in records; 0 where noise may explain it.

        Counts are assumed to deviate in proportion to independent columns' counts. Squared deviations, less their
        variance, estimate that proportion with precision weights.
        """
        table = self.tables[pair]
        records = max(float(table.sum()), 0.0)
        apart = records * np.outer(self.alone[pair[0]], self.alone[pair[1]])
        variance = self.sigma**2 + records * expected
        weights = np.square(apart / (self.sigma**2 + apart)) if records else np.zeros(table.shape)
        excess = float((weights * (np.square(table - records * expected) - variance)).sum())
        hidden = _CHANCE * math.sqrt(2 * float(np.square(weights * variance).sum()))
        if excess <= hidden:
            return 0.0
        relative = math.sqrt((excess - hidden) / float((weights * np.square(apart)).sum()))
        return round(_MEAN_ABSOLUTE * records * relative, _DIGITS)

    def conditional(self, b: int, a: int) -> Array:
        """Return probabilities of b given a, ``(cells of a, cells of b)``."""
        joint = self.shares[a, b] if a < b else self.shares[b, a].T
        sums = joint.sum(axis=1, keepdims=True)
        return np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), self.alone[b])


def chosen_pairs(screened: Screened) -> tuple[Pair, ...]:
    """Return a tree of the largest scores, then pairs it explains least, while scores exceed noise.

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
    """Return the leading pairs with the largest score above noise, at least one."""
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
    """Return the spanning tree of the largest scores (Kruskal)."""
    group, out = list(range(variables)), list[Pair]()
    for _, (a, b) in sorted(((score, pair) for pair, score in scores.items()), key=_ranked):
        if group[a] != group[b]:
            out.append((a, b))
            group = [group[a] if each == group[b] else each for each in group]
    return tuple(out)


def _along(screened: Screened, tree: Sequence[Pair], pair: Pair) -> Array:
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
