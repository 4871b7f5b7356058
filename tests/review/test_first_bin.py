"""`plan check` asks for a short first bin where events may come early inside it, and the world that shows why."""

from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.transforms import ConstantFeature
from tests import made

LONG, SHORT = (0, 250, 500, 750), (0, 30, 250, 500, 750)


def counts(edges: tuple[int, ...], event: str = "died") -> ps.CountSchema:
    variables = (ps.Bins("days", edges, open="above"), ps.Categories(event, (0, 1)))
    return ps.CountSchema(variables, (("days", event),))


def hazard(edges: tuple[int, ...], times: Any) -> ps.HazardSchema:
    bins, constant = ps.Bins("days", edges), (ConstantFeature(1.0),)
    return ps.HazardSchema(2, 2.0, bins=bins, event="died", feature_names=("age",), transform=constant, times=times)


@pytest.mark.parametrize(
    ("schema", "asked"),
    [
        (counts(LONG), True),
        (counts(SHORT), False),
        (counts((40, 60, 80, 120)), False),
        (hazard(LONG, "continuous"), True),
        (hazard(SHORT, "continuous"), False),
        (hazard(LONG, "discrete"), False),
        (ps.CountSchema((ps.Bins("days", LONG), ps.Categories("arm", ("a", "b"))), (("days", "arm"),)), False),
    ],
)
def test_a_short_first_bin_is_asked_for_where_the_first_is_as_long_as_the_next(schema: Any, asked: bool) -> None:
    found = [fact for fact in schema.facts if f"first bin of days ends at {LONG[1]}" in fact]
    assert len(found) == int(asked)
    assert all("the first month" in fact for fact in found)


def test_the_fact_of_counts_is_among_those_that_a_check_of_their_plan_prints() -> None:
    facts = ps.review.facts(made.plan(counts(LONG), ps.Cohort(2, 2, 3_000)))
    assert set(counts(LONG).facts) <= set(facts)


def missed(edges: tuple[int, ...], runs: int = 60, n: int = 3_000) -> float:
    """How often survival at day 250 is missed where a tenth die in the first month and many leave in the first bin."""
    truth, count, rng = 0.9 * np.exp(-250 / 4_000), 0, np.random.default_rng(0)
    for _ in range(runs):
        event = rng.exponential(4_000, n)
        early = rng.random(n) < 0.1
        event[early] = np.minimum(event, rng.uniform(0, 30, n))[early]
        left = np.minimum(rng.exponential(600, n), 749)
        table = {"days": np.minimum(event, left), "died": (event <= left) * 1}
        release = ps.Release.exact(counts(edges), ps.measure(counts(edges), table))
        rows = inf.kaplan_meier(release, time="days", event="died", times="continuous").to_rows()
        (row,) = (each for each in rows if each["time"] == 250)
        count += not row["conf_low"] <= truth <= row["conf_high"]
    return count / runs


def test_in_the_world_that_the_fact_names_a_long_first_bin_misses_and_a_short_one_does_not() -> None:
    assert missed(LONG) > 0.2
    assert missed(SHORT) <= 0.13  # 8 of 60: with probability .01 at a rate of .05
