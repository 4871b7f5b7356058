"""The audits in the same report: a lower bound on mu from canaries, compared with the plan's claim.

``audits/canary.py`` is the audit itself; it shares no formula with the code it checks.
"""

from __future__ import annotations

from privstats.dp import Privacy
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.audits.canary import audit_canary
from threat_models.audits.target import target_of
from threat_models.report import Row

_LEAST = 400
_NOTE = (
    "this auditor knows everything but the canaries, so it always learns something under any noise; what counts is "
    "that the strength it proves (mu) stays below the strength that is claimed, its ceiling"
)


class CanaryAudit(Examination):
    """Groups of copies of the worst-case record, present or not, distinguished by score; one row per statistic."""

    name = "canary-audit"
    number = 16
    goal = "audit"
    title = "an auditor plants copies of the worst-case record and proves how much they show"
    needs = Adversary(knows="all-but-one")
    effort = 5.0

    def refusal(self, plan: Plan) -> str | None:
        """Needs a claim."""
        if not isinstance(plan.privacy, Privacy):
            return "the plan claims nothing, so there is no claim to audit"
        return (
            "bounds mu, and the plan promises a pure epsilon: `privstats audit canary`" if plan.privacy.pure else None
        )

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """Rows in mu: what was proved, at most what is claimed."""
        report = audit_canary(target_of(plan), rng, trials=max(_LEAST, trials), confidence=confidence)
        columns = {name: index for index, name in enumerate(report.columns)}
        return tuple(self._row(row, columns, trials) for row in report.rows)

    def _row(self, row: tuple[object, ...], columns: dict[str, int], trials: int) -> Row:
        claimed, result = (float(row[columns[name]]) for name in ("mu claimed", "mu at least"))  # type: ignore[arg-type]
        return Row(
            attack=self.name,
            number=self.number,
            goal=self.goal,
            adversary=self.needs.describe(),
            sees=self.needs.sees,
            metric=f"mu of {row[columns['statistic']]}",
            measured=result,
            interval=(result, float("inf")),
            baseline=0.0,
            ceiling=claimed,
            verdict="violates ceiling" if result > claimed else "leaks" if result > 0 else "no evidence",
            worlds=max(_LEAST, trials),
            note=_NOTE,
        )
