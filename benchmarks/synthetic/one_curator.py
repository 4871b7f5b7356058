"""AIM and MST as published, for one curator who sees all records, over this library's fit of the model.

Sources: McKenna, Mullins, Sheldon, Miklau, AIM: an adaptive and iterative mechanism for differentially private
synthetic data (2022); McKenna, Miklau, Sheldon, Winning the NIST contest (2021). Rounds, budgets, scores and weights
are those of the authors' code (``mechanisms`` of ``ryan112358/mbi``); the workload is all pairs. Their estimator
compiles each new model; this one does not. Noise is drawn in floats: for measurements alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.synthetic.junction_tree import Array, Clique, JunctionTree
from privstats.contrib.synthetic.model import Measurement, Model, fitted
from privstats.contrib.synthetic.projection import projected
from privstats.contrib.synthetic.proportional import Beliefs

__all__ = ["aim", "mst"]

MODEL_BYTES = 1 << 20
"""Limit on AIM's junction tree, 8 bytes a cell; with the 80 MB of the authors' code a run takes hours."""
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_ROUNDS, _MEASURED, _SUPPORTED = 16, 0.9, 3.0

Codes = NDArray[np.int64]


def aim(codes: Codes, sizes: Sequence[int], rho: float, rng: np.random.Generator) -> Codes:
    """Draw as many rows as there are records, under rho-zCDP (add-remove)."""
    d, shape = len(sizes), tuple(sizes)
    pairs = list(combinations(range(d), 2))
    weights: dict[Clique, float] = {**{(a,): d - 1 for a in range(d)}, **dict.fromkeys(pairs, 2.0 * (d - 1))}
    answers = {clique: _counts(codes, shape, clique) for clique in weights}
    rounds = _ROUNDS * d
    sigma, epsilon = math.sqrt(rounds / (2 * _MEASURED * rho)), math.sqrt(8 * (1 - _MEASURED) * rho / rounds)
    measured = [_noisy(clique, answers[clique], sigma, rng) for clique in weights if len(clique) == 1]
    spent, last = d / (2 * sigma**2), False
    model = fitted(JunctionTree(shape, ()), measured)
    while not last:
        if rho - spent < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            last, sigma = True, math.sqrt(1 / (2 * _MEASURED * (rho - spent)))
            epsilon = math.sqrt(8 * (1 - _MEASURED) * (rho - spent))
        spent += 1 / (2 * sigma**2) + epsilon**2 / 8
        small, beliefs = _small(model, weights, spent / rho), Beliefs(model.tree, model.beliefs)
        fits = {clique: model.records * projected(beliefs, clique) for clique in small}
        scores = {
            clique: weights[clique]
            * (np.abs(answers[clique] - fit).sum() - _MEAN_ABSOLUTE * sigma * answers[clique].size)
            for clique, fit in fits.items()
        }
        chosen = _exponential(scores, epsilon / max(weights[clique] for clique in fits), rng)
        measured.append(_noisy(chosen, answers[chosen], sigma, rng))
        edges = tuple(sorted({each.variables for each in measured if len(each.variables) == 2}))
        model = fitted(JunctionTree(shape, edges), measured)
        moved = np.abs(model.records * model.marginal(chosen) - fits[chosen]).sum()
        if moved <= _MEAN_ABSOLUTE * sigma * answers[chosen].size:
            sigma, epsilon = sigma / 2, epsilon * 2
    return model.draw(len(codes), rng).astype(np.int64)


def mst(codes: Codes, sizes: Sequence[int], rho: float, rng: np.random.Generator) -> Codes:
    """Draw as many rows as there are records, under rho-zCDP (add-remove): a third each to singles, tree and pairs."""
    d, sigma = len(sizes), math.sqrt(3 / (2 * rho))
    ones = [_noisy((a,), _counts(codes, sizes, (a,)), sigma * math.sqrt(d), rng) for a in range(d)]
    kept = [np.flatnonzero(each.counts >= _SUPPORTED * each.sigma) for each in ones]
    maps = [np.full(size, len(places), np.int64) for size, places in zip(sizes, kept, strict=True)]
    for own, places in zip(maps, kept, strict=True):
        own[places] = np.arange(len(places))
    small = np.column_stack([own[column] for own, column in zip(maps, codes.T, strict=True)])
    shape = tuple(len(places) + (len(places) < size) for size, places in zip(sizes, kept, strict=True))
    singles = [_merged(each, own, cells) for each, own, cells in zip(ones, maps, shape, strict=True)]
    tree = _spanning(small, fitted(JunctionTree(shape, ()), singles), rho / 3, rng)
    pairs = [_noisy(pair, _counts(small, shape, pair), sigma * math.sqrt(d - 1), rng) for pair in tree]
    drawn = fitted(JunctionTree(shape, tree), [*singles, *pairs]).draw(len(codes), rng)
    out = np.empty(drawn.shape, np.int64)
    for axis, (size, places) in enumerate(zip(sizes, kept, strict=True)):
        rare = np.setdiff1d(np.arange(size), places)
        spread = rng.choice(rare, len(codes)) if len(rare) else np.zeros(len(codes), np.int64)
        listed = np.append(places, 0)[drawn[:, axis]]
        out[:, axis] = np.where(drawn[:, axis] == len(places), spread, listed)
    return out


def _small(model: Model, weights: Mapping[Clique, float], share: float) -> list[Clique]:
    """Return the candidates with which the model stays below its limit by now, and those that it holds."""
    edges, cells = model.tree.edges, share * MODEL_BYTES / 8
    return [
        clique
        for clique in weights
        if model.tree.holds(clique) or JunctionTree(model.tree.sizes, (*edges, clique)).cells <= cells  # type: ignore[arg-type]
    ]


def _counts(codes: Codes, sizes: Sequence[int], clique: Clique) -> Array:
    shape = [sizes[axis] for axis in clique]
    flat = np.ravel_multi_index([codes[:, axis] for axis in clique], shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def _noisy(clique: Clique, counts: Array, sigma: float, rng: np.random.Generator) -> Measurement:
    return Measurement(
        clique, tuple(np.arange(cells) for cells in counts.shape), counts + rng.normal(0, sigma, counts.shape), sigma
    )


def _merged(one: Measurement, places: Codes, cells: int) -> Measurement:
    """Return a one-way table in fewer cells, the rare ones together in the last; its sigma is a mean over cells."""
    sigma = one.sigma * math.sqrt(len(places) / cells)
    counts = np.bincount(places, one.counts, cells).astype(np.float64)
    return Measurement(one.variables, (np.arange(cells),), counts, sigma)


def _exponential(scores: Mapping[Clique, float], epsilon: float, rng: np.random.Generator) -> Clique:
    logits = epsilon / 2 * np.array(list(scores.values()))
    shares = np.exp(logits - logits.max())
    return list(scores)[rng.choice(len(shares), p=shares / shares.sum())]


def _spanning(codes: Codes, alone: Model, rho: float, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Return MST's tree: edges drawn one by one by their L1 distance from independence."""
    shape, group, tree = alone.tree.sizes, list(range(codes.shape[1])), list[tuple[int, int]]()
    epsilon = math.sqrt(8 * rho / (len(shape) - 1))
    expected = {
        (a, b): alone.records * np.outer(alone.marginal((a,)), alone.marginal((b,)))
        for a, b in combinations(range(len(shape)), 2)
    }
    scores = {pair: float(np.abs(_counts(codes, shape, pair) - table).sum()) for pair, table in expected.items()}
    while len(tree) < len(shape) - 1:
        joining: dict[Clique, float] = {(a, b): s for (a, b), s in scores.items() if group[a] != group[b]}
        a, b = _exponential(joining, epsilon, rng)
        tree.append((a, b))
        group = [group[a] if each == group[b] else each for each in group]
    return tuple(tree)
