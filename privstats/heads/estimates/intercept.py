"""Least squares with an intercept that is not penalised, from sums alone: the constant column is eliminated.

Counts and means that carry noise are shrunk first. ``least_squares`` calls this before it chooses a penalty.
"""

from __future__ import annotations

import math

import numpy as np

from privstats.estimates.spectrum import positive_part
from privstats.heads.evidence import Array, GramEvidence

__all__ = ["eliminate_constant", "sums_about"]


def eliminate_constant(evidence: GramEvidence) -> GramEvidence:
    """The same least-squares problem without its intercept column, centred; unchanged where there is none.

    The column's own entries hold the record count and both means, so this is the Schur complement: least squares with
    an intercept that is not penalised. The count is kept above the noise it carries, so that nothing is divided by 0,
    and means are shrunk to the origin by theirs. Sums about a shrunk mean are still sums about a point; the noise that
    feature sums bring into h by it is added to the level of h.
    """
    c = evidence.constant
    if c is None:
        return evidence
    error = evidence.sigma_G / c**2
    n = max(float(positive_part(evidence.G[-1, -1] / c**2, error)), 2 * error, np.finfo(np.float64).tiny)
    sums, targets = evidence.G[:-1, -1] / c, evidence.h[-1] / c
    sums_sigma, targets_sigma = evidence.sigma_G / (math.sqrt(2) * abs(c)), evidence.sigma_h / abs(c)
    x, y = _shrunk_mean(sums, n, error, sums_sigma), _shrunk_mean(targets, n, error, targets_sigma)
    G, h, q = sums_about(evidence.G[:-1, :-1], evidence.h[:-1], evidence.q, (sums, targets, n), (x, y))
    return GramEvidence(
        G=G,
        h=h,
        q=max(q, 0.0),
        sigma_G=evidence.sigma_G,
        sigma_h=math.hypot(evidence.sigma_h, sums_sigma * math.sqrt(float(np.square(y).mean()))),
        sigma_q=evidence.sigma_q,
        records=evidence.records or n,
        feature_means=x,
        target_means=y,
    )


def sums_about(
    G: Array, h: Array, q: float, totals: tuple[Array, Array, float], centre: tuple[Array, Array]
) -> tuple[Array, Array, float]:
    """Least-squares sums about ``centre = (x, y)``, from the sums about 0 and ``totals = (sum a, sum b, n)``."""
    (sums, targets, n), (x, y) = totals, centre
    return (
        G - np.outer(sums, x) - np.outer(x, sums) + n * np.outer(x, x),
        h - np.outer(sums, y) - np.outer(x, targets) + n * np.outer(x, y),
        q - 2 * float(targets @ y) + n * float(y @ y),
    )


def _shrunk_mean(sums: Array, n: float, error: float, sigma: float) -> Array:
    """sums / n where both carry noise, by the least mean squared error: ``n sums / (n^2 + error^2 + sigma^2 / m^2)``.

    m^2 is the mean square of the means, estimated from the sums themselves. Without noise this is sums / n; where the
    count is lost in its noise it is near 0, the origin that the public transform chose, and never a ratio of noises.

    Args:
        sums: ``(k,)``.
        n: the count, above 0.
        error: noise standard deviation of the count.
        sigma: noise standard deviation of each sum.
    """
    if sigma == 0:
        return sums / n
    level = (sigma / n) ** 2
    spread = float(positive_part(np.square(sums / n).mean() - level, math.sqrt(2 / sums.size) * level))
    return np.asarray(sums * (n / (n**2 + error**2 + sigma**2 / spread)))
