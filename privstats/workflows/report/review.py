"""The section for a reviewer: what a plan says of each factor by which NIST has differential privacy evaluated.

In the order of the pyramid of NIST SP 800-226 (March 2025), Guidelines for Evaluating Differential Privacy Guarantees,
from its top, epsilon, to its base, how the data were collected. What only people know is named as theirs to add.
"""

from __future__ import annotations

import math

from privstats.course import Course
from privstats.course.whole import whole_of
from privstats.dp import NoPrivacy
from privstats.plan import Plan
from privstats.workflows.report import explanations
from privstats.workflows.report.layout import Table

__all__ = ["review_table"]

_ADJACENT = {"add-remove": "added or taken away", "replace-one": "exchanged for another"}


def review_table(plan: Plan, course: Course | None = None) -> Table:
    """One row per factor: what follows from the plan, and what its owners have to say.

    Args:
        plan: the plan, or the first one of a course.
        course: the course that it begins, if it does.
    """
    rows = [
        ("epsilon", _epsilon(plan, course), "why this epsilon, and who decided it"),
        ("unit of privacy", _unit(plan), "how many records one person has, in how many parties"),
        ("algorithms and their proof", _algorithms(plan), "nothing: `privstats plan certify` proves the arithmetic"),
        ("accuracy", _accuracy(plan), "the error that matters to the use, on public data or by a sweep"),
        ("bias", _bias(plan), "which groups are small, and what an error costs them"),
        ("trust model", _trust(plan), "who the parties and the server are, and why they would not work together"),
        (
            "implementation",
            "Whole numbers from the grid to the release, exact samplers, noise before any check of the sum; "
            "no floating-point number is released with its noise.",
            "the output of `privstats report --audit`, and the version that ran",
        ),
        (
            "security and access",
            f"Every upload is masked and signed; what is opened is the total of at least {plan.cohort.min_survivors} "
            "parties. Keys, ledgers and journals are files that only their owner may read.",
            "who may start a session, who holds the ledger, how keys are kept",
        ),
        (
            "data collection",
            "Records stay where they are; the plan's classes, columns and bounds are public.",
            "how records were collected, with which consent, how long they are kept, where the bounds come from",
        ),
    ]
    return Table("for a review", ("factor", "what the plan says", "what its owners add"), rows, words=True)


def _epsilon(plan: Plan, course: Course | None) -> str:
    whole = whole_of(course or plan)
    if math.isinf(whole.guarantee.mu):
        return "None: the exact total is released."
    releases = "one release" if course is None else "all releases of the course together"
    pure = plan.noise is not None and plan.noise.pure
    curve = "without exception, by Laplace noise" if pure else "on the exact curve of Gaussian noise"
    return (
        f"Of {releases}: mu {whole.guarantee.mu:.4g}, epsilon {whole.epsilon:.4g} at delta {whole.delta:.3g}, "
        f"{curve}. {explanations.headline(plan, whole.guarantee)}"
    )


def _unit(plan: Plan) -> str:
    privacy = plan.privacy
    if isinstance(privacy, NoPrivacy):
        return "None."
    held = f"{privacy.held[:1].upper()}{privacy.held[1:]}"
    more = {"record": " A person with several records has less.", "person": " At two parties the person has mu twice."}
    return f"{held}, {_ADJACENT[privacy.adjacency]}.{more.get(privacy.unit, '')}"


def _algorithms(plan: Plan) -> str:
    letters = ", ".join(row.letter for row in plan.schema.sent)
    if plan.noise is not None and plan.noise.pure:
        return (
            f"Sums {letters} of clipped records, with discrete Laplace noise sized by their proved L1 sensitivities; "
            "epsilons of statistics and releases add up."
        )
    noise = "without noise" if plan.noise is None else "with Gaussian noise sized by the proved joint L2 sensitivity"
    return f"Sums {letters} of clipped records, {noise}; statistics and releases compose as Gaussian DP."


def _accuracy(plan: Plan) -> str:
    if plan.noise is None:
        return "The sums are exact."
    sigmas = ", ".join(f"{row.statistic} {row.sigma:.3g}" for row in plan.noise.rows)
    return f"Standard deviation of the noise on each number, in real units: {sigmas}."


def _bias(plan: Plan) -> str:
    kept = f" A class whose noisy count is below {plan.min_count} is left out." if plan.min_count else ""
    return (
        "Noise is the same for large and small groups, so small ones are blurred more; a record longer than the clip "
        f"is shortened.{kept}"
    )


def _trust(plan: Plan) -> str:
    if plan.noise is None:
        return f"Masking alone: {plan.cohort.colluders} parties may work with the server."
    trusted = plan.noise.trust.trusted
    return f"{plan.noise.model}: {trusted}. At most {plan.cohort.colluders} parties may work with the server."
