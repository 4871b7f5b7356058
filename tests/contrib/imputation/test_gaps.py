"""A record's gaps alone decide its pattern, and no record moves the sums by more than the bound."""

import math
import warnings
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.contrib.imputation import SHARES, by_gaps, schema_of
from privstats.contrib.imputation.gaps import layout_of
from privstats.errors import DataError, RecordError, ReleaseError, SchemaError
from tests import made
from tests.contrib.imputation.cases import COLUMNS, schema, table


def test_patterns_are_named_by_what_is_missing():
    names = schema(("dose", "days")).class_names
    assert names == ("no gap", "dose missing", "days missing", "dose and days missing")
    assert layout_of(schema(("dose", "days"))) == (("dose", "age", "days"), (0, 2))


def test_a_columns_name_may_read_like_a_pattern():
    measured = schema_of({"a and b missing": (0, 1), "b": (0, 1), "c": (0, 1)}, ["b", "a and b missing"], clip_norm=5)
    assert layout_of(measured) == (("a and b missing", "b", "c"), (1, 0))


def test_a_gap_adds_nothing_to_any_product():
    measured = schema()
    sums = ps.measure(measured, *by_gaps(measured, {"dose": [None, 3.0], "age": [75, 45], "days": [8, 2]})).real()
    assert np.allclose(sums.S[1], np.outer([0, 1, 1, 2], [0, 1, 1, 2]), atol=1e-3)
    assert np.allclose(sums.S[0], np.outer([1, -1, -1, 2], [1, -1, -1, 2]), atol=1e-3)


def test_each_record_is_mapped_alone():
    measured, records = schema(("dose", "days")), table(50)
    records["days"][::7] = np.inf
    rows, patterns = by_gaps(measured, records)
    for i in range(50):
        row, pattern = by_gaps(measured, {name: column[i : i + 1] for name, column in records.items()})
        assert np.array_equal(row[0], rows[i])
        assert pattern[0] == patterns[i]


ODD = [
    None, math.nan, math.inf, -math.inf, "", "n/a", "NaN", "7", "<5", "old", b"7", b"\xff", "9" * 2000, "\0", "1e400",
    10**400, -(10**400), 1e308, -1e308, 5e-324, True, np.float32(7), np.array(7.0), np.ma.masked, np.datetime64("NaT"),
    np.datetime64("2020-01-02"), Decimal("NaN"), Decimal("7"), Fraction(7, 2), 7j, [7, 8], (), {}, object(),
]  # fmt: skip
"""Values that one record may hold."""


def added(measured, columns):
    """The sums of a table, and 0 for a table whose records are all unreadable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ps.measure(measured, *by_gaps(measured, columns), unreadable="leave out")


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "objects": lambda values: np.fromiter(values, object, len(values)),
    "pandas": lambda values: pd.Series(values, dtype=object),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("place", range(len(ODD)))
def test_an_odd_record_changes_no_other_record(container, place):
    measured, held = schema(("dose", "days")), CONTAINERS[container]
    usual = {name: column.tolist() for name, column in table(6).items()}
    others = added(measured, {name: held(column) for name, column in usual.items()})
    for name in COLUMNS:
        one = {each: [ODD[place] if each == name else 3.0] for each in COLUMNS}
        joined = {each: held([*column[:3], *one[each], *column[3:]]) for each, column in usual.items()}
        alone = added(measured, {each: held(column) for each, column in one.items()})
        assert added(measured, joined) == others + alone
        assert alone.records <= 1


@pytest.mark.parametrize(
    ("value", "pattern", "counted"),
    [(None, "dose missing", 1), ("n/a", "dose missing", 1), (math.inf, "dose missing", 1), ("7", "no gap", 1),
     ("<5", "no gap", 0), (b"old", "no gap", 0), ([1, 2], "no gap", 0), (10**400, "dose missing", 1)],
)  # fmt: skip
def test_a_value_is_a_number_a_gap_or_unreadable(value, pattern, counted):
    measured, columns = schema(), {"dose": [value, 3.0], "age": [75, 45], "days": [8, 2]}
    assert by_gaps(measured, columns)[1].tolist() == [pattern, "no gap"]
    assert added(measured, columns).records == 1 + counted


def test_a_text_ends_a_part_without_a_promise_alone():
    measured, columns = schema(), {"dose": ["<5", 3.0], "age": [75, 45], "days": [8, 2]}
    made.refused(RecordError, "X holds NaN", ps.measure, measured, *by_gaps(measured, columns))
    assert made.plan(measured, ps.Cohort(2, 2, 100), made.promise()).unreadable == "leave out"


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_frames_are_read_as_lists_are(frame):
    library = pytest.importorskip(frame, reason=f"reads a frame of {frame}, which is not installed")
    measured, columns = schema(), {"dose": [None, 3.0, 1.0], "age": [75, 45, 60], "days": [8.0, 2.0, 3.5]}
    held = library.table(columns) if frame == "pyarrow" else library.DataFrame(columns)
    rows, patterns = by_gaps(measured, held)
    expected = by_gaps(measured, columns)
    assert np.array_equal(rows, expected[0])
    assert np.array_equal(patterns, expected[1])
    fewer = {name: column for name, column in columns.items() if name != "dose"}
    lacking = library.table(fewer) if frame == "pyarrow" else library.DataFrame(fewer)
    made.refused(DataError, "no column 'dose'", by_gaps, measured, lacking)


class Own:
    """A column of a library of one's own, which converts itself."""

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        return self.held


