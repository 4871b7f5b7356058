"""How often control enters ``intake`` while records are measured.

Records that cross often are opened, read or checked in several places, which must agree.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import intake

pd = pytest.importorskip("pandas")
ROOM = str(Path(intake.__file__).parent)
PLAIN = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0, feature_names=("age", "dose", "bmi"))
CELLS = ps.Cells((ps.Numeric("age", (40.0, 60.0)), ps.Categories("sex", ("f", "m"))))
DECLARED = ps.ClassSchema(2, CELLS.width, "NAB", clip_norm=1.0, transform=(CELLS,))
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
GAP = pd.DataFrame(X, columns=list(PLAIN.feature_names or ())).assign(age=[None, "41", *X[2:, 0]])
COLUMNS = {"age": [39, "41", None, *range(50, 59)], "sex": ["f", "m"] * 6}
CROSSINGS = {"array": 24, "frame with a gap": 65, "lists": 38, "declared columns": 37}
"""The most that each may take: lower a number when it falls, and raise none."""
MEASURED: dict[str, Callable[[], Any]] = {
    "array": lambda: ps.measure(PLAIN, X, Y, unreadable="leave out"),
    "frame with a gap": lambda: ps.measure(PLAIN, GAP, Y, unreadable="leave out"),
    "lists": lambda: ps.measure(PLAIN, X.tolist(), Y.tolist(), unreadable="leave out"),
    "declared columns": lambda: ps.measure(DECLARED, COLUMNS, Y, unreadable="leave out"),
}


def crossings(measured: Callable[[], Any]) -> int:
    """Number of calls of the room's functions from outside of it, generators' steps included."""
    count = 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        above = frame.f_back
        if event == "call" and within(frame) and above is not None and not within(above):
            count += 1

    sys.setprofile(seen)
    try:
        measured()
    finally:
        sys.setprofile(None)
    return count


def within(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(ROOM)


@pytest.mark.parametrize("container", CROSSINGS)
def test_records_enter_the_room_that_reads_them_no_more_often_than_before(container: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        MEASURED[container]()  # modules are loaded once
        assert crossings(MEASURED[container]) <= CROSSINGS[container]
