"""The sessions of a course in each history of lost ones that a test names: one walk over all, as a tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

import privstats as ps
from privstats.course.base import Course, as_next

Plans = tuple[ps.Plan, ...]
Releases = tuple[ps.Release | None, ...]


def of_zeros(plan: ps.Plan) -> ps.Release:
    """Return a release of zeros, to which every party contributed."""
    return ps.Release(plan, np.zeros(plan.layout.size, np.int64), tuple(range(plan.cohort.clients)))


def walked(
    course: Course,
    lost: Collection[Collection[int]],
    release: Callable[[ps.Plan], ps.Release] = of_zeros,
    plans: Plans = (),
    releases: Releases = (),
) -> Iterator[tuple[Plans, Releases]]:
    """Yield the plans up to each session, and the releases before it; where a course has ended, as many of both.

    Args:
        lost: of each history, the places without a sum.
        release: the release of a session that has one.
        plans: what the histories begin with.
        releases: their outcomes.
    """
    plan = course.next(releases) if releases else course.first
    if plan is None:
        yield plans, releases
        return
    plans = (*plans, plan)
    yield plans, releases
    for has_sum in (True, False):
        histories = [each for each in lost if (len(releases) not in each) is has_sum]
        if histories:
            outcome = as_next(course, list(releases), release(plan)) if has_sum else None
            yield from walked(course, histories, release, plans, (*releases, outcome))
