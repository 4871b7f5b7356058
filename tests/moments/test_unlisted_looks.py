"""What a value without a cell looks like is named with its column, in every table, and moves no other record."""

import warnings
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas
import pytest

import privstats as ps
from privstats.errors import RecordError, UnreadableRecordsWarning
from privstats.records.reasons import COMMA, DATE, DURATION, GAP, NO_CELL
from privstats.schema.public_values import Published, Values
from privstats.transforms import ConstantFeature
from tests.made import refused

N = 40
BINS = ps.Bins("days", (0.0, 30.0, 90.0, 365.0), open="above")
DIED = ps.Categories("died", (0, 1))
COUNTS = ps.CountSchema((BINS, DIED), (("days", "died"),))
HAZARD = ps.HazardSchema(
    2, clip_norm=2.0, bins=BINS, event="died", feature_names=("age",), transform=(ConstantFeature(1.0),),
    times="continuous",
)  # fmt: skip

LOOKS: dict[str, tuple[Any, str]] = {
    "a decimal comma": ("61,5", COMMA),
    "a duration": (timedelta(days=61), DURATION),
    "a duration of pandas": (pandas.Timedelta("61 days 02:00:00"), DURATION),
    "a duration of a file": ("61 days 02:00:00", DURATION),
    "a duration of ISO": ("P61DT2H", DURATION),
    "a date": (date(2020, 1, 31), DATE),
    "nothing": (None, GAP),
    "another text": ("about two months", NO_CELL),
    "a number below the bins": (-9, NO_CELL),
}


def table(column: str, value: Any) -> dict[str, list[Any]]:
    pairs: dict[str, list[Any]] = {"days": [10.0, 61.0], "died": [0, 1], "age": [0.5, -0.5]}
    X = {name: pair * (N // 2) for name, pair in pairs.items()}
    X[column][3:5] = [value, value]
    return X


def counted(X: Any) -> Any:
    return ps.measure(COUNTS, {name: X[name] for name in ("days", "died")}, unreadable="leave out")


CLOCK = np.tile([1 << 14, 1 << 15, 3 << 14, 1 << 16], HAZARD.periods)
PUBLISHED = Published.of({"w": Values.rounded(np.array([0.0, *[-0.1] * HAZARD.periods])), "c": Values(CLOCK, 16)})


def hazards(X: Any) -> Any:
    return ps.measure(HAZARD, X, published=PUBLISHED, unreadable="leave out")


DOORS: dict[str, Callable[[Any], Any]] = {"counts": counted, "hazards": hazards}


def said(measured: Callable[[], Any]) -> tuple[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreadableRecordsWarning)
        found = measured()
    return " ".join(str(each.message) for each in caught), found


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("column", ["days", "died"])
@pytest.mark.parametrize("look", LOOKS)
def test_a_value_without_a_cell_is_named_by_its_looks(door: str, column: str, look: str) -> None:
    value, reason = LOOKS[look]
    X = table(column, value)
    text, found = said(lambda: DOORS[door](X))
    assert f"'{column}': 2 {reason}" in text
    assert str(value) not in text or value is None, "a text may be one person's"
    _, others = said(lambda: DOORS[door]({name: values[:3] + values[5:] for name, values in X.items()}))
    assert found == others, "what a record adds follows from that record alone"


def test_the_remedy_goes_with_the_look() -> None:
    text, _ = said(lambda: counted(table("days", "61,5")))
    assert "--decimal ," in text
    text, _ = said(lambda: counted(table("days", timedelta(days=61))))
    assert "durations and dates as numbers" in text


def test_a_refusal_names_the_look_too() -> None:
    for value, reason in (("61,5", COMMA), (timedelta(days=61), DURATION)):
        refused(RecordError, f"counts it in bins; some {reason}", ps.measure, COUNTS, table("days", value))


def test_a_listed_text_is_compared_as_a_text() -> None:
    """Among texts a comma means nothing: no remedy for numbers is named."""
    doses = ps.CountSchema((ps.Categories("dose", ("0,5 mg", "1,5 mg")),), (("dose",),))
    text, _ = said(lambda: ps.measure(doses, {"dose": ["0,5 mg", "1,5", "1,5 mg"]}, unreadable="leave out"))
    assert f"'dose': 1 {NO_CELL}" in text
    assert "decimal" not in text
