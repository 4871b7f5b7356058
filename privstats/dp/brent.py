"""The root of a function of one number, by Brent's method, to the last bits of float64.

The steps are those of scipy's ``brentq``, one IEEE operation each, so the result is the same to the bit; with a copy
here the check of a plan need not import all of ``scipy.optimize``.

It stands here because importing scipy.optimize was a third of ``plan check``; bit for bit its root, since the digits
are in every noise level.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TypeAlias

from privstats.errors import PrivstatsError

__all__ = ["root"]

_RELATIVE = 4 * sys.float_info.epsilon
_ABSOLUTE = 1e-300
_MOST_STEPS = 500
_Point: TypeAlias = tuple[float, float]


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The point between ``low`` and ``high`` where ``function`` changes its sign (Brent 1973, chapter 4).

    Raises:
        PrivstatsError: it has one sign at both ends, or no root is found in 500 steps; a bug in the caller.

    Example:
        >>> from privstats.dp.brent import root
        >>> root(lambda x: x * x - 2, 0.0, 2.0) == 2**0.5
        True
    """
    before, here = low, high
    f_before, f_here = function(before), function(here)
    if 0.0 in (f_before, f_here):
        return before if f_before == 0.0 else here
    if (f_before < 0) == (f_here < 0):
        raise PrivstatsError("a root was sought where the sign does not change: this is a bug, please report it")
    across = f_across = step_before = step = 0.0
    for _ in range(_MOST_STEPS):
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
    raise PrivstatsError(f"no root was found in {_MOST_STEPS} steps: this is a bug, please report it")


def _interpolated(before: _Point, here: _Point, across: _Point) -> float:
    """The step of the secant through two points, or of the inverse quadratic through three; infinite for none."""
    (x, f), (x0, f0), (x1, f1) = here, before, across
    try:
        if x0 == x1:
            return -f * (x - x0) / (f - f0)
        slope, other = (f0 - f) / (x0 - x), (f1 - f) / (x1 - x)
        return -f * (f1 * other - f0 * slope) / (other * slope * (f1 - f0))
    except ZeroDivisionError:
        return math.inf
