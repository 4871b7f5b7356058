"""Rows are post-processing of releases: no record is read, a seed decides them, and they say what they are."""

import csv
import inspect
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.synthetic import choice, model, rows
from privstats.contrib.synthetic.columns import coded
from privstats.contrib.synthetic.rows import NO_INTERVALS, distance, fit_of, synthetic
from privstats.errors import DataError, ReleaseError
from privstats.intake.column_names import SYNTHETIC_MARK
from privstats.schema import COUNT_SCALE
from tests.contrib.synthetic.cases import COLUMNS, course, released, table


def _rows(seed: int = 0, count: int = 4_000):
    return synthetic(*released(), rows=count, seed=seed, columns=COLUMNS)


def test_the_same_seed_gives_the_same_rows_and_another_gives_others():
    one, again, other = _rows(1), _rows(1), _rows(2)
    assert one.drawn == again.drawn
    assert one.drawn != other.drawn


def test_rows_are_made_of_releases_alone():
    """A copy of the releases' bytes gives the same rows, with no record in reach."""
    own, releases = released()
    copies = [ps.Release(each.plan, each.vector.copy(), each.survivors, reproducible=True) for each in releases]
    assert synthetic(own, copies, rows=100, seed=0).drawn == synthetic(own, releases, rows=100, seed=0).drawn
    for module in (rows, model, choice):
        assert "measure" not in {name for name, _ in inspect.getmembers(module, inspect.isfunction)}


def test_rows_go_together_as_the_records_do():
    drawn, real = _rows(), table(4_000, 9)
    mean = {name: {ward: _mean(each, ward) for ward in "abc"} for name, each in (("drawn", drawn), ("real", real))}
    assert all(abs(mean["drawn"][ward] - mean["real"][ward]) < 5 for ward in "abc")
    known = [each for each in drawn["age"] if each is not None]
    assert 0 <= min(known) < max(known) <= 100
    assert set(drawn["smoker"]) <= {True, False, None}
    assert min(filter(None, drawn["admitted"])) >= "2024-01-01"
    assert set(drawn["icd"]) <= {*range(8), None}


def _mean(values, ward):
    pairs = zip(values["age"], values["ward"], strict=True)
    return np.nanmean([age for age, own in pairs if own == ward and age is not None])


def test_every_released_table_has_a_distance_whose_interval_holds_the_exact_one():
    own, releases = released()
    assert len(_rows().distances) == sum(len(each.plan.schema.tables) for each in releases)
    parts = [coded(COLUMNS, table(3_000, seed)) for seed in (1, 2)]
    fit, rng = fit_of(own, releases), np.random.default_rng(0)
    fine = fit.fine_cells(fit.model.draw(4_000, rng), rng)
    exact = replace(fit, releases=tuple(_exact(release, parts) for release in releases))
    for found, true in zip(fit.distances(fine), exact.distances(fine), strict=True):
        assert found.low <= true.value <= found.high


def test_a_distance_in_merged_cells_says_which():
    own, _ = released()
    drawn = _rows()
    declared = {variable.name: len(variable.cells) for variable in own.schema.variables}
    lines = drawn.summary().splitlines()[-len(drawn.distances) :]
    for each, line in zip(drawn.distances, lines, strict=True):
        here = dict(zip(each.columns, map(len, each.cells), strict=True))
        assert each.merged == tuple((name, here[name], declared[name]) for name in here if here[name] < declared[name])
        for name, few, many in each.merged:
            assert f"{name} in {few} cells merged from {many}" in line
        assert ("in declared cells it may be larger" in line) == bool(each.merged)
    assert any(each.merged for each in drawn.distances)
    assert any(not each.merged for each in drawn.distances)


def _exact(release, parts):
    """The release with its exact counts in place of noisy ones."""
    counts = sum(ps.measure(release.plan.schema, part).T for part in parts)
    return ps.Release(release.plan, counts * COUNT_SCALE, release.survivors, reproducible=True)


@pytest.mark.parametrize("sigma", [1.0, 20.0])
def test_intervals_hold_the_distance_from_the_exact_table(sigma):
    rng = np.random.default_rng(0)
    exact = rng.multinomial(2_000, rng.dirichlet(np.ones(40))).astype(float)
    forty, held = [ps.Bins("x", tuple(range(41)))], 0
    for _ in range(200):
        noisy = exact + rng.normal(0, sigma, 40)
        shares = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()  # fitted to the noise itself
        found = distance(forty, 0, shares, noisy, sigma)
        held += found.low <= np.abs(shares - exact / 2_000).sum() / 2 <= found.high
    assert held >= 190


