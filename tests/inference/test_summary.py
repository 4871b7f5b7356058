"""The printed table: width, hidden rows, escapes, and that every form holds the same cells."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from tests.inference.test_regression import exact, noisy, records

NAMES = ("a_very_long_column_name_of_a_hospital_s_own", "50%_dose & more", "x<y>")


def test_the_text_is_80_columns_wide_and_names_claim_promise_and_plan():
    X, y = records()
    release = noisy(X, y, 8.0, feature_names=NAMES)
    text = str(inf.ols(release).summary())
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "interval that misses",
        "epsilon 8",
        "unit record",
        release.plan.digest[:16],
        "TEST NOISE",
        "Assumed",
    ):
        assert words in text


def test_a_parameter_that_is_not_told_shows_no_estimate():
    table = inf.ols(exact(np.c_[records()[0], records()[0][:, 0]], records()[1]))
    rows = {row[0]: row for row in table.summary().rows}
    assert rows["x0"][1:5] == ("-",) * 4
    assert rows["x0"][-2:] == ("-inf", "inf")
    assert rows["x1"][1] != "-"


def test_nor_do_its_numbers():
    pytest.importorskip("pandas", reason="makes a DataFrame, and pandas is not installed")
    table = inf.ols(exact(np.c_[records()[0], records()[0][:, 0]], records()[1]))
    assert table.told.any()
    assert not table.told.all()
    assert np.array_equal(np.isnan(table.params), ~table.told)
    assert np.array_equal(table.to_frame()["estimate"].isna(), ~table.told)
    each = [table.t_test(row) for row in np.eye(len(table.names))]
    assert np.array_equal([np.isnan(one.value) for one in each], ~table.told)
    assert np.isfinite(table.errors.estimate).all()


def test_a_level_hides_what_it_does_not_tell():
    pytest.importorskip("pandas", reason="makes a DataFrame, and pandas is not installed")
    table = inf.ols(noisy(*records(), 8.0))
    assert np.array_equal(np.isfinite(table.to_frame()["estimate"]), table.told)
    assert np.array_equal(np.isfinite(table.to_frame(1e-9)["estimate"]), table.errors.told(1e-9))
    assert table.told.sum() > table.errors.told(1e-9).sum()


def test_small_p_values_are_bounded_and_not_printed_as_nothing():
    rows = inf.ols(exact(*records())).summary().rows
    assert rows[1][5] == "<.0001"


def test_every_form_holds_the_same_cells():
    X, y = records()
    summary = inf.ols(exact(X, y, feature_names=NAMES)).summary(alpha=0.1)
    table = list(csv.reader(io.StringIO(summary.as_csv())))
    assert [row[1:] for row in table[1:]] == [[cell.replace(",", "") for cell in row[1:]] for row in summary.rows]
    assert table[0] == ["name", *summary.columns[1:-2], "90% low", "90% high"]
    assert [row[0] for row in table[1:]] == [row[0] for row in summary.rows]
    assert summary.columns[-2] == "[90%"
    html = summary.as_html()
    assert html == summary._repr_html_()
    assert "x&lt;y&gt;" in html
    assert "x<y>" not in html
    latex = summary.as_latex()
    assert r"50\%\_dose \& more" in latex
    assert latex.count(r"\\") == 1 + len(summary.rows)
    assert r"P\textgreater{}\textbar{}t\textbar{}" in latex
    assert not set("<>|") & set(latex), "LaTeX prints these as other characters"


def test_a_frame_holds_the_numbers():
    pytest.importorskip("pandas", reason="makes a DataFrame, and pandas is not installed")
    table = inf.ols(exact(*records()))
    frame = table.to_frame()
    assert list(frame["term"]) == list(table.names)
    assert np.array_equal(frame["estimate"], table.params)
    assert frame["told"].all()


def test_exact_sums_are_called_so():
    text = str(inf.ols(exact(*records())).summary())
    assert "no differential privacy" in text
    assert "noisy" not in text
    assert ps.inference is inf


def test_long_names_of_rows_are_cut_but_never_to_one_name():
    cells = tuple(["0.123456789"] * 6)
    wide = inf.Summary("T", (), ("", *"abcdef"), (("x" * 40, *cells), ("y" * 40, *cells)), ())
    assert max(map(len, wide.as_text().splitlines())) <= 90
    assert "xxx~" in wide.as_text()
    rows = (("recovered age: 20..55", *cells), ("recovered age: 55..90", *cells))
    text = inf.Summary("T", (), ("", *"abcdef"), rows, ()).as_text()
    assert "recovered age: 20..55" in text
    assert "recovered age: 55..90" in text


def test_headings_stand_for_themselves_and_numbers_have_no_commas_in_csv():
    rows = (("age", "1,234", "-0.01 (-0.02 to 0.01)", "1", "1,234,567.5"),)
    shown = inf.Summary("t", (), ("", "n", "SMD", "[95%", "]"), rows, ())
    assert shown.as_csv() == "name,n,SMD,95% low,95% high\nage,1234,-0.01 (-0.02 to 0.01),1,1234567.5\n"
    assert r" & n & SMD & 95\% low & 95\% high \\" in shown.as_latex()
    assert "<th>95% low</th><th>95% high</th>" in shown.as_html()
    assert "[95%" in shown.as_text()
