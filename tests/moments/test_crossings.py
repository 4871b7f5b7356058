"""How often control enters the rooms that read records, while records are measured.

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
from privstats import intake, records

pd = pytest.importorskip("pandas")
PACKAGE = str(Path(ps.__file__).parent)
ROOMS = tuple(str(Path(room.__file__).parent) for room in (intake, records))
PLAIN = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0, feature_names=("age", "dose", "bmi"))
CELLS = ps.Cells((ps.Numeric("age", (40.0, 60.0)), ps.Categories("sex", ("f", "m"))))
DECLARED = ps.ClassSchema(2, CELLS.width, "NAB", clip_norm=1.0, transform=(CELLS,))
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
GAP = pd.DataFrame(X, columns=list(PLAIN.feature_names or ())).assign(age=[None, "41", *X[2:, 0]])
COLUMNS = {"age": [39, "41", None, *range(50, 59)], "sex": ["f", "m"] * 6}
MOST = 8
MEASURED: dict[str, Callable[[], Any]] = {
    "array": lambda: ps.measure(PLAIN, X, Y, unreadable="leave out"),
    "frame with a gap": lambda: ps.measure(PLAIN, GAP, Y, unreadable="leave out"),
    "lists": lambda: ps.measure(PLAIN, X.tolist(), Y.tolist(), unreadable="leave out"),
    "declared columns": lambda: ps.measure(DECLARED, COLUMNS, Y, unreadable="leave out"),
}


def entries(measured: Callable[[], Any]) -> list[str]:
    """Functions of the rooms that are called from outside of them, generators' steps included.

    A public map that calls back into these rooms is outside of them. A call through another library counts as its
    caller's.
    """
    found = []

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and within(frame) and not within(caller(frame)):
            found.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}")

    sys.setprofile(seen)
    try:
        measured()
    finally:
        sys.setprofile(None)
    return found


def caller(frame: FrameType | None) -> FrameType | None:
    while frame := frame and frame.f_back:
        if frame.f_code.co_filename.startswith(PACKAGE):
            break
    return frame


def within(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(ROOMS)


@pytest.mark.parametrize("container", MEASURED)
def test_records_enter_the_rooms_that_read_them_eight_times_at_most(container: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        MEASURED[container]()  # modules are loaded, and a schema's reading is built, once
        found = entries(MEASURED[container])
        assert len(found) <= MOST, found


def test_a_second_reader_of_the_records_would_be_seen() -> None:
    before = entries(MEASURED["array"])
    assert before
    assert len(entries(lambda: (MEASURED["array"](), intake.tables.table_of(X)))) == len(before) + 1
