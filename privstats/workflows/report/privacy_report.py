"""Write the privacy officer's page: what is collected, guaranteed and not, spent, released, tried; needs jinja2."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from privstats.course import Course
from privstats.course.kinds import course_kind
from privstats.course.promise import promise_facts, total_of, unlike_session
from privstats.dp import Account, Guarantee, NoPrivacy
from privstats.errors import HeadError, PlanError, ReleaseError
from privstats.heads.provenance import Provenance
from privstats.plan import Plan
from privstats.printable import at_most, framed
from privstats.release import Release
from privstats.review import facts
from privstats.review.drop_outs import honest_parties
from privstats.version import __version__
from privstats.workflows.report import explanations, spending
from privstats.workflows.report.layout import Finding, Table, render
from privstats.workflows.report.sessions import by_session, collected, collected_table, course_table, sessions_in


def model_finding(head: Any, plan: Plan) -> Finding:
    """Return the finding about a model on its plan's page.

    A model that no guarantee covers contradicts a plan with noise.

    Args:
        head: fitted, from ``heads.load``.

    Raises:
        HeadError: the head was built under another plan, or its file names none.

    Example:
        >>> from privstats.workflows.report import model_finding
        >>> schema, cohort = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), ps.Cohort(2, 2, 10)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> model_finding(ps.heads.RidgeClassifier().fit_release(release), plan).summary
        'RidgeClassifier: exact: no promise.'
    """
    provenance: Provenance = head.provenance_
    if provenance.plan != plan.digest:
        source = "no plan" if provenance.plan is None else f"the plan {provenance.plan[:16]}..."
        raise HeadError(
            f"the head's file names {source}, and this one is {plan.digest[:16]}...: pass a head that was fitted on "
            "a release of this plan"
        )
    rows = [
        ("promise", str(provenance)),
        ("releases", ", ".join(digest[:16] for digest in provenance.releases)),
        ("course", "none, or not stated" if provenance.course is None else provenance.course[:16]),
        ("parties in it", f"{provenance.survivors} of {provenance.clients}"),
    ]
    return Finding(
        title="A model made from it",
        summary=f"{type(head).__name__}: {provenance}.",
        tables=[Table("the model", ("what", "as its file says"), rows, words=True)],
        notes=[
            *([provenance.caveat] if provenance.caveat else []),
            "Only a signature on the model's file prevents that someone else writes this; `privstats head verify` "
            "checks it.",
        ],
        violated=plan.noise is not None and not provenance.covered,
        whole=True,
    )


_PACKAGES = ("numpy", "scipy", "cryptography")


@dataclass(frozen=True)
class Statement:
    """Content of a privacy page: a plan, and facts about its release.

    Attributes:
        plan: the plan, or a course's first plan.
        accounts: of the data owner's ledger, if any.
        course: begun by the plan, if any; the page then states its guarantee.

    Raises:
        ReleaseError: the release is under another plan.
        PlanError: cut points are open, and no course estimates them.

    Example:
        >>> from privstats.workflows.report import Statement
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> statement = Statement(plan)
        >>> round(statement.guarantee.mu, 3), statement.violated
        (0.268, False)
    """

    plan: Plan
    release: Release | None = None
    accounts: Sequence[Account] | None = None
    findings: Sequence[Finding] = ()
    at: datetime | None = None
    course: Course | None = None

    def __post_init__(self) -> None:
        released = None if self.release is None else self.release.plan
        if released is not None and self.course is not None and released.position is not None:
            if wrong := unlike_session(self.course, released):
                raise ReleaseError(f"the release is of another course: {wrong}; pass the course that it was made under")
        elif released is not None and released.digest != self.plan.digest:
            raise ReleaseError(
                f"the release was made under another plan, {released.digest[:16]}..., and this one is "
                f"{self.plan.digest[:16]}...: pass the plan that it was made under"
            )
        if self.course is None and (columns := self.plan.schema.open_columns):
            raise PlanError(
                f"the cut points of {', '.join(columns)} are open, so this plan never runs alone: write its course "
                "with `privstats course init`, and pass that file"
            )

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of all covered releases; mu is infinite without DP."""
        return total_of(self.course or self.plan).guarantee

    @property
    def promise(self) -> Guarantee:
        """Guarantee to one unit; for devices, that of an exchanged answer over all runs."""
        devices, noise = self.plan.devices, self.plan.noise
        if devices is None or noise is None:
            return self.guarantee
        return explanations.answer_guarantee(self.plan, noise, devices)

    def by_session(self, phrases: Callable[[Plan], Sequence[str]]) -> dict[str, str]:
        """Return each phrase with its sessions, such as ``"2 to 9"``, or with "" where all sessions have it.

        Args:
            phrases: the phrases of one session's plan.
        """
        return by_session(list(sessions_in(self.plan, self.course)), phrases)

    def _repr_html_(self) -> str:
        return framed(page_of(self))

    @property
    def violated(self) -> bool:
        """Whether a finding contradicts a guarantee."""
        return any(finding.violated for finding in self.findings)


