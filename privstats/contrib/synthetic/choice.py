"""Choose the pairs of columns to measure, by a public rule over released counts that spends nothing.

Source: McKenna, Mullins, Sheldon, Miklau, AIM (2022): a pair's distance from the model of the pairs chosen before it,
less noise. AIM asks the records for each next pair; here a screening of all pairs answers, at no further price.

Scores have identical bits on every machine (:mod:`~privstats.contrib.synthetic.proportional`), so all parties choose
alike, near ties too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from privstats.contrib.synthetic.distances import MEAN_ABSOLUTE
from privstats.contrib.synthetic.junction_tree import Array, JunctionTree
from privstats.contrib.synthetic.projection import projected
from privstats.contrib.synthetic.proportional import Beliefs, consistent, proportional
from privstats.kinds import CountSchema

Pair = tuple[int, int]

MAX_CELLS = 1 << 18
"""Cells of a junction tree; a fit then takes seconds. With a quarter of them Adult lacked pairs of its target."""
_CHANCE = 1.0
"""Standard deviations of a score that noise and chance may make."""
NOISE_WEIGHT = 0.25
"""Part of a table's noise that remains after the fit."""
_PATIENCE = 4
"""Pairs in a row that may cost more than they explain."""
_LEAST_SHARE = 1e-6
_REMEMBERED = 8
"""Screenings whose pairs are stored: a course derives its last plan several times."""


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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Screened) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        tables = tuple((pair, table.shape, table.tobytes()) for pair, table in self.tables.items())
        return tables, self.sigma, self.sizes, self.noise

    @cached_property
    def records(self) -> float:
        """Estimated number of records, at least 1."""
        return max(1.0, float(np.mean([table.sum() for table in self.tables.values()])))

    @cached_property
    def alone(self) -> dict[int, Array]:
        """Probabilities of each variable."""
        sides: dict[int, list[Array]] = {}
        for (a, b), table in self.tables.items():
            sides.setdefault(a, []).append(table.sum(axis=1))
            sides.setdefault(b, []).append(table.sum(axis=0))
        return {each: _shares(np.mean(sums, axis=0)) for each, sums in sorted(sides.items())}

    @cached_property
    def _contrasts(self) -> dict[int, tuple[Array, Array]]:
        return {each: _contrasts(shares) for each, shares in self.alone.items()}

    def independent(self, pair: Pair) -> Array:
        """Return a pair's probabilities if its columns are independent."""
        return np.outer(self.alone[pair[0]], self.alone[pair[1]])

    def score(self, pair: Pair, expected: Array) -> float:
        """Return a table's estimated distance from expected shares, in records; 0 where noise may explain it.

        Only contrasts between cells of both columns count, in which the noise of one-way counts cancels. They are
        assumed to deviate alike, so squared deviations, less their variance, have precision weights.
        """
        (rows, wide), (columns, high) = self._contrasts[pair[0]], self._contrasts[pair[1]]
        apart = self.tables[pair] - self.records * expected
        turned = (rows[:, :, None] * apart[:, None, :]).sum(axis=0)  # no BLAS: its last digits differ by processor
        deviations = (turned[:, :, None] * columns[None]).sum(axis=1)
        variances = self.sigma**2 * np.outer(wide, high) + self.records
        weights = 1 / variances
        excess = float((weights * (weights * np.square(deviations) - 1)).sum())
        squared = float(np.square(weights).sum())
        hidden = _CHANCE * math.sqrt(2 * squared)
        if excess <= hidden:
            return 0.0
        relative = math.sqrt(excess - hidden) * float(weights.sum()) / squared
        return MEAN_ABSOLUTE * relative

    def model(self, pairs: Sequence[Pair]) -> Beliefs:
        """Return the maximum-entropy model under the screened tables of some pairs."""
        return proportional(list(self.alone.values()), {pair: self._consistent[pair] for pair in pairs})

    @cached_property
    def _consistent(self) -> dict[Pair, Array]:
        return {
            (a, b): consistent(table / max(float(table.sum()), 1.0), self.alone[a], self.alone[b])
            for (a, b), table in self.tables.items()
        }


