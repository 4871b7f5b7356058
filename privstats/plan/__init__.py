"""Build the plan, the document that governs an aggregation: statistics, parties and privacy cost."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.plan.budget import Budget as Budget
    from privstats.plan.budget import BudgetRow as BudgetRow
    from privstats.plan.cohort import Cohort as Cohort
    from privstats.plan.cohort import check_plausible as check_plausible
    from privstats.plan.devices import Devices as Devices
    from privstats.plan.plan import Plan as Plan
    from privstats.plan.validity import Validity as Validity
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.plan.budget": ["Budget", "BudgetRow"],
            "privstats.plan.cohort": ["Cohort", "check_plausible"],
            "privstats.plan.devices": ["Devices"],
            "privstats.plan.plan": ["Plan"],
            "privstats.plan.validity": ["Validity"],
        },
    )
