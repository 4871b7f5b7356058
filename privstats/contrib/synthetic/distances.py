"""Estimate how far synthetic rows are from exact tables, of which only noisy ones are released.

Noise in a released table moves the rows, too, because they are fitted to it. How much follows from fits to counts with
further noise (Stein 1981; Ramani, Blu and Unser, Monte-Carlo SURE, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from privstats.contrib.synthetic.junction_tree import Array

_TAIL, _LEVEL = 0.0125, 2.241402727604947
"""Each end of an interval is the better of two bounds, of which each misses 1.25 %; the normal quantile of that."""
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class Distance:
    """Distance of the synthetic rows from the records in one released table.

    Attributes:
        columns: one or two names.
        session: from 0.
        value: total variation distance between rows and released table, 0 to 1; it holds the table's noise.
        exact: estimate of the distance from the exact table: what noise adds on average is subtracted.
        low, high: 95 % interval for the distance from the exact table, for noise alone.
        cells: names of cells, per column.
        released: released shares, in the table's shape; some may be negative.
        rows: the rows' shares.
        noise: noise standard deviation of a released share.
        merged: columns whose declared cells this table merges, each with its number of merged and of declared cells.
            ``exact``, ``low`` and ``high`` are for the merged cells.
        merging: what merging can add to the distance in declared cells, at most, by the rows' own shares; 1 where
            nothing is known.
    """

    columns: tuple[str, ...]
    session: int
    value: float
    exact: float
    low: float
    high: float
    cells: tuple[tuple[str, ...], ...]
    released: Array
    rows: Array
    noise: float
    merged: tuple[tuple[str, int, int], ...] = ()
    merging: float = 0.0

    @property
    def merged_text(self) -> str:
        """In which merged cells the distance is, and what merging can add; or empty."""
        names = "; ".join(f"{name} in {few} cells merged from {many}" for name, few, many in self.merged)
        if not names:
            return ""
        return f"{names}: in declared cells " + (
            f"up to {self.merging:.2f} more" if self.merging < 1 else "it may be larger"
        )

    @property
    def exact_text(self) -> str:
        """The estimate with its interval."""
        return f"{self.exact:.3f} ({self.low:.3f} to {self.high:.3f})"


class Estimate(NamedTuple):
    """Estimated distance from an exact table, with a 95 % interval."""

    exact: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Moved:
    """A fit to counts with further noise.

    Attributes:
        signs: of the further noise of each count, 1 or -1.
        shift: by how much a standard deviation of it moves the expected shares.
    """

    signs: Array
    shift: Array


def estimate(
    shares: Array, counts: Array, sigma: float, records: float, moved: Sequence[Moved], empty: NDArray[np.bool_]
) -> Estimate:
    """Return the total variation distance of shares from exact counts, of which noisy ones are released.

    The squared distance from the noisy shares, less the noise's variance, plus twice the covariance of the noise with
    the shares, has the squared distance from the exact shares as its mean. Let Q be an end of its interval. Then the
    distance is at most ``sqrt(n Q) / 2`` (Cauchy and Schwarz) and at least ``sqrt(Q / 2)``, since no cell differs by
    more than the distance. The triangle inequality with the sum of ``|noise|`` bounds it, too.

    Args:
        shares: of the rows.
        counts: noisy, with standard deviation ``sigma``.
        records: estimated number.
        moved: fits to counts with further noise.
        empty: cells at the ends of a number, outside of all rows. They count as one cell.

    Example:
        >>> from privstats.contrib.synthetic.distances import Moved, estimate
        >>> exact, noise = np.full(50, 20.0), np.random.default_rng(0).normal(0, 8, 50)
        >>> still = [Moved(np.ones(50), np.zeros(50))]  # rows that no count moves
        >>> found = estimate(np.full(50, 0.02), exact + noise, 8.0, 1000.0, still, np.zeros(50, bool))
        >>> found.exact < 0.08 < float(np.abs(noise).sum()) / 2000, found.low, found.high < 0.2
        (True, 0.0, True)
    """
    noise, seen, n = sigma / records, ~empty, counts.size
    released = (counts + shares * (records - counts.sum())) / records  # of the rows' total, whatever its noise is
    apart, factors = shares - released, np.maximum(1 - 2 * shares + n * np.square(shares), 0.0)[seen]
    plain, many = float(np.abs(apart).sum()) / 2, float(seen.sum())
    covariance = fmean(float(((each.signs - shares * each.signs.sum()) * each.shift)[seen].sum()) for each in moved)
    square = float(np.square(apart[seen]).sum() - noise**2 * factors.sum()) + 2 * noise * covariance
    lowest, highest = _squares(square, noise, many)
    beyond = max(float(released[empty].sum()) + _LEVEL * noise * math.sqrt(empty.sum()), 0.0)
    loud = noise * (
        MEAN_ABSOLUTE * (float(np.sqrt(factors).sum()) + float(empty.sum()))
        + _LEVEL * math.sqrt(n * (1 - MEAN_ABSOLUTE**2))
    )
    low = max(math.sqrt(lowest / 2), plain - loud / 2, 0.0)
    high = max(min((math.sqrt(many * highest) + beyond) / 2, plain + loud / 2, 1.0), low)
    of_noise = fmean(float(np.abs(each.shift).sum()) / 2 for each in moved)
    misfit = max(square - fmean(float(np.square(each.shift[seen]).sum()) for each in moved), 0.0)
    of_misfit = MEAN_ABSOLUTE / 2 * float(np.sqrt(shares[seen]).sum()) * math.sqrt(misfit)
    return Estimate(min(max(math.hypot(of_noise, of_misfit), low), high), low, high)


def _squares(square: float, noise: float, cells: float) -> tuple[float, float]:
    # The squared norm of noise in n cells is chi-squared. Its product with deviations of squared norm u is normal, with
    # a standard deviation of noise sqrt(u), and enters twice.
    least, most = (noise**2 * (float(chdtri(cells, tail)) - cells) for tail in (1 - _TAIL, _TAIL))
    room = _LEVEL * noise
    low = math.sqrt(max(square - most + room**2, 0.0)) - room
    high = math.sqrt(max(square - least + room**2, 0.0)) + room
    return max(low, 0.0) ** 2, high**2
