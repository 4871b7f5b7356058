"""Report the clip on a client's own records, and warn the data holder."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ClippedWarning, UnreadableRecordsWarning
from privstats.moments.base import Moments

if TYPE_CHECKING:
    from privstats.records.readable import LeftOut

_NEARLY_ALL = 0.9
"""Share of the rows that a clip may shorten without a remark."""

_MANY = 0.1
"""Share of the targets that a bound may shorten without a remark."""

_FEW_COUNTS = 0.0005
"""Share of the counts of a regression that a bound may cut without a remark: intervals do not allow for any cut."""

_FAR, _FEW_ROWS, _FEW_OF_ALL, _MOST_OF_ALL = 2.0, 10, 0.001, 0.5
"""Rows of one length look like a gap code from 2 clip norms on: at least 10, from .1 % to half of all rows."""

_BELOW_OPEN = 4  # octaves below the last bin

_BINS_PER_OCTAVE = 16

# Bins cover norms from 2**-12 to 2**12 clip norms; one open bin on each side has all others.
_OCTAVES = 12

NORM_EDGES = 2.0 ** (np.arange(-_OCTAVES * _BINS_PER_OCTAVE, _OCTAVES * _BINS_PER_OCTAVE + 1) / _BINS_PER_OCTAVE)
"""Ends of the bins of ``ClipReport.norm_counts``, in clip norms."""

NORM_BINS = NORM_EDGES.size + 1


@dataclass(frozen=True)
class ClipReport:
    """Effect of the clip on a client's records: number clipped, histogram of norms, grid resolution. Never sent.

    Attributes:
        clipped: records with features longer than the clip norm.
        targets_clipped: records with a target longer than its bound.
        norm_counts: records per bin of norm over clip norm, 16 bins per octave.
        energy: sum of all records' squared norms after the clip, in squared grid steps (exact).
        features: number of features.
        counts: whether targets are counts, which the bound cuts.

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
    counts: bool = False

    def __add__(self, other: ClipReport) -> ClipReport:
        if not isinstance(other, ClipReport):
            return NotImplemented
        return ClipReport(
            self.records + other.records,
            self.clipped + other.clipped,
            self.targets_clipped + other.targets_clipped,
            tuple(a + b for a, b in zip(self.norm_counts, other.norm_counts, strict=True)),
            self.energy + other.energy,
            self.features,
            self.counts,
        )

    @property
    def fraction_clipped(self) -> float:
        """Share of records with shortened features, 0 to 1."""
        return self.clipped / self.records if self.records else 0.0

    @property
    def fraction_targets_clipped(self) -> float:
        """Share of records with a shortened target, 0 to 1."""
        return self.targets_clipped / self.records if self.records else 0.0

    def norm_quantiles(self, at: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)) -> tuple[float, ...]:
        """Return quantiles of the norms before the clip, in clip norms, to 5 per cent.

        NaN without records; 2**-12 for smaller norms; infinity beyond 2**12 clip norms.
        """
        if not self.records:
            return tuple(math.nan for _ in at)
        upper = np.append(NORM_EDGES, np.inf)
        reached = np.cumsum(self.norm_counts)
        return tuple(float(upper[np.searchsorted(reached, max(1.0, q * self.records))]) for q in at)

    @property
    def far_and_alike(self) -> tuple[int, float]:
        """Number of rows of nearly one length far beyond the others', and that length in clip norms; 0, 0.0: none.

        A gap code such as 999 in a column of numbers decides the length of its row. These rows are in two adjacent
        bins, which hold more than the octave below them and more than the octave above. A smooth density has no such
        peak: where it falls, each of the 16 bins below holds more than either of the two, and where it rises, each
        above. The last bin is open, so it is compared with four octaves.
        """
        counts = np.array(self.norm_counts)
        first = int(np.searchsorted(NORM_EDGES, _FAR)) + 1  # of the bins beyond _FAR
        alike = counts[first:-1] + counts[first + 1 :]
        octaves = np.convolve(counts, np.ones(_BINS_PER_OCTAVE, np.int64))
        below, above = octaves[first - 1 : NORM_BINS - 2], np.append(octaves[first + 1 + _BINS_PER_OCTAVE :], 0)
        below[-1] = counts[-2 - _BELOW_OPEN * _BINS_PER_OCTAVE : -2].sum()
        least, most = max(_FEW_ROWS, _FEW_OF_ALL * self.records), _MOST_OF_ALL * self.records
        alike = np.where((alike > np.maximum(below, above)) & (alike >= least) & (alike <= most), alike, 0)
        place = int(alike.argmax())
        return (int(alike[place]), float(NORM_EDGES[first + place])) if alike[place] else (0, 0.0)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings for the data holder, on rows, targets and counts.

        - Nearly all rows are clipped, or many have one length far beyond the others.
        - Over a tenth of targets are clipped, or over .05 % of counts.

        They hold exact shares, so they belong in no release, log or message.
        """
        result = []
        if self.fraction_clipped > _NEARLY_ALL:
            result.append(
                f"clip_norm shortens {self.fraction_clipped:.0%} of the rows of X, so little but their directions "
                "remains: scale the columns by public ranges with transforms.Centre and Scale, or choose a larger "
                f"clip_norm on public data with `privstats plan suggest`; {PRIVATE}"
            )
        alike, length = self.far_and_alike
        if alike:
            result.append(
                f"{alike / self.records:.2%} of the rows are about {length:.2g} times as long as clip_norm, and hardly "
                "any row is nearly as long: a gap code such as 999 in a column of numbers looks so, and moves every "
                "slope. Empty such fields, so that they count as missing (`privstats look` names a file's column), or "
                f"declare a wider range if they are measurements; {PRIVATE}"
            )
        if self.counts and self.fraction_targets_clipped > _FEW_COUNTS:
            result.append(
                f"target_bound cuts {self.fraction_targets_clipped:.2%} of the counts, which pulls coefficients to 0, "
                "and their intervals do not allow for it: choose a larger target_bound by public knowledge; "
                f"{PRIVATE}"
            )
        elif self.fraction_targets_clipped > _MANY:
            result.append(
                f"target_bound shortens {self.fraction_targets_clipped:.0%} of the targets, which pulls every slope to "
                f"0: centre the targets by public knowledge, or choose a larger target_bound; {PRIVATE}"
            )
        return tuple(result)

    @property
    def resolution(self) -> float:
        """Grid steps in the clipped features' root mean square entry: below about 2 the grid loses accuracy."""
        return math.sqrt(self.energy / (self.records * self.features)) if self.records else 0.0


