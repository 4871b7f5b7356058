"""Map grid rows and published integers to a round's integers u, r and kappa, with identical bits everywhere.

Products are of integers below 2**53; every other operation is one IEEE operation per entry. The results are within
their norms for every record and all admitted values, and no record or value raises an error.

Rows, labels and values are numpy arrays, or float64 and int64 tensors of one device: both yield identical bits. With
tensors no operation waits for the device, and none divides by a number of the host, because some devices multiply by
its rounded reciprocal instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privstats.moments.grid import Ints
from privstats.schema import Schema
from privstats.schema.public_values import Values
from privstats.schema.rounds import ROW_BITS
from privstats.transforms.exact import arrays_of, limb_bits

_INTERCEPT = 0.1  # a, the constant entry of u
# Factor that outweighs the rounding of a root, a product and a quotient.
SHY = 1 - 2.0**-40
_LOG2_E = 1.4426950408889634
_LOWEST = -64.0
PROBABILITY_BITS = 20
"""Bits of a probability, and of a residual."""
_NUMERATOR_BITS = 40

# (ln 2)^i / i!, i = 12 .. 0, as literals: a power function's bits depend on the platform
_EXP2 = (
    2.5678435993488206e-11,
    4.4455382718708116e-10,
    7.054911620801123e-09,
    1.01780860092397e-07,
    1.321548679014431e-06,
    1.5252733804059841e-05,
    0.0001540353039338161,
    0.0013333558146428443,
    0.009618129107628477,
    0.05550410866482158,
    0.24022650695910072,
    0.6931471805599453,
    1.0,
)


class RoundValues(Protocol):
    """Published values of a round, :class:`~privstats.schema.public_values.Values` or a copy of them on a device."""

    @property
    def floats(self) -> Ints:
        """The integers as float64."""

    @property
    def exponent(self) -> int:
        """Binary digits after the point."""


class MappedRound(Protocol):
    """A round's public numbers, as a schema of gradients states them."""

    @property
    def clip_norm(self) -> float:
        """R, the norm of a row."""

    @property
    def target_bound(self) -> float | None:
        """Y, the norm of a target; None for classes."""

    @property
    def residual_norm(self) -> float:
        """c, the norm of a residual."""

    @property
    def grid_bits(self) -> int:
        """f."""

    @property
    def grid_steps(self) -> int:
        """2**f."""


@dataclass(frozen=True)
class Mapped:
    """Contributions of records, all integers: the round's sums are g = residuals^T rows and k, the sum of ``kappa``.

    Attributes:
        rows: u, ``(n, width)``, of norm at most 2**f.
        residuals: r, ``(n, C)``, of norm at most 2**f.
        kappa: each record's part of the number that sets the step size, ``(n,)``, 0 to 2**f.
    """

    rows: Ints
    residuals: Ints
    kappa: Ints


def softmax_of_units(schema: MappedRound, unit: Ints, labels: NDArray[np.intp], W: RoundValues) -> Mapped:
    """Compute a softmax round from :func:`unit_rows` ``(n, d + 1)``, labels ``(n,)`` and the published W."""
    xp = arrays_of(unit)
    r, square = residuals_of(unit @ W.floats.T, W.exponent + schema.grid_bits, labels)
    one = float(1 << PROBABILITY_BITS)
    clip = float(round(schema.residual_norm * one))
    length = xp.at_least(xp.sqrt(xp.vecdot(r, r)), clip)
    kappa = xp.floor(xp.at_least(one * one - square, 0.0) * (schema.grid_steps * SHY * clip / one**2) / length)
    r *= schema.grid_steps * SHY
    r /= length[:, None]
    return _within(schema, unit, xp.trunc(r, out=r), kappa)


def residuals_of(scores: Ints, exponent: int, labels: NDArray[np.intp]) -> tuple[Ints, Ints]:
    """Return ``p - e_y``, ``(n, C)``, and ``|p|^2``, ``(n,)``, p = softmax(scores 2**-exponent) in steps of 2**-20."""
    xp = arrays_of(scores)
    r = probabilities(scores, exponent)
    square = xp.vecdot(r, r)
    r[xp.arange(len(r)), labels] -= float(1 << PROBABILITY_BITS)
    return r, square


def short_rows(schema: MappedRound, rows: Ints, M: RoundValues, out: Ints | None = None) -> Ints:
    """Return u, ``(n, d)``, of a regression: Mx in steps, shortened to norm 1 where longer.

    Args:
        out: memory for u; None: new memory.
    """
    z: Ints = arrays_of(rows).matmul(rows, M.floats, out=out)
    _shorten(z, schema.clip_norm / 2.0**ROW_BITS, M.exponent, schema.grid_steps)
    return z


def residual_of_units(schema: MappedRound, unit: Ints, rows: Ints, targets: Ints, w: RoundValues, c: Values) -> Mapped:
    """Compute a regression round at the published w and c.

    Args:
        unit: :func:`short_rows`, ``(n, d)``.
        rows: grid vectors ``(n, d)`` of norm at most 2**16.
        targets: on their grid, ``(n, 1)``, at most 2**16.
        w, c: weights, and the scalar to which residuals are clipped.
    """
    fitted = (rows @ w.floats) * math.ldexp(schema.clip_norm / 2.0**ROW_BITS, -w.exponent)
    residual = targets[:, 0] * ((schema.target_bound or 1.0) / 2.0**ROW_BITS) - fitted
    xp = arrays_of(residual)
    share = residual / xp.full_like(residual[:1], math.ldexp(float(c.integers), -c.exponent))
    r = xp.trunc(share.clip(-1.0, 1.0) * (schema.grid_steps * SHY))
    kappa = xp.where(abs(share) <= 1.0, xp.full_like(share[:1], float(schema.grid_steps)), 0.0)
    return _within(schema, unit, r[:, None], kappa)


