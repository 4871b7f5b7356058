"""Allocation of the privacy budget over the statistics.

A share is the statistic's part of mu^2 under add-remove, so shares always sum to 1. Shares are task defaults, explicit
values, or the optimum for a weighted squared error. The total mu comes from ``calibration``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privstats.dp.arguments import check_number
from privstats.dp.privacy import Adjacency
from privstats.dp.sensitivities import joint_mu, sensitivity
from privstats.encoding import layout_of
from privstats.errors import PlanError
from privstats.schema import Schema, require_schema

__all__ = ["allocate", "checked_shares", "default_shares", "optimal_shares", "pure_shares", "suggested_shares"]

_SPARSE, _DENSE = 10.0, 20.0
_DENSE_MEANS = 0.4
_WRITTEN = 2  # digits of a share that a person reads in a plan


def default_shares(schema: Schema) -> dict[str, float]:
    """Shares that serve the heads: N .02, A .85 and .13 over the second moments; ridge G .5, h .48, q .02.

    Minimising the plain squared error instead starves the means, on which classification heads depend most. Ridge
    regression is flat in the share of G between .3 and .7.

    Raises:
        SchemaError: not a schema, for example the plan that holds it.

    Example:
        >>> ps.dp.default_shares(ps.ClassSchema(2, 2, "NAB", clip_norm=1.0))
        {'N': 0.02, 'A': 0.85, 'B': 0.13}
    """
    require_schema(schema)
    fixed = {row.letter: row.share for row in schema.sent if row.share is not None}
    others = [row.letter for row in schema.sent if row.share is None]
    rest = 1 - math.fsum(fixed.values())
    if not others:
        largest = max(fixed, key=fixed.__getitem__)
        return {**fixed, largest: fixed[largest] + rest}
    return {**fixed, **dict.fromkeys(others, rest / len(others))}


def suggested_shares(schema: Schema, mu: float, records: int) -> dict[str, float]:
    """Shares to *write into* a plan of (N, A, B), by the expected signal relative to the noise; two digits each.

    With ``s = n mu / (C sqrt d)``: the defaults up to s = 10, N .02, A .4, B .58 from s = 20 on, linear in log s
    between. Where the means are accurate, noise dominates the covariance. Any other set of statistics gets its
    defaults. These are never defaults themselves: a plan without shares must mean the same to every version.

    Args:
        schema: what is measured.
        mu: Gaussian-DP parameter per record.
        records: the expected number of records, approximately; a public number, such as ``cohort.max_records``.

    Raises:
        SchemaError: not a schema, for example the plan that holds it.
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


def checked_shares(schema: Schema, shares: Mapping[str, float] | None) -> dict[str, float]:
    """The given shares in the schema's order, or the defaults.

    Raises:
        PlanError: a statistic of the schema has no share, or a share names a statistic that is not sent.
    """
    if shares is None:
        return default_shares(schema)
    missing = [statistic for statistic in schema.statistics if statistic not in shares]
    unknown = sorted(set(shares) - set(schema.statistics))
    if missing or unknown:
        wrong = f"leave out {', '.join(missing)}" if missing else f"name {', '.join(unknown)}, which is not sent"
        raise PlanError(f"shares {wrong}: give exactly {', '.join(schema.statistics)}, summing to 1")
    return {statistic: shares[statistic] for statistic in schema.statistics}


def pure_shares(schema: Schema, shares: Mapping[str, float] | None) -> dict[str, float]:
    """Parts of a pure epsilon: those given, or the roots of the default parts of mu^2, which mu itself adds up in.

    Raises:
        PlanError: as for :func:`checked_shares`.
    """
    if shares is not None:
        return checked_shares(schema, shares)
    roots = {statistic: math.sqrt(share) for statistic, share in default_shares(schema).items()}
    total = math.fsum(roots.values())
    return {statistic: root / total for statistic, root in roots.items()}


def allocate(
    shares: Mapping[str, float],
    mu: float,
    cost: Callable[[Mapping[str, float], Adjacency], float],
    adjacency: Adjacency,
) -> dict[str, float]:
    """Noise per statistic, in real units, that spends exactly ``mu`` in these proportions.

    Under add-remove sigma_s = Delta_s / (mu sqrt(share_s)). Under replace-one the same proportions are scaled by the
    joint sensitivity, which is exact because mu^2 is linear in a common factor of all 1/sigma_s^2.

    Args:
        shares: the part of mu^2 of each statistic.
        mu: the parameter to spend.
        cost: mu of the unit of the promise, from noise levels and an adjacency (``units.unit_mu``).
        adjacency: of the promise.
    """
    unit = {s: cost({s: 1.0}, "add-remove") / math.sqrt(share) for s, share in shares.items()}
    factor = cost(unit, adjacency) / mu
    return {statistic: sigma * factor for statistic, sigma in unit.items()}


def optimal_shares(
    schema: Schema, adjacency: Adjacency, weights: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Shares that minimise the weighted squared error sum_s weight_s E||v_s - v_s released||_F^2 at a given mu.

    With v_s = weight_s x (entries of the statistic), add-remove has the closed form share_s = Delta_s sqrt(v_s) /
    sum_r Delta_r sqrt(v_r) (Lagrange). Under replace-one the joint mu^2 is a maximum of linear functions of 1/sigma^2,
    so log error + log mu^2 is convex in the log precisions; it is minimised numerically, from the closed form.

    Args:
        weights: per statistic, in 1 / (its real unit)^2; None weighs all entries alike, which starves the means.

    Raises:
        PlanError: an unknown adjacency, or weights that do not name exactly the schema's statistics with numbers above
            0.
        SchemaError: not a schema, for example the plan that holds it.

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
    sensitivity(schema, schema.statistics[0], adjacency)  # refuses an unknown one
    return _refined(schema, shares, bound, cost)


def _costs(schema: Schema, weights: Mapping[str, float] | None) -> dict[str, float]:
    given = dict.fromkeys(schema.statistics, 1.0) if weights is None else weights
    if set(given) != set(schema.statistics) or not all(0 < w < math.inf for w in given.values()):
        raise PlanError(f"weights must give {', '.join(schema.statistics)} a number above 0 each")
    entries = dict.fromkeys(schema.statistics, 0)
    for segment in layout_of(schema).segments:
        entries[segment.statistic] += segment.size
    return {s: given[s] * entries[s] for s in schema.statistics}


def _refined(
    schema: Schema, start: Mapping[str, float], bound: Mapping[str, float], cost: Mapping[str, float]
) -> dict[str, float]:
    """Nelder-Mead over the log shares, restarted until it converges: the maximum of two branches has a kink."""
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
        found = minimize(loss, best, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20_000})
        if found.fun >= value - 1e-12:
            return spread(best)
        best, value = found.x, float(found.fun)
