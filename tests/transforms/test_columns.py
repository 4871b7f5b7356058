"""Declared columns: what they refuse, and the code of each value."""

import math
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.intake.columns import read
from privstats.transforms.columns import column_of, days_of, table_of


def codes(column, values):
    found, unread = column.codes(read(values))
    return [None if math.isnan(code) else code for code in found.tolist()], unread


@pytest.mark.parametrize(
    ("column", "values", "told", "unread"),
    [
        (ps.Numeric("v"), [1, "2.5", "", None, "12 mg", "<0.5", "1,5", np.inf, True, -0.0], (1, 2.5, 1, 0), 3),
        (ps.Numeric("v", gaps=(-9, "999", "refused")), ["-9.0", 999, "refused", 1, "else"], (1,), 1),
        (ps.Truth("v"), [1, "FALSE", "true", 0.0, 2, "yes", None], (1, 0, 1, 0), 2),
        (ps.Truth("v", gaps=(9,)), [9, "9", 1], (1,), 0),
        (ps.Categories("v", ("f", "m", "x")), ["m", "f", "F", "", None, " x "], (1, 0, 3, 2), 0),
        (ps.Categories("v", ("f", "m")), ["m", "f", "F", ""], (1, 0), 1),
        (ps.Categories("v", (1, 2, 3), ordered=True), [3, "1", 4, None], (2, 0), 1),
        (ps.Categories("v", ()), ["anything", 3, "", None, "none"], (0, 0), 0),
        (ps.Categories("v", (1, 2, 3), gaps=(9,)), ["1", 9, "9.0", 7], (0, 3), 0),
        (ps.Dates("v"), ["1970-01-02", "1970-01-01T12:00", date(1970, 1, 3), 3, "03/04/2020", None], (1, 0.5, 2), 2),
        (ps.Dates("v", gaps=("1900-01-01",)), [datetime(1900, 1, 1), "1900-01-01", "1969-12-31"], (-1,), 0),
    ],
)
def test_the_code_of_every_value(column, values, told, unread):
    found, count = codes(column, values)
    assert ([code for code in found if code is not None], count) == (list(told), unread)
    assert [codes(column, [value])[0][0] for value in values] == found  # each alone


def test_days_are_exact_and_in_utc():
    zone = timezone(timedelta(hours=5))
    values = [datetime(1970, 1, 2, 5, tzinfo=zone), "1970-01-02T05:00+05:00", np.datetime64("1970-01-02", "ns")]
    assert (codes(ps.Dates("v"), values)[0], days_of("9999-12-31")) == ([1.0, 1.0, 1.0], 2932896.0)
    assert math.isnan(days_of("1970-W01-1"))
    assert math.isnan(days_of("1970-01-01T00:00+01:00"))


def test_a_value_that_is_an_edge_in_15_digits_has_reached_it():
    (code,), _ = codes(ps.Numeric("v", (0.3, 1.1)), [0.1 * 11 - 0.0000000000000002])
    assert 0.1 * 11 - 0.0000000000000002 < 1.1
    assert code == 1.1


@pytest.mark.parametrize(
    "column",
    [
        ps.Numeric("a"),
        ps.Numeric("a", (1, 2.5), gaps=(-9, "NO"), unit="mg/dl"),
        ps.Dates("d", ("2020-01-01", date(2021, 1, 1))),
        ps.Truth("t", gaps=(9,)),
        ps.Categories("c", ("x", "y"), other=True, missing=True, gaps=("?",)),
        ps.Categories("c", (1, 2, 3), ordered=True),
    ],
)
def test_a_column_is_its_table(column):
    read_back = column_of(table_of(column))
    assert read_back == (replace(column, other=None, missing=None) if column.kind == "categories" else column)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ps.Numeric(" a"), "no space at either end"),
        (lambda: ps.Numeric("a", ()), "one or more finite numbers"),
        (lambda: ps.Numeric("a", (2, 1)), "must increase, in 15 digits"),
        (lambda: ps.Numeric("a", (1, math.inf)), "one or more finite numbers"),
        (lambda: ps.Numeric("a", (10**400,)), "one or more finite numbers"),
        (lambda: ps.Numeric("a", (True,)), "one or more finite numbers"),
        (lambda: ps.Numeric("a", gaps=(9, "9")), "which are read as one value"),
        (lambda: ps.Categories("a", ("none", "x"), gaps=("NONE",)), "which are read as one value"),
        (lambda: ps.Numeric("a", gaps=9), "gaps of a must be a tuple of codes"),
        (lambda: ps.Numeric("a", unit="x" * 41), "unit of a must be a text of at most 40"),
        (lambda: ps.Dates("a", ("03/04/2020",)), "ISO dates such as '2020-01-31'"),
        (lambda: ps.Categories("a", ("x",)), "at least two different texts"),
        (lambda: ps.Categories("a", ("x", "y"), gaps=("y",)), "which are read as one value"),
        (lambda: ps.Categories("a", ("x", "y"), ordered=1), "ordered of a must be True or False"),
        (lambda: column_of({"kind": "?", "name": "a"}), "the column 'a' has the kind '\\?'; say what it holds"),
        (lambda: column_of({"kind": "truth"}), "a column lacks name"),
        (lambda: column_of({"kind": "truth", "name": "a", "values": []}), "has unknown keys \\['values'\\]"),
        (lambda: column_of("age"), "columns must hold Numeric, Dates, Truth, Categories, got str"),
        (lambda: ps.CountSchema((ps.Categories("a", ()),), (("a",),)), "at least two different texts"),
        (lambda: ps.CountSchema((ps.Categories("a", (1, 2), gaps=(9,)),), (("a",),)), "belong to Cells"),
    ],
)
def test_what_is_refused(make, said):
    with pytest.raises(ps.SchemaError, match=said):
        make()


def test_count_tables_take_no_other_cell_unless_they_ask():
    usual, plain = ps.Categories("a", (1, 2)), ps.Categories("a", (1, 2), other=False, missing=False)
    one, other = (ps.CountSchema((each,), (("a",),)) for each in (usual, plain))
    assert (one, one.shape(("a",))) == (other, (2,))
    assert one.plain_fields() == {"variables": [{"name": "a", "values": [1, 2]}], "tables": [["a"]]}


@pytest.mark.parametrize("of", [list, np.array, pd.Series, lambda values: np.array([*map(str.encode, values)])])
def test_a_listed_word_is_a_value_where_it_is_listed_and_a_gap_elsewhere(of: Any) -> None:
    """An airbag may be none, in any case and container; what is really missing stays so."""
    values = of(["none", "belt", " NONE", "NA", ""])
    two, three = ps.Categories("v", ("belt", "none"), gaps=("na",)), ps.Categories("v", ("belt", "bag", "none"))
    np.testing.assert_array_equal(two.codes(read(values))[0], [1, 0, 1, np.nan, np.nan])
    np.testing.assert_array_equal(three.codes(read(values))[0], [2, 0, 2, np.nan, np.nan])
    np.testing.assert_array_equal(ps.Categories("v", ()).codes(read(values))[0], [np.nan, 0, np.nan, np.nan, np.nan])
    assert column_of(table_of(two)) == two
