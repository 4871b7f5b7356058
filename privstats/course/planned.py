"""Define the bases of courses with fixed prices.

A kind is a frozen dataclass: the first field is its origin, usually a plan; the others are plain numbers and
``promise``. It defines ``label`` (its row in ``kinds``), ``first`` and ``_require`` (its checks). The digest follows
from label and fields. A kind over ``Phased`` defines ``phases``, from which price, order, retries and labels follow.
Any other kind over ``Planned`` defines ``priced``, ``next`` and ``labels``.

No price may follow from a release. Only ``DisjointRounds`` replace ``most`` and ``mu``. They are no phases: their
rounds hold disjoint records, so one price covers all of them, and which round is next follows from its number alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from privstats import domains
from privstats.course.base import Course, Releases, mu_of, plans_by_place
from privstats.course.phases import Phase, Phases
from privstats.course.promise import Promise, epsilon_of, longest, require_promise, total_of
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.plan.conditions import check_condition, joint_condition
from privstats.plan.position import Position
from privstats.printable import at_most, delta_text, html_facts, html_table
from privstats.python_values import python_fields


class Planned:
    """The base of a kind of course.

    Guarantee:
        All rounds and retries together are mu-GDP with :attr:`mu` = sqrt of the sum over :attr:`priced` of mu^2
        (:class:`~privstats.course.Course`); a course that breaks its own promise is never built. Invalid fields raise
        ``PlanError``.
    """

    label: ClassVar[str]

    if TYPE_CHECKING:  # at run time a dataclass would use these as its fields' defaults

        @property
        def first(self) -> Plan:
            """The plan of round 0."""

        @property
        def promise(self) -> Promise | None:
            """The owners' total promise, for files and audits, if any."""

    def __post_init__(self) -> None:
        python_fields(self)
        self._require()
        if self.most > 1 and self.first.devices is not None:
            raise PlanError(
                "a device sends one message and is gone, and a course asks the same ones again: leave devices out of "
                "its plan, or send the plan alone"
            )
        require_promise(self.promise, self.mu)
        check_condition(joint_condition(plan for plans in plans_by_place(self) for plan in plans))

    def _require(self) -> None:
        """Refuse invalid fields, and force every plan's noise."""
        raise NotImplementedError

    def next(self, releases: Releases) -> Plan | None:
        """Return the next round's plan, or None at the end."""
        raise NotImplementedError

    @property
    def priced(self) -> tuple[Plan, ...]:
        """One plan per round and budgeted retry."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the priced plans in a table."""
        raise NotImplementedError

    @property
    def most(self) -> int:
        """Maximum number of rounds, one per priced plan."""
        return len(self.priced)

    @cached_property
    def mu(self) -> float:
        """mu of all releases; infinite without DP."""
        return math.hypot(*map(mu_of, self.priced))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the label and of all fields that two courses are compared by: all but the promise."""
        facts = msgspec.json.encode(self._facts, order="sorted")
        return hashlib.sha256(domains.COURSE_KIND % self.label.encode() + facts).hexdigest()

    @property
    def _facts(self) -> dict[str, Any]:
        """The fields in the digest by name; a plan, or a course, is named by its own digest."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.compare}  # type: ignore[arg-type]
        return {name: getattr(value, "digest", value) for name, value in values.items()}

    def epsilon(self, delta: float) -> float:
        """Return all releases' epsilon; infinite without DP."""
        return epsilon_of(self.mu, delta)

    def _repr_html_(self) -> str:
        return course_html(self)


