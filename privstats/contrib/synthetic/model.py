"""Fit the maximum-entropy model under noisy tables, and draw cells from it.

Source: McKenna, Sheldon, Miklau, Graphical-model based estimation and inference for differential privacy (2019); here
the dual of their problem, with a small entropy weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from privstats.contrib.synthetic.junction_tree import Array, Clique, JunctionTree

Codes = NDArray[np.intp]

ENTROPY_WEIGHT = 0.03
"""Entropy weight times the smallest sigma: one nat moves a cell of that noise by 3 % of sigma."""
_MIN_SMOOTHING = 1e-3
"""Smoothing of tables without noise, in squared records."""
_MAX_STEPS = 250
_TOLERANCE = 1e-10
"""Relative change of the objective at which a fit ends."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """One noisy table of the model's cells, some lumped together.

    Attributes:
        variables: in increasing order.
        lumps: per variable, each model cell's measured cell.
        counts: one axis per variable.
        sigma: noise standard deviation of a count.
    """

    variables: Clique
    lumps: tuple[Codes, ...]
    counts: Array
    sigma: float

    def lumped(self, table: Array) -> Array:
        """Return a table's measured cells."""
        for axis, matrix in enumerate(self._matrices):
            if matrix is not None:
                table = np.moveaxis(np.tensordot(matrix, table, (0, axis)), 0, axis)
        return table

    @cached_property
    def _matrices(self) -> list[Array | None]:
        """Per variable the matrix that lumps cells; None without lumps."""
        pairs = zip(self.lumps, self.counts.shape, strict=True)
        return [None if np.array_equal(lump, np.arange(cells)) else _one_hot(lump, cells) for lump, cells in pairs]

    def spread(self, table: Array) -> Array:
        """Return each model cell's value of its measured cell."""
        return table if not any(each is not None for each in self._matrices) else table[np.ix_(*self.lumps)]


def _one_hot(places: Codes, cells: int) -> Array:
    out = np.zeros((len(places), cells))
    out[np.arange(len(places)), places] = 1.0
    return out


def margins(pairs: Sequence[Measurement]) -> list[Measurement]:
    """Return each variable's one-way counts, averaged over one session's pairs."""
    sides: dict[int, list[tuple[Measurement, int]]] = {}
    for pair in pairs:
        for axis, variable in enumerate(pair.variables):
            sides.setdefault(variable, []).append((pair, axis))
    out = []
    for variable, held in sorted(sides.items()):
        counts = np.mean([pair.counts.sum(axis=1 - axis) for pair, axis in held], axis=0)
        variance = sum(pair.counts.shape[1 - axis] * pair.sigma**2 for pair, axis in held) / len(held) ** 2
        out.append(Measurement((variable,), (held[0][0].lumps[held[0][1]],), counts, math.sqrt(variance)))
    return out


def total(measurements: Sequence[Measurement]) -> float:
    """Return the precision-weighted mean of all totals, at least 1."""
    weights = [1 / max(each.counts.size * each.sigma**2, _MIN_SMOOTHING) for each in measurements]
    totals = [float(each.counts.sum()) for each in measurements]
    return max(1.0, math.fsum(w * t for w, t in zip(weights, totals, strict=True)) / math.fsum(weights))


@dataclass(frozen=True, eq=False)
class Model:
    """Log-potentials of a junction tree's cliques, and the estimated number of records."""

    tree: JunctionTree
    potentials: tuple[Array, ...]
    records: float

    @cached_property
    def beliefs(self) -> list[Array]:
        """Probabilities of each clique."""
        return self.tree.marginals(self.potentials)[0]

    def marginal(self, variables: Clique) -> Array:
        """Return probabilities of some variables of one clique, in increasing order."""
        place = self.tree.holding(variables)
        return np.asarray(self.beliefs[place].sum(axis=self.tree.axes(self.tree.cliques[place], variables)))

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """Draw cells, ``(rows, variables)``, clique by clique.

        Each count, given its parents, is within one record of its expectation.
        """
        out = np.full((rows, len(self.tree.sizes)), -1, np.intp)
        self._fill(out, 0, (), rng)
        for link in self.tree.links:
            self._fill(out, link.child, link.shared, rng)
        return out

    def _fill(self, out: Codes, place: int, given: Clique, rng: np.random.Generator) -> None:
        clique = self.tree.cliques[place]
        new = tuple(each for each in clique if each not in given)
        order = [clique.index(each) for each in (*given, *new)]
        shape = [self.tree.sizes[each] for each in given]
        weights = self.beliefs[place].transpose(order).reshape(math.prod(shape), -1)
        groups = np.zeros(len(out), np.intp)
        if given:
            groups = np.asarray(np.ravel_multi_index([out[:, each] for each in given], shape))
        drawn = systematic(groups, weights, rng)
        cells = np.unravel_index(drawn, [self.tree.sizes[each] for each in new])
        for each, column in zip(new, cells, strict=True):
            out[:, each] = column


