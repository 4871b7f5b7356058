"""Fit the maximum-entropy model under noisy tables, and draw cells from it.

Source: McKenna, Sheldon, Miklau, Graphical-model based estimation and inference for differential privacy (2019); here
the dual of their problem, with a small entropy weight.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from privstats.contrib.synthetic.junction_tree import Array, Clique, JunctionTree

Codes = NDArray[np.intp]
Maps = Mapping[int, tuple[Codes, int]]
"""Per variable, each cell's lump, and the number of lumps."""

ENTROPY_WEIGHT = 0.03
"""Entropy weight times the smallest sigma: one nat moves a cell of that noise by 3 % of sigma."""
_MIN_SMOOTHING = 1e-3
"""Smoothing of tables without noise, in squared records."""
_MAX_ITERATIONS = 4_000
_TOLERANCE = 1e-9
"""A fit ends when an iteration lowers half the mean squared error by less, in squared sigmas."""


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
    """Log-potentials of a junction tree's cliques.

    Attributes:
        records: estimated number of records.
        parameters: of the fit, one per measured cell.
    """

    tree: JunctionTree
    potentials: tuple[Array, ...]
    records: float
    parameters: Array

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


def fitted(tree: JunctionTree, measurements: Sequence[Measurement], start: Model | None = None) -> Model:
    """Maximise the weighted entropy minus half the tables' squared errors in sigmas.

    Args:
        tree: of the model.
        measurements: noisy tables of one variable, or of two that a clique holds.
        start: a fit to other counts of the same tables, from which the search starts.
    """
    records = total(measurements)
    fit = _Fit(tree, records, tuple(measurements), None if start is None else start.parameters)
    still = np.zeros(fit.directions.shape[1])
    relative = _TOLERANCE / max(1.0, abs(fit.value(still)[0]))  # as the solver compares
    options: Any = {
        "maxiter": _MAX_ITERATIONS,
        "maxfun": 2 * _MAX_ITERATIONS,
        "maxcor": 30,
        "ftol": relative,
        "gtol": 0.0,
    }
    found = minimize(fit.value, still, jac=True, method="L-BFGS-B", options=options)
    if found.nit >= _MAX_ITERATIONS:
        warnings.warn(
            f"the fit of the rows stopped at {_MAX_ITERATIONS:,} iterations: tables follow less closely", stacklevel=2
        )
    parameters = fit.parameters(found.x)
    return Model(tree, tuple(fit.potentials(parameters)), records, parameters)


def _maps(measurement: Measurement) -> Maps:
    return dict(zip(measurement.variables, zip(measurement.lumps, measurement.counts.shape, strict=True), strict=True))


def _places(variables: Clique, sizes: Sequence[int], maps: Maps) -> Codes:
    """Return each cell's flat lump."""
    out = np.zeros([1] * len(variables), np.intp)
    for each, (lumps, count) in maps.items():
        out = out * count + lumps.reshape([-1 if other == each else 1 for other in variables])
    return np.broadcast_to(out, sizes).ravel()