def test_the_page_says_promise_pairs_and_that_no_interval_may_be_computed():
    drawn = _rows()
    said = drawn.summary()
    assert "epsilon 8 at delta" in said
    assert "over 3 sessions" in said
    assert NO_INTERVALS in said
    assert all(" x ".join(pair) in said for pair in drawn.pairs)


def test_a_saved_file_is_marked_and_every_reader_refuses_it(tmp_path):
    path = tmp_path / "rows.csv"
    drawn = _rows(count=20)
    drawn.save(path)
    with path.open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 20
    assert {line[SYNTHETIC_MARK] for line in lines} == {"yes"}
    assert NO_INTERVALS in path.with_suffix(".txt").read_text()
    with pytest.raises(DataError, match="holds synthetic rows"):
        _ = ps.moments.RecordFile(path).columns
    schema = ps.CountSchema((ps.Categories("ward", ("a", "b", "c")),), (("ward",),))
    for each in (dict(drawn), drawn):
        with pytest.raises(DataError, match="holds synthetic rows"):
            ps.measure(schema, each)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="only records may be measured"):
        ps.measure(schema, pandas.read_csv(path))
    with pytest.raises(DataError, match="holds synthetic rows"):
        ps.Cells((ps.Truth("smoker"),)).codes(pandas.read_csv(path))
    pandas.read_csv(path).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="holds synthetic rows"):
        _ = ps.moments.RecordFile(tmp_path / "rows.parquet").columns


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda own, releases: synthetic(own, releases, rows=0, seed=0), "rows must be"),
        (lambda own, releases: synthetic(own, releases, rows=10, seed=-1), "seed must be"),
        (lambda own, releases: synthetic(own, releases[:2], rows=10, seed=0), "releases of all 3 sessions"),
        (lambda own, releases: synthetic(own, (None, None, None), rows=10, seed=0), "one has a sum"),
        (lambda own, releases: synthetic(own.plan, releases, rows=10, seed=0), "must be a Synthetic course"),
        (lambda own, releases: synthetic(own, (*releases[:2], releases[1]), rows=10, seed=0), "release 2 is not"),
    ],
)
def test_wrong_calls_are_refused(wrong, message):
    with pytest.raises(ReleaseError, match=message):
        wrong(*released())


@pytest.mark.parametrize("lost", [0, 2])
def test_rows_are_drawn_although_a_session_has_no_sum(lost):
    own = course()
    parts = [(coded(COLUMNS, table(500, seed)), None) for seed in (1, 2)]
    releases = []
    for round_ in ps.course.iter_rounds(own, releases):
        releases.append(None if round_.place == lost else ps.simulate(round_.plan, parts))
    drawn = synthetic(own, releases, rows=50, seed=0)
    assert len(drawn["age"]) == 50


def test_numbers_without_edges_have_rows_where_the_records_are():
    columns = (ps.Numeric("age"), ps.Numeric("income"), ps.Truth("ill"), ps.Truth("old"))
    own = course(epsilon=3.0, columns=columns)

    def records(seed: int):
        rng = np.random.default_rng(seed)
        age = rng.uniform(20, 90, 3_000)
        income = np.where(rng.random(3_000) < 0.5, 0.0, rng.lognormal(10, 0.5, 3_000))
        return {"age": age, "income": income, "ill": rng.random(3_000) < 0.3, "old": age > 60}

    releases = ps.simulate(own, [(coded(columns, records(seed)), None) for seed in (1, 2)])
    drawn = synthetic(own, releases, rows=4_000, seed=0, columns=columns)
    age, income = (np.array(drawn[name], float) for name in ("age", "income"))
    known = ~np.isnan(age)
    assert known.mean() > 0.97
    assert np.quantile(age[known], [0.01, 0.99]) == pytest.approx([20, 90], abs=6)
    assert np.mean(age[known] > 60) == pytest.approx(3 / 7, abs=0.05)
    assert np.mean(np.abs(income) < 1) == pytest.approx(0.5, abs=0.05)
    assert np.nanmedian(income[income > 1]) == pytest.approx(np.exp(10), rel=0.1)
    assert np.nanquantile(np.abs(income), 0.995) < 1e6
    old = np.array(drawn["old"], float)
    assert np.nanmean(age[old == 1]) > 65 > 55 > np.nanmean(age[old == 0])


def test_a_frame_holds_the_rows_and_their_mark():
    pandas = pytest.importorskip("pandas")
    drawn = _rows(count=20)
    frame = drawn.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame) == list(drawn)
    assert frame["ward"].tolist() == drawn["ward"]
    with pytest.raises(DataError, match="holds synthetic rows"):
        ps.measure(ps.CountSchema((ps.Categories("ward", ("a", "b", "c")),), (("ward",),)), frame)
