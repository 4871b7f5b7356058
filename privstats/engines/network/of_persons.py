"""A party's records where its plans promise persons: beside every row whose it is, in every round.

Ids are those of this process. They may be others in another round: each round bounds a person by the rows that it has
in that round.
"""

from __future__ import annotations

from typing import Any

from privstats.course import Course
from privstats.course.kinds import admits_of
from privstats.course.of_persons import measured_by_person
from privstats.dp import NoPrivacy
from privstats.errors import DataError
from privstats.moments import Moments, RecordFile, exact_moments
from privstats.moments.from_file import persons_in
from privstats.plan import Plan

__all__ = ["admit_persons", "sums_of_persons"]


def sums_of_persons(plan: Plan, found: Any) -> Moments:
    """The sums of a file, or of X, y and ids, under a plan that promises persons.

    Raises:
        DataError: something else, or records that do not fit the plan.
    """
    X, y, ids = _with_ids(plan, found)
    given: Any = {"published": plan.published, "unreadable": plan.unreadable}
    return exact_moments(plan.schema, X, y, persons=ids, person_clip=plan.person_clip, **given)


def admit_persons(course: Course, found: Any) -> None:
    """Refuse before the first round what a later one would refuse; persons are bounded here as in the rounds.

    Raises:
        DataError: as above.
    """
    plan, admits = course.first, admits_of(course)
    if admits is None or isinstance(plan.privacy, NoPrivacy):
        return
    X, y, ids = _with_ids(plan, found)
    admits(course, X, y, plan.unreadable, measured_by_person(plan.privacy, ids))


def _with_ids(plan: Plan, found: Any) -> tuple[Any, Any, Any]:
    if isinstance(found, RecordFile):
        return persons_in(found, plan.schema, plan.unreadable)
    if not isinstance(found, tuple) or len(found) != 3:
        raise DataError(
            "the plan promises persons: load() in records.py returns X, y and an id for each row, or a RecordFile with "
            "persons="
        )
    X, y, ids = found
    return X, y, ids