@lru_cache(_REMEMBERED)
def chosen_pairs(screened: Screened) -> tuple[Pair, ...]:
    """Return a tree of the largest scores, then pairs that the model explains least, while scores exceed noise.

    Each pair is scored against the model of the pairs chosen before it.

    Example:
        >>> from privstats.contrib.synthetic.choice import Screened, chosen_pairs
        >>> alike, apart = np.array([[50.0, 0.0], [0.0, 50.0]]), np.full((2, 2), 25.0)
        >>> chosen_pairs(Screened({(0, 1): alike, (0, 2): apart, (1, 2): apart}, 1.0, (2, 2, 2), 1.0))
        ((0, 1),)
    """
    scores = {pair: screened.score(pair, screened.independent(pair)) for pair in screened.tables}
    ranked = sorted(((scores[pair], pair) for pair in _tree(scores, len(screened.sizes))), key=_ranked)
    selected, gains = list[Pair](), list[float]()
    for score, pair in ranked:
        if not selected or (score and _small(screened, selected, pair)):
            selected.append(pair)
            gains.append(score)
    best = _most_worth(screened, selected, gains)
    while len(selected) - best < _PATIENCE:
        found = _next(screened, screened.model(selected), selected, scores)
        if found is None:
            break
        selected.append(found)
        gains.append(scores[found])
        best = _most_worth(screened, selected, gains)
    return tuple(sorted(selected[:best]))


def _next(screened: Screened, model: Beliefs, selected: Sequence[Pair], scores: dict[Pair, float]) -> Pair | None:
    """Return the pair that gains most beyond its own noise, and update its score.

    A larger model explains more, so old scores rank the pairs and only the leading ones are scored again.
    """
    noise = _noise(screened, len(selected) + 1)

    def gain(pair: Pair) -> float:
        return scores[pair] - noise * _cells(screened, pair)

    fresh = set[Pair]()
    waiting = {pair for pair, score in scores.items() if score and pair not in selected}
    while waiting:
        pair = min(waiting, key=lambda each: (-gain(each), each))
        if pair in fresh:
            return pair
        if _small(screened, selected, pair):
            scores[pair] = screened.score(pair, projected(model, pair))
            fresh.add(pair)
        if pair not in fresh or not scores[pair]:
            waiting.discard(pair)
    return None


def _most_worth(screened: Screened, selected: Sequence[Pair], gains: Sequence[float]) -> int:
    """Return how many leading pairs have the largest gain above noise, at least one."""
    cells = np.cumsum([_cells(screened, pair) for pair in selected])
    noise = np.array([_noise(screened, many) for many in range(1, len(selected) + 1)])
    return int(np.argmax(np.cumsum(gains) - noise * cells)) + 1


def _noise(screened: Screened, pairs: int) -> float:
    return NOISE_WEIGHT * MEAN_ABSOLUTE * screened.noise * math.sqrt(pairs)


def _cells(screened: Screened, pair: Pair) -> int:
    return math.prod(screened.sizes[each] for each in pair)


def _small(screened: Screened, selected: Sequence[Pair], pair: Pair) -> bool:
    pairs = (*selected, pair)
    if sum(_cells(screened, each) for each in pairs) > CountSchema.max_cells:
        return False
    return JunctionTree(screened.sizes, pairs).cells <= MAX_CELLS


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


# Contrasts of a variable's cells, ``(cells, cells - 1)``, and their squared norms. Each compares a cell with all that
# are more frequent (Helmert). Under the shares each has mean 0 and variance 1, and any two are uncorrelated. So the
# squared sum of a pair's contrasts is chi-squared over its records. Noise enters by the squared norms, which are large
# for rare cells alone.
def _contrasts(shares: Array) -> tuple[Array, Array]:
    held = np.maximum(shares, _LEAST_SHARE)
    order = np.argsort(-held, kind="stable")
    shares = held[order] / held.sum()
    before, own = np.cumsum(shares)[:-1], shares[1:]
    scale = np.sqrt(before * own / (before + own))
    ranks, last = np.arange(len(shares))[:, None], np.arange(1, len(shares))
    out = np.empty((len(shares), len(last)))
    out[order] = np.where(ranks < last, scale / before, np.where(ranks == last, -scale / own, 0.0))
    return out, np.square(out).sum(axis=0)


def _shares(counts: Array) -> Array:
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(counts.shape, 1 / counts.size)