def page_of(statement: Statement) -> str:
    """Return the page as HTML in one file, with nothing to fetch.

    Example:
        >>> from privstats.workflows.report import Statement, page_of
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> html = page_of(Statement(plan))
        >>> "not promised" in html, "http://" in html
        (True, False)
    """
    plan, accounts = statement.plan, statement.accounts or ()
    digests = [plan.digest, *([] if statement.course is None else [statement.course.digest])]
    together = spending.together(plan, statement.guarantee, digests, accounts)  # a ledger charges a course as a whole
    return render(
        __package__,
        "privacy_report.html",
        headline=spending.headline(plan, statement.guarantee, together),
        found=_worst(statement.guarantee, together),
        several=bool(together),
        **_of_plan(plan, statement.course, "" if statement.release is None else statement.release.written_by),
        released=None if statement.release is None else _released(statement.release, statement.course),
        accounts=None if statement.accounts is None else spending.accounts_table(accounts),
        rooms=spending.rooms(accounts),
        spends=list(spending.charges(digests, accounts)),
        findings=statement.findings,
        violated=statement.violated,
        origin=_origin(statement),
    )


def _of_plan(plan: Plan, course: Course | None, written_by: str) -> dict[str, Any]:
    return {
        "plan": plan,
        "course": None if course is None else course_table(course),
        "course_digest": None if course is None else course.digest,
        "part": None if course is None or course.most == 1 else plan.budget().epsilon,
        "whole": total_of(course or plan),
        "collected": collected(plan, course),
        "collected_table": collected_table(plan, course),
        "promised": explanations.promised(plan, course),
        "conditions": explanations.conditions(plan, course),
        "not_promised": explanations.not_promised(plan, course, written_by),
        "worth": None if plan.noise is None else explanations.worth(plan, plan.noise, course),
        "budget": explanations.budget_table(plan, course),
        "dropouts": explanations.dropouts(plan, course),
        "warnings": [f"{fact}." for fact in _facts(plan, course) if fact.startswith("WARNING")],
        "documents": _documents(plan, course),
    }


def _facts(plan: Plan, course: Course | None) -> list[str]:
    return facts(plan) if course is None else promise_facts(course)


def _documents(plan: Plan, course: Course | None) -> list[tuple[str, str]]:
    # A course's origin states the total guarantee.
    if course is None or course_kind(course).single:
        return [("The plan itself", plan.to_toml())]
    from privstats.course.document import texts

    files: dict[str, bytes] = dict(texts("course.toml", course))  # type: ignore[arg-type]
    return [(name, text.decode()) for name, text in files.items()]


def _worst(guarantee: Guarantee, totals: Sequence[spending.Together]) -> float | None:
    """Return how many of 100 records are found at most, earlier spends included, or None."""
    every = (guarantee, *(each.guarantee for each in totals))
    return None if any(math.isinf(each.mu) for each in every) else max(map(explanations.hits, every))


def _released(release: Release, course: Course | None) -> list[tuple[str, str]]:
    plan, cohort = release.plan, release.plan.cohort
    session = [] if plan.position is None else [("session", f"{plan.position.place}: {plan.position.phase}")]
    out = [
        *session,
        ("parties in it", f"{len(release.survivors)} of {cohort.clients}; {plan.masking.min_listed} were needed"),
        ("left out", _suppressed(release)),
    ]
    if plan.noise is not None:
        epsilon = plan.noise.released_epsilon(honest_parties(plan, len(release.survivors)))
        heading = "epsilon with these parties" if course is None else "epsilon of this session, with these parties"
        # A reader who knows the noise of all members but one has only that member's promise.
        if plan.noise.trust.drawn_by == "member":
            heading = "epsilon for a reader outside the panel"
        out.append((heading, f"{at_most(epsilon)} (promised: {at_most(plan.noise.epsilon)})"))
    if plan.masking.failure:
        out.append(
            (
                "more than the sum is shown",
                f"with probability {at_most(plan.masking.failure, '.2g')} at most, by the masking",
            )
        )
    if release.reproducible:
        out.append(("noise", "NOT SECRET: it came from a test generator, so it protects no one; do not share it"))
    return out


def _suppressed(release: Release) -> str:
    if not release.plan.schema.suppressible:
        return "nothing"
    names = release.plan.schema.class_names
    gone = [str(index) if names is None else names[index] for index in release.suppressed]
    return f"the classes {', '.join(gone)}: too few records, by their noisy count" if gone else "no class"


def _origin(statement: Statement) -> list[tuple[str, str]]:
    plan, at, course = statement.plan, statement.at or datetime.now(UTC), statement.course
    libraries = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    kind = "none" if isinstance(plan.privacy, NoPrivacy) else plan.privacy.model
    return [
        ("made on", f"{at:%Y-%m-%d %H:%M} UTC"),
        ("made with", f"privstats {__version__}, Python {platform.python_version()}, {libraries}"),
        ("masking and noise", f"{plan.protocol} masking, noise model {kind}"),
        ("digest of the plan", plan.digest),
        *([] if course is None else [("digest of the course", course.digest)]),
    ]
