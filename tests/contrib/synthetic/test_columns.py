"""Declared columns become tables in which every value has a cell, by public maps of one value."""

from datetime import date

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.synthetic.columns import DeclaredFile, Hashed, coded, column_of, restored, schema_of
from privstats.errors import DataError, SchemaError, UnreadableRecordsWarning
from privstats.intake.columns import read
from privstats.moments import RecordFile
from tests.contrib.synthetic.cases import COLUMNS, table


@given(st.lists(st.one_of(st.text(), st.integers(), st.floats(), st.none()), max_size=20), st.integers(2, 64))
def test_a_bucket_follows_from_its_one_value(values, buckets):
    hashed = Hashed("icd", buckets)
    codes, unread = hashed.codes_and_unread(read(values))
    assert unread == 0
    together = [None if np.isnan(code) else int(code) for code in codes]
    assert together == [hashed.bucket(value) for value in values]
    assert all(bucket is None or 0 <= bucket < buckets for bucket in together)


def test_a_code_that_cannot_be_read_is_missing_and_counted():
    values = ["E1", "x" * 5_000, "E\ufffd", ["E1", "E2"], "", "None", "999"]
    codes, unread = Hashed("icd", 8, gaps=("none", 999)).codes_and_unread(read(values))
    assert np.isnan(codes).tolist() == [False, True, True, True, True, True, True]
    assert unread == 3
    with pytest.warns(UnreadableRecordsWarning, match="2 of 'icd' are too long, several values in one"):
        assert np.isnan(coded((Hashed("icd", 8),), {"icd": ["x" * 5_000, "E\ufffd"]})["icd"]).all()


def test_a_hashed_column_costs_what_a_listed_one_costs():
    listed = ps.Categories("icd", tuple(f"E{k}" for k in range(8)), other=True, missing=True)
    with_list, hashed = schema_of((ps.Truth("x"), listed)), schema_of((ps.Truth("x"), Hashed("icd", 8)))
    privacy = ps.Privacy(model="central", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-6)
    one, other = (
        ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 100), privacy=privacy).noise.released_sigma(2)["T"]
        for schema in (with_list, hashed)
    )
    assert one == other


def test_one_more_record_adds_one_to_a_single_bucket_whatever_its_code():
    schema = schema_of((ps.Truth("x"), Hashed("icd", 8)))
    columns = (ps.Truth("x"), Hashed("icd", 8))
    before = {"x": [0, 1], "icd": ["E1", "E2"]}
    base = ps.measure(schema, coded(columns, before)).T
    for code in ("never seen", "", None, 7, "E1", "\x00", "x" * 1_000):
        more = ps.measure(schema, coded(columns, {"x": [0, 1, 1], "icd": ["E1", "E2", code]})).T
        assert sorted(more - base) == [0] * (len(base) - 2) + [1, 1]


def test_another_salt_puts_other_codes_together():
    codes = [f"E{k}" for k in range(64)]
    one, other = (Hashed("icd", 16, salt).codes_and_unread(read(codes))[0] for salt in ("", "2025"))
    assert one.tolist() != other.tolist()


def test_every_value_has_a_cell():
    strange = {name: [*values, None, "?", "n/a"] for name, values in table(50, 0).items()}
    with pytest.warns(UnreadableRecordsWarning, match="these values count as missing: 1 of 'age' are no numbers"):
        counts = ps.measure(schema_of(COLUMNS), coded(COLUMNS, strange))
    assert counts.records == 53


def test_columns_are_found_in_any_case_and_a_missing_one_is_named():
    assert coded((ps.Truth("x"),), {" X": [True]})["x"].tolist() == [1.0]
    with pytest.raises(DataError, match="lacks the column 'x'"):
        coded((ps.Truth("x"),), {"y": [1]})


