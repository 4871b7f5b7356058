"""Regressions on declared columns: against dummy columns without noise, empty cells, references, and coverage."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import privstats as ps
from benchmarks.inference import cell_worlds
from benchmarks.inference.cells import FAR, RARE, CellWorld, coverage
from benchmarks.inference.coverings import tallied
from benchmarks.inference.found_cuts import FoundWorld
from benchmarks.inference.found_cuts import coverage as found_coverage
from privstats import course as courses
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError, UnreadableRecordsWarning
from privstats.heads.evidence import release_gram
from privstats.inference.cell_design import Intervals
from privstats.inference.evidence import linear_sums
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.transforms import Cells, ConstantFeature, UnitNorm
from tests import made
from tests.inference.level_worlds import EFFECT, TABLES, World
from tests.lengths import sized

COLUMNS = (ps.Numeric("age", (40, 65)), ps.Categories("stage", ("a", "b", "c")), ps.Truth("smoker"))
CELLS = Cells(COLUMNS, signs=4, ramp=False)
AGE, STAGE, SMOKER = np.array([0, 0.4, 0.9, 0.2]), np.array([0, -0.5, 0.3, 0, 0]), np.array([0, 0.6, 0])
ALL_EMPTY = ["stage: other", "age: missing", "stage: missing", "smoker: missing"]


def schema_of(cells=CELLS, **changes):
    terms = {"clip_norm": 1.5, "target_bound": 6.0, "grid_bits": 20, "transform": (cells, ConstantFeature(1.0))}
    return ps.RidgeSchema(cells.width + 1, **{**terms, **changes})


def people(n, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    table = {
        "age": rng.uniform(20, 90, n),
        "stage": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]).astype(object),
        "smoker": rng.integers(0, 2, n).astype(float),
    }
    for column in table.values():
        column[rng.random(n) < gaps] = None
    places = CELLS.indices(CELLS.codes(table))
    fitted = sum(effects[places[:, j]] for j, effects in enumerate((AGE, STAGE, SMOKER)))
    return table, 0.5 + fitted + rng.normal(size=n) * 0.4, places


def exact(table, y, cells=CELLS, **changes):
    schema = schema_of(cells, **changes)
    return ps.Release.exact(schema, ps.measure(schema, table, y))


def dummies(places, held):
    """A constant, and a column of 0 and 1 for every cell that holds records but its column's first."""
    return np.column_stack(
        [np.ones(len(places))] + [places[:, j] == cell for j, cells in enumerate(held) for cell in cells[1:]]
    ).astype(float)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_without_noise_it_is_the_regression_on_dummy_columns(gaps):
    table, y, places = people(800, gaps=gaps)
    fit = inf.ols(exact(table, y), gaps_as_cells=True)
    held = [np.unique(places[:, j]) for j in range(3)]
    theirs = sm.OLS(y, dummies(places, held)).fit()
    reported = fit.reported
    np.testing.assert_allclose(fit.params[reported], theirs.params, atol=2e-5)
    np.testing.assert_allclose(fit.bse[reported], theirs.bse, rtol=1e-4)
    np.testing.assert_allclose(fit.conf_int()[reported], theirs.conf_int(), atol=2e-5)
    assert fit.df_resid == pytest.approx(theirs.df_resid, abs=0.01)  # the constant is on the grid too
    empty = [name for name, seen in zip(fit.names, reported, strict=True) if not seen]
    assert sorted(empty) == sorted(each for each in ALL_EMPTY if each == "stage: other" or not gaps)
    assert fit.errors.joint_pvalue() == 1.0


