"""Compute tail probabilities of the rounded and discrete Gaussian and the discrete Laplace law in integers.

A fixed-point number with b bits is an int in units of 2**-b. Results are exact up to ERROR units.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

# Bound on every result's error in units of 2**-bits: truncations and the remainders of series.
ERROR = 4
_GUARD = 64
_DELTA_BITS = 512
_STEP = 6  # knots, the points of the table, are multiples of 2**-6
_LAST = 512
_KNOT_GUARD = 32
_KNOT_BITS = 192 + _KNOT_GUARD


def gaussian_tail(t: Fraction, bits: int) -> int:
    """Return Q(t) = P(Z > t) for t >= 0."""
    return gaussian_tail_and_density(t, bits)[0]


def gaussian_tail_and_density(t: Fraction, bits: int) -> tuple[int, int]:
    """Return Q(t) and phi(t) for t >= 0."""
    value = _normal(t, bits)
    return value.tail >> (value.work - bits), value.density >> (value.work - bits)


def discrete_tail(t: Fraction, sigma: Fraction, bits: int) -> int:
    """Return P(X > k) of the discrete Gaussian, t = (k + 1/2) / sigma, for sigma >= 64 and k >= 0.

    Euler-Maclaurin at the midpoint: Q(t) + phi(t) sum_i b_i He_(2i-1)(t) / sigma^(2i) with b_i = B_2i(1/2) / (2i)!.
    With |B_2m(x)| / (2m)! <= 3.3 (2 pi)^-2m and Cramer's bound |He_n(t)| <= 1.09 sqrt(n!) exp(t^2/4), the remainder
    after m terms is below 6 sqrt((2m)!) (2 pi sigma)^-2m. m keeps the remainder under one unit. The normaliser differs
    from sigma sqrt(2 pi) by the factor 1 + 2 exp(-2 pi^2 sigma^2), at most 1 + 2**-116000.
    """
    tail, density, x, work = _normal(t, bits)
    inverse = _fixed(1 / (sigma * sigma), work)
    before, hermite = 1 << work, x  # He_0, He_1
    power = inverse
    series = 0
    for i in range(1, _terms(float(sigma), bits) + 1):
        b = _midpoint_coefficient(i)
        series += ((hermite * power >> work) * b.numerator) // b.denominator
        power = power * inverse >> work
        for degree in (2 * i - 1, 2 * i):
            before, hermite = hermite, (x * hermite >> work) - degree * before
    correction = (density * series) >> (2 * work - bits)
    return (tail >> (work - bits)) + correction


def discrete_tails(sigma: Fraction, bits: int) -> tuple[int, ...]:
    """Return P(X > k) for k = 0, 1, ... until P vanishes, from the weights exp(-k^2 / (2 sigma^2)).

    Errors in units of 2**-work: at most 3 k + 2 in a ratio, 2 (k + 1)^2 in a weight, n (n + 1)^2 in n weights' sum. For
    n < 2**20 the guard bits keep a tail's error below 2**-bits. The division's truncation is below that too.
    """
    work = bits + _GUARD
    step = _exp_neg(1 / (sigma * sigma), work)
    ratio = _exp_neg(1 / (2 * sigma * sigma), work)
    weights = [1 << work]
    while weights[-1]:
        weights.append((weights[-1] * ratio) >> work)
        ratio = (ratio * step) >> work
    total = 2 * sum(weights) - weights[0]
    tails = []
    above = sum(weights)
    for weight in weights:
        above -= weight
        tails.append((above << bits) // total)
    return tuple(tails)


def laplace_tail(k: int, scale: Fraction, bits: int) -> int:
    """Return P(X > k) of the discrete Laplace law for k >= 0: p^(k + 1) / (1 + p) with p = exp(-1 / scale).

    Both powers are within two units of 2**-work, and the division truncates less than one of 2**-bits.
    """
    work = bits + _GUARD
    return (_exp_neg((k + 1) / scale, work) << bits) // ((1 << work) + _exp_neg(1 / scale, work))


def gaussian_delta_bounds(mu: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Return rationals below and above delta(epsilon) of mu-GDP, Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2).

    Source: Balle and Wang 2018, theorem 8. Both tails have 512 bits; a plan's factor exp(epsilon) costs at most 145 of
    them.

    Example:
        >>> from fractions import Fraction
        >>> from privstats.dp.exact import gaussian_delta_bounds
        >>> low, high = gaussian_delta_bounds(Fraction(1), Fraction(1))
        >>> round(float(low), 6), high - low < Fraction(1, 10**100)
        (0.126937, True)
    """
    nearer, farther = (_upper_tail(epsilon / mu + side * mu / 2, _DELTA_BITS) for side in (-1, 1))
    scaled = _exp_neg(epsilon, _DELTA_BITS)
    one = 1 << _DELTA_BITS
    low = nearer - ERROR - Fraction((farther + ERROR) * one, scaled - ERROR)
    high = nearer + ERROR - Fraction((farther - ERROR) * one, scaled + ERROR)
    return low / one, high / one


