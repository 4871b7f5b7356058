"""Arguments of the heads of a course: a list of releases. The refined heads use this module."""

from __future__ import annotations

from collections.abc import Sequence

from privstats.course import Releases
from privstats.errors import DataError
from privstats.release import Release

__all__ = ["present"]


def present(releases: Releases) -> list[Release]:
    """The releases that are not None; the first one is required.

    Raises:
        DataError: not a list of releases, or without the first.
    """
    if isinstance(releases, Release) or not isinstance(releases, Sequence) or not releases:
        raise DataError("releases must be a list with the release of every node of a course; give them in order")
    have = [each for each in releases if each is not None]
    if releases[0] is None or not all(isinstance(each, Release) for each in have):
        raise DataError("releases must hold Release or None, and the first release, on which all rounds rest")
    return have