@given(
    cuts=st.lists(st.integers(-3, 3), min_size=1, max_size=4, unique=True).map(sorted),
    signs=st.integers(1, 6),
    ramp=st.booleans(),
    values=st.integers(2, 4),
    seed=st.integers(0, 999),
)
def test_contrasts_are_those_of_least_squares_on_the_rows_whatever_is_declared(cuts, signs, ramp, values, seed):
    names = tuple("abcd"[:values])
    cells = Cells((ps.Numeric("x", tuple(cuts)), ps.Categories("k", names), ps.Truth("t")), signs=signs, ramp=ramp)
    rng = np.random.default_rng(seed)
    table = {"x": rng.integers(-4, 4, 60) * 1.0, "k": rng.choice(names, 60).tolist(), "t": rng.integers(0, 2, 60)}
    table["x"][rng.random(60) < 0.1] = np.nan
    y = rng.normal(size=60)
    fit = inf.ols(exact(table, y, cells), gaps_as_cells=True)
    found = fit.cells()
    rows = np.column_stack([cells.apply(cells.codes(table)), np.ones(60)])
    weights = np.linalg.lstsq(rows, y, rcond=1e-9)[0]
    for place, (column, block, entries) in enumerate(zip(fit.column_cells, cells.blocks, cells.tables, strict=True)):
        here = np.array([name == column.name for name in found.columns])
        steps = Intervals.of(cells.columns[place], cells.marks[place]).of_codes
        means = np.stack([entries[steps == interval].mean(axis=0) for interval in range(len(column.cells))])
        moved = (means - means[column.reference]) * 2.0**-cells.bits @ weights[block]
        np.testing.assert_allclose(found.estimate[here][found.reported[here]], moved[found.reported[here]], atol=2e-3)
    held = set(cells.indices(cells.codes(table))[:, 1])
    reported = found.reported[[name == "k" for name in found.columns]]
    assert set(np.flatnonzero(reported)) == held


@pytest.mark.parametrize("bits", [8, 12])
def test_contrasts_are_those_of_the_rows_as_the_grid_has_them(bits):
    table, y, places = people(500)
    schema = schema_of(Cells(COLUMNS, signs=4, ramp=False, bits=12), grid_bits=bits)
    fit = inf.ols(ps.Release.exact(schema, ps.measure(schema, table, y)))
    theirs = sm.OLS(
        np.rint(y * schema.target_scale) / schema.target_scale, dummies(places, [range(3), range(3), range(2)])
    )
    np.testing.assert_allclose(fit.params[fit.reported], theirs.fit().params, atol=1e-6)


def confounded(n, gaps, seed):
    """An arm without effect, and a cause of arm and outcome with gaps by coin."""
    rng = np.random.default_rng(seed)
    cause = rng.random(n) < 0.5
    arm = rng.random(n) < np.where(cause, 0.7, 0.3)
    missing = rng.random(n) < gaps
    table = {"cause": np.where(missing, None, cause.astype(object)), "arm": np.where(arm, "drug", "placebo")}
    return table, cause + rng.normal(size=n) * 0.5, missing, cause


GAP_COLUMNS = Cells((ps.Truth("cause"), ps.Categories("arm", ("placebo", "drug"))), signs=2, ramp=False)


@pytest.mark.parametrize("promised", [False, True])
def test_gaps_of_one_column_hide_the_contrasts_of_all_because_they_bias_them(promised):
    table, y, missing, _ = confounded(6_000, 0.3, 1)
    schema = schema_of(GAP_COLUMNS)
    plan = made.plan(schema, ps.Cohort(2, 2, 12_000), made.promise(epsilon=20.0, delta=1e-6))

    def released(rows):
        moments = ps.measure(schema, {name: each[rows] for name, each in table.items()}, y[rows])
        if not promised:
            return ps.Release.exact(schema, moments)
        nothing = ps.measure(schema, {name: each[:0] for name, each in table.items()}, y[:0])
        return session.aggregate_unmasked(plan, [moments, nothing], seeded(1))

    everything, complete = released(missing | True), released(~missing)
    hidden, stated = inf.ols(everything), inf.ols(everything, gaps_as_cells=True)
    assert not hidden.reported.any()
    assert not hidden.cells().reported[~hidden.cells().reference].any()
    assert (hidden.pvalues == 1).all()
    assert "gaps in cause" in hidden.notes[0]
    advice = "so none is reported: plan Cells(..., missing='left out'), or measure only records without gaps in cause"
    assert advice in " ".join(str(hidden.summary()).split())
    drug = stated.names.index("arm: drug")
    assert stated.conf_int()[drug, 0] > 0.05, "the missing-indicator method finds an effect that is not there"
    assert "do not cover effects" in " ".join(str(stated.summary()).split())
    low, high = inf.ols(complete).conf_int()[inf.ols(complete).names.index("arm: drug")]
    assert low < 0 < high
    assert inf.ols(everything, columns=["arm"]).reported[1], "no column with gaps is read"
    assert inf.ols(everything, columns=["cause"]).reported[-1], "gaps of the only column are a group like any other"


