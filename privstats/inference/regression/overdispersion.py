"""Estimate the dispersion of negative binomial counts from the last rounds of a Poisson regression."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

from privstats.inference.counts.table import Interval
from privstats.inference.last_step import averaged_sigma
from privstats.inference.treatment_effects.ratios import RatioOfSums
from privstats.kinds import ScoreSchema
from privstats.release import Release


def overdispersion(rounds: Sequence[Release], schema: ScoreSchema, alpha: float = 0.05) -> Interval:
    """Return the dispersion a of counts with mean m and variance m + a m^2, with its interval, both at least 0.

    ``E (y - m)^2 = m + a m^2``, so the estimate is ``(Q - sum y) / V``, with Q and V summed, and ``sum y = H + g`` of
    the constant (Cameron and Trivedi 1998). All are means over rounds, whose noise is independent.

    The interval is Fieller's. Its variance allows for:

    - noise in all four sums;
    - sampling: ``((y - m)^2 - y)^2 <= Y^2 (y - m)^2 + Y y`` for y and m in 0..Y, so it is at most ``Y^2 Q + Y sum y``,
      whatever the counts' distribution is;
    - the fitted mean: an error d of its logarithm, averaged by events, moves a by ``2 a d``, and d has the variance
      ``(Q + noise of g) / (sum y)^2``.

    Counts above Y were cut, which lowers the estimate, and no sum shows how many were. So the high end is the
    dispersion of a negative binomial model whose counts, cut at Y, have Fieller's high end. Its mean is ``2 V / H``,
    twice the average of m over events, because cuts matter most where means are large. Measured in
    benchmarks/inference/dispersion.py.

    Args:
        rounds: the last round, and earlier ones at settled weights.
        alpha: level.
    """
    constant, Y = schema.on_grid(schema.constant or 1.0), schema.outcome
    read = [each.moments for each in rounds]
    Q, V, g, H = np.mean(
        [[each.Q, each.V, each.g[-1] / constant, each.H[-1, -1] / constant**2] for each in read], axis=0
    )
    sigma = {letter: averaged_sigma(rounds, letter) for letter in "QVgH"}
    events, noise_g = max(H + g, 1.0), (sigma["g"] / constant) ** 2
    noise = sigma["Q"] ** 2 + noise_g + (sigma["H"] / constant**2) ** 2
    squares, beyond = max(Q, 0.0), Q - H - g
    sampling = Y**2 * squares + Y * events + (2 * beyond / events) ** 2 * (squares + noise_g)
    ratio = RatioOfSums(0.0, beyond, V, sampling + noise, noise, sigma["V"], math.inf)
    low, high = ratio.interval(alpha)
    reported = ratio.reported(alpha) and H > 0
    high = _before_cut(max(high, 0.0), 2 * float(V / H), Y) if reported else math.inf
    return Interval(max(ratio.estimate, 0.0), max(low, 0.0), high, reported)


def share_cut(rounds: Sequence[Release], schema: ScoreSchema, dispersion: float) -> float:
    """Return the share of counts that were cut, if they are negative binomial with this dispersion after the cut.

    All have the mean ``V / H``, the average of m over events. From the expected sums of the worlds in
    benchmarks/inference/dispersion.py it is 1.06 to 1.31 times the share where .1 % or more are cut, and .002 % where
    .006 % are.

    Args:
        rounds: as for :func:`overdispersion`.
    """
    constant, Y = schema.on_grid(schema.constant or 1.0), schema.outcome
    V, H = np.mean([[each.moments.V, each.moments.H[-1, -1] / constant**2] for each in rounds], axis=0)
    if not min(V, H) > 0:
        return math.nan
    return share_above(dispersion, float(V / H), Y)


def share_above(dispersion: float, mean: float, bound: float) -> float:
    """Return the share above a bound of negative binomial counts of this mean, from their dispersion after the cut."""
    a = min(max(_before_cut(dispersion, mean, bound), _LEAST), _MOST)
    return float(betainc(math.floor(bound) + 1, 1 / a, a * mean / (1 + a * mean)))


def _before_cut(dispersion: float, mean: float, bound: float) -> float:
    """Return the dispersion of counts that have this one after the cut at a bound; infinite where none up to 1,000 has.

    The counts are negative binomial with this mean. It is never below the given dispersion.
    """
    least = max(dispersion, _LEAST)
    if _after_cut(_MOST, mean, bound) < dispersion:
        return math.inf
    if _after_cut(least, mean, bound) >= dispersion:
        return dispersion
    return float(brentq(lambda a: _after_cut(a, mean, bound) - dispersion, least, _MOST, rtol=1e-6))


_LEAST, _MOST = 1e-6, 1e3


def _after_cut(a: float, mean: float, bound: float) -> float:
    """Return ``E ((y - m)^2 - y) / m^2`` of negative binomial counts y cut at a bound, with m their mean then.

    With r = 1 / a, the terms of ``E y`` are those of counts of size r + 1, shifted by 1, times the mean; the terms of
    ``E y (y - 1)`` are those of size r + 2, shifted by 2, times ``mean^2 (1 + a)``.
    """
    whole, size, ratio = math.ceil(bound), 1 / a, a * mean / (1 + a * mean)

    def beyond(shift: int) -> float:
        """Return the probability that counts of the shifted size reach the shifted bound."""
        return float(betainc(whole - shift, size + shift, ratio)) if whole > shift else 1.0

    cut, first, second = beyond(0), mean * (1 - beyond(1)), mean**2 * (1 + a) * (1 - beyond(2))
    m = first + bound * cut
    return (second + first + bound**2 * cut - m**2 - m) / m**2
