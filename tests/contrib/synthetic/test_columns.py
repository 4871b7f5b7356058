"""Declared columns become tables in which every value has a cell, by public maps of one value."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.synthetic.columns import Hashed, coded, restored, schema_of
from privstats.errors import DataError, SchemaError
from tests.contrib.synthetic.cases import COLUMNS, table


@given(st.lists(st.one_of(st.text(), st.integers(), st.floats(), st.none()), max_size=20), st.integers(2, 64))
def test_a_bucket_follows_from_its_one_value(values, buckets):
    hashed = Hashed("icd", buckets)
    together = hashed.codes(values).tolist()
    assert together == [hashed.bucket(value) for value in values]
    assert all(bucket is None or 0 <= bucket < buckets for bucket in together)


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
    for code in ("never seen", "", None, 7, "E1", "\x00", "x" * 5_000):
        more = ps.measure(schema, coded(columns, {"x": [0, 1, 1], "icd": ["E1", "E2", code]})).T
        assert sorted(more - base) == [0] * (len(base) - 2) + [1, 1]


def test_another_salt_puts_other_codes_together():
    codes = [f"E{k}" for k in range(64)]
    assert Hashed("icd", 16).codes(codes).tolist() != Hashed("icd", 16, "2025").codes(codes).tolist()


def test_every_value_has_a_cell():
    strange = {name: [*values, None, "?", "n/a"] for name, values in table(50, 0).items()}
    counts = ps.measure(schema_of(COLUMNS), coded(COLUMNS, strange))
    assert counts.records == 53


def test_columns_are_found_in_any_case_and_a_missing_one_is_named():
    assert coded((ps.Truth("x"),), {" X": [True]})["x"].tolist() == [1.0]
    with pytest.raises(DataError, match="lacks the column 'x'"):
        coded((ps.Truth("x"),), {"y": [1]})


def test_values_are_restored_in_the_words_of_their_declaration():
    dates = ps.Dates("d", ("2024-01-01", "2024-02-01", "2024-03-01"))
    assert restored(dates, [19723.5, None]) == [date(2024, 1, 1).isoformat(), None]
    assert restored(ps.Truth("t"), [1, 0, None]) == [True, False, None]
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
    ],
)
def test_wrong_declarations_are_refused(wrong, message):
    with pytest.raises(SchemaError, match=message):
        wrong()


def test_gap_codes_are_missing():
    columns = (ps.Categories("ward", ("a", "b", "c"), gaps=(9,)), ps.Numeric("age", (0, 50, 100), gaps=(-9,)))
    read = coded(columns, {"ward": ["a", 9, "z"], "age": [-9, 20, "?"]})
    cells = ps.measure(schema_of(columns), read).T.reshape(-1)
    assert cells.tolist() == [1, 0, 0, 1, 1, 1, 0, 2]
    assert np.isnan(read["age"][[0, 2]]).all()