def test_a_declaration_without_gaps_makes_estimates_of_complete_records():
    table, y, missing, _ = confounded(6_000, 0.3, 1)
    schema = schema_of(replace(GAP_COLUMNS, missing="left out"))
    with pytest.warns(UnreadableRecordsWarning, match=f"{missing.sum():,} of the records"):
        everything = ps.measure(schema, table, y, unreadable="leave out")
    complete = ps.measure(schema_of(GAP_COLUMNS), {name: each[~missing] for name, each in table.items()}, y[~missing])
    fit, theirs = (inf.ols(ps.Release.exact(each.schema, each)) for each in (everything, complete))
    np.testing.assert_array_equal(fit.params, theirs.params)
    np.testing.assert_array_equal(fit.conf_int(), theirs.conf_int())
    low, high = fit.conf_int()[fit.names.index("arm: drug")]
    assert low < 0 < high
    assert "whether a record is excluded as unreadable does not depend on its outcome" in " ".join(str(fit).split())
    assert "missing" not in " ".join(fit.notes), "no record could be in these cells"


@pytest.mark.parametrize("by", ["value", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("coin", "arm"))])
def test_complete_records_cover_an_arm_without_effect_wherever_gaps_come_from(by):
    runs, world = 60, (5_000, 3.0)
    row = tallied(f"complete {by}", cell_worlds.gaps("linear", 0.3, by, "left out")(*world), runs)
    assert row["reported"] == 1.0
    assert row["reported and missed"] <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5
    biased = tallied(f"cells {by}", cell_worlds.gaps("linear", 0.3, by, "cells")(*world), 10)
    assert biased["reported and missed"] > 0.5, "the world would show a bias"
    assert tallied(f"hidden {by}", cell_worlds.gaps("linear", 0.3, by, "hidden cells")(*world), 10)["reported"] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_no_noise_fills_a_cell_of_excluded_gaps(seed):
    table, y, _, _ = confounded(300, 0.1, seed)
    schema = schema_of(replace(GAP_COLUMNS, missing="left out"))
    plan = made.plan(schema, ps.Cohort(2, 2, 600), made.promise(epsilon=1.0))
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        halves = [
            ps.measure(schema, {name: each[k::2] for name, each in table.items()}, y[k::2], unreadable="leave out")
            for k in range(2)
        ]
    fit = inf.ols(session.aggregate_unmasked(plan, halves, seeded(seed)))
    assert all(column.empty[-1] for column in fit.column_cells)


def test_gaps_hide_the_odds_ratios_of_rounds_too():
    table, _, missing, cause = confounded(6_000, 0.3, 2)
    y = (np.random.default_rng(3).random(6_000) < np.where(cause, 0.6, 0.3)).astype(int)
    schema = ps.ScoreSchema(clip_norm=2**0.5, transform=(GAP_COLUMNS, ConstantFeature(1.0)))
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 12_000), made.promise(epsilon=30.0, delta=1e-6))

    def played(rows):
        shares = [({name: each[rows][k::2] for name, each in table.items()}, y[rows][k::2]) for k in range(2)]
        return courses.run(
            course,
            lambda node: session.aggregate_unmasked(
                node.plan,
                [ps.moments.exact_moments(schema, *share, published=node.plan.published) for share in shares],
                seeded(1),
            ),
        )

    everything, complete = played(missing | True), played(~missing)
    hidden, stated = inf.logit(everything), inf.logit(everything, gaps_as_cells=True)
    assert not hidden.reported.any()
    assert "gaps in cause" in hidden.notes[0]
    assert stated.reported[stated.names.index("arm: drug")]
    assert inf.logit(complete).reported[1:3].any()


def test_a_cell_between_others_that_is_empty_leaves_the_others_alone():
    table, y, places = people(600)
    kept = places[:, 0] != 1
    fit = inf.ols(exact({name: values[kept] for name, values in table.items()}, y[kept]))
    theirs = sm.OLS(y[kept], dummies(places[kept], [(0, 2), range(3), range(2)])).fit()
    np.testing.assert_allclose(fit.params[fit.reported], theirs.params, atol=2e-5)
    assert "age: 40 to < 65" in {name for name, seen in zip(fit.names, fit.reported, strict=True) if not seen}


