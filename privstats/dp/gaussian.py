"""Compute the exact privacy curve of Gaussian noise, and its inverses.

mu is sensitivity / sigma. Theorem numbers of Dong, Roth and Su 2022 are of JRSS-B 84, not arXiv:1905.02383.
:func:`root` repeats scipy's ``brentq`` bit for bit, because importing scipy.optimize is slow.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from privstats.errors import PlanError, PrivstatsError
from privstats.python_values import check_number

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_DIRECT_FROM_MU = 1.0
# Upper end of the search for epsilon, in standard deviations beyond the quantile of delta.
_DEEPEST = 38.0
# Above this mu the upper end of the search is returned: it exceeds epsilon by less than 1e-14, relatively.
_ASYMPTOTIC_MU = 2.0**53
_FAR = 1e3
# Lower limit of 1 - m(s + mu) / m(s) before its log: the difference is 0 if s + mu rounds to s.
_MIN_GAP = 2.0**-53
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
# Number of cached roots: a session parses its plan again with every message.
_SOLVED = 4096


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the smallest delta for which mu-GDP implies (epsilon, delta)-DP.

    delta = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) (Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022,
    corollary 1). It is evaluated as phi(s) (m(s) - m(s + mu)) with s = eps/mu - mu/2 and Mills' ratio
    m(s) = Phi(-s)/phi(s). For small mu an integral replaces the difference, which would cancel.

    Raises:
        PlanError: mu is not above 0, or epsilon below 0.

    Example:
        >>> round(ps.dp.gaussian_delta(mu=1.0, epsilon=1.0), 4)
        0.1269
    """
    check_number("mu", mu, "finite and above 0", 0, ends="()")
    check_number("epsilon", epsilon, "at least 0", 0)
    return math.exp(_log_delta(mu, epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 for which mu-GDP implies (epsilon, delta)-DP.

    The result is infinite where epsilon exceeds float64, from a mu of about 1e154 on.

    Raises:
        PlanError: mu is not above 0, or delta is not in (0, 1).

    Example:
        >>> round(ps.dp.gaussian_epsilon(mu=1.0, delta=1e-5), 3)
        4.377
    """
    check_number("mu", mu, "finite and above 0", 0, ends="()")
    check_number("delta", delta, "strictly between 0 and 1", 0, 1, ends="()")
    return _epsilon(mu, delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP.

    Raises:
        PlanError: epsilon is below 0, or delta is not in (0, 1).

    Example:
        >>> mu = ps.dp.gaussian_mu(epsilon=1.0, delta=1e-5)
        >>> round(1.0 / mu, 3)  # sigma for a sensitivity of 1
        3.731
        >>> round(ps.dp.gaussian_epsilon(mu, 1e-5), 6)
        1.0
    """
    check_number("epsilon", epsilon, "finite and at least 0", 0, ends="[)")
    check_number("delta", delta, "strictly between 0 and 1", 0, 1, ends="()")
    return _mu(epsilon, delta)


def compose(mus: Iterable[float]) -> float:
    """Return mu of several releases on the same records: sqrt(sum mu_i^2) (Dong, Roth and Su 2022, corollary 2).

    Raises:
        PlanError: ``mus`` is not iterable, or a number is below 0.

    Example:
        >>> ps.dp.compose([0.3, 0.4])
        0.5
    """
    if not isinstance(mus, Iterable):
        raise PlanError(f"mus must be several numbers, got {type(mus).__name__}; put it into a list")
    return math.sqrt(math.fsum(check_number("mu", mu, "at least 0", 0) ** 2 for mu in mus))


def operating_point(mu: float, false_positive_rate: float = 0.01) -> tuple[float, float, float]:
    """Return the best that any attacker can reach: (TPR at this FPR, AUC, maximum of TPR - FPR).

    Phi(Phi^-1(FPR) + mu), Phi(mu / sqrt 2) and 2 Phi(mu / 2) - 1: the trade-off curve of mu-GDP.

    Raises:
        PlanError: mu is below 0, or the rate is not between 0 and 1.

    Example:
        >>> [round(value, 3) for value in ps.dp.operating_point(mu=0.5)]
        [0.034, 0.638, 0.197]
    """
    check_number("mu", mu, "at least 0", 0)
    check_number("false_positive_rate", false_positive_rate, "between 0 and 1", 0, 1)
    tpr = float(ndtr(ndtri(false_positive_rate) + mu))
    return tpr, float(ndtr(mu / math.sqrt(2))), float(2 * ndtr(mu / 2) - 1)


@lru_cache(_SOLVED)
def _epsilon(mu: float, delta: float) -> float:
    target = math.log(delta)
    if _log_delta(mu, 0.0) <= target:
        return 0.0
    highest = mu * (_DEEPEST + mu / 2 - float(ndtri(delta)))
    if mu > _ASYMPTOTIC_MU:
        return highest
    return root(lambda epsilon: _log_delta(mu, epsilon) - target, 0.0, highest)


@lru_cache(_SOLVED)
def _mu(epsilon: float, delta: float) -> float:
    target = math.log(delta)
    high = 1.0
    while _log_delta(high, epsilon) <= target:
        high *= 2
    low = high / 2
    while _log_delta(low, epsilon) > target:
        low /= 2
    return root(lambda mu: _log_delta(mu, epsilon) - target, low, high)


def _log_delta(mu: float, epsilon: float) -> float:
    s = epsilon / mu - mu / 2
    if mu < _DIRECT_FROM_MU:
        points = s + mu * (1 + _NODES) / 2
        gap = float(np.dot(_WEIGHTS, 1 - points * _mills(points))) * mu / 2
        return _log_phi(s) + math.log(gap) if gap > 0 else -math.inf
    if s > _FAR:  # both logs are near s^2 / 2, and only Mills' ratios keep digits
        gap = 1 - float(_mills(np.float64(s + mu)) / _mills(np.float64(s)))
        return float(log_ndtr(-s)) + math.log(max(gap, _MIN_GAP))
    ratio = math.exp(_log_phi(s) - float(log_ndtr(-s))) * float(_mills(np.float64(s + mu)))
    return float(log_ndtr(-s)) + math.log1p(-ratio)


def _mills(s: np.ndarray | np.float64) -> np.ndarray:
    """Return Mills' ratio Phi(-s) / phi(s)."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(s / math.sqrt(2)))


def _log_phi(s: float) -> float:
    return -0.5 * s * s - _LOG_SQRT_2PI


@dataclass(frozen=True)
class Guarantee:
    """A bound on every test's ROC curve for one unit's change.

    Attributes:
        mu: Gaussian-DP parameter; infinite for exact sums.
        pure: epsilon where delta is 0, else infinite.

    Example:
        >>> [round(value, 3) for value in ps.dp.Guarantee(mu=1.232, pure=1.0).operating_point()]
        [0.027, 0.731, 0.462]
    """

    mu: float
    pure: float = math.inf

    def operating_point(self, false_positive_rate: float = 0.01) -> tuple[float, float, float]:
        """Return the best that any attacker can reach, as :func:`operating_point`.

        Guarantee:
            The curve of ``mu`` bounds a release, and with delta = 0 so does that of pure epsilon: the smaller values
            hold. Pure epsilon has an AUC of ``e^epsilon / (1 + e^epsilon)``, an advantage of ``tanh(epsilon / 2)``, and
            ``TPR <= min(e^epsilon FPR, 1 - e^-epsilon (1 - FPR))`` (Kairouz, Oh and Viswanath 2015, theorem 2.1; Dong,
            Roth and Su 2022, proposition 3).
        """
        point = operating_point(self.mu, false_positive_rate)
        if math.isinf(self.pure):
            return point
        raised = math.exp(min(0.0, self.pure + math.log(false_positive_rate))) if false_positive_rate else 0.0
        missed = math.exp(-self.pure)
        rest = missed * false_positive_rate - math.expm1(-self.pure)
        pure = min(raised, rest), 1 / (1 + missed), math.tanh(self.pure / 2)
        tpr, auc, advantage = map(min, point, pure)
        return tpr, auc, advantage

    def tpr(self, false_positive_rate: float) -> float:
        """Return the highest true positive rate at this false positive rate."""
        return self.operating_point(false_positive_rate)[0]

    @property
    def auc(self) -> float:
        """The highest area under the ROC curve."""
        return self.operating_point()[1]

    def of_group(self, units: float) -> Guarantee:
        """Return a group's guarantee: mu and epsilon times ``units`` (Dong, Roth and Su 2022, theorem 3)."""
        return Guarantee(units * self.mu, units * self.pure)

    def repeated(self, releases: int) -> Guarantee:
        """Return the guarantee of ``releases`` releases: mu^2 and epsilon add up."""
        return Guarantee(self.mu * math.sqrt(releases), self.pure * releases)


_RELATIVE = 4 * sys.float_info.epsilon
_ABSOLUTE = 1e-300
_MAX_ITERATIONS = 500
_Point: TypeAlias = tuple[float, float]


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the point between ``low`` and ``high`` where ``function`` changes its sign (Brent 1973, chapter 4).

    Raises:
        PrivstatsError: no sign change, or no root in 500 iterations; a bug in the caller.

    Example:
        >>> from privstats.dp.gaussian import root
        >>> round(root(lambda x: x * x - 2, 0.0, 2.0), 12)
        1.414213562373
    """
    before, here = low, high
    f_before, f_here = function(before), function(here)
    if 0.0 in (f_before, f_here):
        return before if f_before == 0.0 else here
    if (f_before < 0) == (f_here < 0):
        raise PrivstatsError("a root was sought where the sign does not change: this is a bug, please report it")
    across = f_across = step_before = step = 0.0
    for _ in range(_MAX_ITERATIONS):
        if f_before != 0.0 and f_here != 0.0 and (f_before < 0) != (f_here < 0):
            across, f_across = before, f_before
            step_before = step = here - before
        if abs(f_across) < abs(f_here):
            before, here, across = here, across, here
            f_before, f_here, f_across = f_here, f_across, f_here
        tolerance = (_ABSOLUTE + _RELATIVE * abs(here)) / 2
        half = (across - here) / 2
        if f_here == 0.0 or abs(half) < tolerance:
            return here
        tried = math.inf
        if abs(step_before) > tolerance and abs(f_here) < abs(f_before):
            tried = _interpolated((before, f_before), (here, f_here), (across, f_across))
        good = 2 * abs(tried) < min(abs(step_before), 3 * abs(half) - tolerance)
        step_before, step = (step, tried) if good else (half, half)
        before, f_before = here, f_here
        here += step if abs(step) > tolerance else (tolerance if half > 0 else -tolerance)
        f_here = function(here)
        if math.isnan(f_here):
            break
    raise PrivstatsError(f"no root was found in {_MAX_ITERATIONS} iterations: this is a bug, please report it")


def _interpolated(before: _Point, here: _Point, across: _Point) -> float:
    """Return the step of the secant or of inverse quadratic interpolation; infinite after a division by zero."""
    (x, f), (x0, f0), (x1, f1) = here, before, across
    try:
        if x0 == x1:
            return -f * (x - x0) / (f - f0)
        slope, other = (f0 - f) / (x0 - x), (f1 - f) / (x1 - x)
        return -f * (f1 * other - f0 * slope) / (other * slope * (f1 - f0))
    except ZeroDivisionError:
        return math.inf
