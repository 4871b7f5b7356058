"""Put a course's releases at the places of their sessions, for readers that have no course."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from privstats.course.base import Releases, mu_of
from privstats.errors import ReleaseError
from privstats.plan import Plan
from privstats.plan.position import Position
from privstats.release import Release


def in_places(releases: Releases) -> list[Release | None]:
    """Return a course's releases from its first session on, with None for each session that had no sum.

    A single release that names no course is that of a plan alone, and is returned as it is.

    Args:
        releases: of one course in order; None for a session without a sum, or all of these left out.

    Raises:
        ReleaseError: they name no course, several courses, or other places than those of the list.

    Example:
        >>> from privstats.course.positions import in_places
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> first, third = (release.at(ps.release.Position("c0" * 32, "round", place, 0.4, 0.5)) for place in (0, 2))
        >>> [each and each.position.place for each in in_places([first, third])]
        [0, None, 2]
        >>> in_places([third, first])
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: release 1 is not the next of its course: it names session 'round' at place 0 of
        course c0c0c0c0c0c0c0c0..., behind session 'round' at place 2 of course c0c0c0c0c0c0c0c0...; give all releases
        of one course, in order, and None for one without a sum
    """
    positions = [(index, release.position) for index, release in enumerate(releases) if isinstance(release, Release)]
    others = any(not isinstance(release, Release | None) for release in releases)  # which the reader refuses itself
    if others or not positions or (len(releases) == 1 and positions[0][1] is None):
        return list(releases)
    first, position = positions[0]
    if position is None or position.place < first:
        raise _not_next(first, position, f"{first} sessions without a sum")
    complete = len(positions) == len(releases)  # then sessions without a sum may have been left out
    for (index, position), (later, following) in pairwise(positions):
        if not _may_follow(position, following, later - index, complete):
            raise _not_next(later, following, f"{position or 'a release of no course'}")
    places = {release.position.place: release for release in releases if release and release.position}
    behind = len(releases) - 1 - positions[-1][0]
    return [*(places.get(place) for place in range(max(places) + 1)), *[None] * behind]


def charged_mu(plans: Sequence[Plan | None], position: Position | None) -> float:
    """Return mu of a course's sessions together, with a sum or not.

    Guarantee:
        At least what these sessions cost: the last release names what the sessions up to its own have spent. Sessions
        behind it, which had no sum, have no price here, and then the whole course's mu is returned.

    Args:
        plans: of a course's sessions, those behind the last release too; None for one without a sum.
        position: of the last release; None for a plan alone.

    Example:
        >>> from privstats.course.positions import charged_mu
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> course = ps.Rounds.within(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy), rounds=4)
        >>> charged_mu([course.first], course.position([])) == course.first.noise.mu
        True
        >>> charged_mu([course.first, None], course.position([])) == course.mu
        True
    """
    seen = math.hypot(*(mu_of(plan) for plan in plans if plan is not None))
    if position is None:
        return math.inf if None in plans else seen
    return max(seen, position.spent, position.mu if is_followed(plans, position) else 0.0)


def is_followed(plans: Sequence[Plan | None], position: Position | None) -> bool:
    """Return whether sessions without a sum follow the last release of these."""
    return position is not None and len(plans) > position.place + 1


def _not_next(index: int, position: Position | None, before: str) -> ReleaseError:
    return ReleaseError(
        f"release {index} is not the next of its course: it names {position or 'no course'}, behind {before}; give all "
        "releases of one course, in order, and None for one without a sum"
    )


def _may_follow(position: Position | None, following: Position | None, moved: int, complete: bool) -> bool:
    if position is None or following is None or position.course != following.course:
        return False
    places = following.place - position.place
    return places >= moved if complete else places == moved