def test_behind_a_ramp_cells_are_the_intervals_between_cuts_and_empty_ones_are_seen():
    cells = Cells((ps.Numeric("age", (30, 40, 65, 80)), *COLUMNS[1:]), signs=4, ramp=True)
    table, y, _ = people(600)
    table["age"] = np.where(table["age"] > 65, 79.5, table["age"])  # at one end of its interval
    table["age"][:20] = 85.0
    kept = (table["age"] < 40) | (table["age"] >= 65)
    found = inf.ols(exact({name: values[kept] for name, values in table.items()}, y[kept], cells)).cells()
    assert found.cells[:6] == ("< 30", "30 to < 40", "40 to < 65", "65 to < 80", ">= 80", "missing")
    assert found.reported[:6].tolist() == [True, True, False, True, True, False]


@pytest.mark.parametrize("within", [1.0, 49.0])
@pytest.mark.parametrize("counts", [(0, 0, 30, 60), (0, 30, 0, 60), (30, 0, 60, 0), (0, 30, 60, 30)])
def test_behind_a_ramp_a_cell_is_empty_wherever_the_values_of_others_lie_in_theirs(counts, within):
    cells = Cells((ps.Numeric("age", (0.0, 50.0, 100.0)), ps.Truth("smoker")), signs=3, ramp=True)
    ages = np.repeat([-1.0, within, 50.0 + within, 101.0], counts)
    table, y = {"age": ages, "smoker": np.arange(len(ages)) % 2}, np.arange(len(ages)) % 7 / 7
    empty = inf.ols(exact(table, y, cells)).column_cells[0].empty
    assert empty.tolist() == [count == 0 for count in (*counts, 0)]


def test_the_first_cell_that_holds_records_is_the_reference():
    table, y, places = people(600)
    kept = places[:, 0] != 0
    found = inf.ols(exact({name: values[kept] for name, values in table.items()}, y[kept])).cells()
    assert [cell for cell, first in zip(found.cells, found.reference, strict=True) if first] == [
        "40 to < 65",
        "a",
        "false",
    ]
    assert not found.reported[0]
    assert np.isnan(found.estimate[0])


def test_another_reference_turns_contrasts_round():
    fit = inf.ols(exact(*people(600)[:2]))
    found, turned = fit.cells(), fit.cells(reference={"stage": "c"})
    stage = [place for place, column in enumerate(found.columns) if column == "stage"]
    assert turned.cells == found.cells
    np.testing.assert_allclose(turned.estimate[stage][:3], found.estimate[stage][:3] - found.estimate[stage[2]])
    assert turned.low[stage[0]] == pytest.approx(-found.high[stage[2]])
    assert turned.pvalue[stage[0]] == pytest.approx(found.pvalue[stage[2]])
    np.testing.assert_array_equal(turned.estimate[:4], found.estimate[:4])
    hidden = fit.cells(reference={"stage": "other"})
    assert hidden.reported[stage].tolist() == [
        False,
        False,
        False,
        True,
        False,
    ]  # a reference without records tells nothing


def test_a_submodel_reads_the_declared_columns_it_names():
    table, y, places = people(600)
    fit = inf.ols(exact(table, y), columns=["smoker", "age"])
    theirs = sm.OLS(y, dummies(places[:, [2, 0]], [range(2), range(3)])).fit()
    np.testing.assert_allclose(fit.params[fit.reported], theirs.params, atol=2e-5)
    assert [each.name for each in fit.column_cells] == ["smoker", "age"]
    with pytest.raises(ReleaseError, match="has age, stage, smoker"):
        inf.ols(exact(table, y), columns=["weight"])


def test_columns_that_say_the_same_are_not_told_and_the_others_are():
    table, y, _ = people(600)
    cells = Cells((*COLUMNS, ps.Truth("again")), signs=4, ramp=False)
    fit = inf.ols(exact({**table, "again": table["smoker"]}, y, cells))
    reported = dict(zip(fit.names, fit.reported, strict=True))
    assert not reported["smoker: true"]
    assert not reported["again: true"]
    assert reported["age: 40 to < 65"]
    assert any("collinear" in note for note in fit.notes)


