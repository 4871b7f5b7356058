"""A data protection office's own note on plans, and its own page of ``privstats report``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.extend.plans import AdjacentFile, FurtherPage, PlanNote

if TYPE_CHECKING:
    from privstats.plan import Plan
    from privstats.workflows.report import Statement


def _sentences(plan: Plan) -> list[str]:
    if plan.cohort.clients >= 5:
        return []
    return [f"WARNING: Ulm asks for 5 parties, and this plan has {plan.cohort.clients}"]


def _letter(statement: Statement) -> str:
    return f"<p>To the parties: the plan {statement.plan.digest} begins on Monday.</p>"


def _parties(statement: Statement) -> str:
    return f"{statement.plan.cohort.clients}\n"


NOTE = PlanNote("ulm", _sentences)
LETTER = FurtherPage(
    "covering-letter",
    "Write covering-letter.html instead: a letter to the parties.",
    "the plan alone",
    _letter,
    files=(AdjacentFile("parties.txt", "the number of parties", _parties),),
)
