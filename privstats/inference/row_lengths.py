"""Divide a scorecard's points by a record's length, as heads behind a whitening or a mean do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array
from privstats.inference.cell_design import Intervals
from privstats.randomness import Generator, uniform
from privstats.transforms import Cells

_SAMPLED = 1_024
_MIDDLE = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Lengths:
    """The factor on a record's points, ``typical / |M (x - m)|`` for its row x of cells; 0 for a row of length 0.

    Attributes:
        shift: m, ``(d,)``.
        gram: ``M M'``, ``(d, d)``.
        typical: root mean square length of the records; points hold for it.

    Example:
        >>> from privstats.inference.row_lengths import Lengths
        >>> Lengths(np.zeros(2), np.eye(2), 1.0).factors(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]])).tolist()
        [1.0, 0.5, 0.0]
    """

    shift: Array
    gram: Array
    typical: float

    def factors(self, rows: Array) -> Array:
        """Return each row's factor, ``(n,)``."""
        centred = rows - self.shift
        return self._of_squares(np.einsum("ij,ij->i", centred @ self.gram, centred))

    def _of_squares(self, squares: Array) -> Array:
        positive = squares > 0
        return np.where(positive, self.typical / np.sqrt(np.where(positive, squares, 1.0)), 0.0)


@dataclass(frozen=True, eq=False)
class Discrepancies:
    """What the sum of points alone misses in log odds, root mean square over sampled records.

    Records are sampled from each column's released shares, columns independent of each other.

    Attributes:
        cells: for records of each cell, per column ``(outcomes, cells)``.
        total: for all records, ``(outcomes,)``.
        factors: 5 % and 95 % quantile of the factor on points.
    """

    cells: tuple[Array, ...]
    total: Array
    factors: tuple[float, float]


def sampled_discrepancies(
    lengths: Lengths,
    cells: Cells,
    intervals: Sequence[Intervals],
    shares: Sequence[Array],
    coef: Array,
    constant: Array,
    rng: Generator,
) -> Discrepancies:
    """Return how far scores ``constant + k (coef x)`` are from those with k = 1.

    Args:
        shares: of the records, per column and cell; noise may make them negative.
        coef: points' weights, ``(outcomes, d)``, at the typical length.
        constant: part of ``coef x`` that is no point, ``(outcomes,)``.
    """
    tables = [table * 2.0**-cells.bits for table in cells.tables]
    parts = [_of_codes(each, share) for each, share in zip(intervals, shares, strict=True)]
    rows = np.empty((_SAMPLED, cells.width))
    for block, table, part in zip(cells.blocks, tables, parts, strict=True):
        places = np.searchsorted(np.cumsum(part)[:-1], uniform(_SAMPLED, rng), side="right")
        rows[:, block] = table[places]
    centred = rows - lengths.shift
    products, gram = centred @ lengths.gram, lengths.gram
    squares, sums = np.einsum("ij,ij->i", products, centred), rows @ coef.T + constant

    def of_code(block: slice, entries: Array) -> Array:
        # All sampled records get this cell: their entries in the block move to those of the code.
        moved = entries - rows[:, block]
        changed = squares + 2 * np.einsum("ij,ij->i", products[:, block], moved)
        changed = changed + np.einsum("ij,ij->i", moved @ gram[block, block], moved)
        return _mean_square(lengths._of_squares(changed), sums + moved @ coef[:, block].T)

    by_cell = []
    for block, table, each in zip(cells.blocks, tables, intervals, strict=True):
        found = np.stack([of_code(block, entries) for entries in table])
        count = int(each.of_codes.max()) + 1
        by_cell.append(np.stack([np.sqrt(found[each.of_codes == cell].mean(axis=0)) for cell in range(count)], axis=1))
    factors = lengths.factors(rows)
    low, high = np.quantile(factors, _MIDDLE)
    return Discrepancies(tuple(by_cell), np.sqrt(_mean_square(factors, sums)), (float(low), float(high)))


def _mean_square(factors: Array, sums: Array) -> Array:
    return np.asarray(np.square((factors - 1)[:, None] * sums).mean(axis=0))


def _of_codes(intervals: Intervals, shares: Array) -> Array:
    sizes = np.bincount(intervals.of_codes, minlength=len(shares))
    part = (np.maximum(shares, 0.0) / np.maximum(sizes, 1))[intervals.of_codes]
    total = float(part.sum())
    return part / total if total > 0 and math.isfinite(total) else np.full(len(part), 1 / len(part))
