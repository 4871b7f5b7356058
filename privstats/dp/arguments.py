"""Numbers that callers hand to the formulas: one look, one sentence.

Not the bounds of a plan, which ``privacy`` judges. In front of the curves and the samplers.
"""

from __future__ import annotations

import math
from numbers import Real

from privstats.errors import PlanError

__all__ = ["check_number"]


def check_number(
    field: str, value: object, bound: str, low: float, high: float = math.inf, *, ends: str = "[]"
) -> float:
    """``value`` as a float between ``low`` and ``high``.

    Args:
        field: the caller's name for it.
        value: what came.
        bound: what it may be, for the message.
        low, high: the ends.
        ends: whether they belong to it, as a mathematician writes: "[]", "(]", "[)" or "()".

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