@dataclass(frozen=True, eq=False)
class _Fit:
    """The dual problem: one parameter per measured cell."""

    tree: JunctionTree
    records: float
    measurements: tuple[Measurement, ...]
    known: Array | None

    @cached_property
    def counts(self) -> Array:
        return np.concatenate([each.counts.ravel() for each in self.measurements])

    @cached_property
    def ends(self) -> Codes:
        return np.cumsum([0, *(each.counts.size for each in self.measurements)])

    @cached_property
    def tables(self) -> list[Clique]:
        """Tables that no other one holds."""
        sets = {each.variables for each in self.measurements}
        return sorted(one for one in sets if not any(set(one) < set(other) for other in sets))

    @cached_property
    def homes(self) -> list[int]:
        return [self.tree.holding(table) for table in self.tables]

    @cached_property
    def shapes(self) -> list[list[int]]:
        return [[self.tree.sizes[each] for each in table] for table in self.tables]

    @cached_property
    def design(self) -> Any:
        # Rows are cells of `tables`, columns parameters: 1 where the row's cell is lumped into the column's.
        places = []
        for each, first in zip(self.measurements, self.ends, strict=False):
            home = next(k for k, table in enumerate(self.tables) if set(each.variables) <= set(table))
            cells = sum(math.prod(shape) for shape in self.shapes[:home])
            lumps = _places(self.tables[home], self.shapes[home], _maps(each))
            places.append(np.stack([np.arange(len(lumps)) + cells, lumps + first]))
        rows, columns = np.concatenate(places, axis=1)
        shape = sum(map(math.prod, self.shapes)), len(self.counts)
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)

    @cached_property
    def weight(self) -> float:
        return ENTROPY_WEIGHT / min((each.sigma for each in self.measurements if each.sigma > 0), default=1.0)

    @cached_property
    def smoothing(self) -> Array:
        sizes = [each.counts.size for each in self.measurements]
        return np.repeat([max(self.weight * each.sigma**2, _MIN_SMOOTHING) for each in self.measurements], sizes)

    @cached_property
    def scale(self) -> float:
        # The objective is then the mean per measured cell, in squared sigmas.
        return self.weight / len(self.counts)

    @cached_property
    def finest(self) -> dict[Clique, int]:
        """The first table of the model's own cells in their order, by variables."""
        out: dict[Clique, int] = {}
        for place, each in enumerate(self.measurements):
            if all(
                np.array_equal(lump, np.arange(count))
                for lump, count in zip(each.lumps, each.counts.shape, strict=True)
            ):
                out.setdefault(each.variables, place)
        return out

    @cached_property
    def positive(self) -> Array:
        """Counts, at least sigma."""
        return np.concatenate([np.maximum(each.counts, max(each.sigma, 0.5)).ravel() for each in self.measurements])

    @cached_property
    def directions(self) -> Any:
        """Directions of the search, each with a curvature of about 1."""
        # The first directions change one parameter each. Each other one adds to a table's parameters and subtracts as
        # much from a finer table's: the model stays, and only the smoothing curves the objective, far less than along
        # the first. Without them a fit of many overlapping tables takes up to five times the iterations.
        sizes = self.counts.size
        diagonal = np.arange(sizes)
        entries = [np.stack([diagonal, diagonal, 1 / np.sqrt(self.positive + self.smoothing)])]
        for place, each in enumerate(self.measurements):
            for variables, other in self.finest.items():
                if other != place and set(variables) <= set(each.variables):
                    moved = self._moved(place, other, sizes)
                    entries.append(moved)
                    sizes = int(moved[1].max()) + 1
        rows, columns, values = np.concatenate(entries, axis=1)
        places = rows.astype(np.intp), columns.astype(np.intp)
        return csr_array((values / math.sqrt(self.scale), places), shape=(self.counts.size, sizes))

    def _moved(self, place: int, other: int, first: int) -> Array:
        # Rows, columns and values of the directions that leave the model as it is.
        each, finer = self.measurements[place], self.measurements[other]
        shared = {one: _maps(each)[one] for one in finer.variables}
        own: Maps = {one: (np.arange(count), count) for one, (_, count) in shared.items()}
        lumps = _places(each.variables, each.counts.shape, own), _places(finer.variables, finer.counts.shape, shared)
        rows = np.concatenate(
            [np.arange(part.size) + self.ends[k] for k, part in zip((place, other), lumps, strict=True)]
        )
        columns, signs = np.concatenate(lumps), np.repeat([1.0, -1.0], [part.size for part in lumps])
        curvature = np.bincount(columns, self.smoothing[rows])
        return np.stack([rows, columns + first, signs / np.sqrt(curvature[columns])])

    @cached_property
    def start(self) -> Array:
        """Parameters of another fit, else independent columns: each variable's finest table."""
        if self.known is not None:
            return self.known
        out = np.zeros(len(self.counts))
        for variables, place in self.finest.items():
            if len(variables) == 1:
                own = slice(self.ends[place], self.ends[place + 1])
                out[own] = np.log(self.positive[own] / self.records)
        return out

    def parameters(self, moves: Array) -> Array:
        return np.asarray(self.start + self.directions @ moves)

    def potentials(self, parameters: Array) -> list[Array]:
        cliques = self.tree.cliques
        out = [np.zeros([self.tree.sizes[each] for each in clique]) for clique in cliques]
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        for part, table, home in zip(np.split(self.design @ parameters, ends), self.tables, self.homes, strict=True):
            out[home] += self.tree.widened(part, table, cliques[home])
        return out

    def value(self, moves: Array) -> tuple[float, Array]:
        parameters = self.parameters(moves)
        beliefs, normaliser = self.tree.marginals(self.potentials(parameters))
        shares = [
            beliefs[home].sum(axis=self.tree.axes(self.tree.cliques[home], table)).ravel()
            for table, home in zip(self.tables, self.homes, strict=True)
        ]
        expected = self.design.T @ (self.records * np.concatenate(shares))
        value = self.records * normaliser + parameters @ (self.smoothing * parameters / 2 - self.counts)
        gradient = expected - self.counts + self.smoothing * parameters
        return float(value * self.scale), np.asarray(self.directions.T @ gradient) * self.scale