PRIVATE = "this share is exact, and no privacy protects it: treat it as you treat the records"
"""The end of a remark."""


class ClipTally:
    """Numbers of a :class:`ClipReport` that grow piece by piece, in constant memory.

    Args:
        grid_steps: clip norm in grid steps.
        counts: whether targets are counts.

    Example:
        >>> from privstats.moments.clip_report import ClipTally
        >>> tally = ClipTally(features=2, grid_steps=16)
        >>> tally.add(np.array([8.0, 40.0]), clipped=1, energy=320)
        >>> tally.report().records, tally.report().fraction_clipped
        (2, 0.5)
    """

    def __init__(self, features: int, grid_steps: int, *, counts: bool = False) -> None:
        self._features, self._grid_steps, self._of_counts = features, grid_steps, counts
        self._clipped = self._targets_clipped = self._energy = 0
        self._norm_counts = np.zeros(NORM_BINS, np.int64)

    def add(self, norms: NDArray[np.float64], *, clipped: int, energy: int, targets_clipped: int = 0) -> None:
        """Add records by their norms before the clip, in grid steps, ``(n,)``."""
        self.add_counted(norm_histogram(norms, self._grid_steps), energy)
        self._clipped += clipped
        self._targets_clipped += targets_clipped

    def add_counted(self, norm_counts: NDArray[np.int64], energy: int) -> None:
        """Add records without a clip, by their number in each bin of norms."""
        self._norm_counts += norm_counts
        self._energy += energy

    def report(self) -> ClipReport:
        """Return the report of all records so far."""
        counts = tuple(self._norm_counts.tolist())
        return ClipReport(
            sum(counts), self._clipped, self._targets_clipped, counts, self._energy, self._features, self._of_counts
        )


