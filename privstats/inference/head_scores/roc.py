"""The ROC curve and the area under it from binned, noisy counts of two groups.

A record beats another with a lower score; inside one bin nobody knows who is higher. So the area lies between that with
every such pair lost and that with every one won, and an interval covers both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.spectrum import Array
from privstats.inference.counts.table import Interval, ratio

__all__ = ["RocCurve", "area", "roc_curve"]


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Shares of both groups at and above each inner edge of the bins, from the highest edge to the lowest.

    Attributes:
        thresholds: the edges, ``(m,)``, falling.
        true_positive, false_positive: shares of the class and of all others, with intervals, ``(m,)`` each.
        auc: the area under the curve; its interval covers what binning hides.
        auc_bounds: the area with every pair of one bin lost, and with every one won, without regard to noise.

    Example:
        >>> y = np.arange(900) % 2
        >>> X = np.random.default_rng(0).normal(size=(900, 2)) + y[:, None]
        >>> scoring = ps.Scoring(ps.heads.LDA().fit(X[:300], y[:300]))
        >>> moments = ps.measure(scoring.schema, X[300:], y[300:], published=scoring.published)
        >>> plan = scoring.plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[300:600], y[300:600]), (X[600:], y[600:])])
        >>> curve = ps.inference.head_score(release).roc["1"]
        >>> curve.auc_bounds[0] < curve.auc.value < curve.auc_bounds[1]
        True
    """

    thresholds: Array
    true_positive: tuple[Interval, ...]
    false_positive: tuple[Interval, ...]
    auc: Interval
    auc_bounds: tuple[float, float]

    def band(self) -> tuple[Array, Array, Array]:
        """False positive rates, rising from 0 to 1, and the lowest and highest true positive rate there, ``(k,)`` each.

        Guarantee:
            Wherever the intervals of all thresholds hold, so does the band, between thresholds too: a curve rises, so
            at a rate x it is at most the high end of a threshold whose false positive rate is surely at least x, and at
            least the low end of one whose rate is surely at most x. The intervals hold one by one (pointwise), and not
            all at once, so neither does the band.
        """
        false, true = (np.array(each).reshape(-1, 4) for each in (self.false_positive, self.true_positive))
        rates = np.unique(np.concatenate([[0.0, 1.0], false[:, 1], false[:, 2]]))
        sure, most = false[:, 1] >= rates[:, None], false[:, 2] <= rates[:, None]
        low = np.where(most, true[:, 1], 0.0).max(axis=1, initial=0.0)
        high = np.where(sure, true[:, 2], 1.0).min(axis=1, initial=1.0)
        return rates, low, high


def roc_curve(edges: tuple[float, ...], others: Array, members: Array, sigma: float, z: float) -> RocCurve:
    """The curve of counts by rising bin.

    Args:
        edges: of the bins, ``(k + 1,)``.
        others, members: noisy counts, ``(k,)`` each.
        sigma: noise standard deviation of a count.
        z: normal quantile.
    """
    places = range(len(members) - 1, 0, -1)
    true, false = (tuple(_above(counts, place, sigma, z) for place in places) for counts in (members, others))
    low, high = (_areas(others, members, tied) for tied in (0.0, 1.0))
    return RocCurve(np.array(edges)[list(places)], true, false, area(others, members, sigma, z), (low, high))


def area(others: Array, members: Array, sigma: float, z: float) -> Interval:
    """The chance that a member scores above one of the others, pairs of one bin split evenly, with its interval.

    Test inversion: theta is accepted where ``|x' K y - theta P Q| <= z s``, with x and y the counts of members and
    others, P and Q their sums, ``K_ba`` 1 for a < b, t for a = b, and ``s^2 = sum vx (K y - theta Q)^2 + sum vy (K' x -
    theta P)^2`` by the delta method, ``v = max(count, 0) + sigma^2``. The low end is that of t = 0, the high end that
    of t = 1. Both sides are quadratic in theta; not told where no theta is refused.
    """
    value = float(np.clip(_areas(others, members, 0.5), 0.0, 1.0))
    ends = [_accepted(others, members, tied, sigma, z) for tied in (0.0, 1.0)]
    if any(end is None for end in ends) or min(members.sum(), others.sum()) <= 0:
        return Interval(value if math.isfinite(value) else 0.5, 0.0, 1.0, False)
    (low, _), (_, high) = ends  # type: ignore[misc]
    return Interval(value, float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0)), True)


def _above(counts: Array, place: int, sigma: float, z: float) -> Interval:
    cells = len(counts) - place, place
    return ratio(float(counts[place:].sum()), float(counts.sum()), cells, sigma, z)


def _beaten(others: Array, tied: float) -> Array:
    """K y: how many of the others each bin beats."""
    return np.asarray(np.cumsum(others) - (1 - tied) * others)


def _areas(others: Array, members: Array, tied: float) -> float:
    pairs = float(members.sum() * others.sum())
    return float(members @ _beaten(others, tied)) / pairs if pairs else math.nan


def _accepted(others: Array, members: Array, tied: float, sigma: float, z: float) -> tuple[float, float] | None:
    """The ends of the thetas that are not refused; None where they are unbounded."""
    P, Q = float(members.sum()), float(others.sum())
    beats, beaten = _beaten(others, tied), P - np.cumsum(members) + tied * members
    weight_x, weight_y = (np.maximum(counts, 0.0) + sigma**2 for counts in (members, others))
    won = float(members @ beats)
    square = (P * Q) ** 2 - z**2 * float(weight_x.sum() * Q**2 + weight_y.sum() * P**2)
    middle = won * P * Q - z**2 * float(weight_x @ beats * Q + weight_y @ beaten * P)
    last = won**2 - z**2 * float(weight_x @ beats**2 + weight_y @ beaten**2)
    root = middle**2 - square * last
    if square <= 0 or root < 0:
        return None
    return (middle - math.sqrt(root)) / square, (middle + math.sqrt(root)) / square
