"""A release names its course, phase and place: one of a sibling course, of another phase or place is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.base import iter_rounds, mu_of, position_of, verify_next
from privstats.course.kinds import COURSE_KINDS
from privstats.course.positions import in_places
from privstats.release import Position
from tests import made
from tests.course.test_kinds import SAMPLES
from tests.course.test_phases import COURSES, FOLLOWING, lost_places, opened
from tests.made import named, refused, unnamed

SCHEMA = ps.ScoreSchema(3, 2.0, transform=(ps.transforms.ConstantFeature(1.0),))
TERMS: dict[str, Any] = {"cohort": ps.Cohort(2, 2, 4_000), "privacy": made.promise(epsilon=20.0)}
COURSE = replace(ps.Newton.start(SCHEMA, **TERMS, rounds=3, retries=1), promise=None)
SIBLING = replace(COURSE, rounds=2, retries=2)
"""A course of the same plans, whose third and fourth sessions are retries."""


def shards(seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (2_000, 2))
    y = (rng.random(2_000) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))).astype(int)
    return [(X[::2], y[::2]), (X[1::2], y[1::2])]


def played(course: ps.Newton, *lost: int) -> list[Any]:
    gone = [{course.first.masking.upload_step: {0, 1}} if place in lost else {} for place in range(course.most)]
    return ps.simulate(course, shards(), dropouts=gone, rng=ps.randomness.seeded(1))


@pytest.fixture(scope="module")
def whole() -> list[ps.Release | None]:
    return played(COURSE)


@pytest.fixture(scope="module")
def with_lost() -> list[ps.Release | None]:
    """The second session ended without a sum."""
    return played(COURSE, 1)


@pytest.mark.parametrize("name", FOLLOWING)
def test_the_position_of_a_session_follows_from_the_sessions_before_it(name: str) -> None:
    for course in COURSES[name]:
        for lost in list(lost_places(course.most, np.random.default_rng(0)))[:12]:
            had = [place not in lost for place in range(course.most)]
            priced: list[float] = []
            for place, phase in enumerate(opened(course.phases, lost)):
                priced.append(mu_of(phase.plan))
                named = course.digest, phase.name, place, math.hypot(*priced), course.mu
                assert position_of(course, had[:place]) == (None if name == "single" else Position(*named))


def test_a_stream_and_a_plan_alone_have_none() -> None:
    assert {name for name in COURSE_KINDS if position_of(SAMPLES[name], []) is None} == {"single", "stream"} & set(
        COURSE_KINDS
    )


def test_every_round_names_its_release(whole: Any) -> None:
    alone = mu_of(COURSE.first)
    spent = [math.hypot(*[alone] * many) for many in (1, 2, 3)]
    named_by = [Position(COURSE.digest, "round", place, spent[place], COURSE.mu) for place in range(3)]
    assert [each.position for each in whole] == named_by
    releases: list[ps.Release | None] = []
    for round_, release in zip(iter_rounds(COURSE, releases), map(unnamed, whole), strict=True):
        assert verify_next(COURSE, round_.plan, releases).position == round_.position
        releases.append(release)
    assert releases == whole
    walk = iter_rounds(COURSE, wrong := [])
    next(walk)
    wrong.append(whole[1])
    refused(
        ps.ReleaseError, "of session 'round' at place 1 of course .*, and not of session 'round' at place 0", next, walk
    )


def test_attack_a_release_of_a_sibling_course_of_the_same_plans_is_refused(whole: Any) -> None:
    other = played(SIBLING)
    assert [each.plan.digest for each in other] == [each.plan.digest for each in whole[:2]]
    assert COURSE.next(named(COURSE, other)) is not None  # its plans alone are this course's
    for wrong in ([other[0]], [whole[0], other[1]], [other[0], whole[1]]):
        refused(ps.PlanError, "not of this course's session 'round'.*it names session 'round'", COURSE.next, wrong)
        refused(ps.PlanError, "not of this course's", verify_next, COURSE, whole[2].plan, wrong)


def test_attack_a_release_in_the_place_of_a_lost_session_is_refused(with_lost: Any) -> None:
    """Its plan is the same there: the values that the next plan publishes would be bound to another history."""
    first, second, third, last = with_lost
    assert second is None
    assert COURSE.next(named(COURSE, [first, third, None])) is not None
    for wrong in ([first, third, None], [first, third], [None, first], [first, None, last]):
        refused(ps.PlanError, "not of this course's session 'round'", COURSE.next, wrong)
    ended = [*with_lost, third]
    refused(ps.PlanError, "sessions, which ended before", COURSE.next, ended)


def test_attack_a_release_that_names_no_course_is_refused(whole: Any) -> None:
    """Its plan may be any course's: only the release of a plan alone names none."""
    nameless = list(map(unnamed, whole))
    for wrong in (nameless[:1], [whole[0], nameless[1]], [None, nameless[1]]):
        refused(ps.PlanError, "not of this course's session 'round'.*it names no course", COURSE.next, wrong)
    for listed in (nameless, nameless[:2], [None, nameless[0]], [nameless[0], None]):
        refused(ps.ReleaseError, "it names no course", in_places, listed)
        refused(ps.ReleaseError, "it names no course", ps.inference.logit, listed)
    assert in_places(nameless[:1]) == nameless[:1]
    alone = ps.course.Single(COURSE.first)
    assert alone.next(nameless[:1]) is alone.next(whole[:1]) is None


