"""How much of a test of the night a slice runs, which each change waits for, and how much ``.ci/nightly``."""

from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")


def sized(slice_: T, whole: T) -> T:
    """The one of a slice, or the one of the profile ``nightly``."""
    return whole if settings.get_current_profile_name() == "nightly" else slice_
