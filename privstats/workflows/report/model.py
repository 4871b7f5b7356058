"""The section of the privacy officer's page on a model: what it was made from, and what is promised for it.

It reads a head's provenance and measures nothing. Beside the page, which knows findings only.
"""

from __future__ import annotations

from typing import Any

from privstats.errors import HeadError
from privstats.heads.provenance import Provenance
from privstats.plan import Plan
from privstats.workflows.report.findings import Finding
from privstats.workflows.report.layout import Table

__all__ = ["model_finding"]


def model_finding(head: Any, plan: Plan) -> Finding:
    """What a plan's page says of a model: it contradicts the plan's promise where no promise covers it.

    Args:
        head: a fitted head, as ``heads.load`` gives it.
        plan: the plan that the page is of.

    Raises:
        HeadError: the head was made under another plan, or its file names none.

    Example:
        >>> from privstats.workflows.report import model_finding
        >>> schema, cohort = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), ps.Cohort(2, 2, 10)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> model_finding(ps.heads.RidgeClassifier().fit_release(release), plan).summary
        'RidgeClassifier: exact: no promise.'
    """
    found: Provenance = head.provenance_
    if found.plan != plan.digest:
        told = "no plan" if found.plan is None else f"the plan {found.plan[:16]}..."
        raise HeadError(
            f"the head's file names {told}, and this one is {plan.digest[:16]}...: give a head that was fitted on a "
            "release of this plan"
        )
    rows = [
        ("promise", str(found)),
        ("releases", ", ".join(digest[:16] for digest in found.releases)),
        ("course", "none, or not said" if found.course is None else found.course[:16]),
        ("parties in it", f"{found.survivors} of {found.clients}"),
    ]
    return Finding(
        title="A model made from it",
        summary=f"{type(head).__name__}: {found}.",
        tables=[Table("the model", ("what", "as its file says"), rows, words=True)],
        notes=[
            *([found.caveat] if found.caveat else []),
            "Only a signature on the model's file keeps somebody from writing this; `privstats head verify` checks it.",
        ],
        violated=plan.noise is not None and not found.covered,
        whole=True,
    )
