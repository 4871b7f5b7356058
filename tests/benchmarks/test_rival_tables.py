"""Tables beside rivals: verdicts are of differences split by split, and none is of a head with itself."""

import numpy as np
import pytest

from benchmarks import rival_tables
from benchmarks.raw_tables.interactions import EXACT, TITLE, TOLD
from benchmarks.rival_tables import Gap, decided, gap, worth

HARD = np.linspace(0.6, 0.9, 6)  # splits differ far more than the ways do
WOBBLE = np.array([0.002, -0.002] * 3)


def private(data, epsilon, lead, *, on):
    row = {"data": data, "epsilon": epsilon, "on": on, "splits": 6, "signal": 99.6}
    for score, sign in (("aucs", 1), ("losses", -1)):
        row[f"ours, {score}"] = [*(HARD + sign * lead)]
        row |= {f"{rival}, {score}": [*(HARD + WOBBLE)] for rival in ("DP-EBM", "trees", "trees, tuned")}
        if on:
            row[f"no pairs, {score}"] = [*(HARD + WOBBLE)]
    return row


def told(data, epsilon, lead):
    row = {"data": data, "epsilon": epsilon}
    for score, sign in (("aucs", 1), ("losses", -1)):
        row |= {f"eighths, {score}": [*HARD], f"finer ends, {score}": [*(HARD + sign * lead)]}
    return row


def exact(data, lead):
    scores = {"boosting": HARD + lead, "boosting, no pairs": HARD + WOBBLE}
    return {"data": data} | {f"{way}, {score}": [*each] for way, each in scores.items() for score in ("aucs", "losses")}


@pytest.fixture(autouse=True)
def saved(monkeypatch):
    found = {
        EXACT: [exact("flat", 0.001), exact("lending", 0.05)],
        TITLE: [
            private("flat", 1.0, 0.0, on=False),
            private("lending", 1.0, 0.003, on=True),
            private("flat", 3.0, -0.003, on=True),
        ],
        TOLD: [told("flat", 1.0, -0.02), told("lending", 1.0, 0.02), told("lending", 8.0, 0.02)],
    }
    monkeypatch.setattr(rival_tables, "results", lambda name: found)
    return found


def test_a_side_is_by_one_standard_error():
    assert [Gap(mean, 0.01).side for mean in (0.011, 0.009, -0.009, -0.011)] == [1, 0, 0, -1]


def test_more_is_better_for_both_scores(saved):
    ahead, behind = saved[TITLE][1], saved[TITLE][2]
    for score in ("aucs", "losses"):
        assert gap(ahead, "DP-EBM", score).mean == pytest.approx(0.003)
        assert gap(behind, "DP-EBM", score).mean == pytest.approx(-0.003)
        assert gap(ahead, "DP-EBM", score).error == pytest.approx(0.0022 / 6**0.5, rel=0.01)
        assert (gap(ahead, "trees", score).side, gap(behind, "no pairs", score).side) == (1, -1)
    assert gap(ahead, "boosting", "aucs").mean == pytest.approx(0.003 - 0.05)


def test_the_same_head_is_not_compared_with_itself(saved):
    assert gap(saved[TITLE][0], "no pairs", "aucs") is None
    lines = rival_tables.TABLES["raw_tables_rivals_aucs"]()
    assert [line[:2] for line in lines[1:]] == [["**lending** *", "1"], ["flat", "1"], ["flat", "3"]]
    assert lines[0][4:] == ["without pairs", "DP-EBM", "trees", "trees, tuned", "boosting, no privacy"]
    assert [line[4] for line in lines[1:]] == ["+.003 ± .001", "same head", "**-.003 ± .001**"]


def test_pairs_decide_where_interactions_are_worth_a_hundredth():
    assert worth("lending").mean == pytest.approx(0.05)
    assert (decided("flat"), decided("lending")) == (False, True)


def test_verdicts_are_counted_by_rival_epsilon_and_group():
    head, *lines = rival_tables.raw_tables_rivals_counted()
    assert head[2:4] == ["all tables: AUC", "all tables: log loss"]
    found = {tuple(line[:2]): line[2:] for line in lines}
    assert found["DP-EBM", "1"] == ["1 / 1 / 0"] * 2 + ["1 / 0 / 0"] * 2 + ["0 / 1 / 0"] * 2
    assert found["without pairs", "1"] == ["1 / 0 / 0"] * 4 + ["0 / 0 / 0"] * 2
    assert found["trees", "3"] == ["0 / 0 / 1"] * 2 + ["0 / 0 / 0"] * 2 + ["0 / 0 / 1"] * 2


def test_finer_ends_are_compared_where_rivals_were_measured():
    head, *lines = rival_tables.raw_tables_finer_ends()
    assert head[3:] == [
        "AUC: over eighths",
        "AUC: over trees, tuned",
        *[each.replace("AUC", "log loss") for each in head[3:5]],
    ]
    assert lines == [
        ["**lending** *", "1", "100", "+.020 ± .000", "+.020 ± .001", "+.0200 ± .0000", "+.0200 ± .0009"],
        ["flat", "1", "100", "**-.020 ± .000**", "**-.020 ± .001**", "**-.0200 ± .0000**", "**-.0200 ± .0009**"],
    ]
