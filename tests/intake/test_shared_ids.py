"""Ids that may stand for several persons are shown to the data holder, and change no sum."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import UnreadableRecordsWarning
from privstats.intake.shared_ids import digits_left, id_remarks, shared_ids
from tests import made

SCHEMA = ps.ClassSchema(2, 2, "NAB", 1.0)
CLIP = made.plan(
    SCHEMA, ps.Cohort(3, 3, 600), made.promise(unit="person", max_records_per_person=4, person_clip=1.0)
).person_clip
EACH = [f"p{place}" for place in range(299)]


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([*EACH, *["unknown"] * 301], [("unknown", 301, True)]),
        ([*EACH, *["unknown"] * 2, *["Unknown "] * 3], [("Unknown", 3, True), ("unknown", 2, True)]),
        ([*EACH, "unknown"], []),
        ([*EACH, *["p0000"] * 30], [("p0000", 30, False)]),
        (np.array([*range(299), *[9999] * 30]), [("9999", 30, False)]),
        ([*EACH, *EACH, *EACH, *["p0000"] * 30], []),  # 10 times as many as the others
        ([*EACH, *["p0000"] * 9], []),
        (["p0000"] * 30, []),
        ([*EACH, *["none"] * 2], [("none", 2, True)]),
        ([*EACH, *["NA"] * 99, *[None] * 99], []),  # these name no person
        ([*EACH, *[b"p0000"] * 30], [("p0000", 30, False)]),
        ([*EACH, *[b"unknown"] * 2], [("unknown", 2, True)]),
        (np.array([*EACH, "unknown", "unknown"], "S"), [("unknown", 2, True)]),
        ([None, "unknown", 7, 1.5, "unknown"], [("unknown", 2, True)]),
        ([], []),
    ],
)
def test_an_id_of_far_more_rows_than_others_is_found(ids: Any, found: list[tuple[str, int, bool]]) -> None:
    assert [(each.id, each.rows, each.is_word) for each in shared_ids(ids)] == found


def measured(ids: Any) -> tuple[Any, list[str]]:
    X, y = np.full((len(ids), 2), 0.5), np.zeros(len(ids), int)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = ps.measure(SCHEMA, X, y, persons=ids, person_clip=CLIP)
    return found, [str(each.message) for each in said if each.category is UnreadableRecordsWarning]


def test_the_data_holder_is_warned_and_the_sums_are_the_same() -> None:
    found, said = measured([*EACH, *["unknown"] * 301])
    assert said == [
        "301 rows share one id, 'unknown', and count as ONE person under a promise per person. If it stands for ids "
        "that are not known, empty those fields: rows without an id are excluded. Do not share this number"
    ]
    assert found.persons == 300
    assert found == measured([*EACH, *["anna"] * 301])[0]


def test_only_a_word_is_named_outside_of_the_data_holders_screen() -> None:
    """A warning may be written to a log, and no id is."""
    (said,) = measured([*EACH, *["p12345"] * 301])[1]
    assert said.startswith("301 rows share one id and count as ONE person")


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        ([7.00001e10, 7.00002e10, 7.00013e10], 6),
        ([2.0**60, 2.0**61], 15),
        ([1234567890123450.0, 1234567890123460.0, 1234567890999990.0], 15),
        ([6.5e9, 7.2e9, 11e9], 0),  # cells per litre
        ([150000.0, 151000.0, 152000.0], 0),
        ([70000112345.0, 70000112346.0, 70000112347.0], 0),
        ([0.5, 7.00001e10], 0),
        ([], 0),
    ],
)
def test_lost_digits_are_known_from_the_numbers_that_are_left(numbers, left):
    assert digits_left(np.array(numbers, np.float64)) == left


def test_ids_that_excel_rounded_are_warned_of():
    """A few persons had the rows of 1,500, and nothing stated it."""
    ids = [f"{70000112345 + 500 * place:.5E}" for place in range(1500)]
    (remark,) = id_remarks(ids)
    assert f"1,500 rows have {len({*ids})} ids, and several persons may count as ONE. Export the ids as texts" in remark
    assert measured(ids)[1] == [f"{remark}. Do not share this number"]
    assert id_remarks([f"{70000112345 + 500 * place}" for place in range(1500)]) == ()
