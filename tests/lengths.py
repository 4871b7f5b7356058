"""How much of a test runs by day, how much in a slice of the night, and how much in ``.ci/nightly``."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")


def sized(slice_: T, whole: T) -> T:
    """The one of a slice, or the one of the profile ``nightly``."""
    return whole if settings.get_current_profile_name() == "nightly" else slice_


def checkered(rows: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
    """Return all pairs for ``parametrize``; every second one is marked nightly, so each row and column runs by day."""
    pairs = [((at + place) % 2, row, column) for at, row in enumerate(rows) for place, column in enumerate(columns)]
    return [pytest.param(row, column, marks=pytest.mark.nightly if night else ()) for night, row, column in pairs]


def first_by_day(cases: Sequence[tuple[Any, ...]], group: Callable[..., Hashable]) -> list[Any]:
    """Return all cases for ``parametrize``; all but the first of each group are marked nightly."""
    met, found = set[Hashable](), []
    for case in cases:
        found.append(pytest.param(*case, marks=pytest.mark.nightly if group(*case) in met else ()))
        met.add(group(*case))
    return found
