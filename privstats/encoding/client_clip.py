"""Clip a client's flat vector to a declared weighted norm, in integers.

The client unit of privacy bounds one client's total influence. The clip precedes the noise share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.encoding.layout import Segment, layout_of
from privstats.errors import DataError
from privstats.schema import Schema

ROUNDING = 1 - 2.0**-40
"""A factor on the norm that covers the float64 rounding of the weights; the clip itself is exact."""

_FACTOR_BITS = 31
# This many squares of 21-bit limbs add up to less than 2**63.
_TILE = 1 << 20
_LIMB = 21


@dataclass(frozen=True, eq=False)
class ClippedVector:
    """A flat vector ``(layout.size,)`` after the clip.

    ``shrink``, the factor applied to each entry before truncation (1 if unclipped), is private and never sent.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> vector = ps.encoding.flatten(ps.measure(schema, [[0.6, 0.8]] * 4, [0, 0, 1, 1]))
        >>> round(ps.encoding.clip_vector(schema, vector, {"N": 1.0, "A": 1.0}, norm=2.0).shrink, 3)
        0.5
    """

    vector: NDArray[np.int64]
    shrink: float


def clip_vector(schema: Schema, vector: NDArray[np.int64], weights: Mapping[str, float], norm: float) -> ClippedVector:
    """Clip a client's flat vector so that sum_s w_s ||V_s||^2 <= norm^2, with V_s its statistics in real units.

    Symmetric statistics count with their Frobenius norm. With w_s = 1/sigma_s^2 and norm = m mu, mu being one record's
    joint mu under add-remove, a client is worth at most m worst-case records.

    The norm is exact; the factor is rounded down to 31 bits, entries toward zero.

    Args:
        vector: the exact result of ``flatten``, before any noise.
        weights: one finite weight above 0 per statistic sent.
        norm: the bound, above 0; public.

    Guarantee:
        For any records of a client, sum_s w_s ||V_s||^2 <= norm^2 holds exactly. Adding or removing a client moves the
        sum by at most ``norm`` in the weighted norm.

    Example:
        >>> schema, weights = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), {"N": 1.0, "A": 1.0}
        >>> vector = ps.encoding.flatten(ps.measure(schema, [[0.6, 0.8]] * 4, [0, 0, 1, 1]))
        >>> clipped = ps.encoding.clip_vector(schema, vector, weights, norm=2.0).vector
        >>> [round(float(ps.encoding.weighted_square_norm(schema, each, weights)), 2) for each in (vector, clipped)]
        [16.0, 4.0]
    """
    bound = _exact("norm", norm) ** 2
    square = weighted_square_norm(schema, vector, weights)
    if square <= bound:
        return ClippedVector(vector, 1.0)
    factor, shift = _root(bound / square)
    return ClippedVector(_times(vector, factor, shift), factor / 2**shift)


@dataclass(frozen=True, eq=False)
class ClippedSums:
    """Clip factors of many flat vectors, equal to :func:`clip_vector`'s.

    Attributes:
        factors, shifts: t and k; each vector v becomes ``sign(v) floor(|v| t / 2**k)``, unchanged where t = 0.
    """

    factors: NDArray[np.int64]
    shifts: NDArray[np.int64]

    @classmethod
    def by_squares(
        cls,
        schema: Schema,
        squares: Mapping[str, NDArray[np.float64]],
        weights: Mapping[str, float],
        norm: float,
        error: float,
        exactly: Callable[[int], Mapping[str, int]],
    ) -> ClippedSums:
        """Compute the factors from squared lengths (full symmetric matrices), in integers where rounding might decide.

        Args:
            squares: by letter in wire steps, ``(n,)``.
            weights, norm: as for :func:`clip_vector`.
            error: bound on squares' relative rounding error, at most 2**-35.
            exactly: returns one vector's exact squares.
        """
        bound, parts = _exact("norm", norm) ** 2, {s: _coefficient_of(schema, s, weights[s]) for s in squares}
        total = np.sum([float(parts[s]) * each for s, each in squares.items()], axis=0)
        ratio = np.divide(float(bound), total, out=np.full(len(total), np.inf), where=total > 0)
        mantissa, exponent = np.frexp(np.sqrt(np.minimum(ratio, 1.0)))
        scaled = np.ldexp(mantissa, _FACTOR_BITS)
        factors, shifts = np.floor(scaled).astype(np.int64), (_FACTOR_BITS - exponent).astype(np.int64)
        sure = (np.abs(scaled - np.rint(scaled)) > scaled * error) & (np.abs(ratio - 1) > 2 * error)
        factors[ratio > 1] = 0
        for place in np.flatnonzero(~sure & ~(ratio > 1 + 2 * error)).tolist():
            square = sum((parts[s] * each for s, each in exactly(place).items()), Fraction(0))
            factors[place], shifts[place] = (0, 0) if square <= bound else _root(bound / square)
        return cls(factors, shifts)

    @property
    def shrunk(self) -> int:
        """Number of clipped vectors."""
        return int(np.count_nonzero(self.factors))

    def of(self, sums: NDArray[np.float64], owner: NDArray[np.intp]) -> NDArray[np.float64]:
        """Clip rows ``(n, entries)`` of integers below 2**53. Row i gets the factor of vector ``owner[i]``.

        A product that float64 rounds to an integer is recomputed in integers.
        """
        if not self.shrunk:
            return sums
        real = sums * self._real[owner, None]
        truncated = np.trunc(real)
        if max(-sums.min(initial=0.0), sums.max(initial=0.0)) * self.factors.max(initial=0) >= 2.0**53:
            row, entry = np.nonzero((truncated == real) & (truncated != 0) & (self.factors[owner, None] > 0))
            own = owner[row]
            truncated[row, entry] = _scaled(sums[row, entry].astype(np.int64), self.factors[own], self.shifts[own])
        return np.asarray(truncated)

    def exact_factors(self, owner: NDArray[np.intp], maxima: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the owners' factors; 0 where a product with an integer up to ``maxima`` may be rounded."""
        return np.where(maxima * self.factors[owner] < 2.0**53, self._real[owner], 0.0)

    @cached_property
    def _real(self) -> NDArray[np.float64]:
        return np.where(self.factors > 0, np.ldexp(self.factors.astype(np.float64), -self.shifts), 1.0)


