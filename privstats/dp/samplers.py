"""Sample exact integer noise by vectorised inversion: rounded Gaussian, discrete Gaussian and discrete Laplace.

Each sample is a function of its own infinite uniform number: 64 bits from the stream and, if needed, more from its own
substream. float64 only *proposes*; integer arithmetic decides where its error matters (``exact``). So, within the
float64 errors assumed below, the law is exact, and a stream yields equal samples on every platform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privstats.dp import exact
from privstats.dp.quantile import USUAL, position_of
from privstats.errors import PlanError
from privstats.python_values import check_number
from privstats.randomness import Generator, checked

MAX_SIGMA = 2.0**48
"""Largest sigma in integer steps: float64 holds every integer up to 12 sigma exactly."""

MAX_SCALE = 2.0**35
"""Largest scale of Laplace noise in integer steps: float64 decides all but two samples in a thousand there."""

_TILE = 1 << 13
_TABLE_BELOW = 64.0
_PREFIX_BITS = 16
_BEHIND_PREFIX = np.int64(63 - _PREFIX_BITS)
_MAGNITUDE = np.int64((1 << 63) - 1)
_DEEP = np.int64(1 << 48)
# At this sigma float64 alone leaves one sample in a thousand to the exact path, and more beyond.
_LARGE = 2.0**35
_RELATIVE_ERROR = 32 * 2.0**-53
_ABSOLUTE_ERROR = 8 * 2.0**-53 + 2.0**-48
_LOG_ERROR = 2.0**-45

Integers: TypeAlias = NDArray[np.int64]


def rounded_gaussian(sigma: float, size: int, rng: Generator) -> Integers:
    """Sample ``size`` values of round(sigma Z), Z standard normal: int64, shape ``(size,)``.

    P(X = k) = Phi((k + 1/2)/sigma) - Phi((k - 1/2)/sigma), exactly.

    Guarantee:
        v + X for an integer v is a post-processing of v + sigma Z, hence exactly (Delta/sigma)-GDP.

    Raises:
        PlanError: sigma is not in (0, 2**48], or size is negative.

    Example:
        >>> from privstats import randomness
        >>> noise = ps.dp.rounded_gaussian(3.0, 10_000, randomness.seeded(0))
        >>> abs(noise.mean()) < 0.2, abs(noise.std() - 3.0) < 0.1
        (np.True_, np.True_)
    """
    return _sample(_Rounded(_checked(sigma)), size, rng)


def discrete_gaussian(sigma: float, size: int, rng: Generator) -> Integers:
    """Sample ``size`` values of the discrete Gaussian, P(X = k) proportional to exp(-k^2 / (2 sigma^2)), exactly.

    int64, shape ``(size,)``. Source: Canonne, Kamath and Steinke 2020, definition 1.

    Guarantee:
        v + X for an integer v is (Delta^2 / (2 sigma^2))-zCDP (their theorem 4). It is also a post-processing of
        Gaussian noise of variance sigma^2 - 4, up to a factor of at most exp(2.1e-34) per entry (docs/proofs/noise.md).

    Raises:
        PlanError: sigma is not in (0, 2**48], or size is negative.

    Example:
        >>> from privstats import randomness
        >>> noise = ps.dp.discrete_gaussian(3.0, 10_000, randomness.seeded(0))
        >>> abs(noise.mean()) < 0.2, abs(noise.std() - 3.0) < 0.1
        (np.True_, np.True_)
    """
    sigma = _checked(sigma)
    return _sample(_tabled(sigma) if sigma < _TABLE_BELOW else _Discrete(sigma), size, rng)


def discrete_laplace(scale: float, size: int, rng: Generator) -> Integers:
    """Sample ``size`` values of the discrete Laplace law, P(X = k) proportional to exp(-|k| / scale), exactly.

    int64, shape ``(size,)``; variance 1 / (2 sinh^2(1 / (2 scale))). No tail is truncated. Source: Canonne, Kamath and
    Steinke 2020, definition 3; the geometric mechanism of Ghosh, Roughgarden and Sundararajan 2009.

    Guarantee:
        v + X for integer vectors v and independent X is (Delta / scale)-DP with delta = 0. Delta is v's L1
        sensitivity in integer steps. The reason: P(X = k) <= exp(|j| / scale) P(X = k + j) for all integers j and k.
        An attacker who times the machine is not covered: up to two samples in a thousand, which float64 cannot decide,
        run more steps.

    Raises:
        PlanError: scale is not in (0, 2**35], or size is negative.

    Example:
        >>> from privstats import randomness
        >>> noise = ps.dp.discrete_laplace(3.0, 10_000, randomness.seeded(0))
        >>> abs(noise.mean()) < 0.2, abs(noise.std() - 4.22) < 0.2
        (np.True_, np.True_)
    """
    scale = check_number("scale", scale, "above 0 and at most 2**35 integer steps", 0, MAX_SCALE, ends="(]")
    return _sample(_Laplace(scale), size, rng)


class _Proposal(NamedTuple):
    """|X| for some uniforms, as far as float64 can decide it.

    Attributes:
        values: |X| of all but the doubtful entries.
        doubtful: indices where ``values`` only starts a search.
        one_edge: whether a doubtful |X| can only be the value or one more.
    """

    values: Integers
    doubtful: NDArray[np.intp]
    one_edge: NDArray[np.bool_]


class _Law(Protocol):
    """A symmetric law on the integers."""

    def propose(self, magnitude: Integers) -> _Proposal:
        """Return |X| for uniforms in [m, m + 1) / 2**64."""

    def tail(self, k: int, bits: int) -> int:
        """Return P(X > k) in units of 2**-bits, within ``exact.ERROR`` units."""


@dataclass(frozen=True)
class _Continuous:
    """Base class of the laws that are a rounded normal up to a known small distance.

    |X| = round(multiplier * z) with z = -Phi^-1(u). scipy's ndtri is accurate to a few units in the last place
    (measured in ``tests/dp/test_samplers.py``, not proved). Its argument is accurate to two such units, and the
    64 bits determine u to within 2**-65. For u >= 2**-16 these errors shift z by less than 32 |z| + 8 units of 2**-53
    plus 1.26 2**-49, because Phi(-z) / phi(z) <= sqrt(pi / 2). Below 2**-16 nothing counts as certain.
    """

    sigma: float

    @property
    def multiplier(self) -> float:
        """Factor from z to the scale with cells [k - 1/2, k + 1/2)."""
        return self.sigma

    @property
    def slack(self) -> float:
        """Bound on the proposal's error in cells, without rounding errors."""
        return 0.0

    def propose(self, magnitude: Integers) -> _Proposal:
        return self._large(magnitude) if self.sigma >= _LARGE else self._small(magnitude)

    def _large(self, magnitude: Integers) -> _Proposal:
        """Propose cells from sigma z in two parts, where one float64 is too coarse.

        Every law's edges are within 1 / sigma of the half-integers. For uniforms from 2**-16 on the error of sigma z is
        below 1/2 - 1 / sigma, so only the next half-integer can be in doubt. Smaller uniforms are searched.
        """
        position = position_of(magnitude, self.sigma)
        nearest, values = np.rint(position.rest), position.integer
        values += nearest.astype(np.int64)
        nearest -= position.rest
        decided = 0.5 - 1 / self.sigma
        suspected = np.abs(nearest) > decided - position.usual_error
        suspected |= magnitude < USUAL
        near = np.flatnonzero(suspected)
        doubt = np.abs(nearest.take(near)) + position.error(near) > decided
        doubt |= magnitude.take(near) < _DEEP
        doubtful = near[doubt]
        m = magnitude[doubtful]
        floor = values[doubtful] - (nearest[doubtful] > 0)
        values[doubtful] = np.where(m < _DEEP, np.rint(-self.sigma * ndtri((m + 0.5) * 2.0**-64)), floor)
        return _Proposal(values, doubtful, m >= _DEEP)

    def _small(self, magnitude: Integers) -> _Proposal:
        position = magnitude.astype(np.float64)
        position += 0.5
        position *= 2.0**-64
        ndtri(position, out=position)
        position *= -self.multiplier
        nearest = np.rint(position)
        distance = np.abs(position - nearest)
        position *= _RELATIVE_ERROR
        distance += position
        uncertain = distance > 0.5 - self.sigma * _ABSOLUTE_ERROR - self.slack
        uncertain |= magnitude < _DEEP
        return _searched(nearest.astype(np.int64), np.flatnonzero(uncertain))