def systematic(groups: Codes, weights: Array, rng: np.random.Generator) -> Codes:
    """Draw one cell per row from its group's weights, ``(groups, cells)``, by systematic sampling."""
    rows = len(groups)
    shuffled = rng.permutation(rows)
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    counts = np.bincount(groups, minlength=len(weights))
    rank = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
    at = groups[order]
    where = (rank + rng.random(len(weights))[at]) / counts[at]
    sums = np.cumsum(weights + np.finfo(np.float64).tiny, axis=1)
    sums /= sums[:, -1:]
    stacked = (sums + np.arange(len(weights))[:, None]).ravel()
    places = np.searchsorted(stacked, where + at, side="right") - at * weights.shape[1]
    out = np.empty(rows, np.intp)
    out[order] = np.clip(places, 0, weights.shape[1] - 1)
    return out


def fitted(tree: JunctionTree, measurements: Sequence[Measurement]) -> Model:
    """Maximise the weighted entropy minus half the tables' squared errors in sigmas.

    Args:
        tree: of the model.
        measurements: noisy tables of one variable, or of two that a clique holds.
    """
    records = total(measurements)
    fit = _Fit(tree, records, tuple(measurements))
    options: Any = {"maxiter": _MAX_STEPS, "maxcor": 20, "ftol": _TOLERANCE}
    solution = minimize(fit.value, fit.start, jac=True, method="L-BFGS-B", options=options).x
    return Model(tree, tuple(fit.potentials(solution)), records)


@dataclass(frozen=True, eq=False)
class _Fit:
    """The dual problem: one parameter per measured cell, scaled to a curvature of about 1."""

    tree: JunctionTree
    records: float
    measurements: tuple[Measurement, ...]

    @cached_property
    def size(self) -> int:
        return sum(each.counts.size for each in self.measurements)

    @cached_property
    def homes(self) -> list[int]:
        return [self.tree.holding(each.variables) for each in self.measurements]

    @cached_property
    def smoothing(self) -> list[float]:
        noisy = [each.sigma for each in self.measurements if each.sigma > 0]
        weight = ENTROPY_WEIGHT / min(noisy, default=1.0)
        return [max(weight * each.sigma**2, _MIN_SMOOTHING) for each in self.measurements]

    @cached_property
    def units(self) -> Array:
        """Inverse square root of each parameter's curvature at the solution."""
        tables = zip(self.measurements, self.smoothing, strict=True)
        curvature = [np.maximum(each.counts, max(each.sigma, 0.5)).ravel() + c for each, c in tables]
        return 1 / np.sqrt(np.concatenate(curvature) / self.records)

    @cached_property
    def start(self) -> Array:
        """Independent columns: each variable's finest table."""
        finest: dict[int, int] = {}
        for place, each in enumerate(self.measurements):
            if len(each.variables) == 1 and each.counts.size == self.tree.sizes[each.variables[0]]:
                finest.setdefault(each.variables[0], place)
        parts = [
            np.log(np.maximum(each.counts, max(each.sigma, 0.5)) / self.records).ravel() * (place in finest.values())
            for place, each in enumerate(self.measurements)
        ]
        return np.concatenate(parts) / self.units

    def parts(self, flat: Array) -> list[Array]:
        ends = np.cumsum([each.counts.size for each in self.measurements])[:-1]
        shapes = [each.counts.shape for each in self.measurements]
        return [part.reshape(shape) for part, shape in zip(np.split(flat * self.units, ends), shapes, strict=True)]

    def potentials(self, flat: Array) -> list[Array]:
        cliques = self.tree.cliques
        out = [np.zeros([self.tree.sizes[each] for each in clique]) for clique in cliques]
        for part, each, home in zip(self.parts(flat), self.measurements, self.homes, strict=True):
            out[home] += self.tree.widened(each.spread(part), each.variables, cliques[home])
        return out

    def value(self, flat: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, per record."""
        beliefs, normaliser = self.tree.marginals(self.potentials(flat))
        value, gradients = self.records * normaliser, []
        for part, each, home, c in zip(self.parts(flat), self.measurements, self.homes, self.smoothing, strict=True):
            beside = self.tree.axes(self.tree.cliques[home], each.variables)
            expected = self.records * each.lumped(beliefs[home].sum(axis=beside))
            value += float(c / 2 * np.square(part).sum() - (part * each.counts).sum())
            gradients.append((expected - each.counts + c * part).ravel())
        scale = 1 / self.records
        return value * scale, np.concatenate(gradients) * self.units * scale
