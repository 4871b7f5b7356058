"""What a file of ``--plan`` says that a release or a head must come from: a plan, or a course and its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import privstats as ps
from privstats.cli.parts.verifying import NO
from privstats.errors import PlanError, ReleaseError

if TYPE_CHECKING:
    from privstats.course import Course

__all__ = ["begins", "of_course", "read_expected", "together"]

_NONE = "none"


def read_expected(path: Path) -> ps.Plan | Course:
    """The plan of a file, or the course.

    Raises:
        PlanError: it holds neither.
    """
    from privstats.course.document import is_course

    return ps.course.read(path) if is_course(path) else ps.Plan.read(path)


def begins(expected: ps.Plan | Course) -> ps.Plan:
    """The plan, or the one of the course's first session."""
    return expected if isinstance(expected, ps.Plan) else expected.first


def together(expected: ps.Plan | Course) -> str:
    """The promise for all sessions of a course, in words; empty for a plan alone."""
    from privstats.course.whole import whole_of

    whole = whole_of(expected)
    if whole.sessions == 1 or whole.delta == 1:
        return ""
    return f"epsilon {whole.epsilon:.4g} at delta {whole.delta:.3g}, for all {whole.sessions} sessions together"


def of_course(release: ps.Release, course: Course, after: Sequence[str]) -> str:
    """The verdict on whether a release is of the session of a course that follows on these releases.

    Args:
        release: the release.
        course: the course.
        after: files of the sessions before, in order; ``"none"`` for one that ended without a sum.
    """
    before: list[ps.Release | None] = []
    for name in after:
        earlier = None if name == _NONE else ps.Release.load(name)
        if earlier is not None and (wrong := _unlike(earlier.plan, course, before)):
            return f"{NO}{name} is not of session {len(before)}: {wrong}"
        before.append(earlier)
    wrong = _unlike(release.plan, course, before)
    return f"{NO}{wrong}" if wrong else f"good: of session {len(before)} of the course"


def _unlike(plan: ps.Plan, course: Course, before: Sequence[ps.Release | None]) -> str:
    """Why a plan is not the course's next; empty where it is."""
    try:
        own: Any = course.next(tuple(before))
    except (PlanError, ReleaseError) as refusal:
        return f"no plan follows from the releases before: {refusal}"
    if own is None:
        return f"the course ends after {len(before)} sessions"
    if plan == own:
        return ""
    same = own.published is not None and plan.published is not None and plan.published.after == own.published.after
    if same and replace(plan, published=own.published) == own:
        return (
            "all but the last digits of what its plan publishes follows from the course, and another machine may "
            "compute those otherwise: privstats course admit compares them, from the plan's file in the session's "
            "folder"
        )
    if not before:
        return (
            f"the course's first session has the plan {own.digest}, and this one {plan.digest}: of a later session "
            "give the releases of those before it with --after, in order"
        )
    return f"the plan that follows is {own.digest}, and this one is {plan.digest}"
