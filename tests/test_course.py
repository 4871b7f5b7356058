"""Courses: plans in sequence under one budget, and nothing that a course says is believed unchecked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

import privstats as ps
from privstats.course import Course, Node, Single, nodes, run
from privstats.errors import PlanError


def plan_with(epsilon: float = 1.0, **changes: object) -> ps.Plan:
    promise = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": epsilon, "delta": 1e-5}
    cohort = ps.Cohort(clients=5, min_survivors=4, max_records=100)
    return ps.Plan(
        schema=ps.ClassSchema(2, 3, "NA", 1.0),
        cohort=cohort,
        privacy=ps.Privacy(**{**promise, **changes}),  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Listed:
    """A course that names its plans beforehand, and may lie about their number and cost."""

    plans: tuple[ps.Plan, ...]
    most: int
    mu: float

    @property
    def first(self) -> ps.Plan:
        return self.plans[0]

    def next(self, releases: object) -> ps.Plan | None:
        place = len(releases)  # type: ignore[arg-type]
        return self.plans[place] if place < len(self.plans) else None


def listed(*plans: ps.Plan) -> Listed:
    return Listed(plans, len(plans), math.sqrt(sum(plan.noise.mu**2 for plan in plans)))  # type: ignore[union-attr]


def released(node: Node) -> ps.Release:
    return ps.Release(node.plan, np.full(node.plan.layout.size, node.place, np.int64), (0, 1, 2, 3))


def test_a_course_of_one_plan_is_that_plan() -> None:
    plan = plan_with()
    assert isinstance(Single(plan), Course)
    assert Single(plan).mu == plan.noise.mu
    assert run(Single(plan), released) == [released(Node(0, plan, b""))]
    assert Single(replace(plan, privacy=ps.NoPrivacy())).mu == math.inf


def test_every_node_sees_what_was_released_before_it() -> None:
    seen: list[Node] = []

    def release(node: Node) -> ps.Release | None:
        seen.append(node)
        return None if node.place == 1 else released(node)

    course = listed(plan_with(), plan_with(2.0), plan_with(3.0))
    releases = run(course, release)
    assert [each is None for each in releases] == [False, True, False]
    assert [node.plan for node in seen] == list(course.plans)
    assert len({node.after for node in seen}) == 3  # another history, another digest


def test_a_failed_node_is_not_mistaken_for_a_shorter_course() -> None:
    outcomes: list[Callable[[Node], ps.Release | None]] = [released, lambda node: None]
    digests = []
    for outcome in outcomes:
        history: list[ps.Release | None] = []
        walk = nodes(listed(plan_with(), plan_with()), history)
        history.append(outcome(next(walk)))
        digests.append(next(walk).after)
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("course", "said"),
    [
        (Listed((plan_with(), plan_with()), 1, 10.0), "at most 1 nodes"),
        (Listed((plan_with(), plan_with()), 2, plan_with().noise.mu), "promised"),
        (listed(plan_with(), plan_with(model="local")), "trust model"),
        (listed(plan_with(), plan_with(adjacency="replace-one")), "adjacency"),
        (listed(plan_with(), replace(plan_with(), cohort=ps.Cohort(5, 4, 100, colluders=1))), "colluders"),
    ],
)
def test_a_course_that_breaks_its_word_is_refused_before_the_node(course: Listed, said: str) -> None:
    asked: list[Node] = []

    def release(node: Node) -> ps.Release:
        asked.append(node)
        return released(node)

    with pytest.raises(PlanError, match=said):
        run(course, release)
    assert [node.place for node in asked] == [0]


def test_a_node_without_an_outcome_stops_the_course() -> None:
    walk = nodes(listed(plan_with(), plan_with()), [])
    next(walk)
    with pytest.raises(PlanError, match="no outcome"):
        next(walk)
