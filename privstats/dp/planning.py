"""Choose a plan's numbers, on which no promise depends: budget shares and the minimum count."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privstats.dp.privacy import Adjacency
from privstats.dp.sensitivities import default_shares, joint_mu, sensitivity
from privstats.encoding import layout_of
from privstats.errors import PlanError
from privstats.python_values import check_number
from privstats.schema import Schema, require_schema

_SPARSE, _DENSE = 10.0, 20.0
_DENSE_MEANS = 0.4
_WRITTEN = 2  # digits of a share that a person reads in a plan


def suggested_shares(schema: Schema, mu: float, records: int) -> dict[str, float]:
    """Return shares of (N, A, B) to *write into* a plan, from the expected signal over noise.

    Let ``s = n mu / (C sqrt d)``. Up to s = 10 shares are the defaults, from s = 20 on N .02, A .4, B .58. They are
    linear in log s between. Other sets of statistics get their defaults. A plan without shares uses
    :func:`default_shares`.

    Args:
        mu: Gaussian-DP parameter per record.
        records: expected number, public.

    Raises:
        PlanError: mu or records is not above 0.

    Example:
        >>> schema = ps.ClassSchema(10, 64, "NAB", clip_norm=1.0)
        >>> ps.dp.suggested_shares(schema, mu=0.3, records=1_000)
        {'N': 0.02, 'A': 0.85, 'B': 0.13}
        >>> ps.dp.suggested_shares(schema, mu=0.3, records=50_000)
        {'N': 0.02, 'A': 0.4, 'B': 0.58}
    """
    usual = default_shares(schema)
    signal = check_number("mu", mu, "finite and above 0", 0, ends="()") * check_number(
        "records", records, "finite and above 0", 0, ends="()"
    )
    if not schema.optional or set(usual) != set("NAB"):
        return usual
    signal /= schema.sizes["class"] * math.sqrt(schema.features)
    way = min(max(math.log(signal / _SPARSE) / math.log(_DENSE / _SPARSE), 0.0), 1.0)
    means = round(usual["A"] + way * (_DENSE_MEANS - usual["A"]), _WRITTEN)
    return {"N": usual["N"], "A": means, "B": round(1 - usual["N"] - means, _WRITTEN)}


def optimal_shares(
    schema: Schema, adjacency: Adjacency, weights: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return shares that minimise the weighted squared error sum_s weight_s E||v_s - v_s released||_F^2 at fixed mu.

    With c_s = weight_s x (entries of the statistic), add-remove has share_s = Delta_s sqrt(c_s) / sum_r Delta_r
    sqrt(c_r) (Lagrange). That is the minimum if one record is worst for all statistics at once; a logistic score has no
    such record. Under replace-one the joint mu^2 is a maximum of linear functions of 1/sigma^2. So log error + log mu^2
    is convex in the log precisions. The minimum is computed numerically, from the add-remove shares.

    Args:
        weights: per statistic, in 1 / (its real unit)^2; None weighs all entries alike, which starves the means.

    Raises:
        PlanError: an unknown adjacency, or not one weight above 0 per statistic.

    Example:
        >>> shares = ps.dp.optimal_shares(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), "add-remove")
        >>> {letter: round(share, 3) for letter, share in shares.items()}
        {'N': 0.414, 'A': 0.586}
    """
    require_schema(schema)
    cost = _costs(schema, weights)
    bound = {s: sensitivity(schema, s, "add-remove") for s in schema.statistics}
    raw = {s: bound[s] * math.sqrt(cost[s]) for s in schema.statistics}
    total = math.fsum(raw.values())
    shares = {s: value / total for s, value in raw.items()}
    if adjacency == "add-remove":
        return shares
    # sensitivity refuses an unknown adjacency.
    sensitivity(schema, schema.statistics[0], adjacency)
    return _refined(schema, shares, bound, cost)


