"""CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.files.csv_text import csv_text
from privstats.workflows.sweep.frame import Frame

RUN = ["=1+1", '=HYPERLINK("http://x","y")', "+1+1", "-2+3", "@SUM(A1)", " =1", "\t=1", "\uff1d1+1", "--", "-1_0"]
KEPT = [
    "mean",
    "",
    "-",
    "+",
    "1",
    "-1.5",
    "+2",
    "-1,234.5",
    "-inf",
    "nan",
    "1e-3",
    "<.0001",
    "a=b",
    "[95%",
    "-0.01 (-0.03 to 0.02)",
]


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("name", RUN)
def test_attack_a_name_is_a_formula_in_a_spreadsheet(name: str) -> None:
    summary = ps.inference.Summary("t", (), ("", name), ((name, "-1.5"),), ())
    assert read(summary.as_csv()) == [["name", f"'{name}"], [f"'{name}", "-1.5"]]
    assert read(Frame((name,), ((name,),)).to_csv()) == [[f"'{name}"]] * 2


@pytest.mark.parametrize("cell", KEPT)
def test_numbers_signs_and_other_names_stay(cell: str) -> None:
    assert read(csv_text([[cell, "x"]])) == [[cell, "x"]]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=2, max_size=4))
def test_no_cell_begins_as_a_formula_unless_it_is_a_number_or_a_sign(cells: list[str]) -> None:
    for cell in read(csv_text([cells]))[0]:
        if cell.strip()[:1] in tuple("=+-@"):
            assert len(cell.strip()) == 1 or float(cell.replace(",", "")) is not None
