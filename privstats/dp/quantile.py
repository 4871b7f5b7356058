"""Where sigma z lies, for noise so wide that the float64 quantile cannot tell its grid step.

float64 gives z to 2**-50, which is a quarter of a grid step at sigma = 2**48. Here z is split into a stone t, a
multiple of 2**-10 whose tail is known exactly, and a small rest. A proposal with an error bound for ``samplers``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privstats.dp import exact

__all__ = ["Position", "position_of"]

_STONES_PER_UNIT = 1 << 10
_LAST = 4300  # t = 4.199; the uniforms that are decided here have z <= 4.174
_RELATIVE_ERROR = 2.0**-60
_ABSOLUTE_ERROR = 2.0**-50
_OPEN = 0.51

Floats = NDArray[np.float64]


class Position(NamedTuple):
    """sigma z = ``whole + rest`` up to ``error``, entry by entry; ``whole`` is int64 and ``rest`` may be large."""

    whole: NDArray[np.int64]
    rest: Floats
    error: Floats


class _Stones(NamedTuple):
    """P(Z > t) in units of 2**-64 as a whole number and a fraction, and 2**-64 / phi(t), at t = 0, 2**-10, ..."""

    whole: NDArray[np.uint64]
    fraction: Floats
    inverse_density: Floats


def position_of(magnitude: NDArray[np.int64], sigma: float) -> Position:
    """sigma z with z = -Phi^-1(u), for the uniforms u in [m, m + 1) / 2**64 with 2**-16 <= u < 1/2.

    With Q(z) = P(Z > z) and u = Q(t) - phi(t) w, Taylor's series is z = t + w + t w^2/2 + (2 t^2 + 1) w^3/6 + ...; its
    n-th derivative is P_n(z) exp(n (z^2 - t^2) / 2), so with |z - t| <= 2**-11 and z < 4.2 the seventh term
    and what follows is below 2**-67. The difference of the integers Q(t) and m, below 2**53, is exact, so w has at most
    5 relative errors of 2**-53 and z - t at most 8, together 2**-60.9. A stone times each half of sigma is exact, and
    so is splitting the whole number off; adding up what is left costs 2**-62.9 sigma + 2**-53. All that is below
    2**-60 sigma + 2**-50. The 64 bits of m leave another 2**-65 sigma / phi(z) open.
    """
    stones = _stones()
    nearest = ndtri((magnitude + 0.5) * 2.0**-64)
    nearest *= -_STONES_PER_UNIT
    at = np.minimum(np.rint(nearest).astype(np.int64), _LAST)
    gap = (stones.whole[at] - magnitude.view(np.uint64)).view(np.int64)
    inverse_density = stones.inverse_density[at]
    w = (gap + (stones.fraction[at] - 0.5)) * inverse_density
    t = at * (1 / _STONES_PER_UNIT)
    upper, lower = _halves(sigma)
    head = upper * t
    whole = np.rint(head)
    rest = sigma * _beside(t, w)
    rest += (head - whole) + lower * t
    error = sigma * (_OPEN * inverse_density + _RELATIVE_ERROR) + _ABSOLUTE_ERROR
    return Position(whole.astype(np.int64), rest, error)


def _beside(t: Floats, w: Floats) -> Floats:
    """z - t: the quantile's series to the sixth order."""
    square = t * t
    series = w * (t * ((120 * square + 326) * square + 127) / 720)
    series = w * (series + ((24 * square + 46) * square + 7) / 120)
    series = w * (series + t * (6 * square + 7) / 24)
    series = w * (series + (2 * square + 1) / 6)
    series = w * (series + t / 2)
    out: Floats = w * (series + 1)
    return out


def _halves(sigma: float) -> tuple[float, float]:
    """sigma as a sum of its upper 26 bits and the rest: products with a stone, which has 13 bits, are exact."""
    mantissa, exponent = math.frexp(sigma)
    upper = math.ldexp(math.floor(math.ldexp(mantissa, 26)), exponent - 26)
    return upper, sigma - upper


@lru_cache(maxsize=1)
def _stones() -> _Stones:
    tails = [exact.gaussian_tail(Fraction(j, _STONES_PER_UNIT), 128) for j in range(_LAST + 1)]
    t = np.arange(_LAST + 1) / _STONES_PER_UNIT
    return _Stones(
        whole=np.array([tail >> 64 for tail in tails], np.uint64),
        fraction=np.array([(tail & ((1 << 64) - 1)) * 2.0**-64 for tail in tails]),
        inverse_density=np.exp(t * t / 2) * (math.sqrt(2 * math.pi) * 2.0**-64),
    )