def test_orthonormal_directions_carry_the_noise_that_the_sums_carry():
    sums = linear_sums(exact(*people(300)[:2]), None, None, None)
    design = sums.cells
    np.testing.assert_allclose(design.basis.T @ design.basis, np.eye(design.basis.shape[1]), atol=1e-12)
    _, places = people(300)[0], people(300)[2]
    rows = np.column_stack([CELLS.apply(CELLS.codes(people(300)[0])), np.ones(300)])
    moved = rows - rows.mean(axis=0)
    np.testing.assert_allclose(
        moved @ design.basis[:, ~design.lost] @ design.basis[:, ~design.lost].T, moved, atol=1e-5
    )
    assert np.abs(moved @ design.basis[:, design.lost]).max() < 1e-5
    assert len(places) == 300


def test_tables_say_reference_and_what_is_not_told():
    found = inf.ols(exact(*people(600)[:2])).cells()
    text = str(found.summary())
    assert text.count("reference\n") == 3
    assert ["other", "-", "-", "-", "1.0000", "-inf", "inf"] in [line.split() for line in text.splitlines()]
    assert "age: missing, stage: other" in text
    frame = found.to_frame()
    assert list(frame.columns[:4]) == ["variable", "level", "reference", "estimate"]
    assert frame.loc[frame["reference"], "estimate"].tolist() == [0.0, 0.0, 0.0]
    assert frame["reported"].sum() == 3 + 3 + 2


def test_the_table_warns_of_one_variance_where_no_folds_are():
    table, y, _ = people(600)
    text = " ".join(str(inf.ols(exact(table, y)).cells().summary()).split())
    assert "have one variance" in text
    assert "plan folds=20" in text
    folded = inf.ols(exact(table, y, folds=10))
    assert folded.cov_type == "folds"
    assert "one variance" not in " ".join(str(folded.cells().summary()).split())


def test_errors_from_folds_are_those_of_leaving_folds_out_of_a_regression_on_dummy_columns():
    table, y, places = people(300)
    schema = schema_of(folds=8)
    fit = inf.ols(ps.Release.exact(schema, ps.measure(schema, table, y)))
    rows = [{name: column[k : k + 1] for name, column in table.items()} for k in range(300)]
    alone = [ps.measure(schema, row, y[k : k + 1]).fold_G[:, -1, -1] for k, row in enumerate(rows)]
    fold = np.array([int(np.flatnonzero(each)[0]) for each in alone])
    X = dummies(places, [np.unique(places[:, j]) for j in range(3)])
    whole, *without = (
        np.linalg.lstsq(X[kept], y[kept])[0] for kept in (np.ones(300, bool), *(fold != k for k in range(8)))
    )
    jackknife = np.sqrt(7 / 8 * np.square(np.array(without) - whole).sum(axis=0))
    np.testing.assert_allclose(fit.params[fit.reported], whole, atol=2e-5)
    np.testing.assert_allclose(fit.bse[fit.reported], jackknife, rtol=1e-3)


def uneven_people(n, seed):
    """A twentieth of the records are of stage c, with three times the residual deviation."""
    rng = np.random.default_rng(seed)
    table = {
        "age": rng.uniform(20, 90, n),
        "stage": rng.choice(["a", "b", "c"], n, p=[0.55, 0.4, 0.05]).astype(object),
        "smoker": rng.integers(0, 2, n).astype(float),
    }
    places = CELLS.indices(CELLS.codes(table))
    fitted = sum(effects[places[:, j]] for j, effects in enumerate((AGE, STAGE, SMOKER)))
    return table, 0.5 + fitted + rng.normal(size=n) * np.where(places[:, 1] == 2, 0.9, 0.3)


