"""Declared tables through whole sessions: odd values change no outcome that anybody else sees."""

import warnings
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.sweep import Axes, study, sweep
from privstats.contrib.sweep.axes import with_quantile_cuts
from tests import made

CELLS = ps.Cells(
    (
        ps.Numeric("age", (40, 55, 70), gaps=(-9,)),
        ps.Dates("seen", ("2020-01-01",)),
        ps.Truth("smoker"),
        ps.Categories("sex", ("f", "m")),
        ps.Categories("ward", (1, 2, 3)),
    )
)
SCHEMA = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, transform=(CELLS,), class_names=("well", "ill"))
COHORT = ps.Cohort(3, 3, 1000)
ODD = ("12 mg", 2**70, float("inf"), "03/04/2020", b"\xff", (1, 2), object)


def table(seed: int, records: int = 60) -> tuple[dict[str, Any], list[Any]]:
    chance = np.random.default_rng(seed)
    ages = chance.normal(55, 15, records)
    return {
        "age": ages.tolist(),
        "seen": chance.choice(["2019-05-01", "2021-01-01"], records).tolist(),
        "smoker": chance.choice([True, False], records).tolist(),
        "sex": chance.choice(["f", "m"], records).tolist(),
        "ward": chance.integers(1, 4, records).tolist(),
    }, ["ill" if age > 55 else "well" for age in ages]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_session_with_an_odd_value_of_any_kind_ends_as_one_without(odd: Any) -> None:
    plan = made.plan(SCHEMA, COHORT, made.promise("distributed"))
    parties = [table(seed) for seed in range(3)]
    usual = ps.simulate(plan, parties)
    for name in CELLS.columns:
        X, y = table(0)
        X[name.name][7] = odd
        with warnings.catch_warnings(action="ignore", category=ps.errors.UnreadableRecordsWarning):
            found = ps.simulate(plan, [(X, y), *parties[1:]])
        assert (found.survivors, found.plan.digest) == (usual.survivors, usual.plan.digest)
    X, y = table(0)
    y[3] = odd
    with warnings.catch_warnings(action="ignore", category=ps.errors.UnreadableRecordsWarning):
        assert ps.simulate(plan, [(X, y), *parties[1:]]).survivors == usual.survivors


def test_a_sweep_takes_the_declaration() -> None:
    plan = made.plan(SCHEMA, COHORT, made.promise("distributed"))
    found = sweep(plan, table(0, 300), table(1), {"LDA": ps.heads.LDA}, [50.0], repeats=2)
    assert {point.epsilon for point in found.points} == {50.0, float("inf")}
    assert all(point.mean > 0.6 for point in found.points)


def test_a_sweep_of_open_columns_takes_the_quantiles_of_its_records() -> None:
    """As a code book would state them: a course of counts would need a promise, and a sweep scores one without."""
    cells = ps.Cells((ps.Numeric("age"), ps.Dates("seen"), ps.Numeric("ward", (2, 3)), ps.Numeric("gone")), signs=3)
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells,), class_names=("well", "ill"))
    plan = made.plan(schema, COHORT, made.promise("distributed"))
    (X, y), (other, labels) = table(0, 300), table(1)
    X["gone"], other["gone"] = [None] * 300, [None] * 60
    found = study(plan, (X, y), (other, labels), {"LDA": ps.heads.LDA}, Axes(epsilon=(50.0,)), repeats=2)
    age, seen, ward, gone = found.plan.schema.transform[0].columns  # type: ignore[attr-defined]
    np.testing.assert_allclose(age.edges, np.quantile(X["age"], (0.25, 0.5, 0.75)), rtol=1e-14)
    assert set(seen.edges) <= {18017.0, 18628.0}
    assert (ward.edges, gone.edges) == ((2.0, 3.0), (0.0,))
    assert all(row["mean"] > 0.6 for row in found.summary)
    assert with_quantile_cuts(found.plan, X) is found.plan


@pytest.mark.ci
def test_partitions_of_dask_take_the_declaration() -> None:
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    from privstats.contrib.parts import measure

    X, y = table(0)
    whole = pandas.DataFrame(X)
    expected = ps.measure(SCHEMA, whole, y)
    cut = frames.from_pandas(whole.assign(note="?"), npartitions=3)
    assert measure(SCHEMA, cut, frames.from_pandas(pandas.Series(y), npartitions=3)) == expected
