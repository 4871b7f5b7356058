"""The phases of every kind of course on random histories with lost sessions: order, price, and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.base import as_next, exceeds, mu_of, verify_next
from privstats.course.kinds import COURSE_KINDS
from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased
from privstats.course.promise import total_of
from privstats.dp.sensitivities import joint_mu
from tests import made
from tests.course.cases import OF_CELLS, OF_CLOSED, RIDGE, plan_of, rounds
from tests.course.test_kinds import ANNOUNCED, OBSERVED, SAMPLES
from tests.course.written_order import BY_HAND

TRIAL = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
FOLLOWING = [name for name, kind in COURSE_KINDS.items() if kind.follows]
"""All kinds but the stream, whose rounds hold disjoint records and follow from no release."""


def _effect(schema: ps.EffectSchema, **options: Any) -> ps.Effect:
    return ps.Effect.start(schema, ps.Cohort(3, 2, 3_000), made.promise(epsilon=8.0), **options)


def _changed(name: str, **changes: Any) -> Any:
    course: Any = SAMPLES[name]
    return replace(course, promise=None, **changes)


MORE: dict[str, list[Any]] = {
    "rounds": [
        rounds(retries=2),
        rounds(retries=1, calibrated=True),
        rounds(RIDGE, 2, epsilon=8.0, retries=2, expected_records=12),
        ps.Rounds.within(plan_of(OF_CLOSED, epsilon=12.0), 5, retries=1, pairs=True),
    ],
    "newton": [_changed("newton", retries=2)],
    "hazard": [
        _changed("hazard", retries=2),
        _changed("hazard", early_bins=2),
        _changed("hazard", retries=2, early_bins=2),
    ],
    "centred": [ps.Centred.within(plan_of(), calibrated=True)],
    "effect": [
        _effect(TRIAL, adjust=False, retries=2),
        _effect(TRIAL, retries=1),
        _effect(OBSERVED, rounds=3, retries=2),
    ],
    "binned": [
        ps.Binned.within(plan_of(OF_CELLS), expected_records=600, sessions=1),
        ps.Binned.within(plan_of(OF_CELLS), "rounds", expected_records=600, sessions=2, rounds=2, retries=1),
    ],
    **{name: sample.more for name, sample in ANNOUNCED.items()},
}
COURSES = {name: [SAMPLES[name], *MORE.get(name, [])] for name in FOLLOWING}
"""Courses of each kind, with retries where the kind has them."""


def lost_places(places: int, rng: np.random.Generator) -> Iterator[frozenset[int]]:
    """None, each alone, all, and ten random sets of places without a sum."""
    yield frozenset()
    yield from (frozenset({place}) for place in range(places))
    yield frozenset(range(places))
    for _ in range(10):
        yield frozenset(np.flatnonzero(rng.random(places) < rng.choice([0.15, 0.5])).tolist())


def outcome(plan: ps.Plan, rng: np.random.Generator) -> ps.Release:
    """Return sums of noise alone, of any party's making: a course must go on after them."""
    vector, scale = np.zeros(plan.layout.size, np.int64), rng.choice([0.3, 1.0, 3.0])
    for segment, at in zip(plan.layout.segments, plan.layout.slices, strict=True):
        sigma = 1 << 10 if plan.noise is None else plan.noise.grid_sigma(segment)
        vector[at] = np.rint(scale * sigma * rng.normal(size=vector[at].shape))
    return ps.Release(plan, vector, tuple(range(plan.cohort.clients)))


@pytest.mark.parametrize("name", FOLLOWING)
def test_every_history_keeps_to_its_order_its_price_and_its_bytes(name: str) -> None:
    """The sessions without a sum alone decide which phase is open: their releases hold any sums.

    Of four kinds, each plan is that of an order written by hand, too.
    """
    for course in COURSES[name]:
        rng, stated = np.random.default_rng(0), total_of(course)
        by_hand = BY_HAND[name](course) if name in BY_HAND else None
        if by_hand is not None:
            assert list(map(mu_of, course.priced)) == list(map(mu_of, by_hand.priced))
        assert len(course.priced) == course.most == course.phases.places
        for lost in lost_places(course.most, rng):
            expected, releases, plans = opened(course.phases, lost), list[ps.Release | None](), list[ps.Plan]()
            for phase in expected:
                plan = course.next(tuple(releases)) if releases else course.first
                assert plan is not None, (course, lost, len(releases))
                assert by_hand is None or not releases or by_hand.next(tuple(releases)) == plan
                plans.append(plan)
                assert plan.schema.task == phase.plan.schema.task
                assert mu_of(plan) == pytest.approx(mu_of(phase.plan), rel=1e-9)
                assert not exceeds(plan, course.priced[len(releases)])
                assert verify_next(course, plan, tuple(releases)).place == len(releases)
                releases.append(None if len(releases) in lost else as_next(course, releases, outcome(plan, rng)))
            assert course.next(tuple(releases)) is None
            assert by_hand is None or by_hand.next(tuple(releases)) is None
            assert sum(plan.masking.upload_bytes for plan in plans) <= stated.upload_bytes
            assert sum(plan.layout.size for plan in plans) <= stated.numbers
            assert math.hypot(*(mu_of(phase.plan) for phase in expected)) <= course.mu * (1 + 1e-12)


