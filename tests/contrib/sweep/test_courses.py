"""Heads that end a course, in a sweep beside heads of one release, at the same epsilon as a whole."""

import math
from statistics import mean

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.sweep import behind_means, draws, sweep
from privstats.contrib.sweep.points import NOTHING_RIGHT, noise_draw
from tests.course.cases import RIDGE, plan_of, shards


@pytest.fixture(scope="module")
def records() -> tuple[np.ndarray, np.ndarray]:
    X, y = zip(*shards(), strict=True)
    return np.concatenate(X), np.concatenate(y)


def test_a_course_stands_beside_one_release_at_the_same_budget(records: tuple[np.ndarray, np.ndarray]) -> None:
    heads = {"LDA": ps.heads.LDA, "RefinedSoftmax": lambda: ps.heads.RefinedSoftmax(rounds=2)}
    result = sweep(plan_of(), records, records, heads, [8.0, 1.0], repeats=2)
    assert result.heads == ("LDA", "RefinedSoftmax")
    assert not result.missing
    assert all(0.4 < result.at(name, epsilon).mean <= 1 for name in heads for epsilon in (float("inf"), 8.0, 1.0))
    again = sweep(plan_of(), records, records, heads, [8.0, 1.0], repeats=2)
    assert again.points == result.points  # the noise is the seed's


def test_a_mean_first_stands_beside_one_release_at_the_same_budget(records: tuple[np.ndarray, np.ndarray]) -> None:
    """The same noise by hand: a course of two sessions, and LDA behind its mean."""
    both = {"LDA": ps.heads.LDA} | behind_means({"LDA": ps.heads.LDA, "RefinedSoftmax": ps.heads.RefinedSoftmax})
    result = sweep(plan_of(), records, records, both, [8.0, 1.0], repeats=2)
    assert result.heads == ("LDA", "LDA, centred")
    assert not result.missing
    for epsilon in (8.0, 1.0):
        course = ps.Centred.within(plan_of(epsilon=epsilon))
        assert course.mu <= plan_of(epsilon=epsilon).noise.mu  # type: ignore[union-attr]
        ends = (draws.played(course, shards(), noise_draw(0, draw)) for draw in range(2))
        scores = [ps.heads.LDA().fit_release(releases).score(*records) for releases in ends]
        assert result.at("LDA, centred", epsilon).mean == mean(scores)
    exact = result.at("LDA, centred", math.inf).mean
    unit = records[0] / np.linalg.norm(records[0], axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    assert exact == pytest.approx(ps.heads.LDA().fit(centred, records[1]).score(centred, records[1]), abs=0.005)


def test_rows_that_no_mean_is_taken_out_of_leave_the_head_out(records: tuple[np.ndarray, np.ndarray]) -> None:
    long = plan_of(ps.ClassSchema(3, 6, "NAB", 2.0))
    result = sweep(long, records, records, behind_means({"LDA": ps.heads.LDA}), [1.0], repeats=2)
    assert "centred rows have norm 1" in result.missing["LDA, centred"]
    assert not result.points


def test_what_is_played_costs_what_the_plan_promises() -> None:
    plan = plan_of(model="distributed")
    releases = draws.played(ps.Rounds.within(plan, 3), shards(), ps.randomness.seeded(1))
    assert [release is not None for release in releases] == [True] * 4
    assert ps.Rounds.within(plan, 3).mu <= plan.noise.mu
    assert releases[0].plan == ps.Rounds.within(plan, 3).first  # type: ignore[union-attr]


def test_a_schema_that_no_recipe_refines_leaves_the_head_out(records: tuple[np.ndarray, np.ndarray]) -> None:
    plan = plan_of(ps.ClassSchema(3, 6, "NAS", 1.0))
    result = sweep(plan, records, records, {"RefinedSoftmax": ps.heads.RefinedSoftmax}, [1.0], repeats=2)
    assert "NAB" in result.missing["RefinedSoftmax"]
    assert not result.points


def test_a_node_that_aborts_is_a_round_without_a_sum(records, monkeypatch):
    def aborts(plan: ps.Plan, parts: object, rng: object) -> ps.Release:
        raise ps.AggregationError("an entry is too large", code="implausible", detail="")

    monkeypatch.setattr(draws.session, "aggregate_unmasked", aborts)
    assert draws.played(ps.Rounds.within(plan_of(), 2), shards(), ps.randomness.seeded(1)) == [None]
    head = ps.heads.RefinedSoftmax(rounds=2)
    assert draws.course_scores(head, plan_of(), shards(), records, ps.randomness.seeded(1)) == NOTHING_RIGHT


def test_a_regression_sweeps_too() -> None:
    X, y = zip(*shards(RIDGE), strict=True)
    both = np.concatenate(X), np.concatenate(y)
    heads = {"Ridge": ps.heads.Ridge, "RefinedRidge": ps.heads.RefinedRidge}
    assert sweep(plan_of(RIDGE), both, both, heads, [4.0], repeats=2).at("RefinedRidge", 4.0).mean > 0.8
    with pytest.raises(ps.DataError):
        sweep(plan_of(RIDGE), both, both, heads, [], repeats=2)
