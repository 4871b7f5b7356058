"""Estimate the dispersion of negative binomial counts from the last rounds of a Poisson regression."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

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
    return Interval(max(ratio.estimate, 0.0), max(low, 0.0), max(high, 0.0), ratio.reported(alpha))
