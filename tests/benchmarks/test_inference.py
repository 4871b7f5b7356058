"""The rows of the inference benchmarks: what is counted, and a peer that is not installed says so."""

from argparse import Namespace

import numpy as np
import pytest
from scipy.special import expit

from benchmarks import inference_tables, table
from benchmarks.inference import coverings, peers_of_sites, repeated, runs, stretched
from benchmarks.inference.coverings import Answer, Peer, compared, tallied
from privstats.errors import ReleaseError
from privstats.randomness import seeded

ONES = np.ones(2)


def test_told_missed_and_refused_are_shares_of_all_runs():
    answers = iter(
        [
            Answer(ONES, ONES - 0.5, ONES + 0.5, ONES),
            Answer(ONES, np.array([-np.inf, 2.0]), np.array([np.inf, 4.0]), ONES),
            None,
            Answer(ONES, ONES - 1.5, ONES + 1.5, ONES),
        ]
    )

    def answer(chance, rng):
        found = next(answers)
        if found is None:
            raise ReleaseError("too few records")
        return found

    row = tallied("cell", answer, 4)
    assert row["reported"] == pytest.approx(5 / 8)
    assert row["reported and missed"] == pytest.approx(1 / 8)
    assert row["worst parameter"] == pytest.approx(1 / 4)
    assert row["half width"] == 1.0


def test_all_ways_read_the_same_records_and_a_missing_package_is_said(monkeypatch):
    drawn = []

    def answer(world, rng):
        drawn.append(world)
        return Answer(ONES, None, None, ONES)

    ways = [Peer("a", "", None, 8, "all", answer), Peer("b", "", 1.0, 8, "all", answer)]
    rows = compared("title", lambda chance: float(chance.random()), ways, 3)
    assert drawn[:3] == drawn[3:]
    assert len(set(drawn)) == 3
    assert [row["reported and missed"] for row in rows] == [None, None]
    monkeypatch.setattr(coverings.importlib.util, "find_spec", lambda name: None)
    (row,) = compared("title", lambda chance: 0.0, [Peer("a", "statsmodels", None, 8, "all", answer)], 3)
    assert row["not run"] == "statsmodels is not installed"
    monkeypatch.setattr(table, "results", lambda name: {"machine": {}, "one: two": [row]})
    assert inference_tables.inference_peers()[1][:5] == ["one", "a", "statsmodels", "no noise", row["not run"]]


def test_further_runs_of_a_cell_add_to_those_that_are_stored():
    """Runs in two parts are the runs at once: no world is drawn twice."""

    def answer(chance, rng):
        estimate = chance.normal(size=2)
        return Answer(estimate, estimate - 0.5, estimate + np.array([0.5, np.inf]), np.zeros(2))

    cell = repeated.Cell("a cell", ("x", "y"), lambda: answer, (0.07, 500))
    whole = repeated.repeated(cell, 30)
    assert repeated.repeated(cell, 17, repeated.repeated(cell, 13)) == whole
    assert [row["reported"] for row in whole] == [1, 0]
    assert whole[0]["missed"] > whole[0]["above"] > 0
    assert whole[0]["low end"] < whole[0]["missed"] < whole[0]["high end"]
    assert whole[1]["missed"] == whole[1]["above"]


def test_the_published_formulas_of_sites_find_what_the_pooled_records_say():
    world = peers_of_sites.Sites.draw(20, 200, np.random.default_rng(0))
    exact = {peer.name: peer for peer in peers_of_sites.site_peers(20, 200, (8.0,)) if peer.epsilon is None}
    own = {name: peer.answer(world, seeded(0)) for name, peer in exact.items() if peer.package != "statsmodels"}
    dlmm, mixed = (next(own[name] for name in own if name.startswith(start)) for start in ("DLMM", "`mixed`"))
    error = (dlmm.high - dlmm.low) / 3.92
    assert (np.abs(dlmm.estimate - mixed.estimate) < 0.1 * error).all()
    fixed, average = own["`fixed_effects`, no noise"], own["DerSimonian-Laird (1986)"]
    assert (np.abs(fixed.estimate - average.estimate) < error).all()
    assert (np.abs(fixed.estimate - peers_of_sites.SLOPES) < 4 * error).all()


def test_odal_is_close_to_the_pooled_maximum():
    world = peers_of_sites.Sites.draw_binary(10, 400, np.random.default_rng(0))
    X, y, _ = world.pooled
    pooled = peers_of_sites._maximum(np.c_[np.ones(len(y)), X], y, np.zeros(3))
    found = peers_of_sites._odal(world, seeded(0))
    assert (np.abs(found.estimate - pooled) < 0.3 * (found.high - found.low) / 3.92).all()


def test_one_row_is_measured_between_those_that_are_stored(monkeypatch):
    monkeypatch.setattr(stretched, "EDGES", {"a": [("", each, 1, 1.0, None) for each in "xyz"], "b": []})
    monkeypatch.setattr(stretched, "covered", lambda *world, **_: world[1])
    monkeypatch.setattr(runs, "stored", lambda _: {"a": ["old x", "old y"]})
    options = Namespace(quick=False, runs=3, only="", row=1)
    assert list(stretched.tables(options)) == [("a", ["x", "old y"])]
    assert list(stretched.tables(Namespace(**{**vars(options), "row": 3}))) == [("a", ["old x", "old y", "z"])]
    monkeypatch.setattr(runs, "stored", lambda _: {})
    with pytest.raises(SystemExit, match="--row must be at most 1 of 'a'"):
        list(stretched.tables(Namespace(**{**vars(options), "row": 3})))


def test_the_line_that_is_nearest_to_a_line_of_log_odds_is_that_line():
    grid = np.array([(1.0, x, held) for held in (0, 1) for x in np.linspace(-1, 1, 9)])
    line = np.array([-2.0, 0.4, 0.7])
    shares = np.linspace(1, 2, len(grid)) / 27
    assert stretched.nearest_line(grid, shares, expit(grid @ line)) == pytest.approx(line)
    bent = stretched.nearest_line(grid, np.ones(len(grid)), expit(grid @ line + 2 * grid[:, 1] ** 2))
    assert bent[0] > line[0] + 0.5
