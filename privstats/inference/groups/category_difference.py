"""The standardised difference of two groups in a variable of several cells, and its interval under noise of counts."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtr, chndtrinc

from privstats.estimates.spectrum import Array
from privstats.inference.counts.table import Interval

__all__ = ["category_difference"]

_CLEAR = 5.0
"""Standard deviations of its noise that a cell of both groups must exceed: below, S and its inverse are lost."""


def category_difference(counts: Array, sigma: float, alpha: float, z: float) -> Interval:
    """d = sqrt(a' S^+ a) with a = p - q, p and q the shares of all cells but the first, and S the mean of both groups'
    multinomial covariances.

    The interval is for the d of *these* records, under the noise alone. With S = L L' the vector v = L^-1 a, of which d
    is the length, has the errors L^-1 (da - dS S^-1 a / 2) to first order, a rotation aside, with covariance M. No
    direction has more than l, the largest eigenvalue of M. The upper end is d + z sqrt(l), for v along its exact
    direction is at most d long. The lower end inverts the length of a normal vector of covariance l I in k - 1
    dimensions (noncentral chi-squared); it is 0 where groups may be alike, for noise enlarges a length. Both are wider
    than needed where noise differs by direction. Without noise the interval is d itself.

    Source: d of Yang and Dalton, SAS Global Forum 2012, paper 335.

    Args:
        counts: of both groups, ``(2, cells)``, noisy.
        sigma: noise standard deviation of each.
        alpha: level.
        z: its two-sided normal quantile.

    Returns:
        The difference; not told where noise could hide a cell in both groups, or a group.
    """
    records, untold = counts.sum(axis=1), Interval(math.nan, 0.0, math.inf, False)
    if not (records > 0).all():
        return untold
    if not sigma:
        value = math.sqrt(max(float(_square(counts, records)), 0.0))
        return Interval(value, value, value, True)
    clear = _CLEAR * sigma * math.sqrt(2)
    if (counts.sum(axis=0) <= clear).any() or (records <= clear * math.sqrt(counts.shape[1])).any():
        return untold
    found = _errors(counts, records)
    if found is None:
        return untold
    value, errors = found
    spread = sigma**2 * float(np.linalg.eigvalsh(errors @ errors.T)[-1])
    ratio, cells = value**2 / spread, len(errors)
    alike = chdtr(cells, ratio) <= 1 - alpha / 2
    low = 0.0 if alike else math.sqrt(float(chndtrinc(ratio, cells, 1 - alpha / 2)) * spread)
    return Interval(value, low, value + z * math.sqrt(spread), True)


def _shares(counts: Array, records: Array) -> tuple[Array, Array, Array]:
    """Shares of both groups ``(2, cells)``; their difference and mean covariance without the first cell."""
    shares = counts / records[:, None]
    one, other = (np.diag(each[1:]) - np.outer(each[1:], each[1:]) for each in shares)
    return shares, shares[0, 1:] - shares[1, 1:], (one + other) / 2


def _square(counts: Array, records: Array) -> float:
    _, apart, covariance = _shares(counts, records)
    return float(apart @ np.linalg.pinv(covariance, hermitian=True) @ apart)


def _errors(counts: Array, records: Array) -> tuple[float, Array] | None:
    """The length of v, and its derivatives by each count, ``(cells - 1, 2 cells)``; None where S is indefinite."""
    shares, apart, covariance = _shares(counts, records)
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    solved = np.linalg.solve(covariance, apart)
    columns = []
    for group, sign in enumerate((1.0, -1.0)):
        rest = shares[group, 1:]
        for moved in (np.eye(counts.shape[1]) - shares[group])[:, 1:] / records[group]:
            spread = moved * solved - moved * (rest @ solved) - rest * (moved @ solved)
            columns.append(sign * moved - spread / 4)
    errors = np.linalg.solve(root, np.stack(columns, axis=1))
    return math.sqrt(max(float(apart @ solved), 0.0)), errors
