"""One contract for every kind of course: a promise that its rounds break is refused, its epsilon is what it costs."""

import math
from dataclasses import fields, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.contrib.alignment import Alignment
from privstats.course import document, read, verify_next, write
from privstats.course.base import mu_of
from privstats.course.kinds import COURSE_KINDS
from privstats.course.promise import Promise
from tests import made
from tests.contrib.alignment.cohort import first
from tests.course.announced_samples import Samples
from tests.course.histories import walked
from tests.course.test_kinds import ANNOUNCED, SAMPLES, WHOLES
from tests.lengths import sized
from tests.made import promise, refused

PRIVATE = Samples({**SAMPLES, **{name: sample.private for name, sample in ANNOUNCED.items() if sample.private}})
"""A course of every kind under a promise."""
OWN = [name for name, kind in COURSE_KINDS.items() if kind.promise == "own"]
WRITTEN = [name for name, kind in COURSE_KINDS.items() if kind.promise is not None]


def delta_of(course: Any) -> float:
    return float(course.first.privacy.delta)


def bare(course: Any) -> Any:
    return replace(course, promise=None)


@pytest.mark.parametrize("name", OWN)
def test_a_promise_that_the_rounds_break_is_refused_in_one_sentence(name: str) -> None:
    course = bare(PRIVATE[name])
    delta = delta_of(course)
    cost = course.epsilon(delta)
    said = (
        rf"^promise says epsilon {0.99 * cost:.4g} at delta 1e-05, and all rounds together cost epsilon {cost:.4g}: "
        r"let within \(`privstats course init`\) divide a plan's promise over them, or state what they cost$"
    )
    refused(ps.PlanError, said, replace, course, promise=Promise(0.99 * cost, delta))
    with pytest.raises(ps.PlanError, match="^promise says epsilon .* at delta 1e-06, and all rounds together cost"):
        replace(course, promise=Promise(cost, delta / 10))
    with pytest.raises(
        ps.PlanError, match=r"^promise must be a Promise\(epsilon, delta\) or None, got float; leave it out"
    ):
        replace(course, promise=cost)
    kept = replace(course, promise=Promise(cost * (1 + 1e-9), delta))
    assert kept.promise.epsilon == pytest.approx(cost)
    assert kept == course  # what is stated is no part of a course's price


def test_the_other_kinds_take_no_promise_of_their_own() -> None:
    others = {name for name in COURSE_KINDS if name not in OWN}
    assert others == {"single", "stream"} & COURSE_KINDS.keys()  # their promise is the plan's, which its noise keeps
    assert not any(field.name == "promise" for name in others for field in fields(SAMPLES[name]))


@pytest.mark.parametrize("name", OWN)
def test_a_file_that_promises_what_the_rounds_break_is_refused_and_still_judged(name: str, tmp_path: Path) -> None:
    path, course = tmp_path / "course.toml", PRIVATE[name]
    write(path, course)
    before = read(path).promise
    path.write_text(path.read_text().replace(f"epsilon = {before.epsilon!r}", f"epsilon = {before.epsilon / 2!r}"))
    refused(ps.PlanError, "^promise says epsilon .*, and all rounds together cost epsilon", read, path)
    found, stated = document.stated(path)
    assert ((found, found.promise), stated) == ((course, None), Promise(before.epsilon / 2, before.delta))
    assert not stated.holds(found.mu)


@pytest.mark.parametrize("name", COURSE_KINDS)
def test_epsilon_is_that_of_everything_released_together(name: str, tmp_path: Path) -> None:
    """Of the squares of all rounds, as a ledger adds them up; Apart from a stream, whose rounds hold other records."""
    course = PRIVATE[name]
    privacy, delta = course.first.privacy, delta_of(course)
    assert course.epsilon(delta) == pytest.approx(ps.dp.gaussian_epsilon(course.mu, delta))
    assert course.epsilon(delta / 10) > course.epsilon(delta) > course.epsilon(10 * delta) > 0
    assert course.epsilon(0) == math.inf  # Gaussian noise keeps no pure epsilon
    refused(ps.PlanError, "delta must be at least 0 and below 1", course.epsilon, 1.0)
    ledger = made.ledger(
        tmp_path / "ledger.db", epsilon=90.0, unit=privacy.unit, adjacency=privacy.adjacency, delta=delta
    )
    ps.course.spend(course, ledger, "ward", b"may")
    assert ledger.account("ward").spent == pytest.approx(course.epsilon(delta), rel=1e-9)