@pytest.mark.parametrize(
    ("epsilon", "n"), [(None, 1_000), pytest.param(8.0, 20_000, marks=pytest.mark.nightly)], ids=["exact", "noisy"]
)
def test_folds_hold_where_a_rare_cell_has_a_larger_variance(epsilon, n):
    missed = {"folds": 0, "nonrobust": 0}
    for run in range(60):
        table, y = uneven_people(n, run)
        for kind, folds in (("folds", 20), ("nonrobust", 1)):
            schema = schema_of(folds=folds)
            if epsilon is None:
                release = ps.Release.exact(schema, ps.measure(schema, table, y))
            else:
                plan = made.plan(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=epsilon))
                halves = [ps.measure(schema, {key: each[k::2] for key, each in table.items()}, y[k::2]) for k in (0, 1)]
                release = session.aggregate_unmasked(plan, halves, seeded(run))
            fit = inf.ols(release)
            assert fit.cov_type == kind
            place = fit.names.index("stage: c")
            assert fit.reported[place]
            low, high = fit.conf_int()[place]
            missed[kind] += not low <= STAGE[2] <= high
    assert missed["folds"] <= 8  # 3 of 60, and three deviations
    assert missed["nonrobust"] > 8


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"transform": (CELLS,), "features": CELLS.width}, "needs ConstantFeature after it"),
        ({"transform": (CELLS, UnitNorm(), ConstantFeature(1.0))}, "and no other map"),
        ({"clip_norm": 1.0}, "clip_norm 1 clips every row"),
    ],
)
@pytest.mark.filterwarnings("ignore::privstats.errors.ClippedWarning")
def test_other_maps_are_refused_by_name(changes, said):
    table, y, _ = people(100)
    schema = ps.RidgeSchema(
        **{
            "features": CELLS.width + 1,
            "clip_norm": 1.5,
            "target_bound": 6.0,
            "transform": (CELLS, ConstantFeature(1.0)),
            **changes,
        }
    )
    with pytest.raises(ReleaseError, match=said):
        inf.ols(ps.Release.exact(schema, ps.measure(schema, table, y)))


def test_cells_of_other_regressions_and_unknown_references_are_refused():
    fit = inf.ols(exact(*people(200)[:2]))
    with pytest.raises(ReleaseError, match="'weight'; .* age, smoker, stage"):
        fit.cells(reference={"weight": "x"})
    with pytest.raises(ReleaseError, match="stage has no cell 'd'"):
        fit.cells(reference={"stage": "d"})
    schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ConstantFeature(1.0),))
    plain = ps.Release.exact(schema, ps.measure(schema, [[0.1], [0.2], [0.4], [0.8]], np.array([1.2, 1.5, 1.7, 2.7])))
    with pytest.raises(ReleaseError, match="regression on declared columns"):
        inf.ols(plain).cells()


# -- under noise -------------------------------------------------------------------------------------------------------


def test_empty_cells_under_noise_hide_nothing_but_themselves():
    schema = schema_of(clip_norm=2**0.5, grid_bits=12)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 20_000), privacy=made.promise(epsilon=1.0, delta=1e-6))
    rng = seeded(1)
    table, y, places = people(10_000)
    parts = [ps.measure(schema, {k: v[i::2] for k, v in table.items()}, y[i::2]) for i in range(2)]
    for _ in range(20):
        found = inf.ols(session.aggregate_unmasked(plan, parts, rng)).cells()
        names = [f"{column}: {cell}" for column, cell in zip(found.columns, found.cells, strict=True)]
        assert {name for name, reported in zip(names, found.reported, strict=True) if not reported} == set(ALL_EMPTY)
    assert places.max() < 4


def _without_noise(released, world, levels):
    """Return the arm's estimate from exact sums, with the design of a release whose noise may hide ward C."""
    schema, sums = released.release.plan.schema, linear_sums(released.release, None, None, None)
    table = world.table(levels)
    columns = pandas.DataFrame(table)[[each.name for each in schema.transform[0].columns]]
    exact_sums = release_gram(ps.Release.exact(schema, exact_moments(schema, columns, table["level"])), None)
    left = ~sums.cells.lost
    gram, vector = sums.cells.gram(exact_sums.G), sums.cells.vector(exact_sums.h)[:, 0]
    fitted = sums.cells.contrasts[:, left] @ np.linalg.pinv(gram[np.ix_(left, left)]) @ vector[left]
    return float(fitted[sums.names.index("arm: 1")])


