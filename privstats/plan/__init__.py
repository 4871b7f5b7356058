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
    from privstats.review.drop_outs import Dropout as Dropout
    from privstats.review.drop_outs import dropout_table as dropout_table
    from privstats.review.facts import Change as Change
    from privstats.review.facts import Difference as Difference
    from privstats.review.facts import Effect as Effect
    from privstats.review.facts import difference as difference
    from privstats.review.facts import facts as facts
else:
    __getattr__, __dir__ = lazy_names(__name__)
