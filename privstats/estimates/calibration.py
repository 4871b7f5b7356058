"""The temperature of a softmax from hits and confidence at a few factors on its scores, as a function of numbers.

The server's computation after a calibration; ``schema.calibration`` has the factors and what a record adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, softmax

from privstats.estimates.spectrum import Array

__all__ = ["temperature"]

_SPREAD = 0.3
"""Prior standard deviation of the logarithm of a refined softmax's temperature."""
_PLACES = 1001


def temperature(sums: Array, sigma: float, factors: Sequence[float], spread: float = _SPREAD) -> float:
    """1 / s, s the factor on the scores at which the confidence of all records adds up to their hits.

    The gap between hits and confidence falls with the factor, and is taken to be linear in log s between two of
    them. Without noise s is where it is 0, of several such places the one nearest to 1, or else the nearest factor.
    With noise, log s is the mean of its posterior: a priori normal around 0, and the gap at the true s is noise
    alone, of variance i sigma^2 at the i-th factor. So a gap that noise explains leaves the temperature near 1, and
    no threshold is needed. An s beyond the outermost factors counts as the outermost; a gap on that side is then no
    evidence against it.

    Args:
        sums: hits less confidence at the first factor, then the gains of confidence at the others, ``(k,)``.
        sigma: noise standard deviation of each; 0 without noise.
        factors: rising, above 0, as many.
        spread: prior standard deviation of log s, above 0.

    Example:
        >>> from privstats.estimates.calibration import temperature
        >>> sums = np.array([20.0, 10.0, 30.0])  # the gaps are 20, 10 and -20
        >>> [round(temperature(sums, sigma, (0.5, 1.0, 4.0)), 2) for sigma in (0.0, 1.0, 1000.0)]
        [0.63, 0.64, 1.03]
    """
    logs, gaps = np.log(factors), sums[0] - np.append(0.0, sums[1:].cumsum())
    if sigma == 0:
        level = logs[gaps == 0]
        return math.exp(-(np.clip(0.0, level[0], level[-1]) if level.size else np.interp(0.0, -gaps, logs)))
    place = np.linspace(logs[0], logs[-1], _PLACES)
    gap = np.interp(place, logs, gaps)
    gap[0], gap[-1] = max(gap[0], 0.0), min(gap[-1], 0.0)
    variance = np.interp(place, logs, sigma**2 * np.arange(1, len(logs) + 1))
    edges = np.r_[-np.inf, (place[1:] + place[:-1]) / 2, np.inf] / spread
    prior = np.maximum(np.diff(ndtr(edges)), np.finfo(np.float64).tiny)
    weights = softmax(np.log(prior) - np.square(gap) / (2 * variance) - np.log(variance) / 2)
    return math.exp(-float(weights @ place))
