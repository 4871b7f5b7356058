"""Tabulate the points of a model's pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privstats.estimates import pairs as estimates
from privstats.estimates.denoise import Array
from privstats.inference.cell_design import Intervals
from privstats.intake.declared.columns import Dates, Numeric
from privstats.randomness import Generator, uniform
from privstats.release import Release

if TYPE_CHECKING:
    from privstats.course.pair_rounds import Groups, PairTables


@dataclass(frozen=True, eq=False)
class PairPoints:
    """Points of two columns' groups of cells, which add to the columns' own; a gap in either has none.

    Attributes:
        names: of the two columns.
        levels: names of their groups.
        groups: each cell's group, one past the last for a gap, per column.
        points: log odds, ``(groups of the first, groups of the second)``.
        low, high: bands for noise.
    """

    names: tuple[str, str]
    levels: tuple[tuple[str, ...], tuple[str, ...]]
    groups: tuple[NDArray[np.intp], NDArray[np.intp]]
    points: Array
    low: Array
    high: Array

    @property
    def name(self) -> str:
        """The pair's name."""
        return " and ".join(self.names)

    def of_cells(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
        """Return the points of records with these cells, ``(n,)``."""
        padded = np.pad(self.points, (0, 5))
        return np.asarray(padded[self.groups[0][first], self.groups[1][second]])

    def level(self, first: int, second: int) -> str | None:
        """Return the name of two cells' groups; None with a gap."""
        places = (int(self.groups[0][first]), int(self.groups[1][second]))
        known = all(place < len(names) for place, names in zip(places, self.levels, strict=True))
        return ", ".join(names[place] for place, names in zip(places, self.levels, strict=True)) if known else None


def pair_points(head: Any, releases: Sequence[Release], draws: int, alpha: float, rng: Generator) -> list[PairPoints]:
    """Return the tables of a head's pairs, with bands for the releases' noise."""
    from privstats.course.pair_rounds import paired_of
    from privstats.course.read_recipe import recipe_of

    tables = paired_of(recipe_of(releases), releases) if getattr(head, "pairs_", ()) else None
    if tables is None:
        return []
    heat, shape = head.link_[0] * head.temperature_, tables.shape
    samples = [
        estimates.walked(estimates.under_other_noise(tables.walk.sums, shape, _fresh(shape.sizes, rng)), shape)[
            -1
        ].weights
        for _ in range(draws)
    ]
    points = [_points(tables, weights / heat) for weights in (tables.weights, *samples)]
    results = []
    for place, (first, second) in enumerate(tables.walk.pairs):
        middle, *others = [each[place] for each in points]
        spread = np.std(others, axis=0, ddof=1) * float(-ndtri(alpha / 2))
        bias = np.sqrt(np.square(np.mean(others, axis=0) - middle).mean())
        levels = (_levels(tables.groups, int(first)), _levels(tables.groups, int(second)))
        shown = tuple(slice(len(each)) for each in levels)
        groups = tuple(tables.groups.columns[int(column)].groups for column in (first, second))
        wide, middle = (spread + bias)[shown], middle[shown]
        results.append(
            PairPoints(tables.names[place], levels, _capped(groups, levels), middle, middle - wide, middle + wide)
        )
    return results


def _fresh(sizes: Array, rng: Generator) -> Any:
    return lambda: np.asarray(ndtri(uniform(sizes.size, rng))).reshape(sizes.shape)


def _points(tables: PairTables, weights: Array) -> list[Array]:
    own = (weights[1] - weights[0]).reshape(-1, *tables.shape.sizes.shape[1:])
    codes = [column.codes for column in tables.groups.columns]
    return [codes[one] @ each @ codes[other].T for (one, other), each in zip(tables.walk.pairs, own, strict=True)]


def _capped(groups: Any, levels: Any) -> Any:
    return tuple(np.minimum(each, len(names)) for each, names in zip(groups, levels, strict=True))


def _levels(groups: Groups, column: int) -> tuple[str, ...]:
    """Return names of a column's groups: the span of its cells, or their list."""
    declared, cells = groups.cells.columns[column], groups.columns[column].groups[:-1]
    intervals = Intervals.of(declared, groups.cells.marks[column])
    names = []
    for group in range(int(cells.max()) + 1):
        inside = [intervals.names[cell] for cell in np.unique(intervals.of_codes[:-1][cells == group])]
        names.append(_span(inside) if isinstance(declared, Numeric | Dates) else ", ".join(inside))
    return tuple(names)


def _span(names: Sequence[str]) -> str:
    """Join intervals that follow one another: from the start of the first to the end of the last."""
    first, last = names[0], names[-1]
    if len(names) == 1:
        return first
    end = last.partition(" to ")[2]
    if first.startswith("< "):
        return end or first
    start = first.partition(" to ")[0]
    return f"{start} to {end}" if end else f">= {start}"