def test_a_lazy_frame_is_loaded():
    polars = pytest.importorskip("polars", reason="reads a frame of polars, which is not installed")
    columns = {"dose": [None, 3.0], "age": [75.0, 45.0], "days": [8.0, 2.0]}
    rows, patterns = by_gaps(schema(), polars.LazyFrame(columns))
    assert np.array_equal(rows, by_gaps(schema(), columns)[0])
    assert patterns.tolist() == ["dose missing", "no gap"]


def test_a_column_named_twice_is_refused():
    pyarrow = pytest.importorskip("pyarrow", reason="reads a table of Arrow, which is not installed")
    twice = pyarrow.table([[1.0], [2.0], [3.0], [4.0]], names=["dose", "age", "days", "dose"])
    for held in (twice, twice.to_pandas()):
        made.refused(DataError, "column 'dose' 2 times", by_gaps, schema(), held)


def test_a_masked_value_of_any_library_is_a_gap():
    dose = Own(np.ma.masked_array([1.0, 2.0], [True, False]))
    rows, patterns = by_gaps(schema(), {"dose": dose, "age": [75, 45], "days": [8, 2]})
    assert patterns.tolist() == ["dose missing", "no gap"]
    assert rows[1].tolist() == [2, 45, 2]


def test_rows_without_names_are_refused():
    made.refused(DataError, "no column 'dose'", by_gaps, schema(), np.zeros((2, 3)))


def test_the_same_record_twice_counts_twice():
    """Records have no ids here: a promise is per record, and a plan per person is refused by ``ols``."""
    measured = schema()
    once = added(measured, {"dose": [None], "age": [75], "days": [8]})
    assert added(measured, {"dose": [None] * 2, "age": [75] * 2, "days": [8] * 2}) == once + once


@pytest.mark.parametrize(
    "column",
    [
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.zeros((2, 1)),
        np.float64(3),
        3.0,
        "12",
        b"12",
        {1, 2},
        {0: 1, 1: 2},
        Own(np.array(3.0)),
        Own(np.zeros((2, 1))),
    ],
)
def test_a_column_that_is_no_plain_column_is_refused(column):
    message = "column 'dose' must be one list, array or frame column"
    made.refused(DataError, message, by_gaps, schema(), {"dose": column, "age": [1, 2], "days": [1, 2]})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("incomplete", [("dose",), ("dose", "days")])
def test_no_record_moves_the_sums_by_more_than_the_bound(adjacency, incomplete):
    measured = schema(incomplete, clip_norm=3.0)
    promise = made.promise(adjacency=adjacency, shares=dict(SHARES))
    plan = made.plan(measured, ps.Cohort(2, 2, 100), promise)
    rng, worst = np.random.default_rng(0), 0.0
    values = [*ODD, 0.0, 60.0, 1.0, 1e9, -1e9, math.nan, 1e9, -1e9]

    def moved_by(record):
        moments = added(measured, {name: [values[place]] for name, place in zip(COLUMNS, record, strict=True)})
        return ps.session.contribution(plan, moments).take().lift()

    for _ in range(300):
        one, other = map(moved_by, rng.integers(len(values), size=(2, 3)))
        worst = max(worst, made.worth(plan, one if adjacency == "add-remove" else one - other))
    assert 0.99 < worst <= 1 + 1e-9


@pytest.mark.parametrize(
    ("incomplete", "said"),
    [
        ([], "list of different column names"),
        ("dose", "list of different column names"),
        ({"dose"}, "list of different column names"),
        (3, "list of different column names"),
        ([["dose"]], "list of different column names"),
        (["dose", "dose"], "list of different column names"),
        (["dose", "crp"], "'crp', which is no column"),
        (list(COLUMNS), "leave a column without gaps"),
    ],
)
def test_what_cannot_be_declared_is_refused(incomplete, said):
    made.refused(SchemaError, said, schema_of, COLUMNS, incomplete, clip_norm=5.0)


@pytest.mark.parametrize(
    "columns", [None, {}, [("dose", 0, 1)], {"dose": 1, "age": 2}, {"dose": (0, 1, 2), "age": "01"}]
)
def test_columns_without_a_centre_and_a_spread_are_refused(columns):
    made.refused(SchemaError, "each name a centre and a spread", schema_of, columns, ["dose"], clip_norm=5.0)


def test_more_than_three_columns_with_gaps_are_refused():
    columns = dict.fromkeys("abcde", (0.0, 1.0))
    made.refused(SchemaError, "at most 3 columns, got 4", schema_of, columns, list("abcd"), clip_norm=5.0)


def test_a_table_that_does_not_fit_is_refused():
    measured, records = schema(), table(5)
    made.refused(DataError, "no column 'age'", by_gaps, measured, {"dose": [1.0], "days": [1.0]})
    made.refused(DataError, "different lengths", by_gaps, measured, {**records, "age": [1.0]})


def test_another_schema_is_refused():
    measured = schema()
    others = (
        ps.ClassSchema(2, 3, "NAS", 1.0),
        ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0),
        replace(measured, transform=(*measured.transform[:-1], ps.transforms.ConstantFeature(3.0))),
        replace(measured, nonnegative=True),
    )
    for other in others:
        made.refused(ReleaseError, r"contrib\.imputation\.schema_of", layout_of, other)