def _costs(schema: Schema, weights: Mapping[str, float] | None) -> dict[str, float]:
    weight_of = dict.fromkeys(schema.statistics, 1.0) if weights is None else weights
    if set(weight_of) != set(schema.statistics) or not all(0 < w < math.inf for w in weight_of.values()):
        raise PlanError(f"weights must be above 0 for each of {', '.join(schema.statistics)}, got {dict(weight_of)}")
    entries = dict.fromkeys(schema.statistics, 0)
    for segment in layout_of(schema).segments:
        entries[segment.statistic] += segment.size
    return {s: weight_of[s] * entries[s] for s in schema.statistics}


def _refined(
    schema: Schema, start: Mapping[str, float], bound: Mapping[str, float], cost: Mapping[str, float]
) -> dict[str, float]:
    """Restart Nelder-Mead until it converges: the maximum of two branches has a kink."""
    from scipy.optimize import minimize  # slow to import, and few plans optimise

    def spread(logs: NDArray[np.float64]) -> dict[str, float]:
        powers = np.exp(logs - logs.max())
        return {s: float(p) for s, p in zip(start, powers / powers.sum(), strict=True)}

    def loss(logs: NDArray[np.float64]) -> float:
        sigma = {s: bound[s] / math.sqrt(share) for s, share in spread(logs).items()}
        error = math.fsum(cost[s] * sigma[s] ** 2 for s in sigma)
        return math.log(error) + 2 * math.log(joint_mu(schema, sigma, "replace-one"))

    best, value = np.log(np.array(list(start.values()))), math.inf
    while True:
        result = minimize(loss, best, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20_000})
        if result.fun >= value - 1e-12:
            return spread(best)
        best, value = result.x, float(result.fun)


def drop_probability(count: float, min_count: float, sigma: float, *, laplace: bool = False) -> float:
    """Return P(a class of ``count`` records is suppressed) = Phi((min_count - count) / sigma).

    For count >= min_count this is the probability of a wrong suppression, else 1 minus that of a wrong release. With
    ``laplace``, for delta = 0, the Laplace distribution replaces Phi.

    ``sigma`` is the noise *in the release* on a count, in records, ``noise.released_sigma(survivors)["N"]``; 0 means
    none. Outside the central model the guaranteed ``noise.sigma["N"]`` can understate the errors, because all survivors
    or panel members add noise.

    Example:
        >>> ps.dp.drop_probability(count=50, min_count=50, sigma=4.0)
        0.5
        >>> round(ps.dp.drop_probability(count=60, min_count=50, sigma=4.0), 4)
        0.0062
    """
    check_number("count", count, "a finite number", -math.inf, math.inf, ends="()")
    _check(min_count, sigma)
    if sigma == 0:
        return float(count < min_count)
    place = (min_count - count) / sigma
    return _laplace(place) if laplace else float(ndtr(place))


def doubtful_counts(
    min_count: float, sigma: float, probability: float = 0.01, *, laplace: bool = False
) -> tuple[float, float]:
    """Return the range of counts in which noise decides whether a class is suppressed.

    The probability that a class below the range stays, or one above is suppressed, is below ``probability``. The ends
    are min_count -+ sigma Phi^-1(1 - probability), with ``sigma`` and ``laplace`` as in :func:`drop_probability`.

    Example:
        >>> low, high = ps.dp.doubtful_counts(min_count=50, sigma=4.0)
        >>> round(low, 1), round(high, 1)
        (40.7, 59.3)
    """
    _check(min_count, sigma)
    check_number("probability", probability, "between 0 and 1/2", 0, 0.5, ends="()")
    reach = -sigma * (math.log(2 * probability) / math.sqrt(2) if laplace else float(ndtri(probability)))
    return min_count - reach, min_count + reach


def _laplace(x: float) -> float:
    """Return P(L <= place) for Laplace noise of standard deviation 1."""
    tail = math.exp(-math.sqrt(2) * abs(x)) / 2
    return tail if x < 0 else 1 - tail


def _check(min_count: float, sigma: float) -> None:
    check_number("min_count", min_count, "a finite number", -math.inf, math.inf, ends="()")
    check_number("sigma", sigma, "at least 0", 0)