@dataclass(frozen=True)
class _Rounded(_Continuous):
    def tail(self, k: int, bits: int) -> int:
        return exact.gaussian_tail(_boundary(k, self.sigma), bits)


@dataclass(frozen=True)
class _Discrete(_Continuous):
    """The discrete Gaussian for sigma >= 64: Euler-Maclaurin moves the cell edges by z/(24 sigma) + O(sigma^-3).

    For uniforms from 2**-16 on, z < 4.18, and the last term is (11 z - 2 z^3) / (5760 sigma^3) + O(sigma^-5), below .02
    sigma^-3.
    """

    @property
    def multiplier(self) -> float:
        return self.sigma - 1 / (24 * self.sigma)

    @property
    def slack(self) -> float:
        return self.sigma**-3

    def tail(self, k: int, bits: int) -> int:
        return exact.discrete_tail(_boundary(k, self.sigma), Fraction(self.sigma), bits)


@dataclass(frozen=True)
class _Laplace:
    """The discrete Laplace law: P(X > k) = p^(k + 1) / (1 + p) with p = exp(-1 / scale).

    So |X| = ceil(y) - 1 with y = -scale (log u + log(1 + p)), u a uniform below 1/2. For u >= 2**-16, y / scale is
    below 12. The 64 bits determine log u to within 2**-49, and the logarithms err by a few such units (assumed): 2**-45
    covers both. Below 2**-16 nothing counts as certain.
    """

    scale: float

    def propose(self, magnitude: Integers) -> _Proposal:
        place = magnitude.astype(np.float64)
        place += 0.5
        np.log(place * 2.0**-64, out=place)
        place += math.log1p(math.exp(-1 / self.scale))
        place *= -self.scale
        nearest = np.rint(place)
        uncertain: NDArray[np.bool_] = np.abs(place - nearest) <= self.scale * _LOG_ERROR + place * 2.0**-50
        uncertain |= magnitude < _DEEP
        return _searched(np.maximum(np.ceil(place), 1.0).astype(np.int64) - 1, np.flatnonzero(uncertain))

    def tail(self, k: int, bits: int) -> int:
        return exact.laplace_tail(k, Fraction(self.scale), bits)


