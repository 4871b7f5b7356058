"""The row of the page for an authority, which loads the page on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.extend.plans import AdjacentFile, FurtherPage

if TYPE_CHECKING:
    from privstats.workflows.report import Statement


def _page(statement: Statement) -> str:
    from privstats.contrib.evidence.table import evidence_page

    return evidence_page(statement)


def _bill(statement: Statement) -> str:
    from privstats.contrib.evidence.bill_of_materials import cbom

    return cbom(statement.plan, statement.course)


PAGE = FurtherPage(
    "evidence",
    "Write evidence.html and cbom.json instead: one table for an authority.",
    "the plan and what attacks it",
    _page,
    finds=True,
    files=(AdjacentFile("cbom.json", "the bill of materials of the plan's cryptography, CycloneDX 1.6", _bill),),
)
