"""Columns that exclude gaps: a record with one is in no sum of any kind, whatever brings it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.errors import RecordError, SchemaError, UnreadableRecordsWarning
from privstats.moments import exact_moments
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check
from privstats.transforms import Cells, ConstantFeature
from tests import made

COLUMNS = (
    ps.Numeric("age", (40, 65), gaps=(999,)),
    ps.Categories("ward", ("a", "b", "c")),
    ps.Truth("smoker"),
)
COMPLETE = Cells(COLUMNS, signs=2, ramp=False, missing="left out")
WITH_CELLS = replace(COMPLETE, missing=None)
NORM = 2**0.5


def table(records: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 90, records).astype(object)
    age[rng.random(records) < 0.1] = None
    age[rng.random(records) < 0.05] = 999
    age[rng.random(records) < 0.05] = "old"
    ward = rng.choice(["a", "b", "c", "elsewhere", ""], records).astype(object)
    smoker = rng.choice([True, False, None], records, p=[0.4, 0.5, 0.1])
    whole = np.array([isinstance(each, float) for each in age]) & (ward != "") & np.not_equal(smoker, None)
    return {"age": age, "ward": ward, "smoker": smoker}, rng.integers(0, 2, records), whole.astype(bool)


SCHEMAS = {
    "classes by cells": lambda cells: ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells,)),
    "classes": lambda cells: ps.ClassSchema(
        2, statistics="NAS", clip_norm=NORM, transform=(cells, ConstantFeature(1.0))
    ),
    "ridge": lambda cells: ps.RidgeSchema(clip_norm=NORM, target_bound=2.0, transform=(cells, ConstantFeature(1.0))),
}


def part(columns, y, rows):
    return {name: values[rows] for name, values in columns.items()}, y[rows]


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("batches", [False, True])
def test_sums_are_those_of_the_records_without_a_gap(name, batches):
    columns, y, whole = table(3_000)
    schema = SCHEMAS[name](COMPLETE)
    given = ([part(columns, y, slice(k, None, 3)) for k in range(3)], None) if batches else (columns, y)
    with pytest.warns(UnreadableRecordsWarning, match="'ward': .* hold nothing") as said:
        sums = exact_moments(schema, *given, unreadable="leave out")
    assert f"{(~whole).sum():,} of the records" in str(said[0].message)
    same = exact_moments(SCHEMAS[name](WITH_CELLS), *part(columns, y, whole), unreadable="leave out")
    for letter in schema.statistics:
        assert np.array_equal(getattr(sums, letter), getattr(same, letter))


def test_rounds_count_them_in_no_sum():
    columns, y, whole = table(2_000)
    releases = []
    for cells, rows in ((COMPLETE, whole | True), (WITH_CELLS, whole)):
        schema = ps.ScoreSchema(clip_norm=NORM, transform=(cells, ConstantFeature(1.0)))
        course = ps.Newton.start(schema, ps.Cohort(2, 2, 4_000), made.promise(epsilon=3.0, delta=1e-6))
        plan = course.next([])
        with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
            releases.append(
                exact_moments(
                    plan.schema, *part(columns, y, rows), published=plan.published, unreadable=plan.unreadable
                )
            )
    assert np.array_equal(releases[0].g, releases[1].g)
    assert np.array_equal(releases[0].H, releases[1].H)
    assert releases[0].records == releases[1].records == whole.sum()


def test_counts_for_cut_points_hold_none_of_them():
    columns, _, whole = table(2_000)
    bins = ps.Bins("age", (0, 40, 65, 100), missing=True)
    counted = [
        ps.CountSchema(
            (bins,), (("age",),), transform=(replace(cells, columns=(ps.Numeric("age", gaps=(999,)), *COLUMNS[1:])),)
        )
        for cells in (COMPLETE, WITH_CELLS)
    ]
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        sums = exact_moments(counted[0], columns, unreadable="leave out")
        same = exact_moments(counted[1], part(columns, columns["age"], whole)[0], unreadable="leave out")
    assert np.array_equal(sums.T, same.T)
    assert sums.T.sum() == whole.sum()


def test_a_person_counts_by_rows_without_a_gap():
    columns, y, whole = table(900)
    persons, schema = np.arange(900) // 3, SCHEMAS["classes by cells"](COMPLETE)
    privacy = made.promise(epsilon=3.0, delta=1e-6, unit="person", max_records_per_person=3, person_clip=3.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 4_000), privacy=privacy)
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        sums, same = (
            exact_moments(
                schema,
                *part(columns, y, rows),
                unreadable="leave out",
                persons=persons[rows],
                person_clip=plan.person_clip,
            )
            for rows in (whole | True, whole)
        )
    assert sums == same


def test_without_a_promise_a_gap_is_refused_by_column():
    columns, y, whole = table(200)
    columns["age"] = np.where([each == "old" for each in columns["age"]], None, columns["age"])
    for schema in (SCHEMAS["classes by cells"](COMPLETE), SCHEMAS["ridge"](COMPLETE)):
        with pytest.raises(RecordError, match="'smoker': .* hold nothing"):
            ps.measure(schema, columns, y)
        assert ps.measure(schema, *part(columns, y, whole)).records == whole.sum()


def test_no_row_is_made_of_a_record_with_a_gap():
    """A head whose plan excludes gaps predicts for no record with one."""
    codes = COMPLETE.codes({"age": [50, None], "ward": ["a", "b"], "smoker": [True, False]})
    for rows in (COMPLETE.apply, COMPLETE.grid_rows):
        with pytest.raises(RecordError, match="a record has a gap in age, ward, smoker: missing='left out'"):
            rows(codes)
        assert np.array_equal(rows(codes[:1]), getattr(WITH_CELLS, rows.__name__)(codes[:1]))
    torch = pytest.importorskip("torch")
    rows = COMPLETE.apply(torch.from_numpy(codes)).numpy()  # in a graph, too, where nothing can be refused
    assert np.isnan(rows[1]).any()
    assert np.array_equal(rows[0], COMPLETE.apply(codes[:1])[0])


def test_the_declaration_is_in_the_plan_and_leaves_earlier_plans_as_they_are():
    schema = SCHEMAS["ridge"](COMPLETE)
    plan = made.plan(schema, ps.Cohort(2, 2, 4_000), made.promise())
    assert 'missing = "left out"' in plan.to_toml()
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    other = made.plan(SCHEMAS["ridge"](WITH_CELLS), ps.Cohort(2, 2, 4_000), made.promise())
    assert "missing" not in other.to_toml()
    assert plan.digest != other.digest
    with pytest.raises(SchemaError, match="missing must be 'left out' or None"):
        replace(COMPLETE, missing="cells")


def test_the_checker_knows_the_declaration():
    plan = made.plan(SCHEMAS["ridge"](COMPLETE), ps.Cohort(2, 2, 4_000), made.promise())
    assert check(plan.to_toml(), certificate_text(plan))