@pytest.mark.parametrize("few", [0, 30])
def test_intervals_hold_the_fit_without_the_cells_that_noise_hides(few):
    """Records of such a cell move the fit, as its note states, and nothing else makes intervals miss."""
    missed = {"the arm": 0, "the moved arm": 0}
    runs = sized(30, 1000)
    for seed in range(runs):
        world = World(few, seed)
        found = TABLES["ols of cells"](world, "last", 1.0)
        low, high = found.conf_int()[found.names.index("arm")]
        moved = _without_noise(found, world, "last") - _without_noise(found, world, "undeclared")
        assert "could show (about " in " ".join(found.notes)
        for name, truth in zip(missed, (EFFECT, EFFECT + moved), strict=True):
            missed[name] += not low < truth < high
    assert missed["the moved arm"] <= binom.ppf(0.999, runs, 0.05), missed
    if not few:
        assert missed["the arm"] == missed["the moved arm"]


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_rounds_of_scores_read_cells(family):
    n, rng, noise = 20_000, np.random.default_rng(2), seeded(3)
    table, _, places = people(n)
    fitted = -0.8 + AGE[places[:, 0]] + STAGE[places[:, 1]] + SMOKER[places[:, 2]]
    logistic = family == "logistic"
    y = (rng.random(n) < 1 / (1 + np.exp(-fitted))).astype(int) if logistic else rng.poisson(np.exp(fitted)).clip(0, 12)
    schema = ps.ScoreSchema(
        CELLS.width + 1,
        2**0.5,
        family=family,
        target_bound=None if logistic else 12.0,
        transform=(CELLS, ConstantFeature(1.0)),
        errors="model",
    )
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=8.0, delta=1e-6))

    def release(node):
        parts = [
            ps.measure(schema, {k: v[i::2] for k, v in table.items()}, y[i::2], published=node.plan.published)
            for i in range(2)
        ]
        return session.aggregate_unmasked(node.plan, parts, noise)

    fit = (inf.logit if logistic else inf.poisson)(courses.run(course, release))
    x = dummies(places, [range(3), range(3), range(2)])
    theirs = (sm.Logit(y, x) if logistic else sm.Poisson(y, x)).fit(disp=0)
    assert sorted(name for name, reported in zip(fit.names, fit.reported, strict=True) if not reported) == sorted(
        ALL_EMPTY
    )
    assert (np.abs(fit.params[fit.reported] - theirs.params) < 5 * fit.noise_bse[fit.reported] + 0.01).all()
    sampling = np.sqrt(fit.bse[fit.reported] ** 2 - fit.noise_bse[fit.reported] ** 2)
    np.testing.assert_allclose(sampling, theirs.bse, rtol=0.05)
    assert not any("arrived" in note for note in fit.notes)
    assert fit.cells().reported.sum() == 3 + 3 + 2


def test_rounds_of_counts_have_robust_errors_of_cells():
    """Counts with a gamma frailty of 1: errors of contrasts grow by about the root of the variance over the mean."""
    n, rng = 20_000, np.random.default_rng(2)
    table, _, places = people(n)
    mean = np.exp(-0.2 + 0.5 * SMOKER[places[:, 2]])
    y = rng.poisson(mean * rng.gamma(1.0, 1.0, n)).clip(0, 12)
    found = {}
    for errors in ("model", "robust"):
        schema = ps.ScoreSchema(
            CELLS.width + 1,
            2**0.5,
            family="poisson",
            target_bound=12.0,
            transform=(CELLS, ConstantFeature(1.0)),
            errors=errors,
        )
        course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=50.0, delta=1e-6))
        halves = [({name: column[k::2] for name, column in table.items()}, y[k::2]) for k in (0, 1)]
        found[errors] = inf.poisson(ps.simulate(course, halves, rng=seeded(3)))
    read = found["model"].reported & found["robust"].reported
    ratio, noise = found["robust"].dispersion
    assert ratio == pytest.approx(np.square(y - mean).sum() / mean.sum(), abs=4 * noise + 0.05)
    grown = found["robust"].bse[read] / found["model"].bse[read]
    assert read.sum() > 5
    assert np.median(grown) == pytest.approx(math.sqrt(ratio), rel=0.15)


