"""What heads read: one release, those of a mean first, of parties, or of a whole course, in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privstats.errors import DataError, ReleaseError
from privstats.heads.evidence import Released, require_release
from privstats.release import Release
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.course import Releases

__all__ = ["OfOneRelease", "Sources", "behind_counts", "behind_cut_points", "directions", "present", "sources"]

_WRONG_LIST = (
    "a list must hold the releases of a Centred course: its mean (or None), its class sums, and of a calibrated one "
    "its calibration (or None), in order; give other releases one at a time"
)


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


def behind_counts(releases: Releases) -> tuple[list[Release], Releases]:
    """The count sessions that a ``Binned`` course begins with, without missing ones, and what follows them.

    Raises:
        ReleaseError: what follows was measured behind other cut points than these counts give.
    """
    place = next((at for at, each in enumerate(releases) if each is not None and _task(each) != "counts"), 0)
    counts, rest = [each for each in releases[:place] if each is not None], list(releases[place:])
    if not place or not (counts or _reads_table(rest[0])):
        return [], releases
    if counts and not _behind_these(rest[0], counts):
        raise ReleaseError(
            "the cut points of these sums do not follow from these counts: give all releases of one Binned course, in "
            "order, and None for one without a sum"
        )
    if len(rest) == 2 and _task(rest[0]) == "classes" and _task(rest[1]) in ("", "calibration"):
        return counts, [None, *rest]  # a mean without a sum went before
    return counts, rest


def behind_cut_points(release: Released | Releases) -> tuple[tuple[Released, ...], Released]:
    """A release alone, or the last of a ``Binned`` course over a plan; and all that it was made from.

    Raises:
        HeadError: not a release at all.
        ReleaseError: sums behind other cut points than the counts give.
        DataError: a list that is not of such a course, or without its last release.
    """
    if not isinstance(release, list | tuple):
        alone = require_release(release)
        return (alone,), alone
    counts, rest = behind_counts(release)
    if len(rest) != 1 or len(release) == 1 or rest[0] is None:
        raise DataError(
            "a list is in the order of a course's sessions, and here must hold the releases of a Binned course over "
            "one plan: its counts (or None), then the sums; give other releases one at a time"
        )
    return (*counts, require_release(rest[0])), rest[0]


def _task(release: Any) -> str:
    """Of what its plan measures; empty where it is no release."""
    return getattr(getattr(getattr(release, "plan", None), "schema", None), "task", "")


def _reads_table(release: Any) -> bool:
    """Whether it was measured behind declared columns."""
    maps: tuple[Any, ...] = getattr(getattr(getattr(release, "plan", None), "schema", None), "transform", ())
    return bool(maps) and maps[0].reads_cells


def _behind_these(release: Any, counts: Sequence[Release]) -> bool:
    from privstats.course.binned import cut_points_after

    counted: Any = counts[0].plan
    if not (_reads_table(release) and _reads_table(counts[0])):
        return False
    opened: Any = counted.schema.transform[0]
    return bool(release.plan.schema.transform[0] == opened.with_edges(cut_points_after(opened, counts)))


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
            f"{head} reads one release, or those of a course without gradient rounds in a list: give them to "
            "fit_release; RefinedSoftmax and RefinedRidge read those of gradient rounds"
        )


@dataclass(frozen=True)
class Sources:
    """What a head of one release is made from.

    Attributes:
        releases: all of it, in order.
        sums: the release of class sums.
        calibration: of the discriminant of these sums; None without one.
    """

    releases: tuple[Released, ...]
    sums: Released
    calibration: Release | None = None


def sources(release: Released | Releases) -> Sources:
    """A release alone, or those of a ``Centred`` course without the missing ones, also behind cut points (``Binned``).

    Raises:
        HeadError: not a release at all.
        DataError: a list that is not of such a course, or without its class sums.
        PlanError: releases that no such course has together.
    """
    if not isinstance(release, list | tuple):
        alone = require_release(release)
        return Sources((alone,), alone)
    from privstats.course import Centred, history
    from privstats.schema import CalibrationSchema, MeanSchema

    behind: Any
    counts, behind = behind_counts(release)
    if len(behind) == 1 and len(release) > 1:
        behind = [None, *behind]
    if len(behind) not in (2, 3):
        raise DataError(_WRONG_LIST)
    mean, sums, calibration = (*behind, None)[:3]
    if not (_missing_or(MeanSchema, mean) and _missing_or(CalibrationSchema, calibration)):
        raise DataError(_WRONG_LIST)
    if sums is None or (calibration is not None and not isinstance(sums, Release)):
        raise DataError(_WRONG_LIST)
    made = tuple(require_release(each) for each in (mean, sums, calibration) if each is not None)
    if isinstance(sums, Release) and (mean is not None or calibration is not None):
        Centred.of(mean and mean.plan, sums.plan, calibration and calibration.plan)
    if calibration is not None and calibration.plan.published.after != history([mean, sums]).hex():
        raise DataError("the calibration was measured after other releases: give all those of one course, in order")
    return Sources((*counts, *made), sums, calibration)


def directions(release: Released | Releases) -> tuple[Released, ...]:
    """A release of parties' directions, alone or with that of their updates (``PartyRounds``), without missing ones.

    Raises:
        HeadError: not a release at all.
        ReleaseError: releases of another kind, or that no such course has together.
        DataError: a list of more than two, or without a release.
    """
    from privstats.schema import PartySchema

    given = [each for each in release if each is not None] if isinstance(release, list | tuple) else [release]
    if not 1 <= len(given) <= 2:
        raise DataError(
            "a list must hold one or both releases of a PartyRounds course, in order, None for a round without a sum; "
            "run the course again where there is none"
        )
    first, *updates = map(require_release, given)
    if type(first.plan.schema) is not PartySchema:
        found = type(first.plan.schema).__name__
        and_ = ", and an update only behind its first round" if first.plan.schema.whole_parties else ""
        raise ReleaseError(f"this is a release of a {found}; PartyDiscriminant reads a PartySchema{and_}")
    if updates and not _updates(first, updates[0]):
        raise ReleaseError("the second release is no update after the first: give both of one PartyRounds course")
    return (first, *updates)


def _updates(first: Released, second: Released) -> bool:
    """Whether the second is of the plan that follows from the first in their course."""
    if not isinstance(first, Release) or first.plan.noise is None or first.plan.noise.pure:
        return False
    from privstats.course import PartyRounds

    return second.plan == PartyRounds(first.plan).next([first])


def _missing_or(kind: type[Schema], release: Any) -> bool:
    """Whether it is missing, or a release of this kind of schema."""
    return release is None or (isinstance(release, Release) and isinstance(release.plan.schema, kind))
