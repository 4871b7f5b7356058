"""A record's gaps alone decide its pattern, and no record moves the sums by more than the bound."""

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.imputation import SHARES, by_gaps, schema_of
from privstats.contrib.imputation.gaps import layout_of
from privstats.errors import DataError, ReleaseError, SchemaError
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


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("incomplete", [("dose",), ("dose", "days")])
def test_no_record_moves_the_sums_by_more_than_the_bound(adjacency, incomplete):
    measured = schema(incomplete, clip_norm=3.0)
    promise = made.promise(adjacency=adjacency, shares=dict(SHARES))
    plan = made.plan(measured, ps.Cohort(2, 2, 100), promise)
    rng, worst = np.random.default_rng(0), 0.0

    def added(values):
        columns = {name: [value] for name, value in zip(COLUMNS, values, strict=True)}
        moments = ps.measure(measured, *by_gaps(measured, columns), unreadable=plan.unreadable)
        return ps.session.contribution(plan, moments).take().lift()

    for _ in range(150):
        pair = rng.choice([np.nan, 0.0, 60.0, 1e9, -1e9, 1.0], (2, 3))
        one, other = map(added, pair)
        moved = one if adjacency == "add-remove" else one - other
        worst = max(worst, made.worth(plan, moved))
    assert 0.99 < worst <= 1 + 1e-9


@pytest.mark.parametrize(
    ("incomplete", "said"),
    [
        ([], "list of different column names"),
        ("dose", "list of different column names"),
        (["dose", "dose"], "list of different column names"),
        (["dose", "crp"], "'crp', which is no column"),
        (list(COLUMNS), "leave a column without gaps"),
    ],
)
def test_what_cannot_be_declared_is_refused(incomplete, said):
    made.refused(SchemaError, said, schema_of, COLUMNS, incomplete, clip_norm=5.0)


def test_more_than_three_columns_with_gaps_are_refused():
    columns = dict.fromkeys("abcde", (0.0, 1.0))
    made.refused(SchemaError, "at most 3 columns, got 4", schema_of, columns, list("abcd"), clip_norm=5.0)


def test_a_table_that_does_not_fit_is_refused():
    measured, records = schema(), table(5)
    made.refused(DataError, "no column 'age'", by_gaps, measured, {"dose": [1.0], "days": [1.0]})
    made.refused(DataError, "'age' must hold numbers", by_gaps, measured, {**records, "age": ["old"] * 5})
    made.refused(DataError, "different lengths", by_gaps, measured, {**records, "age": [1.0]})


def test_another_schema_is_refused():
    for other in (ps.ClassSchema(2, 3, "NAS", 1.0), ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0)):
        made.refused(ReleaseError, r"contrib\.imputation\.schema_of", layout_of, other)
