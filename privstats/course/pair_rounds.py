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

from privstats.course.pair_codes import CODES, ENTRIES, GROUPS, PairCodes, codes_in
from privstats.course.recipes import RoundSums, SoftmaxRounds
from privstats.errors import PlanError
from privstats.estimates import denoise, recipes, softmax
from privstats.estimates import pairs as estimates
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.intake.declared.categories import Categories
from privstats.kinds import ClassSchema, GradientSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema.public_values import Values
from privstats.transforms import Cells

JOINT_ROUNDS, PAIR_ROUNDS = 3, 7
"""Rounds after the session for all pairs, and all rounds by default."""
_LEAST_SIGNAL = 150.0
_COLUMNS, _CLASSES = range(3, 65), 2

_SIGNS = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
_SIZES = np.array([1.0, 0.6, 0.5])
_LEAST_LENGTH = 1e-3
_LEVELS = (0.25, 0.5, 0.75)


def can_have_pairs(schema: Any) -> bool:
    """Return whether rows are those of ``Cells`` alone, with 3 to 64 columns, and of two classes."""
    match schema.transform:
        case (Cells() as cells,):
            return isinstance(schema, ClassSchema) and schema.classes == _CLASSES and len(cells.columns) in _COLUMNS
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
        codes, sizes: each group's code of norm 1 (0 without group), ``(4, 3)``, and the size of its entries.
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
        return cls(
            cells,
            tuple(ColumnGroups.of(c, np.asarray(table * 2.0**-cells.bits), mean[block]) for c, table, block in rows),
        )

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """All pairs of columns, ``(m, 2)``."""
        return np.array([*combinations(range(len(self.columns)), 2)])

    def sizes(self, pairs: NDArray[np.intp]) -> Array:
        """Return the sizes of pairs' codes, ``(m, 3, 3)``."""
        own = np.array([column.sizes for column in self.columns])
        return np.asarray(own[pairs[:, 0], :, None] * own[pairs[:, 1], None, :])

    def alignment(self, sums: NoisyClassSums) -> Array:
        """Return how far columns' codes move together, 0 to 1, ``(J, J)``, from the released second moments."""
        slopes, shift = self.code_maps(range(len(self.columns)))
        maps = np.column_stack([slopes, shift])
        total, mean = _total(sums), sums.A.sum(axis=0)[:, None]
        moments = maps @ np.block([[sums.B, mean], [mean.T, np.array([[total]])]]) @ maps.T / total
        J = len(self.columns)
        lengths = np.sqrt(np.square(moments).reshape(J, CODES, J, CODES).sum(axis=(1, 3)))
        own = np.sqrt(np.maximum(np.diag(lengths), _LEAST_LENGTH))
        return np.asarray(np.minimum(lengths / np.outer(own, own), 1.0))

    def functionals(self, inverse: Array) -> Array:
        """Return E for rows behind a map with this inverse, ``(J, 5, d)``."""
        every = np.zeros((len(self.columns), GROUPS + 1, self.cells.width))
        for place, (column, block) in enumerate(zip(self.columns, self.cells.blocks, strict=True)):
            every[place, :, block] = column.functionals
        return np.asarray(every @ inverse)

    def code_maps(self, places: Any, order: Any = slice(None)) -> tuple[Array, Array]:
        """Return columns' codes as linear functions of a row, ``(3 m, d)`` and ``(3 m,)``; ``order`` picks of three."""
        slopes = np.zeros((len(places), CODES, self.cells.width))
        for slope, place in zip(slopes, places, strict=True):
            slope[:, self.cells.blocks[place]] = self.columns[place].slopes
        shift = np.array([self.columns[place].shift for place in places]).reshape(-1, CODES)
        return slopes[:, order].reshape(-1, self.cells.width), shift[:, order].ravel()


def _total(sums: NoisyClassSums) -> float:
    return max(float(denoise.counts(sums.N, sums.sigma["N"]).sum()), 1.0)


class PairWalk(NamedTuple):
    """Chosen pairs, ``(m, 2)``, and their sums in each session."""

    pairs: NDArray[np.intp]
    sums: tuple[estimates.PairSums, ...]


