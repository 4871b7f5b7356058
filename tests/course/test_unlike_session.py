"""A release of any session of a course is recognised by its plan, without the releases before it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.kinds import COURSE_KINDS
from privstats.course.promise import unlike_session
from tests.course.test_contract import PRIVATE

NAMED = [name for name in COURSE_KINDS if name not in ("single", "stream")]


def rounds_of(course: Any, lost: int | None = None, seed: int = 0) -> list[ps.Plan]:
    """Every session's plan, where earlier sessions released noise alone, and one ended without a sum."""
    rng, releases, plans = np.random.default_rng(seed), [], []
    for round_ in ps.course.iter_rounds(course, releases):
        plans.append(round_.plan)
        noise = rng.integers(-5, 6, round_.plan.layout.size)
        everyone = tuple(range(round_.plan.cohort.clients))
        releases.append(None if round_.place == lost else ps.Release(round_.plan, noise, everyone))
    return plans


@pytest.mark.parametrize("name", NAMED)
def test_every_session_of_a_course_is_its_own_and_no_other_courses(name: str) -> None:
    course = PRIVATE[name]
    for lost in (None, 1):
        for plan in rounds_of(course, lost):
            assert unlike_session(course, plan) == ""
            assert "not a session of course" in unlike_session(
                PRIVATE["rounds" if name != "rounds" else "centred"], plan
            )


@pytest.mark.parametrize("name", NAMED)
def test_a_plan_that_only_names_a_session_is_refused(name: str) -> None:
    course = PRIVATE[name]
    plan = rounds_of(course)[-1]
    cheaper = replace(plan, cohort=replace(plan.cohort, max_records=plan.cohort.max_records + 1)).at(plan.position)
    assert "of the course has the plan" in unlike_session(course, cheaper)
    assert "not a session of course" in unlike_session(course, plan.at(None))
