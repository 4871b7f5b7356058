"""Which part of the budget each statistic gets.

A share is the statistic's part of mu^2 under add-remove, so shares always sum to 1. Task defaults, explicit shares,
and the optimum for a weighted squared error. The total mu comes from ``calibration``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from privstats.dp.privacy import Adjacency
from privstats.dp.sensitivity import joint_mu, sensitivity
from privstats.errors import PlanError
from privstats.schema import ClassSchema, Schema

__all__ = ["allocate", "checked_shares", "default_shares"]

_CLASS_SHARES = {"N": 0.02, "A": 0.85}
_RIDGE_SHARES = {"G": 0.55, "h": 0.43, "q": 0.02}


def default_shares(schema: Schema) -> dict[str, float]:
    """Shares that serve the heads: N .02, A .85 and .13 over the second moments; ridge G .55, h .43, q .02.

    Minimising the plain squared error instead starves the means, on which classification heads depend most.
    """
    if not isinstance(schema, ClassSchema):
        return dict(_RIDGE_SHARES)
    seconds = [statistic for statistic in schema.statistics if statistic in "BSD"]
    if not seconds:
        return {"N": _CLASS_SHARES["N"], "A": 1 - _CLASS_SHARES["N"]}
    rest = 1 - _CLASS_SHARES["N"] - _CLASS_SHARES["A"]
    return {**_CLASS_SHARES, **{statistic: rest / len(seconds) for statistic in seconds}}


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


def allocate(schema: Schema, shares: Mapping[str, float], mu: float, adjacency: Adjacency) -> dict[str, float]:
    """Noise per statistic, in real units, that spends exactly ``mu`` in these proportions.

    Under add-remove sigma_s = Delta_s / (mu sqrt(share_s)). Under replace-one the same proportions are scaled by the
    joint sensitivity, which is exact because mu^2 is linear in a common factor of all 1/sigma_s^2.
    """
    unit = {s: sensitivity(schema, s, "add-remove") / math.sqrt(share) for s, share in shares.items()}
    factor = joint_mu(schema, unit, adjacency) / mu
    return {statistic: sigma * factor for statistic, sigma in unit.items()}
