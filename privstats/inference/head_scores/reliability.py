"""How far a head's probabilities are true, from binned, noisy counts of right and wrong predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.spectrum import Array
from privstats.inference.counts.table import Interval, ratio

__all__ = ["Reliability", "reliability"]

_MEAN = math.sqrt(2 / math.pi)
"""Mean of the absolute value of a standard normal; its variance is 1 - 2 / pi."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram, and the expected calibration error (Guo, Pleiss, Sun and Weinberger 2017).

    Attributes:
        edges: of the bins of the predicted class's probability, ``(k + 1,)``.
        records: noisy counts of the bins, ``(k,)``.
        right: share of right predictions per bin, with intervals, ``(k,)``.
        error: mean gap between the probability and the share of right ones, weighted by records, 0..1. The value takes
            the middle of each bin for its probabilities and is too large under noise, as a sum of absolute values is;
            the interval covers any probabilities inside of the bins, and is wide.

    Example:
        >>> from privstats.inference.head_scores.reliability import reliability
        >>> wrong, right = np.array([40.0, 10.0]), np.array([60.0, 90.0])  # of bins from .5 to .75 and from there to 1
        >>> found = reliability(np.array([0.5, 0.75, 1.0]), wrong, right, sigma=0.0, cells=1, z=1.96)
        >>> [round(each.value, 2) for each in found.right], round(found.error.value, 3)
        ([0.6, 0.9], 0.025)
    """

    edges: Array
    records: Array
    right: tuple[Interval, ...]
    error: Interval


def reliability(edges: Array, wrong: Array, right: Array, sigma: float, cells: int, z: float) -> Reliability:
    """The diagram and the error of counts by rising bin.

    Args:
        edges: ``(k + 1,)``.
        wrong, right: noisy counts, ``(k,)`` each.
        sigma: noise standard deviation of one released cell.
        cells: how many are summed in each count.
        z: normal quantile.

    Guarantee:
        With e_b the errors of the gaps, ``|sum |g_b + e_b| - sum |g_b|| <= sum |e_b|``, whose quantile is that of a sum
        of absolute normals: the interval of the error covers at least as often as it says.
    """
    records = wrong + right
    shares = tuple(
        ratio(float(hits), float(n), (cells, cells), sigma, z) for hits, n in zip(right, records, strict=True)
    )
    return Reliability(edges, records, shares, _error(edges, wrong, right, sigma * math.sqrt(cells), z))


def _error(edges: Array, wrong: Array, right: Array, sigma: float, z: float) -> Interval:
    low, high = edges[:-1], edges[1:]
    records, middle = wrong + right, (low + high) / 2
    total, spread = float(records.sum()), sigma * math.sqrt(2 * len(right))
    value = float(np.abs(right - middle * records).sum()) / total if total > 0 else 0.0
    room = z * math.sqrt(max(total, 0.0) + spread**2)
    if total <= room:
        return Interval(min(value, 1.0), 0.0, 1.0, False)
    weights = (np.maximum(counts, 0.0) + sigma**2 for counts in (right, wrong))
    deviations = np.sqrt(sum(weight * most**2 for weight, most in zip(weights, (1 - low, high), strict=True)))
    slack = _MEAN * float(deviations.sum()) + z * math.sqrt((1 - _MEAN**2) * float((deviations**2).sum()))
    gaps = np.stack([right - low * records, right - high * records])
    most = float(np.abs(gaps).max(axis=0).sum())
    least = float(np.where(gaps[0] * gaps[1] > 0, np.abs(gaps).min(axis=0), 0.0).sum())
    ends = np.clip([(least - slack) / (total + z * spread), (most + slack) / (total - room)], 0.0, 1.0)
    return Interval(min(value, 1.0), float(ends[0]), float(ends[1]), bool(ends[1] < 1))
