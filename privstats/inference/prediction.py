"""Predict the width of an interval from public numbers alone, before any measurement."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

from privstats.course import Effect, Hazard
from privstats.errors import PlanError
from privstats.estimates.denoise import Array
from privstats.inference.forecasts import DRAWS, Guesses, forecast
from privstats.inference.inversion import quantile
from privstats.kinds import EffectSchema, HazardSchema, RidgeSchema
from privstats.plan import Plan
from privstats.schema import Schema

_NODES = 64
_MOST_EVENTS, _MOST_EVENTS_OF_LARGE = 0.5, 0.35  # of all records, for the cap on the cumulative hazard


@dataclass(frozen=True)
class HalfWidth:
    """A predicted half width of a slope's interval, per unit of a transformed column.

    Attributes:
        noisy: median over draws from the guesses, read by the reader's own rules; infinite where at most half of them
            report the row.
        row: the table's row that is reported least often; of several such, the widest.
        reported: number of ``draws`` that report it.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
        >>> width = ps.inference.predicted_half_width(plan, 10_000, variance=1 / 3)
        >>> round(width.exact, 3), round(width.noisy, 2), width.reported, width.draws
        (0.068, 0.08, 100, 100)
    """

    records: int
    exact: float
    noisy: float
    row: str
    reported: int
    draws: int


def predicted_half_width(
    plan: Plan | Effect | Hazard,
    records: int,
    *,
    variance: float,
    residual: float | None = None,
    treated: float = 0.5,
    separation: float = 1.0,
    rarest: float | None = None,
    alpha: float = 0.05,
    draws: int = DRAWS,
) -> HalfWidth:
    """Predict the half width of a slope's interval, by the reader's own rules (:func:`~privstats.inference.forecast`).

    Without noise it is z sqrt(s2 / (n v)) for uncorrelated columns of variance v. An effect's half width is in outcome
    units, a hazard's of a log ratio, from ``expected_events`` among ``max_records``.

    Args:
        plan: of a ``RidgeSchema``; or a complete course of effects or hazards, or its plan; noise is that of
            ``min_survivors`` survivors.
        records: n, a public guess.
        variance: v, a public guess, behind the transform; 1/3 for uniform on -1 to 1.
        residual, treated, separation, rarest: as for ``forecasts.Guesses``; where arms differ,
            ``residual`` is the rarer one's. Its default is half the target bound, for effects a quarter of the
            outcomes' range.

    Raises:
        PlanError: another schema, or a guess out of range.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
        >>> widths = [ps.inference.predicted_half_width(plan, records, variance=1 / 3) for records in (1_000, 10_000)]
        >>> widths[0].noisy > 3 * widths[1].noisy
        True
    """
    given: dict[str, Any] = {"variance": variance, "residual": residual, "treated": treated, "separation": separation}
    given["rarest"] = rarest
    exact = predicted_of(plan).exact(plan, Guesses(records, **given), alpha)
    found = forecast(plan, records=records, draws=draws, alpha=alpha, **given)
    row = found.worst
    return HalfWidth(records, exact, row.half_width, row.name, row.reported, draws)


class Predicted(NamedTuple):
    """One analysis' half width without noise, and what it is of."""

    exact: Callable[[Any, Guesses, float], float]
    quantity: str


def predicted_of(plan: Plan | Effect | Hazard) -> Predicted:
    """Return the prediction of half widths for a plan or course.

    Raises:
        PlanError: the plan's schema has no prediction.
    """
    return _predicted(plan.schema)


@singledispatch
def _predicted(_: Schema) -> Predicted:
    raise PlanError("half widths are predicted for regressions, effects and hazards: pass a plan of one of these")


@_predicted.register
def _(_: RidgeSchema) -> Predicted:
    return Predicted(_of_slope, "of a slope, per unit of a transformed column; residuals of half the target bound")


@_predicted.register
def _(_: EffectSchema) -> Predicted:
    return Predicted(_of_effect, "of the effect, in units of the outcome")


@_predicted.register
def _(_: HazardSchema) -> Predicted:
    return Predicted(_of_hazards, "of a log hazard ratio, per unit of a transformed column")


def _of_slope(plan: Plan, guesses: Guesses, alpha: float) -> float:
    schema: Any = plan.schema
    deviation = schema.target_bound / 2 if guesses.residual is None else guesses.residual
    return quantile(alpha, math.inf) * deviation / math.sqrt(guesses.records * guesses.variance)


def _of_effect(plan: Plan | Effect, guesses: Guesses, alpha: float) -> float:
    schema: Any = plan.schema
    if schema.measure == "ratio":
        raise PlanError("no half width is predicted for a ratio; request that of the difference")
    if schema.missing:
        raise PlanError(
            "no half width is predicted where outcomes may be missing; request that of a trial without missing "
            "outcomes, with only the records that will have one"
        )
    weight, square = _means(schema, guesses)
    return quantile(alpha, math.inf) * math.sqrt(square / guesses.records) / weight


def _of_hazards(plan: Plan | Hazard, guesses: Guesses, alpha: float) -> float:
    """Return z over the root of a column's information, events times its variance."""
    course = plan if isinstance(plan, Hazard) else Hazard.within(plan)
    expected = course.schema.expected_events
    if expected is None:
        raise PlanError("half widths of hazards follow from events: set expected_events in the schema, a public guess")
    events = expected * guesses.records / course.plan.cohort.max_records
    return quantile(alpha, math.inf) / math.sqrt(events * guesses.variance)


def _means(schema: EffectSchema, guesses: Guesses) -> tuple[float, float]:
    """Return a record's mean weight, and the mean square of its weighted residual."""
    variance = (schema.half / 2 if guesses.residual is None else guesses.residual) ** 2
    if schema.probability is not None:
        pi = np.atleast_1d(np.asarray(schema.probability, np.float64))
        return 1.0, variance * float(np.mean(1 / (pi * (1 - pi))))
    e, chances = _propensities(guesses)
    low = schema.trim or 0.0
    inside = (e <= 1 - low) & ((e >= low) | (schema.estimand == "att"))
    weight = {"ate": np.ones_like(e), "att": e, "overlap": e * (1 - e)}[schema.estimand]
    square = {"ate": 1 / (e * (1 - e)), "att": e / (1 - e), "overlap": e * (1 - e)}[schema.estimand]
    return float(chances @ (weight * inside)), variance * float(chances @ (square * inside))


def _propensities(guesses: Guesses) -> tuple[Array, Array]:
    nodes, weights = hermegauss(_NODES)
    chances, low, high = weights / weights.sum(), -40.0, 40.0
    for _ in range(_NODES):
        middle = (low + high) / 2
        above = float(chances @ expit(middle + guesses.separation * nodes)) > guesses.treated
        low, high = (low, middle) if above else (middle, high)
    return np.asarray(expit(low + guesses.separation * nodes)), np.asarray(chances)


def cap_warnings(plan: Plan) -> list[str]:
    """Return a warning where many expected events limit ratios to the early follow-up.

    The limit is half of ``max_records``, or 35 % where a hazard ratio above 2 is expected.
    """
    events = plan.schema.expected_events if isinstance(plan.schema, HazardSchema) else None
    share = (events or 0) / plan.cohort.max_records
    if share <= _MOST_EVENTS_OF_LARGE:
        return []
    where = "" if share > _MOST_EVENTS else ", and where a hazard ratio is above 2"
    return [
        f"WARNING: {share:.0%} of the most records are expected to have the event, and a person counts up to a "
        f"cumulative hazard of 1{where}: the ratios will cover the first part of the follow-up; end the bins where "
        "half of all have had the event"
    ]
