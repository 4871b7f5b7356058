"""State how strong an unmeasured confounder must be to explain a ratio away."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias, get_args

from privstats.errors import ReleaseError

Measured: TypeAlias = Literal["risk ratio", "odds ratio", "hazard ratio"]


class EValue(NamedTuple):
    """E-values of a ratio and of the end of its interval that is nearer to 1.

    Attributes:
        estimate: the least risk ratio that a confounder must have with the treatment and with the outcome, given the
            columns, to move the estimate to 1.
        limit: the same for the interval; 1 where the interval includes 1 or is infinite on the side of 1.

    Example:
        >>> found = ps.inference.e_value(0.8, 0.71, 0.91, measure="risk ratio")
        >>> round(found.estimate, 2), round(found.limit, 2)
        (1.81, 1.43)
    """

    estimate: float
    limit: float


def e_value(ratio: float, low: float, high: float, *, measure: Measured, common: bool | None = None) -> EValue:
    """Return E-values of a ratio with its interval (VanderWeele and Ding 2017).

    ``E = RR + sqrt(RR (RR - 1))`` for RR at least 1, and E of 1 / RR below. A common outcome's odds ratio counts as its
    square root, a common outcome's hazard ratio as ``(1 - .5^sqrt(HR)) / (1 - .5^sqrt(1 / HR))``. The interval holds
    under the release's noise, so ``limit`` does too.

    Args:
        ratio, low, high: estimate and ends of a reported interval.
        measure: what the ratio compares.
        common: for odds and hazard ratios: whether more than 15 % have the outcome by the end of follow-up.

    Raises:
        ReleaseError: no ratio, another measure, or ``common`` missing or superfluous.

    Example:
        >>> [round(each, 2) for each in ps.inference.e_value(3.9, 1.8, 8.7, measure="risk ratio")]
        [7.26, 3.0]
    """
    if measure not in get_args(Measured):
        raise ReleaseError(f"measure must be {', '.join(map(repr, get_args(Measured)))}, got {measure!r}")
    if (measure == "risk ratio") != (common is None):
        raise ReleaseError(
            "common must be True or False for an odds or hazard ratio, whether more than 15 % have the outcome by the "
            "end of follow-up, and must be omitted for a risk ratio"
        )
    if not 0 < ratio < math.inf or not 0 <= low <= ratio <= high:
        raise ReleaseError(
            f"a ratio must be above 0 and inside its interval, got {ratio!r} in {low!r} to {high!r}; a coefficient's "
            "ratio is its exponential"
        )
    nearest = low if ratio > 1 else high
    limit = 1.0 if low <= 1 <= high else _needed(nearest, measure, common=bool(common))
    return EValue(_needed(ratio, measure, common=bool(common)), limit)


def _needed(ratio: float, measure: Measured, *, common: bool) -> float:
    risks = _as_risks(ratio, measure) if common else ratio
    away = max(risks, 1 / risks)
    return away + math.sqrt(away * (away - 1))


def _as_risks(ratio: float, measure: Measured) -> float:
    """Return the risk ratio that stands in for a common outcome's ratio."""
    root = math.sqrt(ratio)
    return root if measure == "odds ratio" else float((1 - 0.5**root) / (1 - 0.5 ** (1 / root)))
