"""The cells of declared columns as people read them: the intervals between cuts, by name."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.spectrum import Array
from privstats.transforms import Cells
from privstats.transforms.columns import Categories, Column, Dates, Numeric, Truth

__all__ = ["Intervals", "has_ramp"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """The cells of one column as people read them: with a ramp, several steps make the interval between two cuts.

    Attributes:
        names: of the intervals, the last one that of a gap.
        of_steps: the interval of each cell of the column's table, ``(cells,)``.
    """

    names: tuple[str, ...]
    of_steps: NDArray[np.intp]

    @classmethod
    def of(cls, column: Column, marks: Array) -> Intervals:
        """Of a column whose cells begin at these codes, but for the first."""
        cuts = np.array(column.edges) if isinstance(column, Numeric | Dates) and column.edges else marks
        places = np.searchsorted(cuts, marks, side="right")
        return cls(_names(column, cuts), np.concatenate([[0], places, [len(cuts) + 1]]))


def has_ramp(column: Column, cells: Cells) -> bool:
    """Whether steps of a ramp tell the values of one interval apart; theirs is the last entry but one."""
    return cells.ramp and isinstance(column, Numeric | Dates)


def _names(column: Column, cuts: Array) -> tuple[str, ...]:
    """Names of a column's intervals, the last one that of a gap."""
    match column:
        case Numeric() | Dates():
            said = [column.said(float(cut)) for cut in cuts] if isinstance(column, Dates) else _told_apart(cuts)
            inner = [f"{low} to < {high}" for low, high in pairwise(said)]
            return (f"< {said[0]}", *inner, f">= {said[-1]}", "missing")
        case Truth():
            return ("false", "true", "missing")
        case Categories(values=()):
            return ("given", "missing")
        case Categories():
            return (*map(str, column.values), *(() if column.is_scale else ("other",)), "missing")


def _told_apart(cuts: Array) -> list[str]:
    """Cut points in four digits, or in as many as keep a tenth of the distance to the nearest neighbour."""
    gaps = np.diff(cuts, prepend=-np.inf, append=np.inf)
    near = np.minimum(gaps[:-1], gaps[1:]) / 10
    return [_rounded(float(cut), float(room)) for cut, room in zip(cuts, near, strict=True)]


def _rounded(cut: float, room: float) -> str:
    said = (f"{cut:.{digits}g}" for digits in range(4, 18))
    return next(text for text in said if abs(float(text) - cut) <= room)
