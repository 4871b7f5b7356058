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
from privstats.intake.declared.columns import column_from_plan, days_of


def codes(column, values):
    found, unread = column.codes_and_unread(column.readings(values))
    return [None if math.isnan(code) else code for code in found.tolist()], unread


@pytest.mark.parametrize(
    ("column", "values", "told", "unread"),
    [
        (ps.Numeric("v"), [1, "2.5", "", None, "12 mg", "<0.5", "1,5", np.inf, True, -0.0], (1, 2.5, 1, 0), 3),
        (ps.Numeric("v", gaps=(-9, "999", "refused")), ["-9.0", 999, "refused", 1, "else"], (1,), 1),
        (ps.Truth("v"), [1, "FALSE", "true", 0.0, 2, "yep", None], (1, 0, 1, 0), 2),
        (ps.Truth("v"), ["yes", "No", "Y", "n", "T", "f", "YES ", b"nO", "none", "ja"], (1, 0, 1, 0, 1, 0, 1, 0), 1),
        (ps.Truth("v", values=("FALSCH", "WAHR")), ["WAHR", "FALSCH", "wahr", "yes", 1, True, None], (1, 0), 4),
        (ps.Truth("v", values=(2, 1)), ["2", 1.0, "02", "yes", 0], (0, 1, 0), 2),
        (ps.Truth("v", values=("none", "some"), gaps=("NA",)), ["None", "some", "na", "null"], (0, 1), 0),
        (ps.Truth("v", gaps=("n",)), ["n", "no", "y"], (0, 1), 0),
        (ps.Truth("v", gaps=(9,)), [9, "9", 1], (1,), 0),
        (ps.Categories("v", ("f", "m", "x")), ["m", "f", "F", "", None, " x "], (1, 0, 3, 2), 0),
        (ps.Categories("v", ("f", "m")), ["m", "f", "F", ""], (1, 0), 1),
        (ps.Categories("v", (1, 2, 3), ordered=True), [3, "1", 4, None], (2, 0), 1),
        (ps.Categories("v", ()), ["anything", 3, "", None, "none"], (0, 0), 0),
        (ps.Categories("v", (1, 2, 3), gaps=(9,)), ["1", 9, "9.0", 7], (0, 3), 0),
        (ps.Dates("v"), ["1970-01-02", "1970-01-01T12:00", date(1970, 1, 3), 3, "03/04/2020", None], (1, 0.5, 2), 2),
        (ps.Numeric("v", suffix="%"), ["39.9%", "40 %", 41, "42", "43 mg", "%", None], (39.9, 40, 41, 42), 2),
        (ps.Numeric("v", (5,), censored=True), ["≥5", "> 5", "=5", "<x"], (5, 5 * (1 + 2.0**-40)), 2),
        (ps.Numeric("v", gaps=("<5",), suffix="mg", censored=True), ["<5", "<6 mg"], (6 * (1 - 2.0**-40),), 0),
        (ps.Dates("v", written="DD.MM.YYYY"), ["2.1.1970", "1970-01-03", "31.04.1970", "01/02/70", 1], (1, 2), 3),
        (
            ps.Dates("v", written="MM/DD/YY"),
            ["1/2/70 6:00 PM", "01/02/69", "1/2/68", "1/2/70 12:00 am"],
            (1.75, -364, 35795, 1),
            0,
        ),
        (
            ps.Dates("v", written="DDMONYYYY"),
            ["02JAN1970", "2jan1970:12:00:00", "02JXN1970", "1970-01-02"],
            (1, 1.5, 1),
            1,
        ),
        (ps.Dates("v", written="YYYYMMDD"), [19700102, "19700103", "1970103", 19700230, 0.5], (1, 2), 3),
        (ps.Dates("v", written="days since 1899-12-30"), [25570, "25570.5", "1970-01-02", 1e9], (1, 1.5, 1), 1),
        (ps.Dates("v", written="seconds since 1970-01-01"), ["86400"], (1,), 0),
        (ps.Dates("v", written="milliseconds since 1970-01-01"), [86400000, "129600000"], (1, 1.5), 0),
        (
            ps.Categories("v", ("042", "42", "1E30"), as_text=True),
            ["42", "042 ", 42, "1E30", "1e30", None, "NA"],
            (1, 0, 1, 2, 3),
            0,
        ),
        (ps.Categories("v", ("01", "1"), as_text=True, gaps=("9",)), ["1", "01", "9", 9, "true"], (1, 0), 1),
        (ps.Dates("v", gaps=("1900-01-01",)), [datetime(1900, 1, 1), "1900-01-01", "1969-12-31"], (-1,), 0),
    ],
)
def test_the_code_of_every_value(column, values, told, unread):
    found, count = codes(column, values)
    assert ([code for code in found if code is not None], count) == (list(told), unread)
    assert [codes(column, [value])[0][0] for value in values] == found  # each alone


