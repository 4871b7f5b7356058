"""The row of the note on what no browser accepts of a plan, which loads the browsers' list on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.extend.plans import PlanNote

if TYPE_CHECKING:
    from privstats.plan import Plan


def _sentences(plan: Plan) -> list[str]:
    if plan.devices is None:
        return []
    from privstats.contrib.http.browsers import warnings

    return warnings(plan)


NOTE = PlanNote("browsers", _sentences)