@dataclass(frozen=True, eq=False)
class _Tabled:
    """The discrete Gaussian for sigma < 64, by a table of its cells' exact 63-bit edges.

    Attributes:
        sigma: the law's parameter.
        inside, outside: cell k holds uniforms with outside[k] < m < inside[k].
        prefixes: the cell of all uniforms with these first 16 bits; negative if an edge is among them.
    """

    sigma: float
    inside: Integers
    outside: Integers
    prefixes: NDArray[np.int16]

    def propose(self, magnitude: Integers) -> _Proposal:
        guess = np.take(self.prefixes, magnitude >> _BEHIND_PREFIX).astype(np.int64)
        missed = np.flatnonzero(guess < 0)
        guess[missed], uncertain = self.searched(magnitude[missed])
        return _searched(guess, missed[uncertain])

    def searched(self, magnitude: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Return each uniform's cell, and whether an edge is too near to decide."""
        places = np.searchsorted(-self.outside, -magnitude, side="left")
        guess = np.minimum(places, len(self.inside) - 1)
        return guess, self._uncertain(magnitude, guess)

    def _uncertain(self, magnitude: Integers, guess: Integers) -> NDArray[np.bool_]:
        unsure: NDArray[np.bool_] = magnitude >= self.inside[guess]
        unsure |= magnitude <= self.outside[guess]
        return unsure

    def tail(self, k: int, bits: int) -> int:
        tails = _tails(self.sigma, bits)
        return tails[k] if k < len(tails) else 0


def _searched(values: Integers, doubtful: NDArray[np.intp]) -> _Proposal:
    return _Proposal(values, doubtful, np.zeros(len(doubtful), np.bool_))


@lru_cache(maxsize=64)
def _tabled(sigma: float) -> _Tabled:
    bits = 128
    tails = _tails(sigma, bits)
    low = [max(0, tail - exact.ERROR) >> (bits - 64) for tail in tails]
    high = [(tail + exact.ERROR) >> (bits - 64) for tail in tails]
    cells = next((k for k, edge in enumerate(high) if edge == 0), len(high)) + 1
    inside = np.array([int(_MAGNITUDE), *low[: cells - 1]], np.int64)
    edges = _Tabled(sigma, inside, np.array(high[:cells], np.int64), np.empty(0, np.int16))
    return replace(edges, prefixes=_prefixes(edges))


def _prefixes(edges: _Tabled) -> NDArray[np.int16]:
    """Return each prefix's cell if its first and last uniform share one; cells are intervals."""
    first = np.arange(1 << _PREFIX_BITS, dtype=np.int64) << _BEHIND_PREFIX
    low, unsure_low = edges.searched(first)
    high, unsure_high = edges.searched(first + ((1 << _BEHIND_PREFIX) - 1))
    return np.where((low == high) & ~unsure_low & ~unsure_high, low, -1).astype(np.int16)


@lru_cache(maxsize=64)
def _tails(sigma: float, bits: int) -> tuple[int, ...]:
    return exact.discrete_tails(Fraction(sigma), bits)


def _boundary(k: int, sigma: float) -> Fraction:
    numerator, denominator = sigma.as_integer_ratio()
    return Fraction((2 * k + 1) * denominator, 2 * numerator)


# Propose all samples tile by tile, then decide the doubtful ones with more bits of their own substreams.
def _sample(law: _Law, size: int, rng: Generator) -> Integers:
    rng = checked(rng, allow_reproducible=True)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise PlanError(f"size must be an integer of at least 0, got {size!r}")
    more = rng.spawn()
    out = np.empty(size, np.int64)
    doubts: list[tuple[int, int, int, bool]] = []
    for start in range(0, size, _TILE):
        words = rng.uint64(min(_TILE, size - start)).view(np.int64)
        sign = words >> np.int64(63)
        values, doubtful, one_edges = law.propose(words & _MAGNITUDE)
        columns = (doubtful + start, words[doubtful], values[doubtful], one_edges)
        doubts.extend(zip(*(column.tolist() for column in columns), strict=True))
        values ^= sign
        np.subtract(values, sign, out=out[start : start + len(values)])
    # Doubtful samples are decided after all tiles: deciding them between tiles takes twice as long.
    for place, word, value, one_edge in doubts:
        decided = _decide(law, _Uniform(word & int(_MAGNITUDE), more, place), value, one_edge)
        out[place] = -decided if word < 0 else decided
    return out


class _Uniform:
    """A uniform number in (0, 1/2), which reads further bits on request."""

    def __init__(self, magnitude: int, source: Generator, index: int) -> None:
        self._value, self._bits, self._source, self._index = magnitude, 64, source, index

    def below(self, law: _Law, k: int) -> bool:
        """Return whether the uniform is smaller than the law's P(X > k), however close."""
        while True:
            bits = self._bits + 64
            edge = law.tail(k, bits)
            while self._bits <= bits:
                shift = bits - self._bits
                if (self._value + 1) << shift <= edge - exact.ERROR:
                    return True
                if self._value << shift >= edge + exact.ERROR:
                    return False
                self._refine()

    def _refine(self) -> None:
        # The substream is reread from its start. It starts at bit 64: the first 64 bits are the main stream's.
        length = self._bits // 8
        tail = self._source.substream_bytes(self._index, length)[-8:]
        self._value = (self._value << 64) | int.from_bytes(tail, "little")
        self._bits += 64


def _decide(law: _Law, uniform: _Uniform, start: int, one_edge: bool) -> int:
    """Return the smallest k >= 0 with U >= P(X > k): gallop from the proposal, then halve the gap."""
    step, above = 1, uniform.below(law, start)
    if one_edge:
        return start + above
    if above:
        low, high = start, start + 1
        while uniform.below(law, high):
            step *= 2
            low, high = high, high + step
    else:
        low, high = start - 1, start
        while low >= 0 and not uniform.below(law, low):
            step *= 2
            low, high = max(-1, low - step), low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if uniform.below(law, middle) else (low, middle)
    return high


def _checked(sigma: float) -> float:
    return check_number("sigma", sigma, "above 0 and at most 2**48 integer steps", 0, MAX_SIGMA, ends="(]")
