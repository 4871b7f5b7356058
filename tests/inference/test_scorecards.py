"""Scores of a card are the head's own, bands cover the noise, and the query gives the same numbers."""

import sqlite3
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import privstats as ps
from benchmarks.inference import card_bands
from benchmarks.probability_sentences import cards_ratio
from privstats import randomness
from privstats.inference.cell_design import Intervals
from privstats.inference.row_lengths import Lengths
from privstats.inference.scorecard_points import linear_scores

COLUMNS = (
    ps.Numeric("age", (40.0, 65.0), gaps=(-9,)),
    ps.Categories("ward", ("A", "B", "it's"), gaps=("?",)),
    ps.Truth("smoker"),
    ps.Dates("admitted", (18262.0, 18779.0)),
    ps.Categories("stage", (1, 2, 3), ordered=True),
)
CELLS = ps.Cells(COLUMNS, ramp=True)
ODD = {
    "age": [39.99, 40, 65, None, -9, "70", "old", 0.1 + 0.2],
    "ward": ["A", " B ", "it's", "?", None, "C", "a", 3],
    "smoker": [True, 0, 1, None, "TRUE", "no", 2, "false"],
    "admitted": ["2019-12-31", "2020-01-01", "2021-06-01", None, "03/04/2020", "2022-01-01T10:00:00", "x", ""],
    "stage": [1, 2, 3, None, "2", 4, "x", 1.0],
}


def _table(n: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(55, 15, n),
            "ward": rng.choice(["A", "B", "it's", "D"], n),
            "smoker": rng.integers(0, 2, n),
            "admitted": pd.Timestamp("2019-06-01") + pd.to_timedelta(rng.integers(0, 1_000, n), unit="D"),
            "stage": rng.integers(1, 4, n),
        }
    )
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    score = 0.05 * (table["age"].fillna(55) - 55) + table["smoker"] + 0.7 * (table["stage"] == 3) - 1
    return table, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "ill", "well")


def _schema(**given: Any) -> ps.ClassSchema:
    return ps.ClassSchema(2, CELLS.width, "NAB", 1.0, transform=(CELLS,), class_names=("well", "ill"), **given)


def _exact(n: int = 400) -> tuple[pd.DataFrame, ps.Release, Any]:
    table, y = _table(n)
    release = ps.Release.exact(_schema(), ps.measure(_schema(), table, y))
    return table, release, ps.heads.LDA().fit_release(release)


def _noisy(n: int, epsilon: float, seed: int) -> tuple[ps.Release, Any]:
    table, y = _table(n)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    release = ps.private_release(
        _schema(),
        privacy,
        table,
        y,
        ledger="uncharged",
        rng=randomness.seeded(seed),
        allow_reproducible=True,
        max_records=n,
    )
    return release, ps.heads.LDA().fit_release(release)


def _course(n: int, seed: int) -> tuple[list[ps.Release | None], Any]:
    table, y = _table(n)
    plan = ps.Plan(
        schema=_schema(),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=2 * n),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6),
    )
    course = ps.Rounds.within(plan, 4, expected_records=n)
    shards = [(table.iloc[k::2], y[k::2]) for k in range(2)]
    releases = ps.simulate(course, shards, rng=randomness.seeded(seed))
    return releases, ps.heads.RefinedSoftmax().fit_releases(releases)


def _chances(head: Any, table: Any) -> Any:
    return softmax(head.rule_.scores(CELLS.apply(CELLS.codes(table))), axis=1)


def _flat(card: ps.inference.Scorecard, name: str) -> Any:
    return np.concatenate([np.atleast_2d(getattr(column, name))[0] for column in card.columns])


def test_a_scorecard_says_which_probability_its_base_is() -> None:
    _, release, head = _exact()
    card = ps.inference.scorecard(head, release)
    chance = 1 / (1 + np.exp(-card.base[0]))
    assert f"probability of {chance:.1%}" in " ".join(card.summary().foot)


