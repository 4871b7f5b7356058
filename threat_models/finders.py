"""The rows of the audits and attacks of ``privstats report``, which load them on use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privstats.workflows.report.further import FurtherFindings

if TYPE_CHECKING:
    from privstats.plan import Plan
    from privstats.workflows.report import Finding, Search


def _audits(plan: Plan, search: Search) -> Sequence[Finding]:
    from threat_models.findings import audits

    return audits(plan, search)


def _attacks(plan: Plan, search: Search) -> Sequence[Finding]:
    from threat_models.findings import attacks

    return attacks(plan, search)


AUDIT = FurtherFindings("audit", "Run every audit of the plan (seconds).", _audits, order=1)
ATTACK = FurtherFindings("attack", "Run every attack on the plan (minutes).", _attacks, order=2)
