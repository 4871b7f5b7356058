"""A file is read some thousand records at a time, and where it is cut changes nothing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import RecordError, UnreadableRecordsWarning
from privstats.intake import csv_lines
from privstats.intake.columns import read
from privstats.intake.meaning import meaning_of
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in, records_in
from privstats.schema.public_values import Published, Values
from tests import made
from tests.moments.test_table import kinds

CELLS = ps.Cells(
    (ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m")), ps.Dates("seen", (18_000,)), ps.Truth("smokes"))
)
SCHEMA = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, class_names=("no", "yes"), transform=(CELLS,))
NUMBERS = ps.ClassSchema(2, 2, "NAB", 9.0, class_names=("no", "yes"), feature_names=("age", "weight"))
ODD = ("", "x", "1.5", " 1", "True", "007", "1e3", "1e999", "-0", "9007199254740993", "inf", "2020-01-02", "1_0", "１")
ROWS = [(ODD[at % 14], ("f", "m", "", "x")[at % 4], f"2020-01-0{at % 9}", ODD[at * 5 % 14], at) for at in range(40)]
LABELS = ("no", "yes", " yes", "", "maybe")
SIZES = (1, 2, 3, 7, 39, 40, 41)


def as_csv(path: Path) -> Path:
    lines = [",".join((*row[:4], str(row[4]), LABELS[row[4] % 5])) for row in map(tuple, ROWS)]
    lines[5:5] = ["", "too,few", '"a"b', "  "]
    path.write_text("\n".join(["age,sex,seen,smokes,weight,ill", *lines]))
    return path


def as_parquet(path: Path, *, rows: int = 40) -> Path:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    age, sex, _, smokes, weight = zip(*ROWS[:rows], strict=True) if rows else ([], [], [], [], [])
    days = np.datetime64("2019-01-01") + np.arange(rows) * 30
    columns = {
        "age": [None if each == "" else place * 2**48 for place, each in enumerate(age)],  # integers with gaps
        "sex": arrow.array(list(sex), arrow.string()).dictionary_encode(),
        "seen": arrow.array(days.astype("datetime64[us]"), arrow.timestamp("us")),
        "smokes": arrow.array([None if each == "" else each == "True" for each in smokes], arrow.bool_()),
        "weight": arrow.array(list(weight), arrow.int8()),
        "ill": arrow.array([LABELS[at % 5] for at in weight], arrow.string()),
    }
    parquet.write_table(arrow.table(columns), path, row_group_size=9)
    return path


def measured(file: RecordFile, schema: ps.ClassSchema):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = ps.measure(schema, *records_in(file, schema.reading, "leave out"), unreadable="leave out")
    return found, sorted(str(each.message) for each in said if each.category is UnreadableRecordsWarning)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", [as_csv, as_parquet])
@pytest.mark.parametrize("schema", [SCHEMA, NUMBERS], ids=["cells", "numbers"])
@pytest.mark.parametrize("split", [None, 0.3])
def test_how_many_records_are_read_at_a_time_changes_nothing(tmp_path, monkeypatch, write, schema, split):
    """Not the sums, not what their holder is told of them, and not which records a split keeps out."""
    file = RecordFile(write(tmp_path / f"t.{write.__name__.removeprefix('as_')}"), "ill", split=split, seed=2)
    records = file.read(CELLS if schema is SCHEMA else schema.feature_names, unreadable="leave out")
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        whole = ps.measure(schema, records.X, records.y, unreadable="leave out")
    once, told = measured(file, schema)
    assert whole == once
    assert whole.records > 5
    for size in SIZES:
        monkeypatch.setattr(csv_lines, "_LINES", size)
        parts = list(file.batches(CELLS if schema is SCHEMA else schema.feature_names, unreadable="leave out"))
        assert max(len(X) for X, _ in parts) <= size
        assert sum(len(X) for X, _ in parts) == len(records.y)
        assert measured(file, schema) == (once, told), size
        again = file.read(CELLS if schema is SCHEMA else schema.feature_names, unreadable="leave out")
        np.testing.assert_array_equal(np.asarray(again.X), np.asarray(records.X))
        assert again.y.tolist() == records.y.tolist()


def test_a_file_without_a_record_is_one_part_of_none(tmp_path):
    (tmp_path / "t.csv").write_text("age,sex,seen,smokes,ill\n")
    for path in (tmp_path / "t.csv", as_parquet(tmp_path / "t.parquet", rows=0)):
        assert measured(RecordFile(path, "ill"), SCHEMA)[0].records == 0
        ((X, y),) = RecordFile(path, "ill").batches(CELLS, unreadable="leave out")
        assert len(X) == len(y) == 0


def test_a_folder_of_parquet_files_is_read_file_by_file(tmp_path):
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    one = as_parquet(folder / "1.parquet")
    twice = measured(RecordFile(one, "ill"), SCHEMA)[0] + measured(RecordFile(one, "ill"), SCHEMA)[0]
    as_parquet(folder / "2.parquet")
    assert measured(RecordFile(folder, "ill"), SCHEMA)[0] == twice


@pytest.mark.parametrize("bad", ["", "x"])
def test_a_gap_in_any_part_is_refused_where_nothing_is_promised(tmp_path, monkeypatch, bad):
    monkeypatch.setattr(csv_lines, "_LINES", 3)
    rows = [f"{at},{at},no" for at in range(9)]
    (tmp_path / "t.csv").write_text("\n".join(["age,weight,ill", *rows, f"{bad},1,no"]))
    with pytest.raises(RecordError, match="in age"):
        ps.measure(NUMBERS, *records_in(RecordFile(tmp_path / "t.csv", "ill"), NUMBERS.reading, "refuse"))


@pytest.mark.parametrize("schema", [*kinds()], ids=lambda schema: type(schema).__name__)
def test_every_kind_reads_a_file_in_parts_or_at_once(tmp_path, monkeypatch, schema):
    """Which of the two, its row says; the sums are those of the columns."""
    monkeypatch.setattr(csv_lines, "_LINES", 3)
    table = {"age": [50, None, 70.5, 39], "sex": ["f", "m", "", "m"], "race": [1, 3, 9, None]}
    columns = {**table, "ill": [0, 1, 1, 0]}
    lines = [
        ",".join("" if value is None else str(value) for value in row) for row in zip(*columns.values(), strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join([",".join(columns), *lines]))
    needs = {name: Values(np.zeros(shape, np.int64), 0) for name, shape in schema.needs.items()}
    if "M" in needs:
        needs["M"] = Values.rounded(np.eye(schema.needs["M"][0]))
    values = Published.of(needs) if needs else None
    with warnings.catch_warnings(action="ignore"):
        pair = records_in(RecordFile(tmp_path / "t.csv", "ill"), schema.reading, "leave out")
        found = ps.moments.exact_moments(schema, *pair, published=values, unreadable="leave out")
        expected = ps.moments.exact_moments(schema, table, columns["ill"], published=values, unreadable="leave out")
    assert found == expected


@given(st.lists(st.text("0123456789+-.eE", max_size=6), max_size=4))
def test_texts_of_the_characters_of_decimals_are_read_as_each_alone(texts):
    both = read(texts)
    for place, text in enumerate(texts):
        alone = meaning_of(text)
        assert both.texts.get(place) == (alone if isinstance(alone, str) else None)
        np.testing.assert_equal(both.numbers[place], alone if isinstance(alone, float) else np.nan)


@pytest.mark.parametrize("text", ["1" * 2000, "1e999", "-1e999", "-0", "", "1.", ".5", ".", "+", "1e", "0" * 1025])
def test_edges_of_the_shortcut_for_decimals(text):
    found, alone = read([text, "7"]), meaning_of(text)
    assert found.numbers[1] == 7
    assert found.texts.get(0) == (alone if isinstance(alone, str) else None)
    np.testing.assert_equal(found.numbers[0], alone if isinstance(alone, float) else np.nan)
    assert not np.signbit(found.numbers[0]) or np.isnan(found.numbers[0])


FITTING = [f"{40 + at % 30},{60 + at % 20},{('no', 'yes')[at % 2]}" for at in range(20)]
AGE = ps.Cells(CELLS.columns[:1])
DECLARED = ps.ClassSchema(2, AGE.width, "NAB", 9.0, class_names=("no", "yes"), transform=(AGE,))
COUNTS = ps.CountSchema((ps.Categories("ill", ("no", "yes")),), (("ill",),))
PERSON = made.promise("central", unit="person", max_records_per_person=6, person_clip=1.0)


@pytest.mark.parametrize("schema", [NUMBERS, DECLARED, COUNTS], ids=["features", "cells", "columns"])
def test_lines_that_do_not_fit_the_header_are_said_to_be_such(tmp_path: Path, schema) -> None:
    """Of features they were said to "hold nothing", of other plans to have too few or too many fields."""
    header = "age,weight,ill"
    (tmp_path / "t.csv").write_text("\n".join([header, *FITTING[:4], "1,2,3,no", *FITTING[4:], "1,2", header]))
    (tmp_path / "fine.csv").write_text("\n".join([header, *FITTING]))
    found, said = measured(RecordFile(tmp_path / "t.csv", "ill"), schema)
    assert said == [
        f"3 lines of {tmp_path / 't.csv'} do not fit the table (a wrong number of fields, a stray quote, the header "
        "once more, or no JSON object) and are excluded, first: line 6 has 4 fields for 3 names"
    ]
    assert (found, []) == measured(RecordFile(tmp_path / "fine.csv", "ill"), schema)


@pytest.mark.parametrize("schema", [NUMBERS, DECLARED], ids=["features", "cells"])
def test_lines_that_do_not_fit_have_no_id_to_miss(tmp_path: Path, schema) -> None:
    rows = [f"{line},p{at % 7}" for at, line in enumerate(FITTING)]
    (tmp_path / "t.csv").write_text("\n".join(["age,weight,ill,patient", *rows, "1,2"]))
    file = RecordFile(tmp_path / "t.csv", "ill", persons="patient")
    clip = made.plan(schema, ps.Cohort(3, 3, 600), PERSON).person_clip
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        X, y, ids = persons_in(file, schema.reading, "leave out")
        found = ps.measure(schema, X, y, persons=ids, person_clip=clip, unreadable="leave out")
    assert found.records == len(FITTING)
    remarks = [str(each.message) for each in said if each.category is UnreadableRecordsWarning]
    assert [remark.partition(" of ")[0] for remark in remarks] == ["1 line"]