def _root(ratio: Fraction) -> tuple[int, int]:
    """Return (t, k) with t / 2**k <= sqrt(ratio) < (t + 1) / 2**k and 2**30 <= t < 2**31, for 0 < ratio < 1."""
    size = ratio.numerator.bit_length() - ratio.denominator.bit_length()  # log2 of the ratio, to within one
    shift = _FACTOR_BITS - (size - 1) // 2
    factor = math.isqrt(math.floor(ratio * 4**shift))
    excess = factor.bit_length() - _FACTOR_BITS
    return factor >> excess, shift - excess


def weighted_square_norm(schema: Schema, vector: NDArray[np.int64], weights: Mapping[str, float]) -> Fraction:
    """Return sum_s w_s ||V_s||^2 of a flat vector in real units, exact for these floats.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> vector = ps.encoding.flatten(ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1]))
        >>> ps.encoding.weighted_square_norm(schema, vector, {"N": 1.0, "A": 4.0})  # 1 + 1 + 4 (1 + 1/4)
        Fraction(7, 1)
    """
    layout = layout_of(schema)
    if set(weights) != set(schema.statistics):
        raise DataError(f"weights must name {', '.join(schema.statistics)} and no other, got {', '.join(weights)}")
    if vector.shape != (layout.size,) or vector.dtype != np.int64:
        raise DataError(f"vector must be int64 ({layout.size},), got {vector.dtype} {vector.shape}; call flatten")
    return sum(
        (
            _coefficient(segment, weights[segment.statistic]) * _square_sum(vector[where])
            for segment, where in zip(layout.segments, layout.slices, strict=True)
        ),
        Fraction(0),
    )


@lru_cache(maxsize=64)
def _coefficient_of(schema: Schema, letter: str, weight: float) -> Fraction:
    return _coefficient(next(each for each in layout_of(schema).segments if each.statistic == letter), weight)


def _coefficient(segment: Segment, weight: float) -> Fraction:
    twice = 1 if segment.noise_factor == 1 else 2
    return twice * _exact(f"weights[{segment.statistic!r}]", weight) / Fraction(segment.scale) ** 2


def _exact(field: str, value: float) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise DataError(f"{field} must be a finite number above 0, got {value!r}; use the functions of dp.clips")
    return Fraction(value)


def _square_sum(values: NDArray[np.int64]) -> int:
    """Sum squares from 21-bit limbs with exact products in int64."""
    peak = max(-int(values.min()), int(values.max())) if values.size else 0
    if peak * peak * values.size < 1 << 63:
        return int(np.dot(values, values))
    total = 0
    for start in range(0, values.size, _TILE):
        rest = np.abs(values[start : start + _TILE]).view(np.uint64)
        limbs = [((rest >> np.uint64(_LIMB * i)) & np.uint64((1 << _LIMB) - 1)).view(np.int64) for i in range(3)]
        # Three limbs hold bits 0 to 62; only the absolute value of -2**63 sets bit 63.
        top = (rest >> np.uint64(3 * _LIMB)).view(np.int64)
        parts = [*limbs, top]
        for i, one in enumerate(parts):
            for j, other in enumerate(parts):
                total += int(np.dot(one, other)) << _LIMB * (i + j)
    return total


def _times(values: NDArray[np.int64], factor: int, shift: int) -> NDArray[np.int64]:
    """Return sign(v) floor(|v| factor / 2**shift) for factor < 2**31 <= 2**shift, within 64 bits."""
    out = np.empty_like(values)
    for start in range(0, values.size, _TILE):
        out[start : start + _TILE] = _scaled(values[start : start + _TILE], np.int64(factor), np.int64(shift))
    return out


def _scaled(values: NDArray[np.int64], factor: Any, shift: Any) -> NDArray[np.int64]:
    size, times = np.abs(values).view(np.uint64), factor.astype(np.uint64)
    low = (size & np.uint64((1 << _FACTOR_BITS) - 1)) * times >> np.uint64(_FACTOR_BITS)
    product = (size >> np.uint64(_FACTOR_BITS)) * times + low
    scaled = (product >> np.minimum(shift - _FACTOR_BITS, 63).astype(np.uint64)).view(np.int64)
    return np.asarray(np.where(values < 0, -scaled, scaled), np.int64)
