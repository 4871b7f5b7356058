"""Map grid rows and published integers to a round's integers u, r and kappa, with identical bits everywhere.

Products are of integers below 2**53; every other operation is one IEEE operation per entry. The results are within
their norms for every record and all admitted values, and no record or value raises an error.
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
    def steps(self) -> int:
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


def softmax_of_units(schema: MappedRound, unit: Ints, labels: NDArray[np.intp], W: Values) -> Mapped:
    """Compute a softmax round from :func:`unit_rows` ``(n, d + 1)``, labels ``(n,)`` and the published W."""
    r, square = residuals_of(unit @ W.floats.T, W.exponent + schema.grid_bits, labels)
    one = float(1 << PROBABILITY_BITS)
    clip = float(round(schema.residual_norm * one))
    length = np.maximum(np.sqrt(np.vecdot(r, r)), clip)
    kappa = np.floor((one * one - np.minimum(square, one * one)) * (schema.steps * SHY * clip / one**2) / length)
    r *= schema.steps * SHY
    r /= length[:, None]
    return _within(schema, unit, np.trunc(r, out=r), kappa)


def residuals_of(scores: Ints, exponent: int, labels: NDArray[np.intp]) -> tuple[Ints, Ints]:
    """Return ``p - e_y``, ``(n, C)``, and ``|p|^2``, ``(n,)``, p = softmax(scores 2**-exponent) in steps of 2**-20."""
    r = probabilities(scores, exponent)
    square = np.vecdot(r, r)
    r[np.arange(len(r)), labels] -= float(1 << PROBABILITY_BITS)
    return r, square


def short_rows(schema: MappedRound, rows: Ints, M: Values) -> Ints:
    """Return u, ``(n, d)``, of a regression: Mx in steps, shortened to norm 1 where longer."""
    return shortened(rows @ M.floats, schema.clip_norm / 2.0**ROW_BITS, M.exponent, schema.steps)[0]


def residual_of_units(schema: MappedRound, unit: Ints, rows: Ints, targets: Ints, w: Values, c: Values) -> Mapped:
    """Compute a regression round at the published w and c.

    Args:
        unit: :func:`short_rows`, ``(n, d)``.
        rows: grid vectors ``(n, d)`` of norm at most 2**16.
        targets: on their grid, ``(n, 1)``, at most 2**16.
        w, c: weights, and the scalar to which residuals are clipped.
    """
    fitted = (rows @ w.floats) * math.ldexp(schema.clip_norm / 2.0**ROW_BITS, -w.exponent)
    residual = targets[:, 0] * ((schema.target_bound or 1.0) / 2.0**ROW_BITS) - fitted
    share = residual / math.ldexp(float(c.integers), -c.exponent)
    r = np.trunc(np.clip(share, -1.0, 1.0) * (schema.steps * SHY))
    return _within(schema, unit, r[:, None], np.where(np.abs(share) <= 1.0, float(schema.steps), 0.0))


def shortened(rows: Ints, step: float, exponent: int, steps: int) -> tuple[Ints, NDArray[np.float64]]:
    """Multiply rows by ``step * 2**-exponent``, shorten those longer than 1, and truncate toward zero.

    Returns:
        Integers ``(n, k)``, in steps of ``1 / steps``; and the factors, ``(n,)``, that shortened rows, 1 for others.
    """
    z = rows.copy()
    exponents = _truncate(z)
    norm = np.sqrt(np.vecdot(z, z))
    power = np.ldexp(step, exponents - exponent)
    factor = np.minimum(power, np.divide(1.0, norm, out=np.full_like(norm, np.inf), where=norm > 0))
    shorter = np.divide(factor, power, out=np.ones_like(norm), where=power > 0)
    z *= (factor * (steps * SHY))[:, None]
    return np.trunc(z, out=z), shorter


def _truncate(z: Ints) -> NDArray[np.intc]:
    """Truncate rows in place, so that squared norms are exact; return the number of bits removed."""
    bits = limb_bits(z.shape[1])
    _, sizes = np.frexp(arrays_of(z).row_max(z))
    exponents = np.maximum(sizes - bits, 0)
    z *= np.ldexp(1.0, -exponents)[:, None]
    np.trunc(z, out=z)
    return np.asarray(exponents)


def unit_rows(schema: Schema, rows: Ints, M: Values) -> Ints:
    """Return u, ``(n, d + 1)``: (sqrt(1 - a^2) z / |z|, a) in steps, truncated toward zero, z = Mx; (0, a) if z = 0."""
    z = rows @ M.floats
    _truncate(z)
    steps = schema.steps
    norm = np.sqrt(np.vecdot(z, z))[:, None]
    norm[norm == 0] = 1.0  # a row of zeros stays zero
    z *= steps * math.sqrt(1 - _INTERCEPT * _INTERCEPT) * SHY
    z /= norm
    unit = np.empty((len(z), z.shape[1] + 1))
    np.trunc(z, out=unit[:, :-1])
    unit[:, -1] = math.floor(steps * _INTERCEPT)
    return unit


def probabilities(logits: Ints, exponent: int) -> Ints:
    """Return 2**20 softmax(l) as integers, up to rounding, l = logits * 2**-exponent."""
    numerators = exponentials(logits, exponent)
    total = numerators.sum(axis=1, keepdims=True)
    numerators *= float(1 << PROBABILITY_BITS)
    numerators /= total
    return np.asarray(np.floor(numerators, out=numerators))


def exponentials(logits: Ints, exponent: int) -> Ints:
    """Return 2**40 exp(l - max l) as integers, up to rounding, by IEEE operations alone, l = logits * 2**-exponent."""
    power = logits - logits.max(axis=1, keepdims=True)
    np.ldexp(power, -exponent, out=power)
    power *= _LOG2_E
    np.maximum(power, _LOWEST, out=power)
    exponents = np.floor(power)
    power -= exponents
    value = np.full_like(power, _EXP2[0])
    for coefficient in _EXP2[1:]:
        value *= power
        value += coefficient
    np.ldexp(value, exponents.astype(np.intc) + _NUMERATOR_BITS, out=value)
    return np.asarray(np.floor(value, out=value))


def _within(schema: MappedRound, unit: Ints, residuals: Ints, kappa: Ints) -> Mapped:
    """Set contributions that exceed a norm, or are NaN, to zero, as a check of the arithmetic."""
    maximum = float(schema.steps) ** 2
    fine = (np.vecdot(unit, unit) <= maximum) & (np.vecdot(residuals, residuals) <= maximum)
    fine &= (kappa >= 0) & (kappa <= schema.steps)
    if not fine.all():
        unit, residuals = np.where(fine[:, None], unit, 0.0), np.where(fine[:, None], residuals, 0.0)
        kappa = np.where(fine, kappa, 0.0)
    return Mapped(unit, residuals, kappa)
