"""Rows are post-processing of releases: no record is read, a seed decides them, and they say what they are."""

import csv
import inspect

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.synthetic import choice, fit, model, rows
from privstats.contrib.synthetic.columns import coded
from privstats.contrib.synthetic.course import tables_of
from privstats.contrib.synthetic.rows import NO_INTERVALS, synthetic
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
    for module in (rows, fit, model, choice):
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
    _, releases = released()
    drawn = _rows()
    assert len(drawn.distances) == sum(len(each.plan.schema.tables) for each in releases)
    parts = [coded(COLUMNS, table(3_000, seed)) for seed in (1, 2)]
    for found, true in zip(drawn.distances, _truly(drawn, releases, parts), strict=True):
        assert found.low <= true <= found.high
        assert found.low <= found.exact <= found.high


def _truly(drawn, releases, parts):
    """The distances of rows from exact tables."""
    exact = []
    for release in releases:
        counts = sum(ps.measure(release.plan.schema, part).T for part in parts) * COUNT_SCALE
        exact += tables_of(ps.Release(release.plan, counts, release.survivors, reproducible=True)).values()
    return [
        np.abs(own.rows - counts / counts.sum()).sum() / 2 for own, counts in zip(drawn.distances, exact, strict=True)
    ]


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
        assert (": in declared cells " in line) == bool(each.merged) == (each.merging > 0)
        assert (f"up to {each.merging:.2f} more" in line) == (0 < each.merging < 1)
    assert any(each.merged for each in drawn.distances)
    assert any(not each.merged for each in drawn.distances)


def _ruled(records: int, seed: int):
    """An offset in 32 cells, and the quarter that follows from it; a third column stands alone."""
    rng = np.random.default_rng(seed)
    offset = rng.integers(0, 96, records)
    return {"offset": offset + 0.5, "quarter": offset // 3 % 4 + 0.5, "ill": rng.random(records) < 0.3}


RULED = (ps.Numeric("offset", tuple(range(0, 97, 3))), ps.Numeric("quarter", (0, 1, 2, 3, 4)), ps.Truth("ill"))


@pytest.mark.parametrize(
    ("epsilon", "levels", "least", "most"), [(3.0, None, 0, 0.03), (30.0, None, 0, 0.006), (30.0, 16, 0.3, 1)]
)
def test_a_rule_between_fine_numbers_is_followed_as_far_as_noise_lets_it(epsilon, levels, least, most):
    """With at most 16 cells the rows break the rule at any epsilon, and the line says by how much they may."""
    own = course(epsilon, RULED, **({} if levels is None else {"levels": levels}))
    parts = [coded(RULED, _ruled(10_000, seed)) for seed in (1, 2)]
    drawn = synthetic(own, ps.simulate(own, [(part, None) for part in parts]), rows=20_000, seed=0, columns=RULED)
    offsets, quarters = (np.array(drawn[name], float) for name in ("offset", "quarter"))
    broken = np.mean(np.floor(offsets / 3) % 4 != np.floor(quarters))
    assert least <= broken <= most
    pair = next(each for each in drawn.distances if each.columns == ("offset", "quarter"))
    assert bool(pair.merged) == (levels is not None)
    assert broken <= pair.high + pair.merging + 0.01  # the rows are a sample


def test_a_distance_is_not_overstated_by_the_noise_of_its_table():
    """A few records under much noise: the released tables are mostly noise, which the rows do not follow."""
    parts = [coded(COLUMNS, table(700, seed)) for seed in (1, 2)]
    own, rng = course(epsilon=1.0), ps.randomness.seeded(3)
    releases = ps.private_releases(own, _joined(parts), ledger="uncharged", rng=rng, allow_reproducible=True)
    drawn = synthetic(own, releases, rows=4_000, seed=0)
    true = np.array(_truly(drawn, releases, parts))
    found = np.array([(each.value, each.exact, each.low, each.high) for each in drawn.distances])
    assert ((found[:, 2] <= true) & (true <= found[:, 3])).all()
    assert np.abs(found[:, 1] - true).mean() < 0.5 * np.abs(found[:, 0] - true).mean()
    sizes, noise = np.array([(each.rows.size, each.noise) for each in drawn.distances]).T
    margin = noise / 2 * (0.8 * sizes + (1.96 * 0.6 + 2.24) * np.sqrt(sizes))  # by the triangle inequality alone
    assert found[:, 3].mean() < 0.75 * (found[:, 0] + margin).mean()


def _joined(parts):
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


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
