"""State how wide the intervals of a plan's table will be, before any budget is spent."""

from __future__ import annotations

from functools import singledispatch

from privstats.kinds import CountSchema, EffectSchema, HazardSchema, ScoringSchema
from privstats.plan import Plan
from privstats.schema import Schema


def width_sentences(plan: Plan) -> list[str]:
    """Return what noise will leave of a plan's table; empty for kinds without such a forecast.

    Example:
        >>> from privstats.inference.expected_widths import width_sentences
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=0.01, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 200), privacy=privacy)
        >>> width_sentences(plan)[0].partition(" in the ")[0]
        'WARNING: even if all 200 records come, a share'
    """
    return _widths(plan.schema, plan)


# Each reader loads with the first plan of its kind.
@singledispatch
def _widths(_: Schema, __: Plan) -> list[str]:
    return []


@_widths.register
def _of_scores(_: ScoringSchema, plan: Plan) -> list[str]:
    from privstats.inference.head_curves import expected_sentences

    return expected_sentences(plan)


@_widths.register
def _of_counts(_: CountSchema, plan: Plan) -> list[str]:
    from privstats.inference.counts.averages import wide_means
    from privstats.inference.counts.table import wide_sentences

    return [*wide_sentences(plan), *wide_means(plan)]


@_widths.register
def _of_courses(_: EffectSchema | HazardSchema, plan: Plan) -> list[str]:
    from privstats.inference.forecasts import forecast_sentences
    from privstats.inference.prediction import cap_warnings

    return [*cap_warnings(plan), *forecast_sentences(plan)]