def test_attack_a_release_of_another_phase_is_refused() -> None:
    """Of a mean and sums with equal plans nothing else tells them apart."""
    other = made.unnamed(played(COURSE)[0])
    wrong = other.at(replace(COURSE.position([]), phase="calibration"))
    refused(ps.PlanError, "it names session 'calibration' at place 0", COURSE.next, [wrong])


def test_readers_take_a_list_with_its_lost_sessions_or_without_them(with_lost: Any) -> None:
    """And count each session in the promise that they print, with a sum or not."""
    have = [each for each in with_lost if each is not None]
    assert in_places(have) == in_places(with_lost) == with_lost
    assert in_places([*with_lost, None]) == [*with_lost, None]
    table = ps.inference.logit(with_lost)
    assert str(ps.inference.logit(have).summary()) == str(table.summary())
    assert f"all {len(with_lost)} rounds" in " ".join(str(table.summary()).split())


def test_attack_no_reader_takes_releases_of_two_courses_or_of_other_places(whole: Any, with_lost: Any) -> None:
    other = played(SIBLING)
    first, _, third, last = with_lost
    for wrong in (
        [whole[0], other[1]],
        [whole[0], unnamed(whole[1])],
        [unnamed(whole[0]), whole[1]],
        [whole[1], whole[0]],
        [whole[0], whole[0]],
        [first, third, None, last],
        [first, None, None, third],
        [None, first],
    ):
        refused(ps.ReleaseError, "is not the next of its course", in_places, wrong)
        refused(ps.ReleaseError, "is not the next of its course", ps.inference.logit, wrong)


def test_a_plan_of_a_session_names_it_to_its_release_and_through_its_file(whole: Any, tmp_path: Any) -> None:
    """Whoever has the plan's file alone makes a release that its course knows again."""
    second = COURSE.next(whole[:1])
    assert second.position == COURSE.position([True]) == whole[1].position
    (tmp_path / "1.toml").write_text(second.to_toml())
    second.published.save(tmp_path / "1.values")
    again = ps.Plan.read(tmp_path / "1.toml")
    assert (again, again.digest, again.position) == (second, second.digest, second.position)
    assert again.digest == again.at(None).digest
    assert ps.simulate(again, shards()).position == second.position
    assert ps.course.Single(again).next([]).position == second.position
    assert position_of(ps.course.Single(again), []) == second.position
    assert replace(again, spare_bits=1).position is None
    by_hand = ps.Release(again, whole[1].vector, whole[1].survivors, reproducible=True)
    assert (by_hand, by_hand.plan.position) == (whole[1], second.position)
    moved = replace(by_hand, position=COURSE.position([]))
    assert moved.plan.position == moved.position == COURSE.position([])


def test_attack_a_plan_that_names_another_session_is_refused(whole: Any) -> None:
    """Its release would name a place that it does not have, or a course that costs less."""
    second = COURSE.next(whole[:1])
    own = second.position
    for wrong in (
        SIBLING.position([True]),
        replace(own, place=2),
        replace(own, phase="mean"),
        replace(own, mu=own.mu * 0.99),
        replace(own, spent=own.mu),
    ):
        refused(ps.PlanError, "not the one that follows", verify_next, COURSE, second.at(wrong), whole[:1])
    assert verify_next(COURSE, second.at(None), whole[:1]).position == own


@pytest.mark.parametrize(
    "wrong", [("c0" * 31, "round", 0, 1.0, 1.0), ("C0" * 32, "round", 0, 1.0, 1.0), ("c0" * 32, "", 0, 1.0, 1.0),
              ("c0" * 32, "a\nb", 0, 1.0, 1.0), ("c0" * 32, "r" * 65, 0, 1.0, 1.0), ("c0" * 32, "round", -1, 1.0, 1.0),
              ("c0" * 32, "round", True, 1.0, 1.0), (None, "round", 0, 1.0, 1.0), ("c0" * 32, "round", 0, 0.0, 1.0),
              ("c0" * 32, "round", 0, 1.0, 0.0), ("c0" * 32, "round", 0, 1, 1.0),
              ("c0" * 32, "round", 0, 1.0, float("nan")), ("c0" * 32, "round", 0, float("nan"), 1.0),
              ("c0" * 32, "round", 0, 1.0, None)]
)  # fmt: skip
def test_what_is_no_position_is_refused(wrong: Any) -> None:
    refused(ps.PlanError, "a position has a course's digest", Position, *wrong)


def test_a_release_keeps_the_position_that_it_has(whole: Any) -> None:
    release = whole[1]
    assert release.at(None) is release.at(release.position) is release
    later = replace(release.position, place=2)
    refused(ps.ReleaseError, "is of session 'round' at place 1", release.at, later)
    refused(ps.ReleaseError, "position must be a Position or None, got str", replace, release, position="round")
