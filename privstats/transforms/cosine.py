"""The cosine by additions and multiplications alone.

Library cosines differ in the last bit between platforms and SIMD widths; this one is a fixed sequence of correctly
rounded operations, so it does not.
"""

from __future__ import annotations

import math

from privstats.transforms.arrays import arrays_of
from privstats.transforms.exact import Rows

__all__ = ["cosine_of_turns"]

_TERMS = 12  # (pi/2)**24 / 24! is below 2**-54


def _coefficients() -> list[float]:
    """(-1)**k (2 pi)**(2 k) / (2 k)!, by multiplications and divisions in a fixed order."""
    values, term = [], 1.0
    for k in range(_TERMS):
        values.append(term)
        term = -term * (2 * math.pi) * (2 * math.pi) / ((2 * k + 1) * (2 * k + 2))
    return values


_COEFFICIENTS = _coefficients()


def cosine_of_turns(turns: Rows) -> Rows:
    """cos(2 pi turns), to about 2e-16, the same bits everywhere."""
    xp = arrays_of(turns)
    distance = abs(turns - xp.rint(turns))  # from the nearest whole turn: 0 to 1/2, exact
    far = distance > 0.25
    angle = xp.where(far, 0.5 - distance, distance)
    square = angle * angle
    value = square * _COEFFICIENTS[-1] + _COEFFICIENTS[-2]
    for coefficient in reversed(_COEFFICIENTS[:-2]):
        value = value * square + coefficient
    return xp.where(far, -value, value)
