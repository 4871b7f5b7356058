"""The plan of a session of counts before what a course is about, for a part of its price."""

from __future__ import annotations

from dataclasses import replace

from privstats.course.promise import part_of
from privstats.plan import Plan
from privstats.schema import CountSchema

__all__ = ["count_plan"]


def count_plan(plan: Plan, schema: CountSchema, part: float) -> Plan:
    """A plan of counts over the same parties, under the same trust model, unit and adjacency.

    Args:
        plan: that the counts come before.
        schema: what is counted.
        part: the counts' mu^2 over the plan's.

    Raises:
        PlanError: the plan has no DP, or so small an epsilon cannot be promised.
    """
    proved = None if plan.validity is None else replace(plan.validity, level="moments")  # cell by cell
    privacy = part_of(plan, part, None)
    return replace(plan, schema=schema, privacy=privacy, min_count=0, merge={}, published=None, validity=proved)
