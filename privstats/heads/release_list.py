"""What heads read: one release, the two of a mean first, or those of a whole course, in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privstats.course import Centred, Releases
from privstats.errors import DataError
from privstats.heads.evidence import Released, require_release
from privstats.release import Release
from privstats.schema import MeanSchema

__all__ = ["OfOneRelease", "present", "sources"]


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


class OfOneRelease:
    """A head of one release; where somebody asks it to read several, it names those that do."""

    @property
    def fit_releases(self) -> Any:
        """None of this head's.

        Raises:
            AttributeError: always, so that ``hasattr`` says no.
        """
        head = type(self).__name__
        raise AttributeError(
            f"{head} reads one release: give it to fit_release; RefinedSoftmax and RefinedRidge read those of a course"
        )


def sources(release: Released | Releases) -> list[Released]:
    """A release alone, or those of a ``Centred`` course without a missing mean; the class sums are the last.

    Raises:
        HeadError: not a release at all.
        DataError: a list that is not of such a course, or without its class sums.
        PlanError: a mean and class sums that no such course has together.
    """
    if not isinstance(release, list | tuple):
        return [require_release(release)]
    means = [each.plan.schema for each in release[:-1] if isinstance(each, Release)]
    if len(release) != 2 or release[1] is None or not all(isinstance(each, MeanSchema) for each in means):
        raise DataError(
            "a list must hold the releases of a Centred course, its mean (or None) and its class sums, in order; give "
            "other releases one at a time"
        )
    found = [require_release(each) for each in release if each is not None]
    match found:
        case [Release() as mean, Release() as sums]:
            Centred.of(mean.plan, sums.plan)
    return found