def test_epsilon_is_infinite_without_dp_and_a_pure_plan_keeps_its_own() -> None:
    exact = [SAMPLES["alignment"], ps.Stream(replace(PRIVATE["stream"].plan, privacy=ps.NoPrivacy()), 4)]
    for course in (*exact, ps.course.Single(exact[1].plan)):
        assert course.epsilon(1e-5) == math.inf
    schema = ps.ClassSchema(2, 3, "NA", 1.0)
    pure = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=promise(delta=0.0))
    assert ps.course.Single(pure).epsilon(0) == ps.course.Single(pure).epsilon(1e-9) == 1.0
    assert ps.course.Single(pure).epsilon(0.09) < 1.0  # what its mu keeps there
    with pytest.raises(
        ps.PlanError, match="promise says epsilon 1 at delta 1e-05, and all rounds together cost epsilon inf"
    ):
        Alignment(first(), promise=Promise(1.0, 1e-5))


@pytest.mark.parametrize("name", OWN)
def test_within_divides_a_promise_over_all_rounds(name: str) -> None:
    """Never more than was promised, and no more than rounding less."""
    row, whole = COURSE_KINDS[name], WHOLES[name]
    course = row.within(whole, **{option: {"expected_records": 600}[option] for option in row.needed})
    epsilon, delta = whole.privacy.epsilon, whole.privacy.delta
    assert course.promise == Promise(epsilon, delta)
    assert epsilon * (1 - 1e-6) < course.epsilon(delta) <= epsilon * (1 + 1e-9)
    assert [plan.noise.mu for plan in course.priced]


def test_an_alignment_without_dp_is_within_what_it_does_not_promise() -> None:
    assert Alignment.within(first()) == Alignment(first())
    assert Alignment.within(first(), step="published").step == "published"


def test_a_regression_keeps_the_protocol_and_the_panel_of_its_whole_plan() -> None:
    """``start`` knows schema, cohort and promise only."""
    newton = SAMPLES["newton"]
    members = tuple(ps.secagg.Identity(bytes([place + 1]) * 32).public.hex() for place in range(3))
    whole = ps.Newton.full_plan(
        schema=newton.schema, cohort=newton.first.cohort, privacy=promise(epsilon=3.0), protocol="split", panel=members
    )
    course = ps.Newton.within(whole, 3)
    assert (course.first.protocol, course.first.panel) == ("split", members)
    assert ps.Newton.start(newton.schema, newton.first.cohort, promise(epsilon=3.0), 3) == ps.Newton.within(
        replace(whole, protocol="interactive", panel=()), 3
    )
    refused(ps.PlanError, "first must be a Plan of a ScoreSchema", ps.Newton.within, SAMPLES["centred"].plan)


@pytest.mark.parametrize(
    "name", [name for name in COURSE_KINDS if "retries" in {f.name for f in fields(SAMPLES[name])}]
)
def test_no_history_of_lost_sessions_meets_a_place_that_is_too_cheap(name: str) -> None:
    """Of every kind with retries: a moved session that cost more than its place ended the course, all spent."""
    course = replace(PRIVATE[name], retries=2, promise=None)
    places = range(course.most)
    three = sized(zip(places, places[1:], places[2:], strict=False), combinations(places, 3))
    lost = [*chain(*(combinations(places, count) for count in range(3)), three)]
    for plans, releases in walked(course, lost):
        assert math.hypot(*map(mu_of, plans)) <= course.mu * (1 + 1e-12)
        if len(plans) > len(releases):
            assert verify_next(course, plans[-1], releases).place == len(releases)
