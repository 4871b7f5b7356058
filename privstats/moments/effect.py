"""Influence values of a treatment effect, and how records become them: read, put on a grid, mapped, added up.

The same bits in any batch, order and BLAS: products are of whole numbers below 2**53, and every other operation is a
single IEEE one per record. A record that is refused is refused at any published values: no answer depends on a record
and the published values together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.moments.arms import arm_rows, real_outcomes
from privstats.moments.base import Moments, RealMoments
from privstats.moments.exact_sum import ExactSum, require_known
from privstats.moments.gradient_map import exponentials
from privstats.moments.gradients import pieces
from privstats.schema import EffectSchema
from privstats.schema.public_values import Values

__all__ = ["EffectMoments", "RealEffectMoments", "measured_effects"]

_ONE = float(1 << 20)  # of a propensity

Whole = NDArray[np.float64]
"""Whole numbers in float64."""


@dataclass(frozen=True, eq=False)
class RealEffectMoments(RealMoments):
    """The sums in real units, with noise or without: N, e ``(2,)`` of t and 1 - t^2, and W where it is sent."""

    N: float
    e: NDArray[np.float64]
    W: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EffectMoments(Moments):
    """The sums on the grid, exact: N, e int64 ``(2,)``, and W where it is sent.

    Attributes:
        records: number of records measured; None where unknown. Private, and never sent.
        published: digest of the values used; empty where unknown.

    Raises:
        DataError: another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("estimand", "features")

    schema: EffectSchema
    N: int
    e: NDArray[np.int64]
    W: int | None = None
    records: int | None = field(default=None, compare=False)
    published: str = ""

    def real(self) -> RealEffectMoments:
        """The same in real units, float64."""
        return RealEffectMoments.of_sums(self.schema, self.wire())


def measured_effects(
    schema: EffectSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> EffectMoments:
    """The exact sums over records.

    Guarantee:
        Every record adds 1 to N, a whole number from 0 to 2**f to W, and whole numbers (t, s) with ``t^2 + s^2 <=
        4**f``, s formed from t itself, for all admitted values and any record. A record outside the published
        population is dropped: W 0, t 0 and s 2**f.

    Raises:
        DataError: arrays that are no records of this schema.
        RecordError: one with NaN or infinite entries, or whose arm is neither 0 nor 1, whatever was published.
    """
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.steps)) for row in schema.sent}
    require_known(sums, "NWe")
    records = 0
    for rows, targets in pieces(schema.rows, X, y, progress):
        weights, influence = _mapped(schema, rows, targets, values)
        for total in sums.values():
            total.admit(len(rows))
        sums["N"].partial += len(rows)
        sums["e"].partial += influence.sum(axis=0)
        if "W" in sums:
            sums["W"].partial += weights.sum()
        records += len(rows)
    weight = int(sums["W"].result()) if "W" in sums else None
    return EffectMoments(schema, int(sums["N"].result()), sums["e"].result(), weight, records)


def _mapped(
    schema: EffectSchema, rows: NDArray[Any], targets: NDArray[Any], values: Mapping[str, Values]
) -> tuple[Whole, Whole]:
    """Of every record its weight ``(n,)`` and ``(t, s)`` ``(n, 2)``, in steps; 0 and (0, 2**f) where it is dropped."""
    arm, x = arm_rows(schema, rows)
    y = np.clip((real_outcomes(targets) - schema.middle) / schema.half, -1.0, 1.0)
    influence, weight, kept = _influence(schema, arm, x, y, values)
    line = values["line"]
    most = schema.unit(line) / schema.half
    steps, square = float(schema.steps), float(schema.steps) ** 2
    share = (influence - schema.guess(line) * weight) / most
    t, s = _steps(np.where(kept & np.isfinite(share), share, 0.0), steps)
    w = np.floor(np.clip(np.where(kept, weight / schema.largest_weight, 0.0), 0.0, 1.0) * steps)
    fine = t * t + s * s <= square
    return np.where(fine, w, 0.0), np.where(fine[:, None], np.stack([t, s], axis=1), (0.0, steps))


def _steps(share: NDArray[np.float64], steps: float) -> tuple[Whole, Whole]:
    """t in whole steps, and 1 - t^2 from that whole t: from the share itself both could pass the bound together."""
    t = np.rint(np.clip(share, -1.0, 1.0) * steps)
    return t, np.trunc((steps * steps - t * t) / steps)


def _influence(
    schema: EffectSchema, arm: NDArray[np.bool_], x: Whole, y: NDArray[np.float64], values: Mapping[str, Values]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Influence values in units of B, weights, and which records are in the published population, ``(n,)`` each.

    Outcome lines are cut to the range of outcomes, so that no published line moves an influence beyond its cap; a
    propensity beyond the trim is not cut but its record left out, because a cut one is a wrong one.
    """
    d, line = schema.width, values["line"]
    step = schema.clip_norm / float(schema.steps)
    b, unit = line.integers.astype(np.float64), math.ldexp(step / schema.half, -line.exponent)
    m1, m0 = _cut((x @ b[:d]) * unit), _cut((x @ b[d:-1]) * unit)
    if schema.probability is not None:
        p, one = np.full(len(x), schema.probability), np.ones(len(x))
        return _augmented(arm, y, m1, m0, p), one, one > 0
    p = _propensity(x, values["w"], step)
    low = schema.trim or 0.0
    q = 1 - p
    kept = q >= low
    if schema.estimand == "att":
        return np.where(arm, y - m0, -(p / np.where(kept, q, 1.0)) * (y - m0)), arm.astype(np.float64), kept
    kept &= p >= low
    if schema.estimand == "overlap":
        return p * q * (m1 - m0) + np.where(arm, q * (y - m1), -p * (y - m0)), p * q, kept
    return _augmented(arm, y, m1, m0, np.where(kept, p, 0.5)), np.ones(len(x)), kept


def _cut(fitted: NDArray[np.float64]) -> NDArray[np.float64]:
    """A line inside the range of outcomes."""
    return np.clip(fitted, -1.0, 1.0)


def _augmented(arm: NDArray[np.bool_], y: Any, m1: Any, m0: Any, p: Any) -> NDArray[np.float64]:
    return np.asarray(m1 - m0 + np.where(arm, (y - m1) / p, -(y - m0) / (1 - p)))


def _propensity(x: Whole, w: Values, step: float) -> NDArray[np.float64]:
    """1 / (1 + exp(-w'u)), cut to multiples of 2**-20, the same on every machine."""
    fitted = (x @ w.integers.astype(np.float64)) * math.ldexp(step, -w.exponent)
    numerators = exponentials(np.stack([np.zeros_like(fitted), fitted], axis=1), 0)
    return np.asarray(np.floor(numerators[:, 1] * _ONE / numerators.sum(axis=1)) / _ONE)