class Phased(Planned):
    """The base of a kind of course whose sessions come in phases."""

    @cached_property
    def phases(self) -> Phases:
        """The course's phases, in order."""
        raise NotImplementedError

    @property
    def priced(self) -> tuple[Plan, ...]:
        """One plan per session and retry: the dearest that may come in its place."""
        return self.phases.priced

    @property
    def alternatives(self) -> tuple[tuple[Plan, ...], ...]:
        """The plans that may come in the place of each session and retry."""
        return tuple(tuple(phase.plan for phase in phases) for phases in self.phases.by_place)

    @property
    def messages(self) -> tuple[tuple[Plan, ...], ...]:
        """The plans of the longest messages that may come in the place of each session and retry."""
        return tuple(tuple(phase.longest or phase.plan for phase in phases) for phases in self.phases.by_place)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the priced plans in a table: their places, and the sessions that may come there."""
        return tuple(f"{place}: {name}" for place, name in enumerate(self.phases.labels))

    def next(self, releases: Releases) -> Plan | None:
        """Return the next session's plan, or None at the end; one without a sum is repeated while retries last."""
        self._require_own(releases)
        plan = self.phases.next(releases)
        return None if plan is None else plan.at(self.position([release is not None for release in releases]))

    def position(self, had: Sequence[bool]) -> Position | None:
        """Return what the next session's release names; None at the end.

        Args:
            had: for each session so far, whether it had a sum.
        """
        phase = self.phases.open(had)
        return None if phase is None else Position(self.digest, phase.name, len(had), self.phases.spent(had), self.mu)

    def _require_own(self, releases: Releases) -> None:
        """Refuse a release that names no course, or another course, phase or place."""
        had = [release is not None for release in releases]
        for place, release in enumerate(releases):
            if release is None:
                continue
            named, own_position = release.position, self.position(had[:place])
            if own_position is None or named != own_position:
                own = "sessions, which ended before" if own_position is None else f"session {own_position.phase!r}"
                raise PlanError(
                    f"release {place} is not of this course's {own}; give the releases of its own sessions, in order: "
                    f"it names {named or 'no course, and the plans that the course returns name it'}"
                )


@dataclass(frozen=True)
class Single(Phased):
    """The course of one plan.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course = ps.course.Single(plan)
        >>> course.most, course.first == plan
        (1, True)
    """

    plan: Plan
    label = "single"

    def _require(self) -> None:
        require_plan("plan", self.plan)

    @property
    def first(self) -> Plan:
        """The plan."""
        return self.plan

    @property
    def promise(self) -> Promise | None:
        """None: the plan states its own."""
        return None

    @cached_property
    def phases(self) -> Phases:
        """The one session."""
        return Phases((Phase("sums", self.plan, tries=1),))

    def position(self, had: Sequence[bool]) -> Position | None:
        """Return what the plan names: None for a plan alone, and else its session of another course."""
        return None if had else self.plan.position

    def _require_own(self, releases: Releases) -> None:
        """Accept any position: the plan may be a session's of another course too."""

    def epsilon(self, delta: float) -> float:
        """Return the release's epsilon; a plan with delta 0 never exceeds its own."""
        noise = self.plan.noise
        pure = noise.epsilon if noise is not None and noise.pure else math.inf
        return min(pure, super().epsilon(delta))


def require_plan(field: str, value: object) -> None:
    """Refuse a value that is no plan."""
    if not isinstance(value, Plan):
        raise PlanError(f"{field} must be a Plan, got {type(value).__name__}; build one with Plan(...)")


def course_html(course: Course) -> str:
    """Return a notebook's view of a course's total cost and plans."""
    total = total_of(course)
    facts = [
        ("digest", course.digest),
        ("first plan", course.first.digest),
        ("sessions, at most", str(course.most)),
        ("mu of all of them", at_most(course.mu)),
        ("epsilon, delta of all of them", f"{at_most(total.epsilon)}, {delta_text(total.delta)}"),
        ("on the condition that", total.condition),
        ("bytes that a party sends in all of them", f"{total.upload_bytes:,}"),
    ]
    rows = []
    for (plan, sent), same in groupby(zip(course.priced, longest(course), strict=True)):
        budget = plan.budget()
        numbers = (str(len(list(same))), at_most(budget.mu), at_most(budget.epsilon), f"{sent.masking.upload_bytes:,}")
        rows.append((plan.schema.statistics, *numbers))
    header = ("statistics", "times", "mu", "epsilon alone", "bytes in each session")
    return html_facts(type(course).__name__, facts) + html_table(header, rows)
