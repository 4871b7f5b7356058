"""A report of the clip on a client's own records.

It is computed from private data and never sent: only the client that holds the records may read it. Reports add up like
the moments they belong to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["NORM_EDGES", "PRIVATE", "ClipReport", "no_records", "norm_histogram"]

_NEARLY_ALL = 0.9
"""Share of the rows that a clip may shorten without a remark."""

_MANY = 0.1
"""The same of targets: a slope is pulled to 0 by about the share of them that a bound shortens."""

_BINS_PER_OCTAVE = 16
_OCTAVES = 12  # norms from 2**-12 to 2**12 clip norms are told apart; beyond lies one open bin on each side
NORM_EDGES = 2.0 ** (np.arange(-_OCTAVES * _BINS_PER_OCTAVE, _OCTAVES * _BINS_PER_OCTAVE + 1) / _BINS_PER_OCTAVE)
"""Norms over clip norm where the bins of ``ClipReport.norm_counts`` end."""


@dataclass(frozen=True)
class ClipReport:
    """Number of clipped records, their norms, and the fineness of the grid. Stays with the client.

    Attributes:
        records: records measured.
        clipped: of these, how many had a feature vector longer than the clip norm.
        targets_clipped: of these, how many had a target longer than the target bound (0 in class schemas).
        norm_counts: records per bin of the norm over the clip norm, 16 bins per octave.
        energy: sum of the squared norms of the clipped records, in squared grid steps (exact).
        features: d.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> report = ps.measure(schema, [[0.6, 0.0], [0.0, 3.0]], [0, 1]).clip_report
        >>> report.records, report.clipped, report.fraction_clipped
        (2, 1, 0.5)
    """

    records: int
    clipped: int
    targets_clipped: int
    norm_counts: tuple[int, ...] = field(repr=False)
    energy: int
    features: int

    def __add__(self, other: ClipReport) -> ClipReport:
        """The report of both sets of records together."""
        if not isinstance(other, ClipReport):
            return NotImplemented
        return ClipReport(
            self.records + other.records,
            self.clipped + other.clipped,
            self.targets_clipped + other.targets_clipped,
            tuple(a + b for a, b in zip(self.norm_counts, other.norm_counts, strict=True)),
            self.energy + other.energy,
            self.features,
        )

    @property
    def fraction_clipped(self) -> float:
        """Share of records whose features were shortened, 0 to 1 (0 of no records)."""
        return self.clipped / self.records if self.records else 0.0

    @property
    def fraction_targets_clipped(self) -> float:
        """Share of records whose target was shortened, 0 to 1."""
        return self.targets_clipped / self.records if self.records else 0.0

    def norm_quantiles(self, at: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)) -> tuple[float, ...]:
        """Quantiles of the norms before the clip, in clip norms, to 5 per cent (upper edges of the bins).

        NaN of no records; infinity for norms beyond 2**12 clip norms.
        """
        if not self.records:
            return tuple(math.nan for _ in at)
        upper = np.append(NORM_EDGES, np.inf)
        reached = np.cumsum(self.norm_counts)
        return tuple(float(upper[np.searchsorted(reached, max(1.0, q * self.records))]) for q in at)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences for the holder of the records: nearly all rows were shortened, or more than a tenth of targets.

        They hold exact shares, so they belong in no release, log or message.
        """
        found = []
        if self.fraction_clipped > _NEARLY_ALL:
            found.append(
                f"clip_norm shortens {self.fraction_clipped:.0%} of the rows of X, so little but their directions is "
                "left: scale the columns by public ranges with transforms.Centre and Scale, or choose a larger "
                f"clip_norm on public data with `privstats plan suggest`; {PRIVATE}"
            )
        if self.fraction_targets_clipped > _MANY:
            found.append(
                f"target_bound shortens {self.fraction_targets_clipped:.0%} of the targets, which pulls every slope to "
                f"0: centre the targets by public knowledge, or choose a larger target_bound; {PRIVATE}"
            )
        return tuple(found)

    @property
    def resolution(self) -> float:
        """Grid steps in the root mean square entry of the clipped features: below about 2 the grid loses accuracy."""
        return math.sqrt(self.energy / (self.records * self.features)) if self.records else 0.0


PRIVATE = "this share is exact and in no release: keep it with the records"
"""The end of a remark."""


def no_records(features: int) -> ClipReport:
    """The report of no records, to which others are added."""
    return ClipReport(0, 0, 0, (0,) * (NORM_EDGES.size + 1), 0, features)


def norm_histogram(norms: NDArray[np.float64], radius: int) -> NDArray[np.int64]:
    """Counts per bin of norms given in grid steps, for :attr:`ClipReport.norm_counts`.

    A bin is found from a number's leading bits: exponent and six bits of the mantissa leave one edge at most open.
    """
    scaled = norms / radius
    cell = _cells(scaled)
    cell -= _FIRST_CELL
    found = _BELOW.take(cell, mode="clip")
    found += scaled > _WITHIN.take(cell, mode="clip")
    return np.bincount(found, minlength=NORM_EDGES.size + 1)


def _cells(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Exponent and the first six bits of the mantissa of numbers of at least 0, as one whole number."""
    return numbers.view(np.int64) >> np.int64(46)


_FIRST_CELL = int(_cells(NORM_EDGES[:1])[0]) - 1
_STARTS = (np.arange(_FIRST_CELL, int(_cells(NORM_EDGES[-1:])[0]) + 2) << 46).view(np.float64)
_BELOW = np.searchsorted(NORM_EDGES, _STARTS, side="left")
"""Edges below each cell's start; the first and the last cell stand for all before and behind the edges."""
_WITHIN = np.where(
    _cells(np.append(NORM_EDGES, 0.0)[_BELOW]) == _cells(_STARTS), np.append(NORM_EDGES, np.inf)[_BELOW], np.inf
)
"""The edge in each cell; infinite where there is none."""