@dataclass(frozen=True, eq=False)
class PairTables:
    """Weights of chosen pairs' codes.

    Attributes:
        groups: of all columns.
        walk: the chosen pairs and their sums.
        shape: sizes of their codes.
    """

    groups: Groups
    walk: PairWalk
    shape: estimates.PairShape

    @cached_property
    def weights(self) -> Array:
        """Weights of each pair's codes, ``(2, 9 m)``."""
        return estimates.walked(self.walk.sums, self.shape)[-1].weights

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Names of the pairs' columns."""
        columns = [column.name for column in self.groups.cells.columns]
        return tuple((columns[one], columns[other]) for one, other in self.walk.pairs)

    @property
    def maps(self) -> tuple[Array, Array, Array, Array]:
        """The codes of the pairs' first and second columns as linear functions of a row: ``(d, 9 m)``, ``(9 m,)``."""
        first, second = np.divmod(np.arange(ENTRIES), CODES)
        left, left_shift = self.groups.code_maps(self.walk.pairs[:, 0], first)
        right, right_shift = self.groups.code_maps(self.walk.pairs[:, 1], second)
        return left.T, left_shift, right.T, right_shift


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
        first: Any = self.first.transform[0]
        cells: Cells = first
        return cells

    @cached_property
    def searching(self) -> PairCodes:
        """The module of the session for all pairs."""
        J = len(self.cells.columns)
        return PairCodes(J, math.comb(J, 2))

    @cached_property
    def joint(self) -> PairCodes:
        """The module of later rounds."""
        return PairCodes(len(self.cells.columns), estimates.MOST_PAIRS)

    def schema_of(self, module: PairCodes) -> GradientSchema:
        """Return a round's schema with a module."""
        return replace(self.schema, module=module.word)

    def rounds_behind(self, releases: Sequence[Release]) -> list[RoundSums]:
        """Return the sums of every round that moved the linear softmax, as those of a linear round."""
        walk, rounds = self._walk(releases), []
        for release in releases[1:]:
            if (module := codes_in(release.plan.schema)) is None:
                rounds.append(RoundSums.of(release))
            elif not module.searches and walk is not None:
                alpha, _ = self._scales(len(walk.pairs))
                half = release.moments.g[0][: self.first.features + 1] / (math.sqrt(2) * alpha)
                sigma = float(release.sigma["g"]) / alpha
                rounds.append(RoundSums(np.stack([-half, half]), float(release.moments.k), sigma))
        return rounds

    def tables(self, releases: Sequence[Release]) -> PairTables | None:
        """Return the chosen pairs' tables, if any."""
        walk, groups = self._walk(releases), self._groups(releases[0])
        if walk is None:
            return None
        crowd = estimates.crowds(groups.alignment(self.sums(releases[0])), walk.pairs)
        return PairTables(groups, walk, estimates.PairShape(groups.sizes(walk.pairs), crowd, self.constants.ridge))

    def values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the values of the next round of the softmax, and of the chosen pairs if any."""
        tables = self.tables(releases)
        if tables is None:
            return super().values(releases)
        scales = self._scales(len(tables.walk.pairs))
        return self._published(self.joint, releases, scales, tables.walk.pairs, tables.weights)

    def search_values(self, releases: Sequence[Release]) -> dict[str, Values]:
        """Return the values of the session for all pairs."""
        every = self._groups(releases[0]).pairs
        return self._published(self.searching, releases, (0.0, len(every) ** -0.5), every, np.zeros((2, 0)))

    def _published(
        self,
        module: PairCodes,
        releases: Sequence[Release],
        scales: tuple[float, float],
        pairs: NDArray[np.intp],
        weights: Array,
    ) -> dict[str, Values]:
        (whitening, states), groups = self.states(releases), self._groups(releases[0])
        inverse = (whitening.vectors / whitening.scale) @ whitening.vectors.T
        scores = np.hstack([whitening.published(states[-1].weights), weights])
        codes = np.array([column.codes for column in groups.columns])
        w = module.published_of(scales, scores[1] - scores[0], pairs, codes, groups.functionals(inverse))
        return {"M": Values.rounded(whitening.matrix), "w": Values.rounded(w)}

    def _scales(self, pairs: int) -> tuple[float, float]:
        """Return alpha and beta: a pair counts as one more column."""
        J = len(self.cells.columns)
        return math.sqrt(J / (J + pairs)), math.sqrt(1 / (J + pairs))

    def _groups(self, first: Release) -> Groups:
        sums = self.sums(first)
        return Groups.of(self.cells, sums.A.sum(axis=0) / _total(sums))

    def _walk(self, releases: Sequence[Release]) -> PairWalk | None:
        """Return the chosen pairs and their sums so far; None before the session for all pairs, or if none passed."""
        sums, groups, walk = self.sums(releases[0]), self._groups(releases[0]), None
        for release in releases[1:]:
            if (module := codes_in(release.plan.schema)) is None:
                continue
            scale = softmax.hessian_scale(self.constants, sums, release.moments.k)
            codes, sigma = release.moments.g[0][self.first.features + 1 :], float(release.sigma["g"])
            if module.searches:
                beta = len(groups.pairs) ** -0.5
                found = estimates.PairSums.of(codes, sigma, beta, sums.records, scale)
                places = estimates.passing(found, groups.sizes(groups.pairs))
                walk = PairWalk(groups.pairs[places], (found.at(places),)) if len(places) else None
            elif walk is not None:
                _, beta = self._scales(len(walk.pairs))
                own = codes[: ENTRIES * len(walk.pairs)]
                later = estimates.PairSums.of(own, sigma, beta, sums.records, scale)
                walk = PairWalk(walk.pairs, (*walk.sums, later))
        return walk


def paired_of(recipe: object, releases: Sequence[Release]) -> PairTables | None:
    """Return the tables of a recipe with pairs, if any were chosen."""
    return recipe.tables(releases) if isinstance(recipe, PairRounds) else None
