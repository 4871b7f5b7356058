"""Facts for a reviewer that are specific to a kind of schema, one sentence each; rows are keyed by the kind's task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privstats.plan.plan import Plan
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.schema import EffectSchema

_EXACT: Mapping[str, str] = {
    "counts": "WARNING: exact count tables show every cell of one record as it is, and suppressing small cells does "
    "not help where totals give them back; release them with a Privacy",
    "sites": "WARNING: exact sums within sites beside exact plain sums of the same records (a RidgeSchema) are one "
    "more pull, and few sites can then be solved for; do not release both exactly (`privstats attack run --attack "
    "site-means` shows how)",
}


def warning_of_exact_sums(schema: Schema) -> list[str]:
    """Return what exact sums of this kind reveal of single records; empty where no warning is written."""
    return [_EXACT[schema.task]] if schema.task in _EXACT else []


def facts_of_kind(plan: Plan) -> list[str]:
    """Return facts on groups of sites, on open columns, and on the sums of the plan's kind."""
    of = _OF_KIND.get(plan.schema.task)
    return [*_groups(plan), *_open(plan), *([] if of is None else of(plan.schema))]


def _groups(plan: Plan) -> list[str]:
    groups = plan.schema.site_groups
    if groups == 1:
        return []
    sites = plan.cohort.clients / groups
    return [
        f"each of the {groups} groups is a sum of its own over about {sites:.3g} sites, among which alone the protocol "
        f"hides one; what all groups say together carries sqrt({groups}) times the noise of one"
    ]


def _open(plan: Plan) -> list[str]:
    if not plan.schema.open_columns:
        return []
    return [
        f"the cut points of {', '.join(plan.schema.open_columns)} are open, so this plan is not run alone: "
        "`privstats course init STUDY.TOML --plan PLAN.TOML` finds them first, under the same promise"
    ]


def _of_effect(schema: EffectSchema) -> list[str]:
    """Return facts for a reviewer about outcomes, missing outcomes and subgroups."""
    outcomes, parts = schema.outcomes, math.prod(schema.crossed)
    names, apart = schema.outcome_names or (), [each.name for each in schema.subgroups or ()]
    shared = f"the outcomes {', '.join(names)} share the budget: each has about sqrt({outcomes}) times the noise of one"
    divided = (
        f"the records are divided into {parts} subgroups by {', '.join(apart)}: each has the noise of one sum on its "
        f"own records, and all together sqrt({parts}) times as much; what is not declared in a course is exploratory"
    )
    gaps = (
        "outcomes may be missing: whether a record has one is summed, too, in rounds before the last session, and the "
        "table holds where nothing but the arm and the columns decides it, which no sum can test"
    )
    counted = (
        "records that are left out are counted, by arm and by whether their outcome or a column cannot be read, at no "
        "further price: a record is in that count or in the other sums"
    )
    return [
        *([gaps] if schema.missing else []),
        *([counted] if schema.left_out else []),
        *([shared] if outcomes > 1 else []),
        *([divided] if parts > 1 else []),
    ]


_OF_KIND: Mapping[str, Callable[[Any], list[str]]] = {"effect": _of_effect}
