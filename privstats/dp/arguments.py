"""Validation of the numbers that callers pass to the privacy curves and the samplers.

``privacy`` checks the bounds of a plan's own fields.
"""

from __future__ import annotations

import math
from numbers import Real

from privstats.errors import PlanError

__all__ = ["check_number"]


def check_number(
    field: str, value: object, bound: str, low: float, high: float = math.inf, *, ends: str = "[]"
) -> float:
    """Return ``value`` as a float; raise unless it lies between ``low`` and ``high``.

    Args:
        field: the caller's name for it.
        value: the value to check.
        bound: the allowed values, for the message.
        low, high: the ends.
        ends: which ends are included, in the notation of intervals: "[]", "(]", "[)" or "()".

    Raises:
        PlanError: not a number, NaN, or out of bounds.
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    above = number >= low if ends[0] == "[" else number > low
    below = number <= high if ends[1] == "]" else number < high
    if not (above and below):
        raise PlanError(
            f"{field} must be {bound}, got {value if isinstance(value, Real | str) else type(value).__name__!r}"
        )
    return number
