"""What is cached between rounds changes no sum: rows that are not those of before are mapped anew."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import privstats as ps
from privstats.moments import exact_moments, gradient_map
from privstats.records.opened import Opened
from privstats.records.row_cache import RowCache
from privstats.schema.public_values import Published, Values
from tests.moments.test_gradients import RIDGE, SCHEMA, C, D, published, published_ridge, records

ROUNDS = {
    "softmax": (SCHEMA, [published(0, size) for size in (3.0, 1.0, 3.0)]),
    "regression": (RIDGE, [published_ridge(0, c) for c in (0.8, 0.4, 0.8)]),
}


def measured(schema: ps.GradientSchema, X: Any, y: Any, said: Published, cache: RowCache | None = None) -> Any:
    return exact_moments(schema, X, y, published=said, unreadable="leave out", cache=cache)


@pytest.mark.parametrize("most", [0, 40_000, 1 << 29])
@pytest.mark.parametrize("kind", list(ROUNDS))
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_rounds_give_the_sums_that_they_give_alone(kind: str, dtype: Any, most: int) -> None:
    """In memory for all, a part, or none of the records."""
    schema, rounds = ROUNDS[kind]
    X, y = records(9_000)
    X = (20 * X).astype(dtype)
    cache = RowCache(most)
    for said in rounds:
        assert measured(schema, X, y, said, cache) == measured(schema, X, y, said)


@pytest.mark.parametrize("kind", list(ROUNDS))
def test_rows_are_mapped_once_for_all_rounds_of_one_map(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rounds = ROUNDS[kind]
    X, y = records(9_000)
    formed: list[int] = []
    for name in ("unit_rows", "short_rows"):
        right = getattr(gradient_map, name)
        monkeypatch.setattr(
            gradient_map,
            name,
            lambda schema, rows, *more, right=right: formed.append(len(rows)) or right(schema, rows, *more),
        )
    cache = RowCache()
    for said in rounds:
        measured(schema, X, y, said, cache)
    assert sum(formed) == len(X)
    other = Published.of({**said.read(), "M": Values.rounded(np.eye(D))})
    assert measured(schema, X, y, other, cache) == measured(schema, X, y, other)
    assert sum(formed) == 3 * len(X)


def negated(X: NDArray[np.float64]) -> None:
    X *= -1


def doubled(X: NDArray[np.float64]) -> None:
    X *= 2


def swapped(X: NDArray[np.float64]) -> None:
    X[[0, 1]] = X[[1, 0]]


def one_entry(X: NDArray[np.float64]) -> None:
    X[4_000, 3] += 0.01


def no_number(X: NDArray[np.float64]) -> None:
    X[7] = np.nan


@pytest.mark.parametrize("change", [negated, doubled, swapped, one_entry])
def test_records_that_were_changed_in_place_are_mapped_anew(change: Callable[[Any], None]) -> None:
    X, y = records(9_000)
    cache = RowCache()
    before = measured(RIDGE, X, y, published_ridge(), cache)
    change(X)
    after = measured(RIDGE, X, y, published_ridge(), cache)
    assert after == measured(RIDGE, X, y, published_ridge())
    assert after != before


@pytest.mark.parametrize("huge", [1e25, np.inf])
def test_a_huge_entry_hides_no_change_of_other_rows(huge: float) -> None:
    X, y = records(2_000)
    X[0, 0] = huge
    cache = RowCache()
    measured(RIDGE, X, y, published_ridge(), cache)
    X[1:] *= -1
    assert measured(RIDGE, X, y, published_ridge(), cache) == measured(RIDGE, X, y, published_ridge())


def test_rows_that_are_no_numbers_count_as_zero_in_every_round() -> None:
    X, y = records(500)
    no_number(X)
    cache = RowCache()
    schema, rounds = ROUNDS["softmax"]
    opened = Opened(schema.reading, X, y)
    for said in rounds:
        again = schema.moments_of(replace(opened, cache=cache), said.read())
        assert again == schema.moments_of(opened, said.read())


def test_batches_in_another_order_are_mapped_anew() -> None:
    X, y = records(600)
    schema, rounds = ROUNDS["softmax"]
    cache = RowCache()
    for round_, said in enumerate(rounds):
        order = np.random.default_rng(round_).permutation(600)
        batches = [(X[part], y[part]) for part in np.array_split(order, 3)]
        assert measured(schema, iter(batches), None, said, cache) == measured(schema, X, y, said)


def test_a_course_of_one_party_maps_its_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = records(400)
    schema = ps.ClassSchema(C, D, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
    promise = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
    plan = ps.course.alone.single_party_plan(schema, promise)
    course = ps.Rounds.within(plan, rounds=3, expected_records=400)
    formed: list[int] = []
    right = gradient_map.unit_rows
    monkeypatch.setattr(
        gradient_map, "unit_rows", lambda schema, rows, *more: formed.append(len(rows)) or right(schema, rows, *more)
    )
    assert None not in ps.private_releases(course, X, y, ledger="uncharged")
    assert sum(formed) == 400
    formed.clear()
    whole = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 400), privacy=promise)
    course = ps.Rounds.within(whole, rounds=3, expected_records=400)
    assert None not in ps.simulate(course, [(X[k::2], y[k::2]) for k in range(2)])
    assert sum(formed) == 400
