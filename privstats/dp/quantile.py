"""Gaussian quantiles sigma z to the grid step, for noise so wide that the float64 quantile is too coarse.

float64 gives z to 2**-50, which is a quarter of a grid step at sigma = 2**48. Here z is split into a knot t, a multiple
of 2**-10 whose tail is known exactly, and a small rest. The result is a proposal with an error bound, for ``samplers``.
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

_KNOTS_PER_UNIT = 1 << 10
_LAST = 4300  # t = 4.199; the uniforms that are decided here have z <= 4.174
_LEAST = 48  # those uniforms have m >= 2**48
_PREFIX = np.int64(52 - 12)  # bits of a float64 behind its exponent and the first twelve of its mantissa
_RELATIVE_ERROR = 10 * 2.0**-53
_SIGMA_ERROR = 2.0**-64
_MOST_RELATIVE = 2.0**-60  # of |rest| below 2**-10.5 sigma + 1; the one is within the absolute error
_ABSOLUTE_ERROR = 2.0**-49
_OPEN = 0.51

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Position(NamedTuple):
    """sigma z = ``whole + rest`` up to :meth:`error`, entry by entry; ``whole`` is int64 and ``rest`` may be large.

    Attributes:
        whole, rest: see above.
        knots: number of the knot of each entry.
        errors: error at each knot; what the size of ``rest`` adds to it is left out.
        most_error: a bound on all errors.
    """

    whole: Integers
    rest: Floats
    knots: Integers
    errors: Floats
    most_error: float

    def error(self, where: Integers) -> Floats:
        """A bound on the error of these entries."""
        return self.errors.take(self.knots[where]) + _RELATIVE_ERROR * np.abs(self.rest[where])


class _Knots(NamedTuple):
    """P(Z > t) in units of 2**-64 as a whole number and a fraction less 1/2, and 2**-64 / phi(t), at t = 0, 2**-10, ...

    ``series`` has the coefficients of w^6 to w^2 there, ``nearest`` the knot for a uniform's leading bits.
    """

    t: Floats
    whole: Integers
    fraction: Floats
    inverse_density: Floats
    series: tuple[Floats, ...]
    nearest: NDArray[np.int16]


class _Scaled(NamedTuple):
    """sigma t of every knot as a whole number and a rest, the fraction of its tail in it, and the error near it."""

    whole: Integers
    rest: Floats
    error: Floats


def position_of(magnitude: Integers, sigma: float) -> Position:
    """sigma z with z = -Phi^-1(u), for the uniforms u in [m, m + 1) / 2**64 with 2**-16 <= u < 1/2.

    With Q(z) = P(Z > z) and u = Q(t) - phi(t) w, Taylor's series is z = t + w + t w^2/2 + (2 t^2 + 1) w^3/6 + ...; its
    n-th derivative is P_n(z) exp(n (z^2 - t^2) / 2). The knot is the nearest one to the middle of the uniforms of the
    same leading bits, which are within 2**-13 of it, relatively, so within 2**-12.6 in z (Q / phi <= 1.26). With
    |z - t| <= 2**-11 + 2**-12.6 < 2**-10.58 and z < 4.2 the seventh term and what follows is below 2**-64.1. The
    difference of the integers Q(t) and m, below 2**53, is exact, so w has at most 5.2 relative errors of 2**-53 (4.2 of
    the density), and sigma (z - t) 8.3. A knot times each half of sigma is exact, and so is splitting the whole number
    off; the sum has one more. Beside these 9.3 relative errors, the seventh term and the roundings of small parts are
    below 2**-64 sigma + 2**-49. The fraction of Q(t) less 1/2 moves sigma z by up to 2**-65 sigma / phi(t); the knot's
    own rest holds that, to 2**-8.3 of it. The 64 bits of m leave another 2**-65 sigma / phi(z) open.
    """
    knots, scaled = _knots(), _scaled(sigma)
    at = knots.nearest.take(_leading(magnitude.astype(np.float64)) - _FIRST).astype(np.intp)
    gap = knots.whole.take(at)
    gap -= magnitude
    w = gap.astype(np.float64)
    w *= knots.inverse_density.take(at)
    rest = knots.series[0].take(at)
    for coefficient in knots.series[1:]:
        rest *= w
        rest += coefficient.take(at)
    rest *= w
    rest += 1.0
    rest *= w
    rest *= sigma
    rest += scaled.rest.take(at)
    return Position(scaled.whole.take(at), rest, at, scaled.error, float(scaled.error[-1]) + _MOST_RELATIVE * sigma)


def _leading(numbers: Floats) -> Integers:
    """Exponent and first twelve bits of the mantissa of positive numbers, as one whole number."""
    return numbers.view(np.int64) >> _PREFIX


_FIRST = int(_leading(np.array([2.0**_LEAST]))[0])


def _halves(sigma: float) -> tuple[float, float]:
    """sigma as a sum of its upper 26 bits and the rest: products with a knot, which has 13 bits, are exact."""
    mantissa, exponent = math.frexp(sigma)
    upper = math.ldexp(math.floor(math.ldexp(mantissa, 26)), exponent - 26)
    return upper, sigma - upper


@lru_cache(maxsize=64)
def _scaled(sigma: float) -> _Scaled:
    knots, (upper, lower) = _knots(), _halves(sigma)
    head = upper * knots.t
    whole = np.rint(head)
    rest = (head - whole) + lower * knots.t + sigma * knots.inverse_density * knots.fraction
    error = sigma * (_OPEN * knots.inverse_density + _SIGMA_ERROR) + _ABSOLUTE_ERROR
    return _Scaled(whole.astype(np.int64), rest, error)


@lru_cache(maxsize=1)
def _knots() -> _Knots:
    tails = [exact.gaussian_tail(Fraction(j, _KNOTS_PER_UNIT), 128) for j in range(_LAST + 1)]
    t = np.arange(_LAST + 1) / _KNOTS_PER_UNIT
    square = t * t
    return _Knots(
        t=t,
        whole=np.array([tail >> 64 for tail in tails], np.uint64).view(np.int64),  # 2**63 at 0; differences are modular
        fraction=np.array([(tail & ((1 << 64) - 1)) * 2.0**-64 for tail in tails]) - 0.5,
        inverse_density=np.exp(square / 2) * (math.sqrt(2 * math.pi) * 2.0**-64),
        series=(
            t * ((120 * square + 326) * square + 127) / 720,
            ((24 * square + 46) * square + 7) / 120,
            t * (6 * square + 7) / 24,
            (2 * square + 1) / 6,
            t / 2,
        ),
        nearest=_nearest(),
    )


def _nearest() -> NDArray[np.int16]:
    """The knot for each of the leading bits of m in [2**48, 2**63]."""
    last = int(_leading(np.array([2.0**63]))[0])
    starts = (np.arange(_FIRST, last + 2, dtype=np.int64) << _PREFIX).view(np.float64)
    middle = np.minimum((starts[:-1] + starts[1:]) / 2, 2.0**63)
    return np.minimum(np.rint(-_KNOTS_PER_UNIT * ndtri(middle * 2.0**-64)), _LAST).astype(np.int16)
