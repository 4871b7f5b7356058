"""Concentrated differential privacy: the published bound for sums of discrete Gaussians, and its conversion.

It is the published route, here to compare with: ``privstats.dp`` calibrates with a bound that is exact up to 1e-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from privstats.python_values import check_number

_LOG_ORDERS = (-12.0, 25.0)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest epsilon that rho-zCDP is known to imply at ``delta``.

    min over a > 1 of a rho + (log(1/delta) + (a - 1) log(1 - 1/a) - log a) / (a - 1): the tight conversion of Canonne,
    Kamath and Steinke 2020, proposition 12.

    Raises:
        PlanError: rho is not above 0, or delta is not in (0, 1).

    Example:
        >>> from threat_models.audits.zcdp import zcdp_epsilon
        >>> round(zcdp_epsilon(rho=0.05, delta=1e-5), 3)
        1.308
    """
    _check(rho, delta)
    return max(0.0, _least(lambda x: _epsilon_at(x, rho, delta)))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The smallest delta that rho-zCDP is known to imply at ``epsilon``: the same conversion the other way round.

    Example:
        >>> from threat_models.audits.zcdp import zcdp_delta, zcdp_epsilon
        >>> epsilon = zcdp_epsilon(rho=0.05, delta=1e-5)
        >>> round(zcdp_delta(0.05, epsilon), 7)
        1e-05
    """
    _check(rho, 0.5)

    def log_delta(x: float) -> float:
        excess = math.exp(x)
        order = 1 + excess
        return excess * (order * rho - epsilon) - math.log(excess) - order * math.log1p(1 / excess)

    return min(1.0, math.exp(_least(log_delta)))


def distributed_rho(sensitivity: float, share_sigma: float, shares: int, entries: int) -> float:
    """rho of a sum with ``shares`` discrete Gaussians of ``share_sigma`` each, on a common integer grid.

    (1/2) e^2 with e = min( sqrt(D^2 / (K s^2) + tau d / 2), D / (sqrt K s) + tau sqrt d ) and
    tau = 10 sum_(k<K) exp(-2 pi^2 s^2 k / (k + 1)): Kairouz, Liu and Steinke 2021, theorem 1.

    Args:
        sensitivity: L2 norm of the change in grid steps.
        share_sigma: sigma of one share, in grid steps.
        shares: K, honest shares in the sum.
        entries: d, entries of the vector.

    Example:
        >>> from threat_models.audits.zcdp import distributed_rho
        >>> rho = distributed_rho(sensitivity=1.0, share_sigma=5.0, shares=4, entries=10)
        >>> round(rho, 4)  # as one Gaussian of sigma 10: 1 / (2 x 10^2)
        0.005
    """
    tau = 10 * math.fsum(math.exp(-2 * math.pi**2 * share_sigma**2 * k / (k + 1)) for k in range(1, shares))
    mu = sensitivity / (math.sqrt(shares) * share_sigma)
    return min(math.sqrt(mu * mu + tau * entries / 2), mu + tau * math.sqrt(entries)) ** 2 / 2


def _epsilon_at(log_excess: float, rho: float, delta: float) -> float:
    excess = math.exp(log_excess)  # the order minus 1
    order = 1 + excess
    return order * rho - math.log1p(1 / excess) + (math.log(1 / delta) - math.log(order)) / excess


def _check(rho: float, delta: float) -> None:
    check_number("rho", rho, "finite and above 0", 0, ends="()")
    check_number("delta", delta, "strictly between 0 and 1", 0, 1, ends="()")


def _least(function: Callable[[float], float]) -> float:
    """Least value over the logarithm of the order."""
    from scipy.optimize import minimize_scalar  # slow to load

    return float(minimize_scalar(function, bounds=_LOG_ORDERS, method="bounded").fun)
