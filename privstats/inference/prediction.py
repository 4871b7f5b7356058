"""The predicted width of an interval, from public numbers alone, before anything is measured or spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privstats.errors import PlanError
from privstats.inference.inversion import quantile
from privstats.plan import Plan
from privstats.schema import RidgeSchema, narrowed

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

    Args:
        plan: of a ``RidgeSchema``; the noise is that of ``min_survivors`` survivors.
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
    schema = narrowed(
        plan.schema, RidgeSchema, PlanError("half widths are of a regression: give a plan of a RidgeSchema")
    )
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