def _upper_tail(t: Fraction, bits: int) -> int:
    tail = gaussian_tail(abs(t), bits)
    return tail if t >= 0 else (1 << bits) - tail


class _Normal(NamedTuple):
    """Q(t), phi(t) and t with ``work`` bits, of which the last few are not exact."""

    tail: int
    density: int
    t: int
    work: int


def _normal(t: Fraction, bits: int) -> _Normal:
    if bits <= _KNOT_BITS - _KNOT_GUARD and t.numerator << _STEP <= _LAST * t.denominator:
        return _near_a_knot(_fixed(t, bits + _KNOT_GUARD), bits + _KNOT_GUARD)
    return _by_series(t, bits + _GUARD + math.ceil(t * t))


def _by_series(t: Fraction, work: int) -> _Normal:
    """Evaluate Q(t) = 1/2 - phi(t) sum_j t^(2j+1) / (2j+1)!!, all terms positive.

    A term carries at most 2j units of error times exp(t^2/2), which the factor phi(t) removes. With 64 + t^2 guard bits
    the error is below one unit.
    """
    density, x = (_exp_neg(t * t / 2, work) << work) // _sqrt_2pi(work), _fixed(t, work)
    square = (x * x) >> work
    term = total = x
    odd = 1
    while term:
        odd += 2
        term = ((term * square) >> work) // odd
        total += term
    return _Normal((1 << (work - 1)) - ((density * total) >> work), density, x, work)


def _near_a_knot(x: int, work: int) -> _Normal:
    """Evaluate Q(t) = Q(t0) - (integral of phi from t0 to t) at the nearest knot t0."""
    shift = work - _STEP
    knot = (x + (1 << (shift - 1))) >> shift
    tail, density = (each >> (_KNOT_BITS - work) for each in _knots()[knot])
    strip, ratio = _next_to(knot, x - (knot << shift), work)
    return _Normal(tail - (density * strip >> work), density * ratio >> work, x, work)


def _next_to(knot: int, h: int, work: int) -> tuple[int, int]:
    """Return the integral of phi from a knot t0 to t0 + h, and phi(t0 + h), both over phi(t0); |h| <= 2**-6.

    phi(t0 + h) / phi(t0) = sum_n u_n with u_n = (-h)^n He_n(t0) / n!. So u_(n+1) = -(h t0 u_n + h^2 u_(n-1)) / (n+1).
    The integral's terms are h u_n / (n + 1). Each term carries a few units of error. By Cramer's bound, phi(t0) times
    the terms from the n-th on is below |h|^n / sqrt(n!). The chosen n keeps that under one unit.
    """
    square, slope = h * h >> work, h * knot >> _STEP
    before, term = 0, 1 << work
    strip = ratio = term
    for degree in range(1, _terms_next_to(work - h.bit_length(), work)):
        before, term = term, -(slope * term + square * before >> work) // degree
        ratio += term
        strip += term // (degree + 1)
    return h * strip >> work, ratio


