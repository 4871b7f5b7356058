"""Compute Gaussian quantiles sigma z to an integer step, for sigma too large for float64's quantile.

float64 holds z to 2**-50, a quarter of a step at sigma = 2**48. Here z is a knot t, a multiple of 2**-10 with an exact
tail, plus a small rest: a proposal with an error bound.
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

USUAL = np.int64(1 << 57)
"""All but one uniform in 64 are at least this many units of 2**-64, and have a far smaller error than the others."""

_KNOTS_PER_UNIT = 1 << 10
_LAST = 4300  # t = 4.199; the uniforms that are decided here have z <= 4.174
# The uniforms that are decided here have m >= 2**48.
_MIN_BITS = 48
_PREFIX = np.int64(52 - 12)  # bits of a float64 behind its exponent and the first twelve of its mantissa
_REACH = 2.0**-10.57  # bound on |w|, derived in position_of; tighten it by proof alone, never by measurement
_RELATIVE_ERROR = 5.5 * 2.0**-53
_SIGMA_ERROR = 2.0**-64
# Bound on _RELATIVE_ERROR |rest| / sigma for |rest| <= 2**-10.5 sigma + 1; _ABSOLUTE_ERROR covers the 1.
_MAX_RELATIVE = 2.0**-61
_ABSOLUTE_ERROR = 2.0**-49
# Undetermined part of u, in units of 2**-64: half a unit, and rounding.
_OPEN = 0.51

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Position(NamedTuple):
    """Values of sigma z as ``integer + rest`` up to :meth:`error`; ``rest`` may be large.

    Attributes:
        integer, rest: int64 and float64 parts.
        knots: index of each entry's knot.
        errors: error bound near each knot for m >= 2**48, without the part proportional to ``|rest|``.
        usual_error: bound on all errors with m >= ``USUAL``.
    """

    integer: Integers
    rest: Floats
    knots: Integers
    errors: Floats
    usual_error: float

    def error(self, where: Integers) -> Floats:
        """Bound the error of these entries, below 0.2 for every sigma up to 2**48; no bound where m < 2**48."""
        return self.errors.take(self.knots.take(where)) + _RELATIVE_ERROR * np.abs(self.rest.take(where))


class _Knots(NamedTuple):
    """Facts of the normal law at the knots t = 0, 2**-10, ...

    Attributes:
        integer, fraction: P(Z > t) in units of 2**-64 is ``integer + fraction + 1/2``.
        inverse_density: 2**-64 / phi(t).
        series: coefficients of w^2 to w^5.
        sixth: constant of Chebyshev's polynomial for the sixth term, also a bound on its error.
        nearest: knot for a uniform's leading bits.
    """

    t: Floats
    integer: Integers
    fraction: Floats
    inverse_density: Floats
    series: tuple[Floats, ...]
    sixth: Floats
    nearest: NDArray[np.int16]


class _Scaled(NamedTuple):
    """At knot j, sigma t as j ``step`` + ``rest``, and the error near that knot.

    ``rest`` includes the fraction of the knot's tail and sigma times ``sixth``. ``series`` has sigma times the
    coefficients of the polynomial in Q(t) - m, highest first.
    """

    step: int
    rest: Floats
    series: tuple[Floats, ...]
    error: Floats
    usual_error: float


def position_of(magnitude: Integers, sigma: float) -> Position:
    """Return sigma z, z = -Phi^-1(u), for uniforms u in [m, m + 1) / 2**64 with 2**-16 <= u < 1/2; 0 <= m < 2**63.

    Let Q(z) = P(Z > z) and u = Q(t) - phi(t) w. Taylor's series is z = t + w + t w^2/2 + (2 t^2 + 1) w^3/6 + ... The
    n-th derivative of z is P_n(z) exp(n (z^2 - t^2) / 2), P_1 = 1, P_(n+1) = P_n' + n z P_n. The knot t is nearest to
    the middle of the uniforms of the same leading bits. These are within 2**-13 of that middle, relatively, so within
    2**-12.6 in z (Q / phi <= 1.26). With |z - t| <= 2**-11 + 2**-12.6 < 2**-10.58 and z < 4.2 the terms from the
    seventh on are below 2**-64.1. As |w| is below W = 2**-10.57, (48 W^2 w^4 - 18 W^4 w^2 + W^6) / 32 (Chebyshev)
    replaces w^6 in the sixth term. That error is at most W^6 / 32.

    The difference g of the integers Q(t) and m, below 2**53, is exact, and w = d g with d = 2**-64 / phi(t), correctly
    rounded. Horner's rule has the coefficients sigma c_n d^n. Relative errors of sigma (z - t), in units of 2**-53:

    - the lowest coefficient, sigma d: 2.
    - the others, together below 2**-9.4 of its term (t |w| / 2 is 2**-9.5), with fewer than 30 errors: 0.05.
    - their sum with sigma d: 1.01.
    - the product with g: 1.

    That is 4.1. A knot times each half of sigma is exact, and the first product is an integer. The last sum has one
    more error. So ``rest`` has a relative error of 5.1. The terms from the seventh on, and roundings of small parts
    (2**-73 sigma), are below 2**-64 sigma + 2**-49. The fraction of Q(t) less 1/2 moves sigma z by up to 2**-65 sigma /
    phi(t). ``_Scaled.rest`` includes this shift, up to 2**-8.3 of it. The 64 bits of m leave another 2**-65 sigma /
    phi(z) open.

    Entries with u < 2**-16 get the knot of 2**-16, so their values are unusable.
    """
    knots, scaled = _knots(), _scaled(sigma)
    at = knots.nearest.take(_leading(magnitude.astype(np.float64)) - _FIRST, mode="clip").astype(np.int64)
    difference = knots.integer.take(at)
    difference -= magnitude
    gap = difference.astype(np.float64)
    rest = scaled.series[0].take(at)
    for coefficient in scaled.series[1:]:
        rest *= gap
        rest += coefficient.take(at)
    rest *= gap
    rest += scaled.rest.take(at)
    return Position(at * scaled.step, rest, at, scaled.error, scaled.usual_error)


def _leading(numbers: Floats) -> Integers:
    return numbers.view(np.int64) >> _PREFIX


_FIRST = int(_leading(np.array([2.0**_MIN_BITS]))[0])


def _halves(sigma: float) -> tuple[float, float]:
    """Split sigma into its upper 26 bits and the rest: products with a 13-bit knot are exact.

    The upper part is a multiple of 2**10 from 2**35 on, and its products with knots are integers.
    """
    mantissa, exponent = math.frexp(sigma)
    upper = math.ldexp(math.floor(math.ldexp(mantissa, 26)), exponent - 26)
    return upper, sigma - upper


@lru_cache(maxsize=16)
def _scaled(sigma: float) -> _Scaled:
    knots, (upper, lower) = _knots(), _halves(sigma)
    d = knots.inverse_density
    error = sigma * (_OPEN * d + knots.sixth + _SIGMA_ERROR) + _ABSOLUTE_ERROR
    usual = knots.nearest[_leading(np.array([float(USUAL)]))[0] - _FIRST]
    series = [sigma * coefficient * d**n for n, coefficient in enumerate(knots.series, 2)]
    return _Scaled(
        step=int(upper) // _KNOTS_PER_UNIT,
        rest=lower * knots.t + sigma * (d * knots.fraction + knots.sixth),
        series=(*reversed(series), sigma * d),
        error=error,
        usual_error=float(error[usual]) + _MAX_RELATIVE * sigma,
    )


@lru_cache(maxsize=1)
def _knots() -> _Knots:
    tails = [exact.gaussian_tail_and_density(Fraction(j, _KNOTS_PER_UNIT), 128) for j in range(_LAST + 1)]
    t = np.arange(_LAST + 1) / _KNOTS_PER_UNIT
    square = t * t
    sixth = t * ((120 * square + 326) * square + 127) / 720
    return _Knots(
        t=t,
        integer=np.array([tail >> 64 for tail, _ in tails], np.uint64).view(np.int64),  # 2**63 at 0; differences wrap
        fraction=np.array([(tail & ((1 << 64) - 1)) * 2.0**-64 for tail, _ in tails]) - 0.5,
        inverse_density=np.array([(1 << 64) / density for _, density in tails]),
        series=(
            t / 2 - sixth * (18 / 32 * _REACH**4),
            (2 * square + 1) / 6,
            t * (6 * square + 7) / 24 + sixth * (48 / 32 * _REACH**2),
            ((24 * square + 46) * square + 7) / 120,
        ),
        sixth=sixth * (_REACH**6 / 32),
        nearest=_nearest(),
    )


def _nearest() -> NDArray[np.int16]:
    """Return the knot for each of the leading bits of m in [2**48, 2**63]."""
    last = int(_leading(np.array([2.0**63]))[0])
    starts = (np.arange(_FIRST, last + 2, dtype=np.int64) << _PREFIX).view(np.float64)
    middle = np.minimum((starts[:-1] + starts[1:]) / 2, 2.0**63)
    return np.minimum(np.rint(-_KNOTS_PER_UNIT * ndtri(middle * 2.0**-64)), _LAST).astype(np.int16)