def test_points_add_up_to_the_scores_of_a_linear_head() -> None:
    table, release, head = _exact()
    card = ps.inference.scorecard(head, release)
    assert card.exact
    assert card.outcomes == ("ill",)
    assert np.allclose(card.predict_proba(table), _chances(head, table), atol=1e-12)
    shuffled = table[list(reversed(table.columns))].assign(name="not read")
    assert (card.scores(shuffled) == card.scores(table)).all()
    odd = pd.DataFrame(ODD)
    assert np.allclose(card.predict_proba(odd), _chances(head, odd), atol=1e-12)


def test_steps_of_a_ramp_are_told_as_the_intervals_between_cuts() -> None:
    _, release, head = _exact()
    age = ps.inference.scorecard(head, release).columns[0]
    assert age.cells == ("< 40", "40 to < 65", ">= 65", "missing")
    assert age.points.shape[1] == 18 + 1 - 2 + 1  # 16 even steps share both outer cuts
    assert age.intervals.of_codes.tolist() == [0] + [1] * 15 + [2, 3]


@pytest.mark.parametrize(
    ("edges", "names"),
    [
        ((16.6640625, 22.0), ("< 16.66", "16.66 to < 22", ">= 22")),
        ((1000.0, 1000.0078125), ("< 1000", "1000 to < 1000.008", ">= 1000.008")),
        ((1 / 3,), ("< 0.3333", ">= 0.3333")),
    ],
)
def test_cut_points_are_named_in_as_many_digits_as_tell_them_apart(edges: Any, names: tuple[str, ...]) -> None:
    assert Intervals.of(ps.Numeric("x", edges), np.array(edges)).names == (*names, "missing")


def test_an_explanation_adds_up_and_names_the_cells() -> None:
    table, release, head = _exact()
    card = ps.inference.scorecard(head, release)
    record = dict.fromkeys(ODD)
    explained = card.explain(record)
    assert explained.score == pytest.approx(card.scores({name: [value] for name, value in record.items()})[0, 0])
    assert {cell for _, cell, _ in explained.parts} == {"missing"}
    assert "log odds of ill" in str(explained)
    assert "age missing" in str(explained)
    sizes = [abs(points) for *_, points in card.explain(table.iloc[0]).parts]
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(ps.DataError, match="must be one of ill"):
        card.explain(record, "dead")
    with pytest.raises(ps.DataError, match="a row of a frame"):
        card.explain([1, 2])


def test_shares_are_those_of_the_records_and_points_have_mean_0() -> None:
    table, release, head = _exact()
    card = ps.inference.scorecard(head, release)
    places = CELLS.indices(CELLS.codes(table))
    for j, column in enumerate(card.columns):
        steps = np.bincount(places[:, j], minlength=len(column.intervals.of_codes)) / len(table)
        counted = np.bincount(column.intervals.of_codes, steps)
        assert np.allclose(column.shares, counted, atol=1e-3)  # whole entries: 2**-12
        assert (column.filled == (counted > 0)).all()
        assert abs(column.points[0] @ steps) < 1e-3
    assert (_flat(card, "low") == _flat(card, "high")).all()


def test_where_in_its_cell_a_value_lies_moves_no_share() -> None:
    """A ramp tells the steps of one cell apart, and shares count cells."""
    cells = ps.Cells((ps.Numeric("age", (0.0, 50.0, 100.0)), ps.Truth("smoker")), ramp=True)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    for within in (1.0, 25.0, 49.0):
        table = {"age": [-1.0] * 10 + [within] * 30 + [50.0 + within] * 40 + [101.0] * 20, "smoker": [0, 1] * 50}
        release = ps.Release.exact(schema, ps.measure(schema, table, [0, 0, 1, 1] * 25))
        card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
        np.testing.assert_allclose(card.columns[0].shares, [0.1, 0.3, 0.4, 0.2, 0.0], atol=2e-3)


def test_noise_has_one_card_per_release_and_wider_bands_at_less_budget() -> None:
    release, head = _noisy(2_000, 1.0, seed=1)
    card, again = (ps.inference.scorecard(head, release) for _ in range(2))
    assert (_flat(card, "low") == _flat(again, "low")).all()
    wide = [_flat(card, "high") - _flat(card, "points")]
    release, head = _noisy(2_000, 8.0, seed=1)
    card = ps.inference.scorecard(head, release)
    assert (_flat(card, "high") - _flat(card, "points")).mean() < wide[0].mean()
    assert ((_flat(card, "high") - _flat(card, "low")) > 0).all()