def norm_histogram(norms: NDArray[np.float64], radius: int) -> NDArray[np.int64]:
    """Count norms, given in grid steps, in each bin of :attr:`ClipReport.norm_counts`."""
    scaled = norms / radius
    bucket = _buckets(scaled)
    bucket -= _FIRST_BUCKET
    result = _BELOW.take(bucket, mode="clip")
    result += scaled > _WITHIN.take(bucket, mode="clip")
    return np.bincount(result, minlength=NORM_BINS)


def _buckets(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return buckets of positive numbers, from exponent and 6 bits of mantissa: a bucket has at most one edge."""
    return numbers.view(np.int64) >> np.int64(46)


_FIRST_BUCKET = int(_buckets(NORM_EDGES[:1])[0]) - 1

_STARTS = (np.arange(_FIRST_BUCKET, int(_buckets(NORM_EDGES[-1:])[0]) + 2) << 46).view(np.float64)

_BELOW = np.searchsorted(NORM_EDGES, _STARTS, side="left")
"""Number of edges below each bucket's start. The first and the last bucket hold all norms outside the edges."""

_WITHIN = np.where(
    _buckets(np.append(NORM_EDGES, 0.0)[_BELOW]) == _buckets(_STARTS), np.append(NORM_EDGES, np.inf)[_BELOW], np.inf
)
"""The edge in each bucket; infinite where there is none."""


def warn_of_excluded(moments: Moments, left_out: LeftOut, unnamed: int, *, stacklevel: int = 3) -> None:
    """Warn the data holder of unreadable records, and of ``unnamed`` records whose id names no person."""
    remarks = [left_out.remark(none_left=moments.records == 0)] if left_out.records else []
    if unnamed:
        remarks.append(
            f"{unnamed:,} of the records have no id of a person and are excluded from every sum. An id is missing; "
            "is neither a text nor an integer below 2**53 (put a letter before dates and large numbers); has over 200 "
            "characters, U+0000 inside or a non-ASCII blank at an end; is not in Unicode NFC; or "
            "lost a character in decoding (name the file's --encoding, in Python encoding=). Do not share this number"
        )
    for remark in remarks:
        warnings.warn(remark, UnreadableRecordsWarning, stacklevel=stacklevel)


def remarks_on(*moments: Moments) -> tuple[str, ...]:
    """Return the warnings for the data holder on clips and edges, over all moments but a ``PartySchema``'s.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> [remark.partition(" of ")[0] for remark in ps.moments.remarks_on(
        ...     ps.moments.exact_moments(schema, [[3.0, 4.0]], [0])
        ... )]
        ['clip_norm shortens 100%']
    """
    clipped = [each for each in moments if each.schema.predicts != "parties"]
    result: list[str] = []
    for kind in ("clip_report", "edge_report"):
        reports = [report for each in clipped if (report := getattr(each, kind, None)) is not None]
        result += sum(reports[1:], reports[0]).remarks if reports else ()
    return tuple(result)


def warn_if_clipped(*moments: Moments, stacklevel: int = 3) -> None:
    """Warn the data holder, once for all parts, of the remarks of :func:`remarks_on`.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> short, long = (ps.moments.exact_moments(schema, [[size, 0.0]], [0]) for size in (0.5, 5.0))
        >>> import warnings
        >>> with warnings.catch_warnings(action="error"):
        ...     ps.moments.warn_if_clipped(short, long)  # one row is short
        ...     print("silent")
        ...
        silent
    """
    for remark in remarks_on(*moments):
        warnings.warn(remark, ClippedWarning, stacklevel=stacklevel)


def warn_if_empty(*moments: Moments) -> None:
    """Warn if none of these moments holds a record.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> import warnings
        >>> one, none = ps.measure(schema, np.ones((1, 2)), [0]), ps.measure(schema, np.ones((0, 2)), [])
        >>> with warnings.catch_warnings(action="error"):
        ...     ps.moments.warn_if_empty(one, none)  # one party has a record
        ...     print("silent")
        ...
        silent
    """
    if all(each.records == 0 for each in moments):
        warnings.warn(
            "there is no record in X, so every sum is 0 and a release is noise alone; check the loaded data",
            UnreadableRecordsWarning,
            stacklevel=3,
        )
