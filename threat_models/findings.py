"""Results of audits and attacks on a plan, as sections of its page: ``privstats report --audit`` and ``--attack``.

``threat_models.finders`` announces them; the audits and attacks measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from privstats.dp import NoPrivacy
from privstats.plan import Plan
from privstats.randomness import Generator, secure, seeded
from privstats.workflows.report import Cell, Finding, Search, Table
from threat_models.attack import attacks_named
from threat_models.audits.budget import audit_budget, audit_dropouts
from threat_models.audits.canary import audit_canary
from threat_models.audits.kinds import AUDIT_KINDS, AuditKind
from threat_models.audits.noise import audit_noise
from threat_models.audits.pure import audit_epsilon, audit_pure_budget, audit_pure_sensitivity
from threat_models.audits.searches import search_of
from threat_models.audits.target import Target, target_of
from threat_models.audits.verdict import Report
from threat_models.chance import named
from threat_models.data import to_attack
from threat_models.evaluate import Effort, evaluate
from threat_models.page import finding_of

_SESSIONS, _RELEASES, _WORLDS = 4000, 5000, 200

_SENSITIVITY = (
    "Audit: can a record move the sums further than claimed?",
    "The search met no pair of records that moves a sum further than the plan claims.",
)
_SAID = {
    "budget": (
        "Audit: is the promise what the noise gives?",
        "A search for the record that shows most finds no more than the plan promises. The rows are the most that any "
        "attacker can reach.",
    ),
    "dropouts": (
        "Audit: does the promise survive dropouts?",
        "With every number of parties that may vanish, the promise holds.",
    ),
    "noise": (
        "Audit: is the noise there?",
        "Sessions were run on known records, and the noise in their releases is the noise of the plan.",
    ),
    "canary": (
        "Audit: what can be proved from outside?",
        "An auditor who knows everything but one group of records proves no more than the plan admits.",
    ),
}


def audits(plan: Plan, search: Search) -> Sequence[Finding]:
    """Every audit that needs a plan alone; one finding without a test where the plan promises nothing."""
    if isinstance(plan.privacy, NoPrivacy):
        text = "The plan promises nothing about single records, so there is no claim that could be contradicted."
        return [Finding(title="Audits", summary=text)]
    target, rng = target_of(plan), secure() if search.seed is None else seeded(search.seed)
    out = []
    for audit in _audits(target, rng, search.trials):
        out.append(_finding(audit()))
        search.tick()
    return out


def attacks(plan: Plan, search: Search) -> Sequence[Finding]:
    """Every attack against the plan, on bundled records.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    effort = Effort(trials=search.trials or _WORLDS, seed=search.seed, tick=lambda _: search.tick())
    pool, what = to_attack(plan, named(search.seed, "data"))
    result = finding_of(evaluate(plan, attacks_named(()), pool, effort))
    return [
        replace(
            result,
            title=f"Attacks: {result.title[0].lower()}{result.title[1:]}",
            notes=[f"Tried on {what}.", *result.notes],
        )
    ]


def _audits(target: Target, rng: Generator, trials: int | None) -> list[Callable[[], Report]]:
    if target.privacy.pure:
        return [
            lambda: audit_pure_budget(target, rng),
            lambda: audit_pure_sensitivity(target, rng),
            lambda: audit_noise(target, rng, trials=trials or _SESSIONS),
            lambda: audit_epsilon(target, rng, trials=trials or _RELEASES),
        ]
    known = AUDIT_KINDS.get(target.schema.task, AuditKind())
    search = [lambda: search_of(target.schema)(target, rng)] if known.search or not known.declared else []
    budget = [lambda: audit_budget(target)] if known.declared else []
    if not known.party:
        return [*budget, *search]
    dropouts = [lambda: audit_dropouts(target)] if target.privacy.trust.divided else []
    canary = [lambda: audit_canary(target, rng, trials=trials or _RELEASES)]
    return [
        *budget,
        *dropouts,
        *search,
        lambda: audit_noise(target, rng, trials=trials or _SESSIONS),
        *(canary if known.canary else ()),
    ]


def _finding(report: Report) -> Finding:
    title, holds = _SAID.get(report.audit, _SENSITIVITY)
    headings, rows = report.shown
    return Finding(
        title=title,
        summary="A claim is contradicted: do not release, and report this." if report.violated else holds,
        tables=(Table(f"audit {report.audit}", [Cell(heading) for heading in headings], rows),),
        notes=[f"{note[:1].upper()}{note[1:]}." for note in report.notes],
        violated=report.violated,
    )