def test_noise_alone_seldom_fills_a_cell() -> None:
    """Three deviations of it: of the cells that hold nothing one in some hundreds."""
    found = []
    for seed in range(4):
        release, head = _noisy(2_000, 1.0, seed)
        card = ps.inference.scorecard(head, release, draws=2)
        found += [card.columns[j].filled[-1] for j in range(1, len(card.columns))]  # no gap is there
    assert sum(found) <= 1


def test_a_cell_that_noise_may_have_filled_tells_nothing() -> None:
    release, head = _noisy(2_000, 1.0, seed=2)
    card = ps.inference.scorecard(head, release)
    smoker = card.columns[2]
    assert smoker.cells[-1] == "missing"
    assert not smoker.filled[-1]
    assert not smoker.reported[0, -1]
    assert smoker.filled[:-1].all()
    assert "no promise" in card.promise  # of a seeded generator
    lines = [line for line in str(card).splitlines() if "missing" in line]
    assert any("(" in line for line in lines)


def _cover(fitted: list[tuple[Any, Any]]) -> float:
    """How often bands hold the mean curve of many draws, over the cells that hold records."""
    cards = [ps.inference.scorecard(head, releases) for releases, head in fitted]
    points, low, high = (np.stack([_flat(card, name) for card in cards]) for name in ("points", "low", "high"))
    filled = np.stack(
        [np.concatenate([column.filled[column.intervals.of_codes] for column in card.columns]) for card in cards]
    )
    curve = points.mean(axis=0)
    return float(((low <= curve) & (curve <= high))[filled].mean())


@pytest.mark.ci
def test_the_bands_of_a_closed_form_have_the_spread_of_its_noise() -> None:
    assert _cover([_noisy(5_000, 1.0, seed) for seed in range(12)]) >= 0.9


def test_bands_hold_what_the_same_records_give_without_noise() -> None:
    """A head that knows its noise moves points by more than they spread: of spread alone bands held three quarters."""
    found = card_bands.held(5_000, 1.0, numbers=8, cuts=3, runs=3, draws=40)
    assert found["held"] >= 0.88
    assert found["half width"] < 4 * found["off"]


@pytest.mark.nightly
def test_the_bands_of_rounds_have_the_spread_of_their_noise() -> None:
    assert _cover([_course(5_000, seed) for seed in range(24)]) >= 0.9


def _odds(head: Any, table: Any) -> Any:
    return head.predict_log_proba(table) @ [-1, 1]


def test_a_card_of_rounds_has_the_score_of_the_head_and_states_what_points_alone_miss() -> None:
    table, _ = _table(3_000)
    releases, head = _course(3_000, seed=0)
    card = ps.inference.scorecard(head, releases, draws=2)
    wanted = _odds(head, table)
    np.testing.assert_allclose(card.scores(table)[:, 0], wanted, atol=1e-10)
    explained = [card.explain(table.iloc[place]) for place in range(20)]
    np.testing.assert_allclose([each.score for each in explained], wanted[:20], atol=1e-10)
    assert len({round(each.factor, 3) for each in explained}) > 5
    assert not card.exact
    text = " ".join(str(card).split())
    assert "The sum of points is not the head's score" in text
    assert f"on five tables up to {cards_ratio():.1f} times as much" in text
    assert card.discrepancies is not None
    places = CELLS.indices(CELLS.codes(table))
    alone = card.base[0] + sum(column.points[0, places[:, j]] for j, column in enumerate(card.columns))
    missed = np.sqrt(np.square(alone - wanted).mean())
    assert card.discrepancies.total[0] == pytest.approx(missed, rel=0.2)  # these columns are independent
    smoker = card.columns[2]
    for cell in (0, 1):
        inside = smoker.intervals.of_codes[places[:, 2]] == cell
        missed = np.sqrt(np.square(alone - wanted)[inside].mean())
        assert smoker.discrepancy[0, cell] == pytest.approx(missed, rel=0.3)
    rows = card.to_frame()
    assert (rows["discrepancy"] > 0).all()