def shortened(rows: Ints, scale: float, exponent: int, grid_steps: int) -> tuple[Ints, NDArray[np.float64]]:
    """Multiply rows by ``scale * 2**-exponent``, shorten those longer than 1, and truncate toward zero.

    Returns:
        Integers ``(n, k)``, in units of ``1 / grid_steps``; and the factors ``(n,)`` that shortened rows, 1 for others.
    """
    z = rows + 0.0
    return z, _shorten(z, scale, exponent, grid_steps)


def _shorten(z: Ints, scale: float, exponent: int, grid_steps: int) -> NDArray[np.float64]:
    """Shorten rows in place, and return the factors, as :func:`shortened` does."""
    xp = arrays_of(z)
    exponents = _truncate(z)
    norm = xp.sqrt(xp.vecdot(z, z))
    power = xp.power_of_two(exponents - exponent)
    power *= scale
    positive, stays = norm > 0, power > 0
    factor = 1.0 / xp.where(positive, norm, 1.0)
    factor = xp.where(positive & (factor < power), factor, power)
    shorter: NDArray[np.float64] = xp.where(stays, factor / xp.where(stays, power, 1.0), 1.0)
    z *= (factor * (grid_steps * SHY))[:, None]
    xp.trunc(z, out=z)
    return shorter


def _truncate(z: Ints) -> NDArray[np.int64]:
    """Truncate rows in place, so that squared norms are exact; return the number of bits removed."""
    xp, bits = arrays_of(z), limb_bits(z.shape[1])
    exponents: NDArray[np.int64] = xp.at_least(xp.binary_exponent(xp.row_max(z)) - bits, 0)
    z *= xp.power_of_two(-exponents)[:, None]
    xp.trunc(z, out=z)
    return exponents


def unit_rows(schema: Schema, rows: Ints, M: RoundValues, out: Ints | None = None, product: Ints | None = None) -> Ints:
    """Return u, ``(n, d + 1)``: (sqrt(1 - a^2) z / |z|, a) in steps, truncated toward zero, z = Mx; (0, a) if z = 0.

    Args:
        out: memory for u; None: new memory.
        product: memory for z, ``(n, d)``; None: new memory.
    """
    xp = arrays_of(rows)
    z = xp.matmul(rows, M.floats, out=product)
    _truncate(z)
    grid_steps = schema.grid_steps
    norm = xp.sqrt(xp.vecdot(z, z))
    z *= grid_steps * math.sqrt(1 - _INTERCEPT * _INTERCEPT) * SHY
    z /= xp.where(norm > 0, norm, 1.0)[:, None]  # a row of zeros stays zero
    unit: Ints = xp.empty(len(z), z.shape[1] + 1) if out is None else out
    xp.trunc(z, out=unit[:, :-1])
    unit[:, -1] = math.floor(grid_steps * _INTERCEPT)
    return unit


def probabilities(logits: Ints, exponent: int) -> Ints:
    """Return 2**20 softmax(l) as integers, up to rounding, l = logits * 2**-exponent."""
    numerators = exponentials(logits, exponent)
    total = numerators.sum(axis=1, keepdims=True)
    numerators *= float(1 << PROBABILITY_BITS)
    numerators /= total
    shares: Ints = arrays_of(numerators).floor(numerators, out=numerators)
    return shares


def exponentials(logits: Ints, exponent: int) -> Ints:
    """Return 2**40 exp(l - max l) as integers, up to rounding, by IEEE operations alone, l = logits * 2**-exponent."""
    xp = arrays_of(logits)
    power: Ints = logits - xp.largest(logits)
    power *= math.ldexp(1.0, -exponent)
    power *= _LOG2_E
    power = xp.at_least(power, _LOWEST)
    exponents = xp.floor(power)
    power -= exponents
    value: Ints = xp.full_like(power, _EXP2[0])
    for coefficient in _EXP2[1:]:
        value *= power
        value += coefficient
    exponents += _NUMERATOR_BITS
    value = xp.ldexp(value, exponents)
    result: Ints = xp.floor(value, out=value)
    return result


def _within(schema: MappedRound, unit: Ints, residuals: Ints, kappa: Ints) -> Mapped:
    """Set contributions that exceed a norm, or are NaN, to zero, as a check of the arithmetic."""
    xp, maximum = arrays_of(unit), float(schema.grid_steps) ** 2
    fine = (xp.vecdot(unit, unit) <= maximum) & (xp.vecdot(residuals, residuals) <= maximum)
    fine &= (kappa >= 0) & (kappa <= schema.grid_steps)
    if xp.some(~fine):
        unit, residuals = xp.where(fine[:, None], unit, 0.0), xp.where(fine[:, None], residuals, 0.0)
        kappa = xp.where(fine, kappa, 0.0)
    return Mapped(unit, residuals, kappa)