@lru_cache(maxsize=256)
def _terms_next_to(zeros: int, work: int) -> int:
    """Return the smallest n with 2**(-zeros n) / sqrt(n!) <= 2**-work."""
    n = 1
    while zeros * n + math.lgamma(n + 1) / (2 * math.log(2)) < work:
        n += 1
    return n


@lru_cache(maxsize=1)
def _knots() -> tuple[tuple[int, int], ...]:
    """Return Q and phi at the knots 0, 2**-6, ..., 8, each from the one before, with 32 guard bits."""
    work = _KNOT_BITS + _KNOT_GUARD
    tail, density = 1 << (work - 1), (1 << (2 * work)) // _sqrt_2pi(work)
    bounds = []
    for knot in range(_LAST + 1):
        bounds.append((tail >> _KNOT_GUARD, density >> _KNOT_GUARD))
        strip, ratio = _next_to(knot, 1 << (work - _STEP), work)
        tail, density = tail - (density * strip >> work), density * ratio >> work
    return tuple(bounds)


def _fixed(value: Fraction, bits: int) -> int:
    return (value.numerator << bits) // value.denominator


def _exp_neg(x: Fraction, bits: int) -> int:
    """Return exp(-x) for x >= 0: Taylor at x / 2^r < 2^-8, then r squarings; each doubles the relative error.

    The terms' errors are below ``work`` units in all, and the squarings multiply them by at most 2^(r + 1). So 2 r + 16
    more bits leave one unit; the last shift truncates another.
    """
    squarings = max(0, math.ceil(x).bit_length() + 8)
    work = bits + 2 * squarings + 16
    y = _fixed(x, work) >> squarings
    term = total = 1 << work
    j = 1
    # The signs alternate, so terms are computed in pairs: every shifted number is then non-negative.
    while term > 0:
        odd = ((term * y) >> work) // j
        term = ((odd * y) >> work) // (j + 1)
        total += term - odd
        j += 2
    for _ in range(squarings):
        total = (total * total) >> work
    return total >> (work - bits)


@lru_cache(maxsize=32)
def _sqrt_2pi(bits: int) -> int:
    """Return sqrt(2 pi) with pi = 16 atan(1/5) - 4 atan(1/239) (Machin)."""
    work = bits + 32
    pi = 16 * _arctan_inverse(5, work) - 4 * _arctan_inverse(239, work)
    return math.isqrt((2 * pi) << work) >> (work - bits)


def _arctan_inverse(n: int, bits: int) -> int:
    power = (1 << bits) // n
    total, odd = 0, 1
    while power:
        total += power // odd if odd % 4 == 1 else -(power // odd)
        power //= n * n
        odd += 2
    return total


@lru_cache(maxsize=256)
def _terms(sigma: float, bits: int) -> int:
    """Return the fewest terms with an Euler-Maclaurin remainder below 2**-bits."""
    m = 1
    while _log2_remainder(sigma, m) >= -bits:
        m += 1
    return m


def _log2_remainder(sigma: float, m: int) -> float:
    return math.log2(6) + math.lgamma(2 * m + 1) / (2 * math.log(2)) - 2 * m * math.log2(2 * math.pi * sigma)


@lru_cache(maxsize=512)
def _midpoint_coefficient(i: int) -> Fraction:
    """Return B_2i(1/2) / (2i)! = (2^(1-2i) - 1) B_2i / (2i)!."""
    n = 2 * i
    return (Fraction(2, 1 << n) - 1) * _bernoulli(n) / math.factorial(n)


@lru_cache(maxsize=512)
def _bernoulli(n: int) -> Fraction:
    if n == 0:
        return Fraction(1)
    return -sum((math.comb(n + 1, j) * _bernoulli(j) for j in range(n)), Fraction(0)) / (n + 1)