def test_the_query_of_a_card_of_rounds_computes_the_score_of_the_head() -> None:
    table, _ = _table(400)
    releases, head = _course(3_000, seed=0)
    card = ps.inference.scorecard(head, releases, draws=2)
    typed = table.assign(admitted=table["admitted"].dt.strftime("%Y-%m-%d"))
    with sqlite3.connect(":memory:") as base:
        typed.to_sql("visits", base, index=False)
        found = pd.read_sql_query(card.sql("visits"), base)
    np.testing.assert_allclose(found["log_odds"], _odds(head, table), atol=1e-10)


def test_what_no_query_computes_is_refused() -> None:
    table, _ = _table(300)
    schema = ps.ClassSchema(3, CELLS.width, "NAB", 1.0, transform=(CELLS,))
    release = ps.Release.exact(schema, ps.measure(schema, table, table["stage"].to_numpy() - 1))
    card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
    with pytest.raises(ps.errors.HeadError, match="use heads.to_onnx"):
        card.sql("visits")
    cells = ps.Cells(tuple(ps.Numeric(f"x{j}", tuple(map(float, range(7)))) for j in range(20)))
    lengths = Lengths(np.zeros(cells.width), np.eye(cells.width), 1.0)
    _, release, head = _exact()
    wide = replace(ps.inference.scorecard(head, release), cells=cells, lengths=lengths, columns=())
    with pytest.raises(ps.errors.HeadError, match="a query supports 160"):
        wide.sql("visits")


@pytest.mark.parametrize(("then", "head"), [(None, "LDA"), ("centred", "LDA"), ("rounds", "RefinedSoftmax")])
def test_cards_are_read_behind_cut_points_and_a_mean(then: str | None, head: str) -> None:
    table, y = _table(3_000)
    cells = ps.Cells((ps.Numeric("age"), ps.Truth("smoker"), ps.Categories("stage", (1, 2, 3))))
    plan = ps.Plan(
        schema=ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,), class_names=("well", "ill")),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=6_000),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6),
    )
    course = ps.Binned.within(plan, then, expected_records=3_000)
    releases = ps.simulate(course, [(table.iloc[k::2], y[k::2]) for k in range(2)], rng=randomness.seeded(3))
    fitted = getattr(ps.heads, head)()
    fitted = (fitted.fit_releases if then == "rounds" else fitted.fit_release)(releases)
    card = ps.inference.scorecard(fitted, releases, draws=2)
    np.testing.assert_allclose(card.scores(table)[:, 0], _odds(fitted, table), atol=1e-9)
    assert card.exact == (then is None)
    counted = np.bincount(table["stage"], minlength=4)[1:] / len(table)
    assert np.allclose(card.columns[2].shares[:3], counted, atol=0.03)


def test_three_classes_have_a_score_each() -> None:
    table, _ = _table(300)
    y = table["stage"].to_numpy() - 1
    schema = ps.ClassSchema(3, CELLS.width, "NAB", 1.0, transform=(CELLS,))
    release = ps.Release.exact(schema, ps.measure(schema, table, y))
    head = ps.heads.LDA().fit_release(release)
    card = ps.inference.scorecard(head, release)
    assert card.outcomes == ("0", "1", "2")
    assert np.allclose(card.predict_proba(table), _chances(head, table), atol=1e-12)
    with pytest.raises(ps.DataError, match="outcome must be one of"):
        card.explain(table.iloc[0])
    assert card.explain(table.iloc[0], "2").outcome == "2"
    assert len(card.to_frame()) == 3 * sum(len(column.intervals.of_codes) for column in card.columns)


def test_dollars_in_names_are_no_formula() -> None:
    cells = ps.Cells((ps.Categories("$\\q$", ("b\\", "$\\w$")), ps.Truth("t")))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    table = {"$\\q$": ["b\\", "$\\w$"] * 10, "t": [0, 1, 1, 0] * 5}
    release = ps.Release.exact(schema, ps.measure(schema, table, [0, 1] * 10))
    card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
    card.plot().draw_without_rendering()
    card.explain({"$\\q$": "$\\w$", "t": 1}).plot().draw_without_rendering()


