"""The one document that governs an aggregation: what is measured, by whom, and at what price in privacy."""

from privstats.plan.budget import Budget, BudgetRow
from privstats.plan.cohort import Cohort
from privstats.plan.facts import facts
from privstats.plan.plan import Plan

__all__ = ["Budget", "BudgetRow", "Cohort", "Plan", "facts"]
