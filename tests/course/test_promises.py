"""What divides a promise spends at most the promise: rounds, streams, statistics; a ledger capped at it takes them."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.streams.mechanisms import MECHANISMS

_LAST_DIGITS = 4 * 2.0**-52
"""What a handful of floating-point operations may be off by."""

BUDGETS = st.fixed_dictionaries({"epsilon": st.floats(0.05, 20), "delta": st.floats(1e-9, 1e-4)})
ADJACENCIES = st.sampled_from(["add-remove", "replace-one"])


def whole_of(schema: Any, records: int, **terms: Any) -> ps.Plan:
    privacy = ps.Privacy(**{"model": "central", "unit": "record", **terms})
    return ps.Plan(schema=schema, cohort=ps.Cohort(5, 4, records), privacy=privacy)


def made(make: Any) -> Any:
    """What some numbers lead to; budgets that no plan can promise are not looked at."""
    try:
        return make()
    except ps.PlanError:
        return assume(False)


@st.composite
def softmaxes(draw: Any) -> ps.Plan:
    classes, features = draw(st.integers(2, 20)), draw(st.integers(2, 60))
    schema = ps.ClassSchema(classes, features, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    terms = draw(BUDGETS)
    return made(lambda: whole_of(schema, draw(st.integers(200, 200_000)), adjacency=draw(ADJACENCIES), **terms))


@given(whole=softmaxes(), rounds=st.integers(1, 8), retries=st.integers(0, 2))
def test_rounds_within_a_promise_spend_at_most_the_promise(whole: ps.Plan, rounds: int, retries: int) -> None:
    """Both parts, the first release's and the rounds', follow from one rounded share, so they add up to 1."""
    assert made(lambda: ps.Rounds.within(whole, rounds, retries=retries)).mu <= whole.noise.mu


@given(
    terms=BUDGETS,
    adjacency=ADJACENCIES,
    mechanism=st.deferred(lambda: st.sampled_from(list(MECHANISMS))),
    levels=st.integers(0, 7),
    deletions=st.booleans(),
)
def test_the_epochs_of_a_stream_spend_at_most_the_promise(terms, adjacency, mechanism, levels, deletions):
    schema = ps.ClassSchema(3, 4, "NAB", 1.0)
    whole = made(lambda: whole_of(schema, 5000, adjacency=adjacency, **terms))
    stream = made(lambda: ps.Stream(whole, 1 << levels, mechanism, deletions))
    node = ps.dp.joint_mu(schema, stream.first.noise.sigma, adjacency)
    assert node * math.sqrt(stream.multiplicity(adjacency)) <= whole.noise.mu * (1 + _LAST_DIGITS)
    assert stream.mu <= whole.noise.mu * (1 + _LAST_DIGITS)


@given(terms=BUDGETS, adjacency=ADJACENCIES, weights=st.lists(st.floats(0.05, 1), min_size=3, max_size=3))
def test_the_statistics_of_a_plan_spend_at_most_the_promise(terms: Any, adjacency: Any, weights: list[float]) -> None:
    shares = {letter: weight / math.fsum(weights) for letter, weight in zip("NAB", weights, strict=True)}
    schema = ps.ClassSchema(3, 4, "NAB", 1.0)
    plan = made(lambda: whole_of(schema, 5000, adjacency=adjacency, shares=shares, **terms))
    assert ps.dp.joint_mu(schema, plan.noise.sigma, adjacency) <= plan.noise.mu * (1 + _LAST_DIGITS)


def courses(epsilon: float) -> list[ps.course.Course]:
    softmax = ps.ClassSchema(4, 9, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    whole = whole_of(softmax, 3000, adjacency="add-remove", epsilon=epsilon, delta=1e-5)
    return [
        *(ps.Rounds.within(whole, rounds, retries=1) for rounds in (1, 2, 4)),
        *(ps.Stream(whole, 8, mechanism, deletions=True) for mechanism in MECHANISMS),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
def test_a_ledger_capped_at_the_promise_takes_the_course_that_divides_it(epsilon: float, tmp_path: Path) -> None:
    for place, course in enumerate(courses(epsilon)):
        ledger = ps.dp.Ledger.create(tmp_path / f"{place}.db")
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
        ps.course.spend(course, ledger, "ward", b"may")
        assert ledger.account("ward").mu <= ledger.account("ward").mu_cap * (1 + _LAST_DIGITS)
