"""Compute boundaries of group sequential tests, and estimates after them, under independent noise at each look.

At look k the statistic is ``Z_k = (B(v_k) + e_k) / sqrt(v_k + w_k)``: B is a Brownian motion, v_k the sampling variance
of the sum at look k, and e_k its noise of variance w_k, independent between looks. Without noise this recursion is that
of Armitage, McPherson and Rowe (1969). Noise makes the statistics of two looks less alike than their information
suggests: their correlation is ``v_j / sqrt((v_j + w_j)(v_k + w_k))``. So boundaries for ``v + w`` alone would be too
low.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array

_FAR = 8.5  # standard deviations beyond which no mass is left
_NODES, _PANEL = 8, 1.0  # Gauss-Legendre nodes per panel, whose length is a part of an increment's standard deviation
_LEAST_STEP = 1e-3  # least relative growth of the variance between looks
_NOTHING = 1e-15  # alpha that is too small for a boundary
_DOUBLINGS = 40  # of the distance at which a slope is searched


def spent(kind: str, times: Sequence[float], alpha: float) -> Array:
    """Return the two-sided alpha spent up to each time (Lan and DeMets 1983), ``(K,)``.

    Example:
        >>> from privstats.estimates.boundaries import spent
        >>> spent("obrien-fleming", (0.5, 1.0), 0.05).round(4).tolist()
        [0.0031, 0.05]
    """
    t, side = np.minimum(np.asarray(times, np.float64), 1.0), alpha / 2
    if kind == "pocock":
        return np.asarray(2 * side * np.log1p((math.e - 1) * t))
    return np.asarray(4 * ndtr(float(ndtri(side / 2)) / np.sqrt(t)))


@dataclass(frozen=True)
class _Path:
    """The density of B at a look, on the paths that crossed no boundary: nodes with their mass.

    Nodes are of B less its mean ``slope v``, which is 0 where nothing has an effect.
    """

    at: Array
    mass: Array
    variance: float
    slope: float = 0.0

    def crossing(self, c: float, v: float, w: float) -> float:
        """Return the probability that these paths cross c at the next look, on either side."""
        return self.above(c, v, w) + self._below(-c, v, w)

    def above(self, z: float, v: float, w: float) -> float:
        """Return the probability that these paths have a statistic of at least z at the next look."""
        end, increment = z * math.sqrt(v + w) - self.slope * v, math.sqrt(v - self.variance + w)
        return float(self.mass @ ndtr((self.at - end) / increment))

    def _below(self, z: float, v: float, w: float) -> float:
        end, increment = z * math.sqrt(v + w) - self.slope * v, math.sqrt(v - self.variance + w)
        return float(self.mass @ ndtr((end - self.at) / increment))

    def after(self, c: float, v: float, w: float) -> _Path:
        """Return the paths that do not cross c at the next look."""
        increment, noise, mean = math.sqrt(v - self.variance), math.sqrt(w), self.slope * v
        low, high = (side * c * math.sqrt(v + w) - mean for side in (-1, 1))
        far = _FAR * math.sqrt(v)  # an infinite boundary truncates nothing
        ends = max(low - _FAR * noise, -far), min(high + _FAR * noise, far)
        if ends[0] >= ends[1]:  # the mean is so far beyond a boundary that no path stays
            return _Path(np.zeros(1), np.zeros(1), v, self.slope)
        at, weight = _nodes(*ends, min(increment, max(noise, increment / 8) if w else increment) * _PANEL)
        density = np.exp(-0.5 * np.square((at[:, None] - self.at) / increment)) @ self.mass
        density /= increment * math.sqrt(2 * math.pi)
        stays = ndtr((high - at) / noise) - ndtr((low - at) / noise) if w and math.isfinite(c) else np.ones(len(at))
        return _Path(at, weight * density * stays, v, self.slope)


_BEGUN = _Path(np.zeros(1), np.ones(1), 0.0)


def _nodes(low: float, high: float, length: float) -> tuple[Array, Array]:
    panels = max(2, math.ceil((high - low) / length))
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    edges = np.linspace(low, high, panels + 1)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * x).reshape(-1), (half[:, None] * weight).reshape(-1)


def boundaries(variances: Sequence[float], noise: Sequence[float], spends: Sequence[float]) -> Array:
    """Return two-sided boundaries of |Z| by look, ``(K,)``; infinite where there is nothing to spend.

    Args:
        variances: sampling variance of the sum at each look, rising.
        noise: noise variance of the sum at each look.
        spends: probability of the first crossing at each look.

    Example:
        >>> from privstats.estimates.boundaries import boundaries, spent
        >>> alpha = spent("obrien-fleming", (0.5, 1.0), 0.05)
        >>> boundaries((0.5, 1.0), (0.0, 0.0), np.diff(alpha, prepend=0)).round(3).tolist()
        [2.963, 1.969]
    """
    found: list[float] = []
    for place, spend in enumerate(spends):
        found.append(next_boundary(found, variances[: place + 1], noise[: place + 1], spend))
    return np.array(found)


def next_boundary(before: Sequence[float], variances: Sequence[float], noise: Sequence[float], spend: float) -> float:
    """Return the boundary of the last look, behind earlier ones; infinite where there is nothing to spend.

    Args:
        before: boundaries of the earlier looks.
        variances, noise: as in :func:`boundaries`, of the earlier looks and this one.
        spend: probability of a first crossing at this look.

    Raises:
        ReleaseError: a sampling variance is not above 0, or a noise variance is below 0 or not finite.
    """
    _check_variances(variances, noise)
    rising = _rising(variances)
    path = _BEGUN
    for c, v, w in zip(before, rising, noise, strict=False):
        path = path.after(c, v, w)
    return _solved(path, rising[-1], float(noise[-1]), spend)


def _check_variances(variances: Sequence[float] | Array, noise: Sequence[float] | Array) -> None:
    for look, (v, w) in enumerate(zip(variances, noise, strict=True), start=1):
        if not (0 < v < math.inf and 0 <= w < math.inf):
            raise ReleaseError(
                f"look {look} has a sampling variance of {v:g} and a noise variance of {w:g}: a boundary needs the "
                "first above 0 and the second at least 0, both finite; wait for records in both arms"
            )


def _rising(variances: Sequence[float] | Array) -> list[float]:
    rising: list[float] = []
    for variance in variances:
        rising.append(max(float(variance), rising[-1] * (1 + _LEAST_STEP)) if rising else float(variance))
    return rising


def _solved(path: _Path, v: float, w: float, spend: float) -> float:
    if spend < _NOTHING or path.crossing(_FAR, v, w) >= spend:
        return math.inf
    return float(brentq(lambda c: path.crossing(c, v, w) - spend, 0.0, _FAR, xtol=1e-10))


def shaped(kind: str, times: Sequence[float], alpha: float) -> Array:
    """Return the classical two-sided boundaries, ``(K,)``: O'Brien and Fleming's ``C / sqrt(t)``, or Pocock's C.

    They need all times of information beforehand, which noise and recruitment move: a course spends alpha instead.

    Example:
        >>> from privstats.estimates.boundaries import shaped
        >>> shaped("obrien-fleming", (0.2, 0.4, 0.6, 0.8, 1.0), 0.05).round(3).tolist()
        [4.562, 3.226, 2.634, 2.281, 2.04]
    """
    t = np.asarray(times, np.float64)
    shape = np.ones(len(t)) if kind == "pocock" else 1 / np.sqrt(t / t[-1])
    return shape * float(brentq(lambda C: crossed(C * shape, t, np.zeros(len(t))) - alpha, 0.5, 6.0, xtol=1e-10))


def crossed(
    bounds: Sequence[float] | Array, variances: Sequence[float] | Array, noise: Sequence[float] | Array
) -> float:
    """Return the probability that any |Z_k| exceeds its bound where nothing has an effect."""
    _check_variances(variances, noise)
    total, path = 0.0, _BEGUN
    for c, v, w in zip(bounds, _rising(variances), noise, strict=True):
        total += path.crossing(float(c), float(v), float(w))
        path = path.after(float(c), float(v), float(w))
    return total


def at_least(
    slope: float,
    bounds: Sequence[float] | Array,
    statistic: float,
    variances: Sequence[float] | Array,
    noise: Sequence[float] | Array,
) -> float:
    """Return the probability of a result at least as large as a trial's, in the stagewise ordering.

    Results that crossed an upper boundary are the largest, those at earlier looks before those at later ones. Then come
    those at the last look. Results that crossed a lower boundary are the smallest, those at earlier looks last. Results
    at one look are ordered by their statistics. So with the trial's last look k and its statistic z the probability is

    ``sum over j < k of P(Z_j >= c_j, no crossing before j) + P(Z_k >= z, no crossing before k)``

    (Fairbanks and Madsen 1982; Tsiatis, Rosner and Mehta 1984; Jennison and Turnbull 2000, 8.4). It rises with the
    slope.

    Args:
        slope: mean of the sum per unit of its sampling variance.
        bounds: boundaries of |Z| at the looks before the last one, ``(K - 1,)``.
        statistic: Z at the last look.
        variances, noise: as in :func:`boundaries`, up to the last look.

    Raises:
        ReleaseError: a sampling variance is not above 0, or a noise variance is below 0 or not finite.

    Example:
        >>> from privstats.estimates.boundaries import at_least
        >>> round(at_least(0.0, (2.963,), 1.969, (0.5, 1.0), (0.0, 0.0)), 4)  # half of alpha
        0.025
    """
    _check_variances(variances, noise)
    path, total, rising = _Path(np.zeros(1), np.ones(1), 0.0, slope), 0.0, _rising(variances)
    for c, v, w in zip(bounds, rising, noise, strict=False):
        total += path.above(float(c), v, float(w))
        path = path.after(float(c), v, float(w))
    return total + path.above(statistic, rising[-1], float(noise[-1]))


def median_unbiased(
    bounds: Sequence[float] | Array,
    statistic: float,
    variances: Sequence[float] | Array,
    noise: Sequence[float] | Array,
    alpha: float,
) -> tuple[float, float, float]:
    """Return the slope that a trial's result exceeds in half of trials, and both ends of the slope's interval.

    They are the slopes at which :func:`at_least` is 1/2, alpha/2 and 1 - alpha/2, as R's rpact computes its final
    confidence interval. Each end is beyond the slope in alpha/2 of trials, whatever the look at which they stop.

    Args:
        bounds, statistic, variances, noise: as in :func:`at_least`.

    Example:
        >>> from privstats.estimates.boundaries import median_unbiased
        >>> one_look = median_unbiased((), 2.5, (4.0,), (0.0,), 0.05)
        >>> [round(each, 3) for each in one_look]  # Z is the slope times the root of the variance
        [1.25, 0.27, 2.23]
    """

    def found(chance: float) -> float:
        return _rising_root(lambda slope: at_least(slope, bounds, statistic, variances, noise) - chance, middle, error)

    v, w = float(variances[-1]), float(noise[-1])
    error = math.sqrt(v + w) / v
    middle = statistic * error
    return found(0.5), found(alpha / 2), found(1 - alpha / 2)


def _rising_root(f: Callable[[float], float], middle: float, step: float) -> float:
    """Return the root of a rising function, searched around ``middle``."""
    low, high = middle - step, middle + step
    for _ in range(_DOUBLINGS):
        if f(low) < 0 < f(high):
            break
        low, high = (low if f(low) < 0 else 2 * low - middle), (high if f(high) > 0 else 2 * high - middle)
    return float(brentq(f, low, high, xtol=1e-9 * step))
