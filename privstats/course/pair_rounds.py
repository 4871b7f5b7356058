"""Define the recipe of rounds with pairs of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.course.pair_codes import CODES, GROUPS, PairCodes
from privstats.course.recipes import SoftmaxRounds
from privstats.errors import PlanError
from privstats.estimates import denoise, recipes, softmax
from privstats.estimates import pairs as estimates
from privstats.estimates.denoise import Array
from privstats.estimates.filter_bank import Filter
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import GradientSchema
from privstats.schema.modules import module_of
from privstats.schema.public_values import Values
from privstats.transforms import Cells
from privstats.transforms.categories import Categories

SELECTION_SHARE = 0.25
"""Part of the mu^2 behind the first release that the session for all pairs gets."""
JOINT_ROUNDS, PAIR_ROUNDS = 3, 7
"""Rounds behind that session, and all of them by default."""
_LEAST_SIGNAL = 150.0
_COLUMNS, _CLASSES = range(3, 65), 2

_SIGNS = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
_SIZES = np.array([1.0, 0.6, 0.5])
_LEVELS = (0.25, 0.5, 0.75)


def can_have_pairs(schema: Any) -> bool:
    """Return whether rows are those of ``Cells`` alone, with 3 to 64 columns, and of two classes."""
    match schema.transform:
        case (Cells() as cells,):
            return schema.task == "classes" and schema.classes == _CLASSES and len(cells.columns) in _COLUMNS
    return False


def pairs_pay(whole: Plan, records: int, mu: float) -> bool:
    """Return whether pairs are on by the public rule, for rounds with this mu: s of at least 150, and no proofs."""
    schema: Any = whole.schema
    if whole.validity is not None or not can_have_pairs(schema):
        return False
    return recipes.SoftmaxRecipe(schema.classes, schema.features, records, mu).signal >= _LEAST_SIGNAL


def _require_table(schema: Any) -> None:
    if not can_have_pairs(schema):
        raise PlanError("pairs are of 3 to 64 declared columns and two classes: leave pairs out for other rows")


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """A column's cells in at most four groups, and a gap.

    Attributes:
        groups: each cell's group, ``(cells,)``; 4 for a gap.
        codes, sizes: each group's code of norm 1, ``(4, 3)``, and the size of its three entries.
        functionals: of a block's entries, ``(5, d_j)``: the largest is that of the record's group.
        slopes, shift: the code as a linear function of the block's real entries, ``(3, d_j)`` and ``(3,)``.
    """

    groups: NDArray[np.intp]
    codes: Array
    sizes: Array
    functionals: Array
    slopes: Array
    shift: Array

    @classmethod
    def of(cls, column: Any, table: Array, mean: Array) -> ColumnGroups:
        """Group by a released mean row.

        Args:
            table: entries of each cell, ``(cells, d_j)``, the gap's last.
            mean: of all records' entries.
        """
        listed = isinstance(column, Categories) and not column.is_scale
        indicators, shift = _of_values(table, mean) if listed else _of_cuts(table, mean)
        count = len(indicators) - 1
        codes, sizes = np.zeros((GROUPS, CODES)), np.zeros(CODES)
        used = min(count, 2) - 1 if count <= 2 else CODES
        sizes[:used] = _SIZES[:used] / np.linalg.norm(_SIZES[:used])
        codes[:count] = (_SIGNS[[0, 2]] if count == 2 else _SIGNS[:count]) * sizes
        functionals = np.zeros((GROUPS + 1, table.shape[1]))
        functionals[[*range(count), GROUPS]] = indicators
        cells = (table @ functionals.T).argmax(axis=1)
        slopes, constant = codes[:count].T @ indicators[:-1], codes[:count].T @ shift
        return cls(cells, codes, sizes, functionals, slopes, constant)


def _of_values(table: Array, mean: Array) -> tuple[Array, Array]:
    """Return indicators of the three most frequent cells, the rest and a gap, and their constants."""
    values = np.eye(len(mean)) / table[-1, -1]
    frequent = np.argsort(-mean[:-1], kind="stable")[: GROUPS - 1]
    rest = np.setdiff1d(np.arange(len(mean) - 1), frequent)
    groups = [values[place] for place in sorted(frequent)] + [values[rest].sum(axis=0)] * (len(rest) > 0)
    return np.array([*groups, values[-1]]), np.zeros(len(groups))


def _of_cuts(table: Array, mean: Array) -> tuple[Array, Array]:
    """Return indicators of about the quarters between cuts and of a gap, and their constants."""
    step = -table[0, 0]
    cuts = np.flatnonzero((table[0] == -step) & (np.abs(table[:-1]) == step).all(axis=0))
    gap = np.eye(len(mean))[-1] / table[-1, -1]
    given = max(1 - float(gap @ mean), 1e-3)
    above = (mean[cuts] / step / given + 1) / 2
    inner = sorted({int(cuts[np.abs(1 - above - level).argmin()]) for level in _LEVELS})
    signs = np.eye(len(mean))[inner] / step
    edges = np.vstack([-gap, signs, gap])
    steps = np.array([1.0, *[0.0] * len(inner), -1.0])
    return np.vstack([(edges[:-1] - edges[1:]) / 2, gap]), (steps[:-1] - steps[1:]) / 2


@dataclass(frozen=True, eq=False)
class Groups:
    """All columns' groups, from the released sum of all rows."""

    cells: Cells
    columns: tuple[ColumnGroups, ...]

    @classmethod
    def of(cls, cells: Cells, mean: Array) -> Groups:
        """Group all columns by the mean row."""
        rows = zip(cells.columns, cells.tables, cells.blocks, strict=True)
        return cls(cells, tuple(ColumnGroups.of(c, table * 2.0**-cells.bits, mean[block]) for c, table, block in rows))

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """All pairs of columns, ``(m, 2)``."""
        return np.array([*combinations(range(len(self.columns)), 2)])

    def sizes(self, pairs: NDArray[np.intp]) -> Array:
        """Sizes of pairs' codes, ``(m, 3, 3)``."""
        own = np.array([column.sizes for column in self.columns])
        return np.asarray(own[pairs[:, 0], :, None] * own[pairs[:, 1], None, :])

    def functionals(self, inverse: Array) -> Array:
        """Return E for rows behind a map with this inverse, ``(J, 5, d)``."""
        every = np.zeros((len(self.columns), GROUPS + 1, self.cells.width))
        for place, (column, block) in enumerate(zip(self.columns, self.cells.blocks, strict=True)):
            every[place, :, block] = column.functionals
        return np.asarray(every @ inverse)

    def code_maps(self, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return columns' codes as linear functions of a row, ``(m, 3, d)`` and ``(m, 3)``."""
        slopes = np.zeros((len(places), CODES, self.cells.width))
        for slope, place in zip(slopes, places, strict=True):
            slope[:, self.cells.blocks[place]] = self.columns[place].slopes
        return slopes, np.array([self.columns[place].shift for place in places]).reshape(-1, CODES)


class PairState(NamedTuple):
    """Chosen pairs, ``(m, 2)``, and the filter of their weights, ``(2, 9 m)``."""

    pairs: NDArray[np.intp]
    filter: Filter


@dataclass(frozen=True, eq=False)
class PairTables:
    """Weights of chosen pairs' codes.

    Attributes:
        groups: of all columns.
        pairs: columns of each, ``(m, 2)``.
        weights: of each pair's codes, ``(2, 9 m)``.
    """

    groups: Groups
    pairs: NDArray[np.intp]
    weights: Array

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Names of the pairs' columns."""
        columns = [column.name for column in self.groups.cells.columns]
        return tuple((columns[one], columns[other]) for one, other in self.pairs)

    def rule(self, linear: Any, heat: float) -> Any:
        """Return a whitened rule with these tables, their scores divided by ``heat``."""
        from privstats.heads.rules.paired import PairedRule

        maps: list[Array] = []
        for places, wide in zip(self.pairs.T, (True, False), strict=True):
            slopes, shift = self.groups.code_maps(places)
            order = np.repeat(np.arange(CODES), CODES) if wide else np.tile(np.arange(CODES), CODES)
            maps += [slopes[:, order].reshape(-1, slopes.shape[-1]).T, shift[:, order].ravel()]
        return PairedRule(linear.matrix, linear.coef, linear.intercept, *maps, self.weights / heat)


@dataclass(frozen=True)
class PairRounds(SoftmaxRounds):
    """Rounds of a linear softmax, a session for all pairs of columns, then rounds with the chosen pairs."""

    @classmethod
    def after(cls, recipe: SoftmaxRounds) -> PairRounds:
        """Return the recipe that goes on as this one does, with pairs."""
        _require_table(recipe.first)
        return cls(recipe.first, recipe.records, recipe.mu, recipe.rounds, clip=recipe.clip)

    @property
    def cells(self) -> Cells:
        """The table's declaration."""
        cells: Cells = self.first.transform[0]
        return cells

    @cached_property
    def searching(self) -> PairCodes:
        """The module of the session for all pairs."""
        J = len(self.cells.columns)
        return _module(J, math.comb(J, 2))

    @cached_property
    def joint(self) -> PairCodes:
        """The module of later rounds."""
        return _module(len(self.cells.columns), estimates.MOST_PAIRS)

    def schema_of(self, module: PairCodes) -> GradientSchema:
        """Return a round's schema with a module."""
        return replace(self.schema, module=f"pairs/{module.columns}-{module.pairs}")

    def states(self, releases: Sequence[Release]) -> tuple[softmax.SoftmaxWhitening, list[Filter]]:
        """Return the map, and the linear softmax's filter after every release that moved it."""
        whitening, states, _ = self._walked(releases)
        return whitening, states

    def rounds_behind(self, releases: Sequence[Release]) -> list[tuple[float, float]]:
        """Return kappa and the noise of every round that moved the linear softmax."""
        pairs, rounds = self._walked(releases)[2], []
        for release in releases[1:]:
            if (module := _module_in(release)) != self.searching:
                alpha = 1.0 if module is None or pairs is None else self._scales(len(pairs.pairs))[0]
                rounds.append((float(release.moments.k), float(release.sigma["g"]) / alpha))
        return rounds

    def tables(self, releases: Sequence[Release]) -> PairTables | None:
        """Return the chosen pairs' tables, if any."""
        pairs = self._walked(releases)[2]
        return pairs and PairTables(self._groups(releases[0]), pairs.pairs, pairs.filter.weights)

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the values of the next round of the softmax, and of the chosen pairs if any."""
        _, states, pairs = self._walked(releases)
        if pairs is None:
            return super().values(releases)
        scales = self._scales(len(pairs.pairs))
        return self._published(self.joint, releases, scales, (states[-1], pairs.filter), pairs.pairs)

    def search_values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the values of the session for all pairs."""
        every, (_, states, _) = self._groups(releases[0]).pairs, self._walked(releases)
        return self._published(self.searching, releases, (0.0, len(every) ** -0.5), states[-1:], every)

    def _published(
        self,
        module: PairCodes,
        releases: Sequence[Release],
        scales: tuple[float, float],
        states: Sequence[Filter],
        pairs: NDArray[np.intp],
    ) -> dict[str, Values]:
        whitening, groups = self._whitening(releases[0]), self._groups(releases[0])
        inverse = (whitening.vectors / whitening.scale) @ whitening.vectors.T
        linear, *others = [each.weights for each in states]
        scores = np.hstack([whitening.published(linear), *others])
        codes = np.array([column.codes for column in groups.columns])
        w = module.published_of(scales, scores[1] - scores[0], pairs, codes, groups.functionals(inverse))
        return {"M": Values.rounded(whitening.matrix), "w": Values.rounded(w)}

    def _scales(self, pairs: int) -> tuple[float, float]:
        """Return alpha and beta: a pair counts as one more column."""
        J = len(self.cells.columns)
        return math.sqrt(J / (J + pairs)), math.sqrt(1 / (J + pairs))

    def _whitening(self, first: Release) -> softmax.SoftmaxWhitening:
        return softmax.SoftmaxWhitening.of(self.sums(first), self.constants.floor)

    def _groups(self, first: Release) -> Groups:
        sums = self.sums(first)
        return Groups.of(self.cells, sums.A.sum(axis=0) / denoise.counts(sums.N, sums.sigma["N"]).sum())

    def _walked(self, releases: Sequence[Release]) -> tuple[softmax.SoftmaxWhitening, list[Filter], PairState | None]:
        sums, whitening = self.sums(releases[0]), self._whitening(releases[0])
        groups, n, ridge = self._groups(releases[0]), sums.records, self.constants.ridge
        states: list[Filter] = [softmax.started(self.constants, sums, whitening)]
        pairs: PairState | None = None
        for release in releases[1:]:
            real, sigma, module = release.moments, float(release.sigma["g"]), _module_in(release)
            if module is None:
                states.append(softmax.refined(self.constants, sums, whitening, states[-1], real.g, real.k, sigma))
                continue
            u, codes = np.split(real.g[0], [self.first.features + 1])
            scale = softmax.hessian_scale(self.constants, sums, real.k)
            if module == self.searching:
                found = estimates.PairSums.of(codes, sigma, len(groups.pairs) ** -0.5, n, scale)
                places = estimates.passing(found, groups.sizes(groups.pairs))
                if len(places):
                    own, sizes = groups.pairs[places], groups.sizes(groups.pairs[places])
                    pairs = PairState(own, estimates.started(estimates.chosen(found, places), sizes, ridge))
            elif pairs is not None:
                alpha, beta = self._scales(len(pairs.pairs))
                half = u / (math.sqrt(2) * alpha)
                rows = np.stack([-half, half])
                states.append(softmax.refined(self.constants, sums, whitening, states[-1], rows, real.k, sigma / alpha))
                later = estimates.PairSums.of(codes[: pairs.filter.weights.shape[1]], sigma, beta, n, scale)
                pairs = PairState(pairs.pairs, estimates.refined(pairs.filter, later, groups.sizes(pairs.pairs), ridge))
        return whitening, states, pairs


def paired_of(recipe: object, releases: Sequence[Release]) -> PairTables | None:
    """Return the tables of a recipe with pairs, if any were chosen."""
    return recipe.tables(releases) if isinstance(recipe, PairRounds) else None


def _module(columns: int, pairs: int) -> PairCodes:
    module = module_of(f"pairs/{columns}-{pairs}")
    assert isinstance(module, PairCodes)  # noqa: S101  the library announces it
    return module


def _module_in(release: Release) -> PairCodes | None:
    schema: Any = release.plan.schema
    return None if schema.module is None else schema.network
