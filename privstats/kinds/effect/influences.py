"""Compute an effect's population, and each record's influence in steps.

Products are of integers below 2**53 and all else is single IEEE operations per record, so bits are equal everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.schema.public_values import Values

if TYPE_CHECKING:
    from privstats.kinds.effect.schema import EffectSchema
    from privstats.moments.grid import Ints

_ONE = float(1 << 20)  # steps of a propensity of 1


def in_steps(
    schema: EffectSchema, population: Population, influence: NDArray[np.float64], line: Values
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return (t, 1 - t^2) in integer steps, ``(n, 2)``, and which records keep the bound; others are dropped."""
    maximum = schema.unit(line) / schema.half
    grid_steps, square = float(schema.grid_steps), float(schema.grid_steps) ** 2
    share = (influence - schema.guess(line) * population.weight) / maximum
    t, s = _steps(np.where(population.included & np.isfinite(share), share, 0.0), grid_steps)
    fine = t * t + s * s <= square
    return np.where(fine[:, None], np.stack([t, s], axis=1), (0.0, grid_steps)), fine


def _steps(share: NDArray[np.float64], grid_steps: float) -> tuple[Ints, Ints]:
    """Compute 1 - t^2 of the integer t: with the unrounded t, both could exceed the bound."""
    t = np.rint(np.clip(share, -1.0, 1.0) * grid_steps)
    return t, np.trunc((grid_steps * grid_steps - t * t) / grid_steps)


@dataclass(frozen=True, eq=False)
class Population:
    """Probability of either arm, weight, and inclusion, ``(n,)`` each.

    With missing outcomes, the probabilities are those of an arm with an observed outcome.
    """

    p: NDArray[np.float64]
    others: NDArray[np.float64]
    weight: NDArray[np.float64]
    included: NDArray[np.bool_]


def population_of(
    schema: EffectSchema, arm: NDArray[np.bool_], x: Ints, values: Mapping[str, Values], chance: float | None = None
) -> Population:
    """Compute the population from the published propensity; records beyond the trim are dropped, not truncated."""
    one, spacing, low = np.ones(len(x)), schema.clip_norm / float(schema.grid_steps), schema.trim or 0.0
    if schema.probability is not None:
        p = (chance or schema.probabilities[0]) * one
        if not schema.missing:
            return Population(p, 1 - p, one, one > 0)
        seen, of_others = (_propensity(x, w, spacing) for w in _by_arm(schema, values["w"]))
        return Population(p * seen, (1 - p) * of_others, one, (seen >= low) & (of_others >= low))
    p = _propensity(x, values["w"], spacing)
    included = 1 - p >= low
    if schema.estimand == "att":
        return Population(p, 1 - p, arm.astype(np.float64), included)
    included &= p >= low
    weight = p * (1 - p) if schema.estimand == "overlap" else one
    return Population(p, 1 - p, weight, included)


def _by_arm(schema: EffectSchema, w: Values) -> tuple[Values, Values]:
    d = schema.width
    return Values(w.integers[:d], w.exponent), Values(w.integers[d:], w.exponent)


def influence_of(
    schema: EffectSchema, population: Population, arm: NDArray[np.bool_], x: Ints, y: NDArray[np.float64], line: Values
) -> NDArray[np.float64]:
    """Return influence values in units of B, ``(n,)``; a missing y adds nothing to the lines' difference.

    Lines are truncated to the outcome range, so no published line moves an influence beyond its cap.
    """
    p, included = population.p, population.included
    m1, m0 = _fitted(schema, x, line)
    y = np.where(np.isnan(y), np.where(arm, m1, m0), y)
    match schema.estimand:
        case "att":
            return np.where(arm, y - m0, -(p / np.where(included, 1 - p, 1.0)) * (y - m0))
        case "overlap":
            q = 1 - p
            return p * q * (m1 - m0) + np.where(arm, q * (y - m1), -p * (y - m0))
    treated, others = (np.where(included, each, 0.5) for each in (p, population.others))
    return m1 - m0 + np.where(arm, (y - m1) / treated, -(y - m0) / others)


def weighted_rows(schema: EffectSchema, population: Population, arm: NDArray[np.bool_], x: Ints) -> Ints:
    """Return rows times arm weights, negative for the other arm, 0 where dropped, ``(n, d)``.

    Weights are at most 1 and entries are truncated toward zero, so no row grows.
    """
    p, included, grid_steps = population.p, population.included, float(schema.grid_steps)
    safe = np.where(included, p, 0.5)
    match schema.estimand:
        case "att":
            weight = np.where(arm, 1.0, -safe / (1 - safe))
        case "overlap":
            weight = np.where(arm, 1 - safe, -safe)
        case _:
            weight = np.where(arm, 1 / safe, -1 / (1 - safe))
    weights = np.trunc(np.where(included, np.clip(weight / schema.arm_weight, -1.0, 1.0), 0.0) * grid_steps)
    return np.asarray(np.trunc(weights[:, None] * x / grid_steps))


def _fitted(schema: EffectSchema, x: Ints, line: Values) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both truncated lines, in units of B about the outcome range's middle."""
    d, spacing = schema.width, schema.clip_norm / float(schema.grid_steps)
    b, unit = line.integers.astype(np.float64), math.ldexp(spacing / schema.half, -line.exponent)
    return _truncated((x @ b[:d]) * unit), _truncated((x @ b[d:-1]) * unit)


def ratio_in_steps(
    schema: EffectSchema, arm: NDArray[np.bool_], x: Ints, y: NDArray[np.float64], line: Values, p: NDArray[np.float64]
) -> tuple[Ints, dict[str, Ints]]:
    """Return a ratio's ``(w, 1 - w^2)`` and ``(t, 1 - t^2)`` in steps, ``(n, 2)``."""
    goal, (m1, m0) = (y + 1) / 2, ((each + 1) / 2 for each in _fitted(schema, x, line))
    above = m1 + np.where(arm, (goal - m1) / p, 0.0)
    below = m0 + np.where(arm, 0.0, (goal - m0) / (1 - p))
    grid_steps = float(schema.grid_steps)
    t, s = _steps((above - schema.guess(line) * below) / schema.unit(line), grid_steps)
    w = np.clip(np.rint(below / schema.largest_weight * grid_steps), -float(schema.deepest), grid_steps)
    return np.stack([w, np.trunc((grid_steps * grid_steps - w * w) / grid_steps)], axis=1), {
        "e": np.stack([t, s], axis=1)
    }


def _truncated(fitted: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(fitted, -1.0, 1.0)


def _propensity(x: Ints, w: Values, spacing: float) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(-w'u)), truncated to multiples of 2**-20."""
    fitted = (x @ w.integers.astype(np.float64)) * math.ldexp(spacing, -w.exponent)
    pairs = np.stack([np.zeros_like(fitted), fitted], axis=1)
    return np.asarray(moments.gradient_map.probabilities(pairs, 0)[:, 1] / _ONE)
