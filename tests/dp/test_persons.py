"""No person is worth more than the promise, however many rows there are and whoever stands in for whom."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.dp.sensitivities import apart
from privstats.workflows.report import explanations
from tests import made
from tests.dp.test_averages import ADJACENCIES, CLASSES, SUMMED, rows_of
from tests.made import refused, worth

SCHEMAS = SUMMED[:6]


def plan_of(schema: Any, clip: Any = 5.0, **changes: Any) -> ps.Plan:
    terms = {"unit": "person", "max_records_per_person": 5, "person_clip": clip, **changes}
    return made.plan(schema, ps.Cohort(3, 3, 1000), made.promise(**terms))


def added(plan: ps.Plan, X: Any, y: Any) -> np.ndarray:
    n = len(X["sex"]) if isinstance(X, dict) else len(X)
    found = ps.moments.exact_moments(plan.schema, X, y, persons=["only"] * n, person_clip=plan.person_clip)
    return ps.encoding.flatten(found)


@settings(deadline=None)
@given(
    schema=st.sampled_from(SCHEMAS),
    adjacency=st.sampled_from(ADJACENCIES),
    sizes=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    clip=st.sampled_from([1.0, 2.0, math.sqrt(5), 5.0]),
    seed=st.integers(0, 2**32),
)
def test_no_person_and_no_exchange_of_persons_passes_the_promise(schema, adjacency, sizes, clip, seed):
    plan, rng = plan_of(schema, clip, adjacency=adjacency), np.random.default_rng(seed)
    one, other = (added(plan, *rows_of(schema, n, rng)) for n in sizes)
    assert worth(plan, one) <= 1 + 1e-12
    if adjacency == "replace-one":
        assert worth(plan, one - other) <= 1 + 1e-12


@pytest.mark.parametrize("clip", [1.0, math.sqrt(5), 3.0])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_person_of_many_rows_comes_as_near_as_the_grid_allows(schema: Any, clip: float) -> None:
    """So no smaller noise would do; on a grid of few bits the cut toward zero shows."""
    plan = plan_of(schema, clip)
    X, y = rows_of(schema, 60, np.random.default_rng(3))
    coarse = schema.task != "counts" and schema.grid_bits < 8
    assert worth(plan, added(plan, X, y)) > (0.95 if coarse else 0.999)


@pytest.mark.parametrize(
    ("schema", "pair"),
    [
        (ps.MeanSchema(2, 1.0), [([[1.0, 0.0]], [0]), ([[-1.0, 0.0]], [0])]),
        (ps.MeanSchema(2, 1.0, nonnegative=True), [([[1.0, 0.0]], [0]), ([[0.0, 1.0]], [0])]),
        (ps.ClassSchema(2, 2, "NABD", 1.0, nonnegative=True), [([[1.0, 0.0]], [0]), ([[0.0, 1.0]], [1])]),
    ],
)
def test_the_worst_exchange_is_attained(schema: Any, pair: list[tuple[Any, Any]]) -> None:
    plan = plan_of(schema, 2.0, adjacency="replace-one")
    one, other = (added(plan, np.repeat(X, 9, axis=0), np.repeat(y, 9)) for X, y in pair)
    assert 0.999 < worth(plan, one - other) <= 1


def test_a_statistic_alone_is_attained_under_both_adjacencies() -> None:
    """Of a mean of opposed rows, of counts in other cells, and of rows without a length: all of the norm is in N."""
    plan = plan_of(CLASSES, 2.0, adjacency="replace-one")
    counts = added(plan, np.zeros((50, 4)), np.zeros(50, int)) - added(plan, np.zeros((50, 4)), np.ones(50, int))
    N = np.linalg.norm(counts[plan.layout.slices[0]] / plan.layout.segments[0].scale)
    assert 0.999 < N / plan.noise.rows[0].sensitivity <= 1


@pytest.mark.parametrize(("statistic", "letters"), [("N", math.sqrt(2)), ("A", 2.0), ("B", 2.0)])
def test_how_far_two_persons_are_apart(statistic: str, letters: float) -> None:
    assert apart(CLASSES, statistic, "replace-one") == letters
    assert apart(CLASSES, statistic, "add-remove") == 1


def test_a_cut_matrix_may_oppose_another_so_it_counts_twice() -> None:
    """Why B has 2 and not sqrt 2: (1, 1, 1) and (1, 1, -2) have orthogonal matrices, and cut ones may oppose."""
    plan, found = plan_of(ps.ClassSchema(2, 3, "NAB", 1.0, grid_bits=6), adjacency="replace-one"), []
    for size in range(1, 16):
        sums = (
            added(plan, np.repeat([side], 99, axis=0) * size / 64, np.zeros(99, int))
            for side in ([1.0, 1.0, 1.0], [1.0, 1.0, -2.0])
        )
        (*_, diagonal, off), (*_, beside, across) = (np.split(each, [2, 8, 11]) for each in sums)
        found.append(int(diagonal @ beside + 2 * off @ across))
    assert min(found) < 0


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("clip", [2.0, "average"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_person_at_several_parties_has_so_many_times_mu_and_no_more(adjacency: str, clip: Any, parties: int) -> None:
    """Each party shortens what it has, so the worst person is alike at all: what plan, page and officer are told."""
    most = {"max_records_per_person": None} if clip == "average" else {}
    plan = plan_of(ps.MeanSchema(2, 1.0), clip, adjacency=adjacency, **most)
    one, other = (added(plan, np.repeat([[side, 0.0]], 9, axis=0), np.zeros(9, int)) for side in (1.0, -1.0))
    moved = parties * (one if adjacency == "add-remove" else one - other)  # the sums of parties add up
    assert 0.999 * parties < worth(plan, moved) <= parties
    assert explanations.of_group(plan, plan.noise, parties).mu == pytest.approx(parties * plan.noise.mu)


def test_more_rows_than_count_in_full_cost_no_more() -> None:
    """k says which rows count in full; the promise holds for any number of them."""
    plan = plan_of(CLASSES, 2, max_records_per_person=2)
    assert plan.person_clip.records == 2.0
    X = np.array([[1.0, 0, 0, 0]])
    lengths = [worth(plan, added(plan, np.repeat(X, n, axis=0), np.zeros(n, int))) for n in (1, 2, 3, 500)]
    assert (lengths[0], lengths[1:]) == (pytest.approx(0.5), pytest.approx([1.0, 1.0, 1.0], abs=1e-3))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_records_per_person": None}, "max_records_per_person must be an integer of at least 1"),
        ({"person_clip": 6.0}, "person_clip must be between 1 and 5, got 6.0: above max_records_per_person"),
        ({"person_clip": 0.5}, "below 1 a single record would be clipped"),
        ({"client_clip": 2.0}, "client_clip has no meaning with unit='person'.* use unit='client'"),
        ({"person_clip": None}, "person_clip must be given with unit='person', got None: 'average' for intervals"),
        ({"person_clip": "mean"}, "person_clip must be given with unit='person', got 'mean': 'average' for"),
        ({"person_clip": "average"}, "a person counts as one record, .*: omit max_records_per_person"),
        ({"delta": 0}, "clips persons in the L2 norm, which bounds no pure epsilon: give person_clip='average'"),
        ({"unit": "record"}, "max_records_per_person has no meaning with unit='record'.* use unit='person'"),
    ],
)
def test_a_promise_per_person_is_whole(changes: dict[str, Any], words: str) -> None:
    refused(ps.PlanError, words, plan_of, CLASSES, **changes)


def test_only_persons_are_clipped_as_persons() -> None:
    refused(ps.PlanError, "with unit='record' no person is clipped", ps.dp.person_clip, CLASSES, made.promise())
