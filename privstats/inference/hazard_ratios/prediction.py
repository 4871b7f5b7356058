"""The predicted half width of a log hazard ratio, from the events that are publicly expected."""

from __future__ import annotations

import math

import numpy as np

from privstats.course import Hazard
from privstats.errors import PlanError
from privstats.estimates.effect import penalty
from privstats.inference.inversion import folded_quantile, quantile

__all__ = ["half_widths_of"]

_LARGEST = 50.0


def half_widths_of(course: Hazard, records: int, variance: float, alpha: float) -> tuple[float, float]:
    """The half width without noise, and with that of the course; infinite where a ratio will not be told.

    Information along a column is events times its variance, and of a bin its share of the events. Noise enters the
    score, the inverse of the information (by the semicircle law: its mean is 2 (1 - sqrt(1 - r^2)) / r^2 times that
    without noise, r the size of the noise over the information), and what a next round could change.

    Args:
        course: whose schema states ``expected_events`` among the cohort's most records.
        records: of them.
        variance: of every column behind the transform.
        alpha: level of the interval.

    Raises:
        PlanError: the schema does not say how many events are expected.
    """
    schema, plan = course.schema, course.plan
    if schema.expected_events is None:
        raise PlanError("half widths of hazards follow from events: give the schema expected_events, a public guess")
    events = schema.expected_events * records / plan.cohort.max_records
    columns = schema.features - 1
    own = events * variance
    information = np.append(
        np.full(columns, own), np.full(schema.periods, schema.constant**2 * events / schema.periods)
    )
    exact = quantile(alpha, math.inf) / math.sqrt(own)
    sigma = {} if plan.noise is None else plan.noise.released_sigma(plan.cohort.min_survivors)
    noise_H, noise_g = sigma.get("H", 0.0), sigma.get("g", 0.0)
    size = penalty(noise_H, len(information)) / float(information.mean())
    if size >= 1:
        return exact, math.inf
    once, twice = _inverses(size)
    step = noise_g**2 * (1 + twice) * float((1 / information**2).sum())
    length = min(schema.clip_norm * math.sqrt(step), _LARGEST)
    curve = (math.expm1(length) - length) / length if length else 0.0
    left_in_all = curve * noise_g * math.sqrt((1 + once) * float((1 / information).sum()))
    error = math.sqrt(once / own + (noise_g**2 * twice + noise_H**2 * step / 2) / own**2)
    left = np.asarray(left_in_all * math.sqrt(once / own) / error)
    q = float(folded_quantile(alpha, left))
    lost = 1 - (q * noise_H / own) ** 2
    return exact, q * error / math.sqrt(lost) if lost > 0 else math.inf


def _inverses(size: float) -> tuple[float, float]:
    """Means of 1 / (1 + x) and of its square, x by the semicircle law of this radius below 1."""
    if size < 1e-4:
        return 1.0, 1.0
    root = math.sqrt(1 - size**2)
    return 2 * (1 - root) / size**2, 2 * (1 / root - 1) / size**2
