"""Arguments of the heads of a course: a list of releases, or records that can be read once per round.

Checks them, and warns of what is taken for public. The refined heads use this module.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from privstats.course import Releases
from privstats.dp.privacy import Adjacency
from privstats.errors import AssumedPublicWarning, DataError
from privstats.heads.private import Records
from privstats.release import Release

__all__ = ["arrays", "present", "row_count"]


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


def arrays(X: Any, y: Any) -> Records:
    """Records that every round can read again.

    Raises:
        DataError: batches.
    """
    if y is None:
        raise DataError("every round reads the records again, so batches cannot be given here; give X and y as arrays")
    return Records.of(X, y)


def row_count(records: Records, expected: int | None, adjacency: Adjacency) -> int:
    """n of a course: the caller's number, or else the number of rows.

    That number is no secret under ``"replace-one"``, where every data set has as many; under ``"add-remove"`` it
    reveals whether one record is present, so it is taken for public with a warning.
    """
    if expected is not None:
        return expected
    if adjacency == "add-remove":
        warnings.warn(
            "the number of rows was read off X and stands in the plan of every round, so it is taken for public; give "
            "expected_records=..., a number that does not depend on the records, where it is not",
            AssumedPublicWarning,
            stacklevel=4,
        )
    return records.count
