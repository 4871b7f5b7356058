"""The plan, the document that governs an aggregation: what is measured, by whom, and at what privacy cost."""

from privstats.plan.budget import Budget, BudgetRow, Dropout, dropout_table
from privstats.plan.cohort import Cohort
from privstats.plan.plan import Plan
from privstats.plan.review import Change, Difference, Effect, difference, facts
from privstats.plan.sanity_check import check_plausible
from privstats.plan.validity import Validity

__all__ = [
    "Budget",
    "BudgetRow",
    "Change",
    "Cohort",
    "Difference",
    "Dropout",
    "Effect",
    "Plan",
    "Validity",
    "check_plausible",
    "difference",
    "dropout_table",
    "facts",
]
