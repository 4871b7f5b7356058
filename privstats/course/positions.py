"""Put a course's releases at the places of their sessions, for readers that have no course."""

from __future__ import annotations

from itertools import pairwise

from privstats.course.base import Releases
from privstats.errors import ReleaseError
from privstats.release import Position, Release


def in_places(releases: Releases) -> list[Release | None]:
    """Return a course's releases from its first session on, with None for each session that had no sum.

    Releases that name no course, such as those of a plan alone, are returned as they are.

    Args:
        releases: of one course in order; None for a session without a sum, or all of these left out.

    Raises:
        ReleaseError: they name several courses, or other places than those of the list.

    Example:
        >>> from privstats.course.positions import in_places
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> first, third = (release.at(ps.release.Position("c0" * 32, "round", place)) for place in (0, 2))
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
    strangers = any(not isinstance(release, Release | None) for release in releases)  # which the reader refuses itself
    if strangers or all(position is None for _, position in positions):
        return list(releases)
    first, position = positions[0]
    if position is not None and position.place < first:
        raise _not_next(first, position, f"{first} sessions without a sum")
    complete = len(positions) == len(releases)  # then sessions without a sum may have been left out
    for (index, position), (later, following) in pairwise(positions):
        if not _may_follow(position, following, later - index, complete):
            raise _not_next(later, following, f"{position or 'a release of no course'}")
    places = {release.position.place: release for release in releases if release and release.position}
    behind = len(releases) - 1 - positions[-1][0]
    return [*(places.get(place) for place in range(max(places) + 1)), *[None] * behind]


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
