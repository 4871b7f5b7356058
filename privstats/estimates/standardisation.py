"""Ranges of columns and of a target from noisy sums of them: numbers in, numbers out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privstats.estimates.denoise import Array

CONSTANT = 0.5
"""Value of the constant column after the ranges: near the size of a column there."""

_COLUMN = 3.0  # deviations that become 1
_LEAST, _PART = 3.0, 0.8  # a target is cut beyond .8 of the largest of n normal deviations, and never below 3
_ROW = 1.5  # times as many deviations of a row's squared norm are within the clip norm
_CLEAR = 2.0  # deviations of noise from which on a mean is not 0


class Ranges(NamedTuple):
    """Map of rows, each column to ``(x - centre) / per`` with :data:`CONSTANT` appended, and the bounds of the mapped
    rows.

    Attributes:
        centre, per: ``(p,)``.
        clip_norm: of a row with its constant.
        target_bound: of the target.
    """

    centre: tuple[float, ...]
    per: tuple[float, ...]
    clip_norm: float
    target_bound: float


def ranges(G: Array, q: float, sigmas: tuple[float, float], constant: float, bounds: tuple[float, float]) -> Ranges:
    """Ranges that follow from noisy sums, never wider than those that are public; every number has four digits.

    Spreads are those that one deviation of noise might have hidden, so that noise makes a range too wide rather than
    too narrow; a mean that noise could show is 0.

    Args:
        G: sum of products of the columns, the constant last, ``(p + 1, p + 1)``.
        q: sum of squared targets.
        sigmas: noise standard deviations of G's diagonal and of q.
        constant: value of the constant.
        bounds: the public clip norm and target bound.

    Example:
        >>> from privstats.estimates.standardisation import ranges
        >>> x, y = np.array([0.0, 0.1, 0.2, 0.1]), np.array([1.0, 2.0, 2.0, 1.0])
        >>> rows = np.column_stack([x, np.ones(4)])
        >>> found = ranges(rows.T @ rows, float(y @ y), (0.0, 0.0), 1.0, (2.0, 50.0))
        >>> found.centre, found.per, found.target_bound
        ((0.1,), (0.2121,), 6.325)
    """
    (sigma_G, sigma_q), (clip_norm, target_bound) = sigmas, bounds
    p = len(G) - 1
    records = max(float(G[-1, -1]) / constant**2, 1.0)
    beyond = max(_LEAST, _PART * math.sqrt(2 * math.log(records)))
    sums = G[:p, -1] / constant
    mean = np.where(np.abs(sums) > _CLEAR * sigma_G / (constant * math.sqrt(2)), sums / records, 0.0)
    spread = np.sqrt(np.maximum((np.diag(G)[:p] + sigma_G) / records - mean**2, max(sigma_G / records, 1e-12)))
    widest = math.sqrt(clip_norm**2 - constant**2) + np.abs(mean)
    per = np.minimum(_COLUMN * spread, widest)
    within = (G[:p, :p] / records - np.outer(mean, mean)) / np.outer(per, per)
    power = float(np.trace(within))
    loose = math.sqrt(2 * min(float(np.square(within).sum()), power**2)) if power > 0 else 0.0
    squared = min(max(power, p / _COLUMN**2) + _ROW * beyond * max(loose, math.sqrt(2 * p) / _COLUMN**2), float(p))
    energy = max(q + sigma_q, sigma_q, 1e-12 * target_bound**2)
    return Ranges(
        tuple(map(_rounded, mean.tolist())),
        tuple(map(_rounded, per.tolist())),
        _rounded(math.sqrt(squared + CONSTANT**2)),
        _rounded(min(beyond * math.sqrt(energy / records), target_bound)),
    )


def _rounded(value: float) -> float:
    """Round to four digits, on which all machines agree."""
    return float(f"{value:.4g}")
