"""A cell's verdict is what its numbers say, and nothing that a paper did not print gets in."""

import json
import sys

import pytest

from benchmarks import paper_tables
from benchmarks.papers import running
from benchmarks.papers.cells import WITHIN, Published, Sheet
from benchmarks.papers.gaps import above, gap_sheet
from benchmarks.papers.running import paper_command, points

SHEET = Sheet("a paper", "Table 1", "error", better="lower", trials=5)


@pytest.mark.parametrize(
    ("text", "value", "rounding", "spread"),
    [
        ("0.0103", 0.0103, 0.00005, None),
        ("93.5 ± 0.4", 93.5, 0.05, 0.4),
        ("93.50±0.4", 93.5, 0.005, 0.4),
        ("500", 500, 0.5, None),
        ("+2.99", 2.99, 0.005, None),
        ("<1", 1, 0.5, None),
    ],
)
def test_a_printed_number_is_read_with_its_rounding_and_its_spread(text, value, rounding, spread):
    assert Published.of(text) == Published(text, value, pytest.approx(rounding), spread)


@pytest.mark.parametrize("text", ["", "about 3", "1.2.3", "± 3", ">1"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="no printed number"):
        Published.of(text)


def test_a_value_that_no_seed_changes_agrees_up_to_rounding_alone():
    assert SHEET.cell("r", "c", "0.82", 0.825).verdict == WITHIN
    differing = SHEET.cell("r", "c", "0.82", 0.8251, why="another unit")
    assert (differing.verdict, differing.lost) == ("differs: another unit", True)
    assert not SHEET.cell("r", "c", "0.82", 0.81).lost
    assert not SHEET.cell("r", "c", "0.82", 0.8251, peer=True).lost


def test_two_standard_errors_of_the_difference_are_allowed():
    """Three seeds of deviation 1 have the error .577, five trials of the same .447: 1.46 and the rounding."""
    values = [9.0, 10.0, 11.0]
    assert SHEET.cell("r", "c", "8.5", values).verdict == WITHIN
    assert SHEET.cell("r", "c", "8.4", values).verdict != WITHIN
    assert SHEET.cell("r", "c", "8.4 ± 3", values).verdict == WITHIN
    assert SHEET.cell("r", "c", "8.5 ± 0.1", [10.0, 10.0, 10.0]).verdict != WITHIN


def test_worse_than_another_system_of_the_same_run_is_lost_where_a_direction_is_better():
    losing = SHEET.cell("r", "c", None, [2.0, 2.1], rival=[1.0, 1.1], why="too few records")
    assert (losing.verdict, losing.lost) == ("loses: too few records", True)
    assert not SHEET.cell("r", "c", None, [1.0, 1.1], rival=[2.0, 2.1]).lost
    assert not SHEET.cell("r", "c", None, [2.0, 1.0], rival=[1.0, 1.4]).lost
    accuracy = Sheet("a paper", "Table 2", "accuracy", better="higher")
    assert accuracy.cell("r", "c", "90.0", 80.0).lost
    assert not Sheet("a paper", "Table 3", "epsilon").cell("r", "c", "1.0", 9.0).lost


def test_numbers_of_two_backbones_are_not_compared():
    cell = SHEET.nearest("r", "c", "64.19", [10.0, 11.0], "digits of five sources")
    assert cell.verdict == "cannot be had here: nearest is digits of five sources"
    assert not cell.lost
    assert SHEET.nearest("r", "c", "64.19", [10.0, 11.0], "digits", rival=[8.0, 8.2]).lost
    assert not SHEET.nearest("r", "c", "64.19", [10.0, 11.0], "digits", rival=[10.0, 10.2]).lost
    missing = SHEET.absent("r", "c", "64.19", "the data set")
    assert missing.as_row() | {"ours": None, "se": None, "seeds": None} == missing.as_row()


def test_gaps_are_paired_and_printed_as_the_numbers_that_they_are_between():
    gaps = gap_sheet(SHEET, "base")
    assert gaps.table == "Table 1, points above base"
    found = {"base": [1.0, 5.0], "other": [2.1, 6.1], "ours": [0.0, 0.0]}
    (cell,) = above(gaps, "base", {"base": "60.0±0.3", "other": "61.10±0.40"}, found, "c")
    assert cell.published.text == "+1.10±0.50"
    assert cell.ours.mean == pytest.approx(1.1)
    assert cell.ours.error == pytest.approx(0)
    assert cell.verdict == WITHIN
    (differs,) = above(gaps, "base", {"base": "60", "other": "70"}, {"base": [1.0], "other": [2.0, 2.2]}, "c")
    assert (differs.published.text, differs.verdict, differs.lost) == ("+10", "differs: another backbone", False)


def test_rows_hold_what_was_printed_and_what_came_out():
    title, (row,) = SHEET.rows([SHEET.cell("FedAvg-100", "MSE", "0.0103", [0.0102, 0.0104])])
    assert title == "a paper, Table 1: error"
    assert row == {
        "row": "FedAvg-100",
        "column": "MSE",
        "published": "0.0103",
        "ours": pytest.approx(0.0103),
        "se": pytest.approx(0.0001),
        "seeds": 2,
        "verdict": WITHIN,
        "lost": False,
    }
    assert points([row], "MSE") == [("FedAvg-100", pytest.approx(0.0103))]
    assert points([row], "MSE", "published") == [("FedAvg-100", 0.0103)]
    assert points([row], "time") == []


@pytest.mark.ci
def test_figures_are_drawn_from_the_rows_of_the_run(tmp_path, monkeypatch, capsys):
    seen = {}

    def draw(axes, tables):
        seen.update(tables)
        axes.plot([1, 2])

    monkeypatch.setattr(sys, "argv", ["papers", "--quick", "--figures", str(tmp_path / "figures")])
    rows = [SHEET.cell("r", "c", "1.0", 1.0).as_row()]
    paper_command("made up", "about", {"a part": lambda options: iter([("a table", rows)])}, {"one": draw})
    assert seen == {"a table": rows}
    assert (tmp_path / "figures" / "one.png").read_bytes().startswith(b"\x89PNG")
    assert "a table" in capsys.readouterr().out


def test_some_parts_are_measured_and_the_others_kept(tmp_path, monkeypatch, capsys):
    seen = {}
    monkeypatch.setattr(
        running, "results", lambda name: {"machine": {"cores": 64}, "one": [{"x": 1}], "two": [{"x": 2}]}
    )
    file = tmp_path / "results.json"
    monkeypatch.setattr(sys, "argv", ["papers", "--only", "second", "--json", str(file), "--figures", str(tmp_path)])
    parts = {"first": lambda options: pytest.fail("was not asked for"), "second": lambda options: [("two", [{"x": 3}])]}
    paper_command("made up", "about", parts, {"drawn": lambda axes, tables: seen.update(tables)})
    assert json.loads(file.read_text()) == {"machine": {"cores": 64}, "one": [{"x": 1}], "two": [{"x": 3}]} == seen
    assert "one" not in capsys.readouterr().out


@pytest.fixture
def made_up(monkeypatch):
    def put(**tables):
        monkeypatch.setattr(paper_tables, "results", lambda name: {"machine": {}, **tables[name]})

    return put


def test_a_page_has_what_was_printed_beside_ours_with_losses_bold_and_every_reason_once(made_up):
    cells = [
        SHEET.cell("10", "MSE", "0.0090", [0.0105, 0.0107], why="below the noise"),
        SHEET.cell("10", "MB", "0.82", 0.824),
        SHEET.cell("20", "MSE", "0.0094", [0.0105, 0.0107], why="below the noise"),
        SHEET.absent("20", "MB", "0.9", "the bytes"),
        SHEET.cell("50", "MSE", "0.0094", [0.0105, 0.0107], why="below the noise"),
        SHEET.absent("50", "MB", "0.9", "the bytes"),
        SHEET.cell("60", "MB", None, 0.0),
    ]
    title, rows = SHEET.rows(cells)
    made_up(one={title: rows})
    assert paper_tables.from_results("one", "a paper, Table 1") == [
        ["published / here", "MSE", "MB", "where it differs, and why"],
        ["10", "0.0090 / **0.01060 ± 0.00010**", "0.82 / 0.824", "MSE: below the noise"],
        ["20", "0.0094 / **0.01060 ± 0.00010**", "0.9 / –", "as at 10; MB: the bytes"],
        ["50", "0.0094 / **0.01060 ± 0.00010**", "0.9 / –", "as at 20"],
        ["60", "", "0", ""],
    ]
    assert paper_tables.from_results("one", "a paper", leave_out=["MB"])[-1][0] == "50"
    assert paper_tables.from_results("one", "a paper", leave_out=["MSE"])[1] == ["10", "0.82 / 0.824", ""]
    made_up(one={title: rows[1:2]})
    assert paper_tables.from_results("one", "a paper") == [["published / here", "MB"], ["10", "0.82 / 0.824"]]
    with pytest.raises(KeyError, match="no table of one"):
        paper_tables.from_results("one", "another")


def test_losses_are_collected_from_all_papers_with_their_reasons(made_up, monkeypatch, tmp_path):
    for name in ("papers.b", "papers.a", "peers"):
        (tmp_path / f"{name}.json").touch()
    monkeypatch.setattr(paper_tables, "RESULTS", tmp_path)
    lost = [SHEET.cell(row, "MSE", "0.0090", 0.02, why="below the noise") for row in ("10", "20")]
    also = SHEET.cell("30", "MB", None, 2.0, rival=1.0, why="a larger matrix")
    won = SHEET.cell("40", "MSE", "0.5", 0.1)
    title, rows = SHEET.rows([*lost, also, won])
    made_up(**{"papers.a": {title: rows, "plain": [{"lost": True}]}, "papers.b": {"plain": [{"x": 1}]}})
    assert paper_tables.losses() == [
        ["table", "where", "why"],
        ["a paper, Table 1", "MSE, at 10, 20", "below the noise"],
        ["", "MB, at 30", "a larger matrix"],
    ]


def test_a_loss_with_another_backbone_has_its_own_reason_and_columns_that_share_their_rows_stand_together(
    made_up, monkeypatch, tmp_path
):
    (tmp_path / "papers.a.json").touch()
    monkeypatch.setattr(paper_tables, "RESULTS", tmp_path)
    lost = [
        SHEET.nearest(row, column, "0.5", 2.0, "digits", rival=1.0, why="a smaller model")
        for row in ("set, alpha = 1", "set, alpha = 2")
        for column in ("MSE", "MB")
    ]
    other = SHEET.nearest("set, alpha = 2", "s", "0.5", 2.0, "digits")
    title, rows = SHEET.rows([*lost, other])
    made_up(**{"papers.a": {title: rows}})
    where = "MSE; MB, at set, alpha = 1 and set, alpha = 2"
    assert paper_tables.losses()[1:] == [["a paper, Table 1", where, "a smaller model"]]
    assert paper_tables.from_results("papers.a", "a paper")[2][-1] == "nearest is digits; MSE, MB: a smaller model"


def test_the_rounding_of_equal_values_is_no_error(made_up):
    made_up(one={"rows": [{"mean": 90.35714285714285, "se": 1e-14}]})
    assert paper_tables.from_results("one", "rows")[1] == ["90.4"]


def test_other_rows_stay_as_they_are_with_errors_behind_their_means(made_up):
    rows = [
        {"way": "a", "equal": True, "MSE": 0.0103, "se": 0.0001, "gain": 2.0, "gain, se": 0.5, "n": 1200, "none": None},
        {"way": "b", "equal": False, "MSE": 0.5, "se": 0.0, "gain": 3e-4, "gain, se": 0.0, "n": 0.35, "none": 1},
    ]
    made_up(one={"rows": rows})
    assert paper_tables.from_results("one", "rows") == [
        ["way", "equal", "MSE", "gain", "n", "none"],
        ["a", "yes", "0.01030 ± 0.00010", "2.00 ± 0.50", "1,200", "–"],
        ["b", "**no**", "0.5", "3.0e-04", "0.35", "1"],
    ]
