"""Documents of others and for others, as text: in bounded work, to the strictest reader, and never run."""

import csv
import io
import json
import math
from pathlib import Path
from tomllib import TOMLDecodeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.sweep.frame import Frame
from privstats.course.document import read
from privstats.errors import PrivstatsError
from privstats.files.text import json_text, json_value, toml_tables
from privstats.printable import csv_text
from privstats.secagg import Roster

BUSY = {
    "a key of many parts": "a" + ".a" * 20_000 + " = 1",
    "a quoted key of many parts": 'a . "b.c"' + " . 'd'" * 20_000 + " = 1",
    "a table of many parts": "[a" + ".a" * 20_000 + "]",
    "a key with a quote in one of its parts": r'"\""' + ".a" * 5_000 + " = 1",
    "many keys of three parts": "".join(f"a{place}.b.c = 1\n" for place in range(5_000)),
    "a key in an inline table": "x = { a" + ".a" * 20_000 + " = 1 }",
    "deep": "a = " + "[" * 20_000,
    "a number without end": "a = " + "9" * 5_000,
}


@pytest.mark.parametrize("kind", BUSY)
def test_what_would_keep_a_reader_busy_is_no_toml(kind: str, tmp_path: Path) -> None:
    """A key of 500,000 parts, one megabyte, took all memory of a machine."""
    with pytest.raises(TOMLDecodeError, match="more than 16 parts|nests too deeply|have three parts"):
        toml_tables(BUSY[kind])
    for reader in (ps.Plan.from_toml, Roster.from_toml):
        with pytest.raises(PrivstatsError, match="TOML"):
            reader(BUSY[kind])
    path = tmp_path / "course.toml"
    path.write_text(BUSY[kind])
    with pytest.raises(PrivstatsError, match="TOML"):
        read(path)


def test_numbers_texts_and_short_keys_are_no_long_key() -> None:
    text = "edges = [" + "0.5, " * 100 + '1.5]\na.b."c.d" = \'' + "x. " * 50 + "'\n# " + "so. " * 50
    assert toml_tables(text)["a"]["b"]["c.d"] == "x. " * 50


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_every_document_is_read_by_a_reader_that_knows_no_infinity(document):
    def refuse(word):
        raise AssertionError(word)

    assert json.loads(json_text(document), parse_constant=refuse) == json_value(document)


def test_null_stands_for_numbers_that_json_cannot_hold_however_deep_they_are():
    assert json_value({"a": (math.inf, [-math.inf, {"b": math.nan}]), "c": 0.5}) == {
        "a": [None, [None, {"b": None}]],
        "c": 0.5,
    }


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


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("name", RUN)
def test_attack_a_name_is_a_formula_in_a_spreadsheet(name: str) -> None:
    summary = ps.inference.Summary("t", (), ("", name), ((name, "-1.5"),), ())
    assert rows_of(summary.as_csv()) == [["name", f"'{name}"], [f"'{name}", "-1.5"]]
    assert rows_of(Frame((name,), ((name,),)).to_csv()) == [[f"'{name}"]] * 2


@pytest.mark.parametrize("cell", KEPT)
def test_numbers_signs_and_other_names_stay(cell: str) -> None:
    assert rows_of(csv_text([[cell, "x"]])) == [[cell, "x"]]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=2, max_size=4))
def test_no_cell_begins_as_a_formula_unless_it_is_a_number_or_a_sign(cells: list[str]) -> None:
    for cell in rows_of(csv_text([cells]))[0]:
        if cell.strip()[:1] in tuple("=+-@"):
            assert len(cell.strip()) == 1 or float(cell.replace(",", "")) is not None
