"""The predicted width of an interval, from public numbers alone, before anything is measured or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privstats.course import Hazard
from privstats.errors import PlanError
from privstats.inference.inversion import quantile
from privstats.plan import Plan
from privstats.schema import HazardSchema, RidgeSchema, narrowed

__all__ = ["HalfWidth", "predicted_half_width"]


@dataclass(frozen=True)
class HalfWidth:
    """A predicted half width of the interval of one slope, per unit of a column behind the plan's transform.

    Attributes:
        records: number of records.
        exact: half width without noise.
        noisy: with the plan's noise; infinite where the slope will not be told.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
        >>> width = ps.inference.predicted_half_width(plan, 10_000, variance=1 / 3)
        >>> round(width.exact, 3), round(width.noisy, 3)
        (0.068, 0.079)
    """

    records: int
    exact: float
    noisy: float


def predicted_half_width(
    plan: Plan, records: int, *, variance: float, residual: float | None = None, alpha: float = 0.05
) -> HalfWidth:
    """Half width of a slope's interval: z sqrt(s2 / (n v) + (sigma_h^2 + sigma_G^2 |b|^2 / 2) / (n v)^2).

    For columns that are not correlated, of variance v, and slopes that explain as much as they leave: |b|^2 = s2 / v.
    Of hazards that of a log ratio, from the schema's ``expected_events`` among the cohort's most records.

    Args:
        plan: of a ``RidgeSchema``, or of a ``HazardSchema`` and its whole course; the noise is that of
            ``min_survivors`` survivors.
        records: n, a public guess.
        variance: v, a public guess of a column's variance behind the transform; 1/3 for one that is uniform on -1 to 1.
        residual: guessed standard deviation of the residuals; half the target bound if omitted.
        alpha: level of the interval.

    Raises:
        PlanError: another schema, or a guess that is not above 0.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
        >>> widths = [ps.inference.predicted_half_width(plan, records, variance=1 / 3) for records in (1_000, 10_000)]
        >>> [round(width.noisy, 2) for width in widths]
        [0.45, 0.08]
    """
    if isinstance(plan.schema, HazardSchema):
        return _of_hazards(plan, plan.schema, records, variance, alpha)
    refusal = PlanError("half widths are of a regression or of hazards: give a plan of a RidgeSchema or a HazardSchema")
    schema = narrowed(plan.schema, RidgeSchema, refusal)
    deviation = schema.target_bound / 2 if residual is None else residual
    for name, value in (("records", records), ("variance", variance), ("residual", deviation)):
        if not (value > 0 and math.isfinite(value)):
            raise PlanError(f"{name} must be above 0, got {value!r}; give a public guess")
    z, information = quantile(alpha, math.inf), records * variance
    sigma = {} if plan.noise is None else plan.noise.released_sigma(plan.cohort.min_survivors)
    of_folds = math.sqrt(schema.folds)
    noise_G, noise_h = of_folds * sigma.get("G", 0.0), of_folds * sigma.get("h", 0.0)
    square = deviation**2 / information
    noise = (noise_h**2 + noise_G**2 * deviation**2 / variance / 2) / information**2
    told = z * noise_G < information
    return HalfWidth(records, z * math.sqrt(square), z * math.sqrt(square + noise) if told else math.inf)


def _of_hazards(plan: Plan, schema: HazardSchema, records: int, variance: float, alpha: float) -> HalfWidth:
    """z sqrt(1 / (d v) + sigma_g^2 / (d v)^2) of a log ratio, d the events that are expected among so many persons.

    Noise is that of a round of the course whose promise the plan's is. What a next round could change is left out.
    """
    if schema.expected_events is None:
        raise PlanError("half widths of hazards follow from events: give the schema expected_events, a public guess")
    for name, value in (("records", records), ("variance", variance)):
        if not (value > 0 and math.isfinite(value)):
            raise PlanError(f"{name} must be above 0, got {value!r}; give a public guess")
    z, noise = quantile(alpha, math.inf), Hazard.within(plan).plan.noise
    information = schema.expected_events * records / plan.cohort.max_records * variance
    sigma = {} if noise is None else noise.released_sigma(plan.cohort.min_survivors)
    exact, told = z / math.sqrt(information), z * sigma.get("H", 0.0) < information
    noisy = z * math.sqrt(1 / information + (sigma.get("g", 0.0) / information) ** 2)
    return HalfWidth(records, exact, noisy if told else math.inf)