def test_a_number_below_a_limit_has_not_reached_a_cut_there():
    """15 digits are compared, and the value is further below."""
    column = ps.Numeric("v", (0.01, 500), censored=True)
    assert [code < 0.01 for code in codes(column, ["<0.01", "0.01", "0.0099999999999999999"])[0]] == [
        True,
        False,
        False,
    ]
    cells = ps.Cells((column, ps.Truth("w")))
    rows = cells.indices(cells.codes({"v": ["<0.01", "0.01", ">500"], "w": [1, 1, 1]}))
    assert rows[:, 0].tolist() == [0, *rows[1:, 0].tolist()]
    assert rows[1, 0] > 0


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
        ps.Numeric("a", gaps=("-",), suffix="%", censored=True),
        ps.Dates("d", written="DD.MM.YY"),
        ps.Dates("d", ("2020-01-01",), written="ISO in Europe/Berlin"),
        ps.Categories("c", ("042", "42"), as_text=True),
        ps.Truth("t", gaps=(9,)),
        ps.Truth("t", values=("nein", "ja")),
        ps.Categories("c", ("x", "y"), other=True, missing=True, gaps=("?",)),
        ps.Categories("c", (1, 2, 3), ordered=True),
    ],
)
def test_a_column_is_its_table(column):
    read_back = column_from_plan(column.to_plan())
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
        (lambda: ps.Numeric("a", suffix="m2"), "suffix of a must be a text of at most 40 characters without digits"),
        (lambda: ps.Numeric("a", suffix=" %"), "suffix of a must be"),
        (lambda: ps.Numeric("a", suffix=5), "suffix of a must be"),
        (lambda: ps.Numeric("a", censored=1), "censored of a must be True or False"),
        (lambda: ps.Dates("a", written="DD.MM"), "written of a must name day, month and year"),
        (lambda: ps.Dates("a", written="DD.MM.YYYY YY"), "written of a must name"),
        (lambda: ps.Dates("a", written="DD(MM)YYYY"), "written of a must name"),
        (lambda: ps.Dates("a", written="days since 2020-02-30"), "written of a must name"),
        (lambda: ps.Dates("a", written=7), "written of a must name"),
        (lambda: ps.Categories("a", (1, 2), as_text=True), "must be texts, because as_text is set"),
        (lambda: ps.Categories("a", ("1", "2"), gaps=(9,), as_text=True), "must be texts, because as_text is set"),
        (lambda: ps.Categories("a", ("042", "42")), "which are read as one value"),
        (lambda: ps.Categories("a", ("042", "042 ")), "no space at either end"),
        (lambda: ps.Categories("a", ("042", "42"), as_text="yes"), "as_text of a must be True or False"),
        (
            lambda: ps.CountSchema((ps.Categories("a", ("042", "42"), as_text=True),), (("a",),)),
            "belong to Cells",
        ),
        (lambda: ps.CountSchema((ps.Categories("a", ("x", "y"), as_text=True),), (("a",),)), "belong to Cells"),
        (lambda: ps.Dates("a", ("03/04/2020",)), "ISO dates such as '2020-01-31'"),
        (lambda: ps.Categories("a", ("x",)), "at least two different texts"),
        (lambda: ps.Categories("a", ("x", "y"), gaps=("y",)), "which are read as one value"),
        (lambda: ps.Categories("a", ("x", "y"), ordered=1), "ordered of a must be True or False"),
        (lambda: column_from_plan({"kind": "?", "name": "a"}), "the column 'a' has the kind '\\?'; say what it holds"),
        (lambda: column_from_plan({"kind": "truth"}), "a column lacks name"),
        (
            lambda: column_from_plan({"kind": "truth", "name": "a", "values": []}),
            "values of a must be two, what means no first",
        ),
        (lambda: column_from_plan({"kind": "truth", "name": "a", "edges": []}), "has unknown keys \\[.edges.\\]"),
        (
            lambda: ps.Truth("a", values=("no", "yes", "maybe")),
            "values of a must be two, .* got 3; omit them for yes/no",
        ),
        (lambda: ps.Truth("a", values=("yes", "no")), "got .yes. and then .no.: exchange them"),
        (lambda: ps.Truth("a", values=("ja", "N")), "what means no first, got .ja. and then .N.: exchange them"),
        (lambda: ps.Truth("a", values=(1, 0)), "got 1 and then 0: exchange them"),
        (lambda: ps.Truth("a", values="no"), "at least two different texts"),
        (lambda: ps.Truth("a", values=("no", "ja"), gaps=("ja",)), "which are read as one value"),
        (lambda: column_from_plan("age"), "columns must hold Numeric, Dates, Truth, Categories, got str"),
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
    np.testing.assert_array_equal(two.codes_and_unread(read(values))[0], [1, 0, 1, np.nan, np.nan])
    np.testing.assert_array_equal(three.codes_and_unread(read(values))[0], [2, 0, 2, np.nan, np.nan])
    np.testing.assert_array_equal(
        ps.Categories("v", ()).codes_and_unread(read(values))[0], [np.nan, 0, np.nan, np.nan, np.nan]
    )
    assert column_from_plan(two.to_plan()) == two
