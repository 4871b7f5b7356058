"""State whether a plan excludes records, and what estimates from the other records assume.

Every table and every head's card takes its sentence from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.dp import Privacy

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

ASSUMED = "whether a record is excluded as unreadable does not depend on {}"
"""The assumption of estimates from the records that remain; the gap names what exclusion must not depend on."""


def excludes_records(plan: Plan) -> bool:
    """Return whether a plan may exclude a record from its sums, for a gap or another value that it cannot read.

    A record broken in its file, with a wrong number of fields, is none of these: every plan excludes it.

    Example:
        >>> from privstats.plan.exclusions import excludes_records
        >>> schema, cohort = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0), ps.Cohort(2, 2, 9)
        >>> excludes_records(ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()))  # refuses them
        False
    """
    if plan.schema.excludes_gaps:
        return True
    unowned = isinstance(plan.privacy, Privacy) and plan.privacy.unit == "person"  # a row without an id is in no sum
    return plan.unreadable == "leave out" and (unowned or not plan.schema.reads_any_record)


def assumed_of_excluded(plan: Plan) -> str:
    """Return what estimates assume of the records that a plan excludes; empty if it excludes none.

    Example:
        >>> from privstats.plan.exclusions import assumed_of_excluded
        >>> schema, cohort = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0), ps.Cohort(2, 2, 900)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> assumed_of_excluded(ps.Plan(schema=schema, cohort=cohort, privacy=privacy))
        'whether a record is excluded as unreadable does not depend on its outcome given the columns'
    """
    return ASSUMED.format(plan.schema.ignorable) if excludes_records(plan) else ""
