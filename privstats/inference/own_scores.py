"""Score a head on one's own records: exact at every threshold, with errors per patient.

Nothing leaves the machine. Intervals widen as persons' summed influences vary more than independent rows would
(Obuchowski 1997).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from privstats.estimates.denoise import Array
from privstats.inference.counts.table import Interval, mean_of, ratio
from privstats.inference.head_curves import Reliability, RocCurve, area, calibration_error

_POINTS = 128
"""Thresholds of the curve from the quantiles of one side's scores."""
_GROUPS = 10
"""Groups of a calibration diagram, each of as many records."""


def area_influences(inside: NDArray[np.bool_], scores: Array) -> tuple[float, Array]:
    """Return the share of ordered pairs, ties counting half, and each record's influence on it, ``(n,)``.

    The influences' squares sum to the area's variance (DeLong, DeLong and Clarke-Pearson 1988). ``inside`` marks the
    class.
    """
    won, ranks = np.empty(len(scores)), rankdata(scores)
    for side in (inside, ~inside):
        won[side] = (ranks[side] - rankdata(scores[side])) / (~side).sum()
    won[~inside] = 1 - won[~inside]
    value = float(won[inside].mean())
    moves = won - value
    for side in (inside, ~inside):
        size = int(side.sum())
        moves[side] /= np.sqrt(size * max(size - 1, 1))
    return value, moves


@dataclass(frozen=True, eq=False)
class OwnRecords:
    """Scored records of one holder.

    Attributes:
        shares: predicted probabilities, ``(n, C)``.
        ids: each record's person; a row without one is its own person. None: independent rows.
        thresholds: for sensitivity and specificity; the second class's share of these records if empty.
    """

    y: NDArray[np.intp]
    shares: Array
    ids: NDArray[Any] | None = None
    thresholds: tuple[float, ...] = ()

    @cached_property
    def persons(self) -> NDArray[np.intp] | None:
        """Index of each record's person, ``(n,)``, or None."""
        if self.ids is None:
            return None
        named = [f"row {place}" if _is_gap(each) else f"id {each}" for place, each in enumerate(self.ids)]
        return np.asarray(np.unique(named, return_inverse=True)[1], np.intp)

    def inflation(self, moves: Array, rows: NDArray[np.bool_] | None = None) -> float:
        """Return a statistic's variance over persons, relative to independent rows; at least 1.

        ``moves`` are the records' influences; if all are 0, a person's rows count as copies.
        """
        if self.persons is None or not len(moves):
            return 1.0
        whose = self.persons if rows is None else self.persons[rows]
        chosen = moves if rows is None else moves[rows]
        if not chosen.any():
            chosen = np.ones(len(chosen))
        alone = float((chosen**2).sum())
        return max(float((np.bincount(whose, weights=chosen) ** 2).sum()) / alone, 1.0) if alone else 1.0

    def share(self, hits: NDArray[np.bool_], rows: NDArray[np.bool_], z: float) -> Interval:
        """Return the share of hits, with Wilson's interval."""
        part, total = float((hits & rows).sum()), float(rows.sum())
        moves = hits.astype(np.float64) - (part / total if total else 0.0)
        return ratio(part, total, (1, 1), 0.0, z * math.sqrt(self.inflation(moves, rows)))

    def flagged(self, threshold: float, z: float) -> tuple[Interval, Interval]:
        """Return sensitivity and specificity."""
        above, ill = self.shares[:, 1] >= threshold, self.y == 1
        return self.share(above, ill, z), self.share(~above, ~ill, z)

    def balanced(self, value: float, z: float) -> Interval:
        """Return a mean recall's interval."""
        right, moves = self.shares.argmax(axis=1) == self.y, np.zeros(len(self.y))
        classes = [self.y == place for place in range(self.shares.shape[1])]
        if not all(rows.any() for rows in classes):
            return Interval(value, 0.0, 1.0, False)
        for rows in classes:
            moves[rows] = (right[rows] - right[rows].mean()) / (len(classes) * rows.sum())
        wider = z * math.sqrt(self.inflation(moves))
        return mean_of([ratio(float(right[rows].sum()), float(rows.sum()), (1, 1), 0.0, wider) for rows in classes])

    def curve(self, place: int, z: float) -> RocCurve:
        """Return a class's one-vs-rest curve at both sides' quantiles."""
        scores, inside = self.shares[:, place], self.y == place
        values, at = np.unique(scores, return_inverse=True)
        sides: list[Array] = [
            np.bincount(at[side], minlength=len(values)).astype(np.float64) for side in (~inside, inside)
        ]
        wider = self.inflation(area_influences(inside, scores)[1]) if inside.any() and (~inside).any() else 1.0
        interval = area(sides[0], sides[1], 0.0, z * math.sqrt(wider))
        cuts = np.unique(np.concatenate(list(_quantiles(scores, (inside, ~inside)))))[::-1]
        true, false = (tuple(self.share(scores >= cut, side, z) for cut in cuts.tolist()) for side in (inside, ~inside))
        return RocCurve(cuts, true, false, interval, (interval.value, interval.value))

    def calibration(self, labels: Sequence[Any], z: float) -> Reliability:
        """Return the diagram, by similar probabilities."""
        two = self.shares.shape[1] == 2
        shares = self.shares[:, 1] if two else self.shares.max(axis=1)
        hits = self.y == 1 if two else self.shares.argmax(axis=1) == self.y
        inner = np.quantile(shares, np.arange(1, _GROUPS) / _GROUPS)
        edges = np.unique(np.concatenate([[shares.min()], inner, [shares.max()]]))
        if len(edges) == 1:
            edges = np.array([edges[0], np.nextafter(edges[0], 2.0)])
        groups = np.clip(np.searchsorted(edges, shares, side="right") - 1, 0, len(edges) - 2)
        filled, groups = np.unique(groups, return_inverse=True)
        edges = np.append(edges[filled], edges[-1])
        records = np.bincount(groups).astype(np.float64)
        means, right = (np.bincount(groups, weights=each) / records for each in (shares, hits))
        bins = [groups == place for place in range(len(filled))]
        error = calibration_error(
            (means, means),
            ((1 - right) * records, right * records),
            0.0,
            z,
            max(self.inflation(hits - shares, rows) for rows in bins),
        )
        of = str(labels[1]) if two else ""
        return Reliability(edges, records, tuple(self.share(hits, rows, z) for rows in bins), error, of, means)


def _quantiles(scores: Array, sides: tuple[NDArray[np.bool_], ...]) -> Iterator[Array]:
    yield np.array([np.median(scores)])
    for side in sides:
        if side.any():
            yield np.quantile(scores[side], (np.arange(_POINTS) + 0.5) / _POINTS, method="nearest")


def _is_gap(value: Any) -> bool:
    return value is None or value == "" or value != value