@pytest.mark.parametrize(
    ("world", "runs"),
    [
        (CellWorld(3), 15),
        pytest.param(CellWorld(1, 0.1), 300, marks=pytest.mark.nightly),
        pytest.param(CellWorld(3, 0.1), 300, marks=pytest.mark.nightly),
        pytest.param(CellWorld(7), 300, marks=pytest.mark.nightly),
        pytest.param(CellWorld(3, RARE, FAR), 300, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_an_interval_of_a_cell_is_told_and_misses_in_at_most_one_release_of_twenty(world, runs):
    row = coverage(world, 10_000, 1.0, runs)
    assert row["reported and missed"] <= 0.05 + 4 * (0.05 / runs) ** 0.5 / 3
    assert row["reported"] > (0.95 if world.cuts < 7 and world.gap is None else 0.0)


# -- behind cut points that counts have found --------------------------------------------------------------------------

OPEN = Cells((ps.Numeric("age"), *COLUMNS[1:]), signs=3, ramp=False)


def counted(then=None, epsilon=8.0, n=6_000, seed=1):
    """Releases of a Binned course over a regression, or over rounds of scores."""
    table, y, _ = people(n)
    transform = (OPEN, ConstantFeature(1.0))
    cohort, privacy = ps.Cohort(2, 2, 2 * n), made.promise(epsilon=epsilon, delta=1e-6)
    if then == "newton":
        schema = ps.ScoreSchema(OPEN.width + 1, 2**0.5, transform=transform)
        plan, y = ps.Newton.full_plan(schema=schema, cohort=cohort, privacy=privacy), (y > 0.8).astype(int)
    else:
        schema = ps.RidgeSchema(OPEN.width + 1, clip_norm=2**0.5, target_bound=6.0, transform=transform)
        plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
    course = ps.Binned.within(plan, then, expected_records=n)
    parts = [({name: values[i::2] for name, values in table.items()}, y[i::2]) for i in range(2)]
    return ps.simulate(course, parts, rng=seeded(seed)), table, y


def on_dummies(releases, table):
    """Dummy columns of the cells between the cut points that were found."""
    cells = releases[-1].plan.schema.transform[0]
    places = cells.indices(cells.codes(table))
    return dummies(places, [range(len(cells.columns[0].edges) + 1), range(3), range(2)])


def test_contrasts_between_cuts_that_were_found_are_those_of_least_squares_there():
    releases, table, y = counted()
    fit = inf.ols(releases)
    theirs = sm.OLS(y, on_dummies(releases, table)).fit()
    assert fit.reported.sum() == len(theirs.params)
    assert (np.abs(fit.params[fit.reported] - theirs.params) < 5 * fit.noise_bse[fit.reported]).all()
    sampling = np.sqrt(fit.bse[fit.reported] ** 2 - fit.noise_bse[fit.reported] ** 2)
    np.testing.assert_allclose(sampling, theirs.bse, rtol=0.1)
    assert fit.cells().reported.sum() == 4 + 3 + 2


def test_rounds_behind_cuts_that_were_found_read_cells():
    releases, table, y = counted("newton", 20.0)
    fit = inf.logit(releases)
    theirs = sm.Logit(y, on_dummies(releases, table)).fit(disp=0)
    assert fit.reported.sum() == len(theirs.params)
    assert (np.abs(fit.params[fit.reported] - theirs.params) < 5 * fit.noise_bse[fit.reported] + 0.02).all()
    said = f"epsilon 20, delta 1e-06, all {len(releases)} sessions, the counts of its cut points among them"
    assert said in fit.summary().foot[1]


def test_the_promise_of_a_table_is_that_of_all_sessions_also_of_its_last_release_alone():
    """The last release names its place, so the sessions before it are charged though nobody shows them."""
    releases, *_ = counted()
    said = f"Privacy: epsilon 8, delta 1e-06, all {len(releases)} sessions, the counts of its cut points among them"
    assert said in inf.ols(releases).cells().summary().foot[1]
    assert 7 < releases[-1].plan.privacy.epsilon < 8
    assert f"epsilon 8, delta 1e-06, all {len(releases)} sessions" in inf.ols(releases[-1]).summary().foot[1]


def test_counts_of_another_course_are_refused():
    releases, *_ = counted()
    others, *_ = counted(epsilon=0.5)
    for wrong in ([*others[:-1], releases[-1]], [releases[-1]] * 3):
        with pytest.raises(ReleaseError, match="not the next"):
            inf.ols(wrong)
    forged = replace(releases[-1], position=replace(others[-1].position, mu=releases[-1].position.mu))
    with pytest.raises(ReleaseError, match="cut points of these sums"):
        inf.ols([*others[:-1], forged])


@pytest.mark.nightly
@pytest.mark.parametrize("cuts", [1, 3])
def test_an_interval_between_cuts_that_were_found_is_told_and_misses_in_at_most_one_release_of_twenty(cuts):
    runs = 60
    row = found_coverage(FoundWorld(cuts), 20_000, 3.0, runs)
    assert row["reported and missed"] <= 0.05 + 4 * (0.05 / runs) ** 0.5 / 3
    assert row["reported"] > 0.8
