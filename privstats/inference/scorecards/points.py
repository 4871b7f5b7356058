"""The numbers of a scorecard: points of every cell, how far their bands reach, and the records that a cell holds.

``table`` shows them; ``linear_scores`` draws the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.cell_intervals import Intervals, has_ramp
from privstats.inference.scorecards.linear_scores import LinearScores, class_sums, under_other_noise
from privstats.progress import progress_bar
from privstats.release import Release
from privstats.transforms import Cells, Centre, UnitNorm

__all__ = ["Rows", "cell_points", "half_widths", "noisy", "shares"]

_SURE = 3.0
"""Standard deviations of its noise that an interval's share must exceed to hold records."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The public map of a head: rows of cells as they are, or less a mean m and scaled to norm 1.

    Rows of cells have norm 1, so that a row less its mean has the mean square 1 - |m|^2: the one length for all.
    """

    cells: Cells
    shift: Array
    length: float

    @classmethod
    def of(cls, head: Any) -> Rows:
        """Of a fitted head.

        Raises:
            ReleaseError: rows that are not those of declared columns.
        """
        match head.preprocessing_.transform:
            case (Cells() as cells,):
                return cls(cells, np.zeros(cells.width), 1.0)
            case (Cells() as cells, Centre(centre), UnitNorm()):
                shift = np.array(centre)
                return cls(cells, shift, math.sqrt(max(1 - float(shift @ shift), 0.01)))
        raise ReleaseError(
            "a scorecard reads a head behind declared columns: a transform of Cells, or a mean after them"
        )

    def before(self, scores: LinearScores) -> LinearScores:
        """The scores of rows of cells."""
        coef = scores.coef / self.length
        return LinearScores(coef, scores.intercept - coef @ self.shift)

    def mean(self, release: Release, classes: int) -> Array:
        """The mean row of cells; the shift where noise leaves no records."""
        kept = [place for place in range(classes) if place not in release.suppressed]
        n = float(release.moments.N[kept].sum())
        return self.shift + (self.length * release.moments.A[kept].sum(axis=0) / n if n >= 1 else 0.0)


def noisy(releases: Sequence[Release]) -> bool:
    """Whether any of the releases carries noise."""
    return any(level > 0 for release in releases for level in release.sigma.values())


def shares(releases: Sequence[Release], rows: Rows, mean: Array) -> list[tuple[Intervals, Array, NDArray[np.bool_]]]:
    """Of each column its intervals, the shares of the records in them, and which of them noise cannot have filled.

    The mean of a block is the mean of its cells by their shares, which add up to 1: as many equations as intervals, for
    a ramp, which tells steps of one interval apart, is left out of them.
    """
    first, classes = class_sums(releases)
    total = max(float(first.moments.N.sum()), 1.0)
    noise = rows.length * float(first.sigma["A"]) * math.sqrt(classes) / total
    found = []
    cells = rows.cells
    for column, marks, block, table in zip(cells.columns, cells.marks, cells.blocks, cells.tables, strict=True):
        intervals = Intervals.of(column, marks)
        firsts = np.unique(intervals.of_steps, return_index=True)[1]
        read = [j for j in range(table.shape[1]) if not (has_ramp(column, cells) and j == table.shape[1] - 2)]
        system = np.vstack([table[firsts][:, read].T * 2.0**-cells.bits, np.ones(len(firsts))])
        solve = np.linalg.pinv(system)
        part = solve @ np.append(mean[block][read], 1.0)
        sure = _SURE * noise * np.linalg.norm(solve[:, :-1], axis=1)
        found.append((intervals, part, part > np.maximum(sure, 0.5 / total)))
    return found


def cell_points(scores: LinearScores, cells: Cells, mean: Array) -> tuple[Array, list[Array]]:
    """The base, one per outcome, and of each column ``(outcomes, cells)``."""
    coef, intercept = scores.coef, scores.intercept
    if len(coef) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    else:
        coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
    tables = [table * 2.0**-cells.bits for table in cells.tables]
    points = [coef[:, block] @ (table - mean[block]).T for block, table in zip(cells.blocks, tables, strict=True)]
    return intercept + coef @ mean, points


def half_widths(
    head: Any, releases: Sequence[Release], rows: Rows, mean: Array, points: Sequence[Array], draws: int, reach: float
) -> list[Array]:
    """Of each column how far its bands reach, ``(outcomes, cells)``: ``reach`` deviations of its points over other
    draws of the noise, and the bias of the column beyond them.

    A head that knows its noise shrinks and turns its points. How far, the draws tell, whose truth are the points: the
    root of the mean square, over a column's cells, of the mean of the draws less the points. A band that is as much
    wider holds what would have come without noise as often as one without bias does (Armstrong and Kolesar 2018).
    """
    drawn: list[list[Array]] = []
    with progress_bar("bands", draws) as advance:
        for scores in under_other_noise(head, releases, draws):
            drawn.append(cell_points(rows.before(scores), rows.cells, mean)[1])
            advance(1)
    found = []
    for there, each in zip(points, zip(*drawn, strict=True), strict=True):
        cards = np.stack(each)
        found.append(reach * cards.std(axis=0, ddof=1) + _bias(cards, there))
    return found


def _bias(cards: Array, points: Array) -> Array:
    """How far a column's points lie from the mean of its draws, one number per outcome: ``(outcomes, 1)``."""
    return np.asarray(np.sqrt(np.square(cards.mean(axis=0) - points).mean(axis=1, keepdims=True)))