@pytest.mark.parametrize(
    "container",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda columns: pl.DataFrame(columns).lazy(),
        pa.table,
        lambda columns: pads.dataset(pa.table(columns)),
        lambda columns: duckdb.from_arrow(pa.table(columns)),
        lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    ],
    ids=["pandas", "polars", "lazy", "arrow", "dataset", "duckdb", "rows"],
)
def test_every_container_is_coded_alike(container):
    columns = (ps.Truth("smoker"), ps.Categories("sex", ("f", "m"), gaps=(9,)), ps.Numeric("age", (0, 50, 100)))
    given = {"Age": [41, 60, None], "note": ["a", "b", "c"], "Sex": ["m", "9", None], "smoker": [True, None, False]}
    found, expected = coded(columns, container(given)), coded(columns, given)
    assert {name: repr(values.tolist()) for name, values in found.items()} == {
        name: repr(values.tolist()) for name, values in expected.items()
    }
    with pytest.raises(DataError, match="the table lacks the column 'icd'"):
        coded((Hashed("icd", 8),), container(given))


def test_a_table_without_names_is_refused():
    with pytest.raises(DataError, match="the table must have columns with names, got ndarray"):
        coded((ps.Truth("x"),), np.ones((2, 1)))


def test_values_are_restored_in_the_words_of_their_declaration():
    dates = ps.Dates("d", ("2024-01-01", "2024-02-01", "2024-03-01"))
    assert restored(dates, [19723.5, None]) == [date(2024, 1, 1).isoformat(), None]
    assert restored(ps.Truth("t"), [1, 0, None]) == [True, False, None]
    assert restored(ps.Truth("t", values=("nein", "ja")), [1, 0, None]) == ["ja", "nein", None]
    assert restored(ps.Numeric("n"), [1.5]) == [1.5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Hashed("icd", 1), "buckets of icd"),
        (lambda: Hashed("icd", 4, salt=3), "salt of icd"),
        (lambda: schema_of((ps.Numeric("age", (0, 50)),)), "edges of age must be at least 3"),
        (lambda: schema_of((ps.Dates("day"),)), "edges of day"),
        (lambda: schema_of((ps.Dates("day", ("2024-01-01", "2024-02-01")),)), "edges of day"),
        (lambda: schema_of(("age",)), "columns must hold Numeric"),
        (lambda: Hashed("icd", 4, gaps="none"), "gaps of icd must be a tuple of codes"),
        (lambda: column_of({"kind": "hashed", "name": "icd"}), "of kind hashed has a name and buckets"),
        (lambda: column_of({"kind": "hashed", "name": "icd", "buckets": 8, "secret": 1}), "of kind hashed has a name"),
        (lambda: column_of({"kind": "hidden", "name": "icd"}), "the column 'icd' has the kind 'hidden'"),
    ],
)
def test_wrong_declarations_are_refused(wrong, message):
    with pytest.raises(SchemaError, match=message):
        wrong()


def test_gap_codes_are_missing():
    columns = (ps.Categories("ward", ("a", "b", "c"), gaps=(9,)), ps.Numeric("age", (0, 50, 100), gaps=(-9,)))
    with pytest.warns(UnreadableRecordsWarning, match="1 of 'age' are no numbers"):
        values = coded(columns, {"ward": ["a", 9, "z"], "age": [-9, 20, "?"]})
    cells = ps.measure(schema_of(columns), values).T.reshape(-1)
    assert cells.tolist() == [1, 0, 0, 1, 1, 1, 0, 2]
    assert np.isnan(values["age"][[0, 2]]).all()


@pytest.mark.parametrize("column", [*COLUMNS, Hashed("icd", 64, "2025", ("none",))])
def test_a_column_and_its_table_are_one(column):
    assert column_of(column.to_plan()) == column_of(column) == column


def test_a_file_is_read_as_its_declaration_and_other_columns_stay(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text("Patient,ICD,Smoker\n7,E11.9,TRUE\n7,e11.9,\n8,E11.9,0\n", "utf-8")
    hashed = Hashed("icd", 512)
    read_in = DeclaredFile(path, persons="patient", declared=(ps.Truth("smoker"), hashed, ps.Truth("died")))
    found = read_in.table(["smoker", "icd", "patient"])
    assert found.values("icd").tolist() == [hashed.bucket("E11.9"), hashed.bucket("e11.9"), hashed.bucket("E11.9")]
    assert found.values("smoker")[[0, 2]].tolist() == [1, 0]
    assert list(found.values("patient")) == list(RecordFile(path).table(["patient"]).values("patient"))
    assert set(read_in.table(["icd"]).columns) == {"icd"}