def test_the_query_gives_the_same_scores_of_a_typed_table() -> None:
    table, release, head = _exact()
    card = ps.inference.scorecard(head, release)
    table.loc[0, "age"] = -9
    typed = table.assign(admitted=table["admitted"].dt.strftime("%Y-%m-%d"))
    with sqlite3.connect(":memory:") as base:
        typed.to_sql('the "visits"', base, index=False)
        found = pd.read_sql_query(card.sql('"the ""visits"""'), base)
    assert np.allclose(found["log_odds"], card.scores(table)[:, 0], atol=1e-8)


def _refusal(head: Any, releases: Any) -> str:
    with pytest.raises(ps.ReleaseError) as refused:
        ps.inference.scorecard(head, releases)
    return str(refused.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("head", [ps.heads.LDA(), ps.heads.RefinedSoftmax()], ids=["LDA", "RefinedSoftmax"])
def test_a_scorecard_names_the_attribute_with_the_releases_of_a_private_fit(head: Any) -> None:
    """`release_` is there too, after a course of one party, and `releases_` alone holds all of it."""
    table, y = _table(400)
    terms: Any = {"epsilon": 8.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
    head.fit_private(table, y, columns=COLUMNS, classes=("well", "ill"), expected_records=400, **terms)
    assert "head.releases_" in _refusal(head, getattr(head, "release_", None))
    assert ps.inference.scorecard(head, head.releases_, draws=2).outcomes == (str(head.classes_[1]),)


def test_a_scorecard_names_the_one_release_of_a_private_fit() -> None:
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    terms: Any = {"epsilon": 8.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
    head = ps.heads.LDA().fit_private(X, y, clip_norm=2.0, classes=(0, 1), **terms)
    assert "head.release_" in _refusal(head, None)


def test_other_releases_and_other_heads_are_refused() -> None:
    table, release, head = _exact()
    _, y = _table(400)
    other = ps.Release.exact(_schema(), ps.measure(_schema(), table.iloc[:100], y[:100]))
    with pytest.raises(ps.ReleaseError, match="not fitted on these releases"):
        ps.inference.scorecard(head, other)
    assert "in the order in which" in _refusal(head, None)
    schema = ps.ClassSchema(2, CELLS.width, "NAS", 1.0, transform=(CELLS,), class_names=("well", "ill"))
    curved = ps.Release.exact(schema, ps.measure(schema, table, y))
    with pytest.raises(ps.errors.HeadError, match="linear scores"):
        ps.inference.scorecard(ps.heads.QDA().fit_release(curved), curved)
    plain = ps.ClassSchema(2, 2, "NAB", 2.0)
    sums = ps.Release.exact(plain, ps.measure(plain, [[0.0, 1.0], [1.0, 0.0]] * 3, [0, 1] * 3))
    with pytest.raises(ps.ReleaseError, match="declared columns"):
        ps.inference.scorecard(ps.heads.LDA().fit_release(sums), sums)


def test_pictures_are_drawn_of_all_columns_or_one(tmp_path: Any) -> None:
    table, release, head = _exact()
    card = ps.inference.scorecard(head, release)
    assert [axes.get_title(loc="left") for axes in card.plot(tmp_path / "all.svg").axes] == [c.name for c in COLUMNS]
    assert len(card.plot(column="age").axes) == 1
    with pytest.raises(ps.DataError, match="no column of the card"):
        card.plot(column="agee")
    assert len(card.explain(table.iloc[0]).plot(tmp_path / "one.png").axes[0].patches) == len(COLUMNS)
    assert (tmp_path / "all.svg").stat().st_size > 1_000 < (tmp_path / "one.png").stat().st_size


def test_rounds_of_a_module_are_refused_whatever_its_rule() -> None:
    plan = ps.Plan(
        schema=_schema(),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=2_000),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6),
    )
    table, y = _table(1_000)
    course = ps.Rounds.within(plan, 2, expected_records=1_000, module="adapter/2")
    releases = ps.simulate(course, [(table.iloc[k::2], y[k::2]) for k in range(2)], rng=randomness.seeded(0))
    _, fitted = _course(1_000, seed=0)
    with pytest.raises(ps.errors.HeadError, match="without a module"):
        linear_scores(fitted.rule_, [each for each in releases if each is not None])
    with pytest.raises(ps.errors.HeadError, match="without a module"):
        ps.inference.scorecard(ps.heads.RefinedSoftmax().fit_releases(releases), releases)


def test_the_query_reads_a_declared_pair() -> None:
    cells = ps.Cells((ps.Truth("on", values=("it's off", "on")), ps.Truth("old", values=(2, 1))))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    table = pd.DataFrame({"on": ["it's off", "on", "on", None, "on"] * 8, "old": [1, 2, 2, 1, None] * 8})
    release = ps.Release.exact(schema, ps.measure(schema, table, [0, 1, 1, 0, 1] * 8))
    card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
    with sqlite3.connect(":memory:") as base:
        table.to_sql("visits", base, index=False)
        found = pd.read_sql_query(card.sql("visits"), base)
    assert np.allclose(found["log_odds"], card.scores(table)[:, 0], atol=1e-8)


@pytest.mark.filterwarnings("ignore")
def test_the_query_states_by_column_what_the_table_must_hold() -> None:
    """Texts in a declared form are no dates or numbers to an engine, and times of UTC are no times of Berlin."""
    day: Any = ("2019-03-28",)
    columns = (
        ps.Dates("seen", day, written="ISO in Europe/Berlin"),
        ps.Dates("left", day),
        ps.Dates("born", (-3653.0,), written="DD.MM.YYYY"),
        ps.Numeric("crp", (5.0,), suffix="mg/l", censored=True),
        ps.Numeric("age*/", (40.0,)),
        ps.Truth("smoker"),
        ps.Categories("ward", ("A", "B", "C")),
    )
    cells = ps.Cells(columns)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    late, early = "2019-03-27T23:30:00+00:00", "2019-03-27T22:30:00+00:00"
    raw = pd.DataFrame(
        {
            "seen": [late, early, late, early, early, None] * 8,
            "left": [late, "2019-03-28T00:30:00+00:00", early, None] * 12,
            "born": ["31.12.1959", "01.01.1960", "2.5.1971"] * 16,
            "crp": ["<5", "5 mg/l", "4 mg/l", "7"] * 12,
            "age*/": [39, 40, 71] * 16,
            "smoker": ["yes", "no", None, "no"] * 12,
            "ward": ["A", "B", "C", "C", "D", "A"] * 8,
        }
    )
    release = ps.Release.exact(schema, ps.measure(schema, raw, np.random.default_rng(0).integers(0, 2, len(raw))))
    card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
    query, times = card.sql("visits"), "of such a type or ISO texts like 2020-01-31T09:30:00"
    held, _ = query.removeprefix("SELECT /* columns must hold: ").split(" */ t.*", 1)
    assert held.split("; ") == [
        f'"seen" dates, or times in Europe/Berlin without a zone, {times}',
        f'"left" dates, or times in UTC without a zone, {times}',
        f'"born" dates, or times in UTC without a zone, {times}',
        '"crp" numbers, without suffix, just below or above a limit',
        '"age* /" numbers',
        '"smoker" 1 or 0',
        '"ward" values as declared',
        "NULL or a declared code where a value is missing",
    ]
    local = {late: "2019-03-28T00:30:00", early: "2019-03-27T23:30:00"}
    typed = raw.assign(
        seen=raw["seen"].map(local),
        left=raw["left"].str.removesuffix("+00:00"),
        born=raw["born"].map({"31.12.1959": "1959-12-31", "01.01.1960": "1960-01-01", "2.5.1971": "1971-05-02"}),
        crp=raw["crp"].map({"<5": 4.99, "5 mg/l": 5.0, "4 mg/l": 4.0, "7": 7.0}),
        smoker=raw["smoker"].map({"yes": 1, "no": 0}),
    )
    with sqlite3.connect(":memory:") as base:
        typed.to_sql("visits", base, index=False)
        found = pd.read_sql_query(query, base)
    np.testing.assert_allclose(found["log_odds"], card.scores(raw)[:, 0], atol=1e-10)
    utc = typed.assign(seen=raw["seen"].str.removesuffix("+00:00"))
    with sqlite3.connect(":memory:") as base:
        utc.to_sql("visits", base, index=False)
        assert not np.allclose(pd.read_sql_query(query, base)["log_odds"], found["log_odds"])