def opened(phases: Phases, lost: frozenset[int]) -> list[Phase]:
    """Return the phases of a course's sessions, where those at these places have no sum."""
    found: list[Phase] = []
    while (phase := phases.open([place not in lost for place in range(len(found))])) is not None:
        found.append(phase)
    return found


def test_a_ledger_under_another_adjacency_charges_the_dearest_session_of_each_place(tmp_path: Path) -> None:
    """A round of the propensity costs more under replace-one than the outcome session whose place it takes."""
    course = _effect(OBSERVED, rounds=3, retries=2)
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=90.0, adjacency="replace-one")
    ps.course.spend(course, ledger, "ward", b"may")
    charged = ps.dp.gaussian_mu(ledger.account("ward").spent, 1e-5)
    for lost in lost_places(course.most, np.random.default_rng(0)):
        plans = [phase.plan for phase in opened(course.phases, lost)]
        cost = [joint_mu(plan.schema, dict(plan.noise.sigma), "replace-one") for plan in plans if plan.noise]
        assert math.hypot(*cost) <= charged * (1 + 1e-9), lost


def test_every_kind_of_course_but_the_stream_is_phases() -> None:
    """A new kind is in the registry, and so in the tests above."""
    assert [name for name in FOLLOWING if not issubclass(COURSE_KINDS[name].type, Phased)] == []
    assert set(COURSE_KINDS) - set(FOLLOWING) == {"stream"} & set(COURSE_KINDS)


CHEAP, DEAR = plan_of(epsilon=1.0), plan_of(epsilon=2.0)


def names(phases: Phases, had: str) -> list[str]:
    """Return the phase of each session, and of the next, after sessions with a sum (x) or without (.)."""
    opened = [phases.open([each == "x" for each in had[:place]]) for place in range(len(had) + 1)]
    return [each.name if each else "" for each in opened]


def test_a_needed_phase_out_of_reach_ends_the_course_and_no_other_does() -> None:
    line, last = Phase("line", CHEAP, 2), Phase("last", CHEAP)
    needed = Phases((replace(line, needed=True), replace(last, needed=True)), retries=1)
    assert names(needed, "x.xx") == ["line", "line", "line", "last", ""]
    assert names(needed, "..") == ["line", "line", ""]
    others = Phases((line, last), retries=1)
    assert names(others, "..xx") == ["line", "line", "line", "line", ""]
    assert names(others, "....") == ["line", "line", "line", "line", ""]
    once = Phases((replace(line, tries=1, sums=1, needed=True), last))
    assert names(once, ".") == ["line", ""]
    assert names(once, "x.") == ["line", "last", ""]


def test_sessions_that_are_tried_a_fixed_number_of_times_count_towards_a_later_phase() -> None:
    early, search = Phase("early", CHEAP, None, 2), Phase("search", CHEAP, tries=1)
    phases = Phases((early, search, Phase("round", CHEAP, 4, tries=3, with_sums_of=("early",))))
    assert names(phases, "xx.xx") == ["early", "early", "search", "round", "round", ""]
    assert names(phases, ".xxx.x") == ["early", "early", "search", "round", "round", "round", ""]
    assert [[each.name for each in place] for place in phases.by_place] == [
        ["early"], ["early"], ["search"], ["round"], ["round"], ["round"]
    ]  # fmt: skip


def test_a_place_costs_what_the_dearest_session_costs_that_a_retry_may_move_there() -> None:
    dear, cheap = Phase("dear", DEAR, tries=2), Phase("cheap", CHEAP, tries=1)
    phases = Phases((dear, cheap))
    assert phases.priced == (DEAR, DEAR, CHEAP)
    assert phases.labels == ("dear", "dear or cheap", "cheap")
    assert Phases((cheap, dear)).priced == (CHEAP, DEAR, DEAR)


def test_phases_that_no_price_names_or_that_cannot_be_told_apart_are_refused() -> None:
    moved = Phases((Phase("dear", DEAR), Phase("cheap", CHEAP)), retries=1)
    made.refused(ps.PlanError, "session 'cheap' costs mu .*, and a retry may move a dearer", lambda: moved.priced)
    one, stranger = Phase("one", CHEAP), Phase("other", CHEAP, tries=1, with_sums_of=("later",))
    made.refused(ps.PlanError, "phase 'one' is there twice", Phases, (one, one))
    made.refused(ps.PlanError, "phase 'other' counts the sums of 'later', no phase before it", Phases, (one, stranger))
    made.refused(ps.PlanError, "phase 'one' must have tries", Phase, "one", CHEAP, None)
    made.refused(ps.PlanError, "phase 'one' must have tries", Phase, "one", CHEAP, with_sums_of=("other",))


def test_releases_of_another_course_are_refused_by_place_and_phase() -> None:
    phases, rng = Phases((Phase("one", CHEAP), Phase("two", DEAR))), np.random.default_rng(0)
    made.refused(ps.PlanError, "release 0 is not of this course's session 'one'", phases.next, [outcome(DEAR, rng)])
    assert phases.next([outcome(CHEAP, rng)]) == DEAR


def test_the_past_names_each_release_by_its_phase() -> None:
    rng = np.random.default_rng(0)
    one, two = outcome(CHEAP, rng), outcome(CHEAP, rng)
    past = Past((one, None, two), ("counts", "round", "round"))
    assert (past.first("counts"), past.of("round"), past.first("check")) == (one, [two], None)
    assert past.publish({}).after == ps.course.history((one, None, two)).hex()
