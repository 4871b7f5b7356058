"""What a person adds is the exact average of the rows, cut toward zero once, in any order, batch and company."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import PersonAverage, flatten
from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.moments import PersonMoments, exact_moments
from privstats.moments.person_averages import averages_of
from tests import made
from tests.dp.test_averages import SUMMED, published, rows_of

PLAN = made.plan(SUMMED[0], ps.Cohort(3, 3, 9), made.promise(unit="person", person_clip="average"))


def some(values: Any, where: Any) -> Any:
    return {name: column[where] for name, column in values.items()} if isinstance(values, dict) else values[where]


def summed(schema: Any, X: Any, y: Any, ids: Any, said: Any = None, unreadable: Any = "leave out") -> PersonMoments:
    terms = {"persons": ids, "person_clip": PersonAverage(), "published": said, "unreadable": unreadable}
    found = exact_moments(schema, X, y, **terms)
    assert isinstance(found, PersonMoments)
    return found


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize("schema", SUMMED, ids=lambda schema: schema.task)
@given(owners=st.lists(st.integers(0, 4), min_size=1, max_size=14), seed=st.integers(0, 2**32))
def test_it_is_the_average_by_its_definition_for_any_order_and_partition(
    schema: Any, owners: list[int], seed: int
) -> None:
    """Every row is measured alone, by the records' own code, and averaged in rationals; parties add, bit for bit."""
    rng, ids = np.random.default_rng(seed), np.array(owners)
    (X, y), said = rows_of(schema, len(ids), rng), published(schema, rng)
    want = np.zeros_like(flatten(summed(schema, X, y, ids, said)))
    for person in set(owners):
        alone = [
            exact_moments(
                schema, some(X, [row]), None if y is None else y[[row]], published=said, unreadable="leave out"
            )
            for row in np.flatnonzero(ids == person)
        ]
        rows = [flatten(each) for each in alone if each.records]
        for place, total in enumerate(sum(row.astype(object) for row in rows) if rows else ()):
            want[place] += math.trunc(Fraction(total, len(rows)))
    party, order = ids % 2, rng.permutation(len(ids))
    parts = []
    for which in (0, 1):
        mine = order[party[order] == which]
        parts.append(summed(schema, some(X, mine), None if y is None else y[mine], ids[mine], said))
    np.testing.assert_array_equal(flatten(parts[0] + parts[1]), want)
    assert parts[0] + parts[1] == summed(schema, X, y, ids, said)


@pytest.mark.parametrize("bits", [3, 12, 20])
@pytest.mark.parametrize("kind", ["classes", "ridge", "ridge of two targets"])
@given(seed=st.integers(0, 2**32))
def test_many_at_once_are_bit_for_bit_what_one_by_one_is(kind: str, bits: int, seed: int) -> None:
    """Rows that oppose each other too, whose averages are cut on both sides of zero."""
    schema: Any = ps.ClassSchema(3, 4, "NABD", 1.0, grid_bits=bits)
    targets = 1 + ("two" in kind)
    if kind != "classes":
        schema = ps.RidgeSchema(4, targets, clip_norm=1.0, target_bound=2.0, grid_bits=bits)
    rng = np.random.default_rng(seed)
    X, ids = rng.standard_normal((40, 4)) * rng.choice([0.1, 1.0]), rng.integers(0, 9, 40)
    y = rng.integers(0, 3, 40) if kind == "classes" else rng.standard_normal((40, targets))
    at_once = summed(schema, X, y, ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privstats.moments.person_averages.averages_of", lambda *_: None)
        one_by_one = summed(schema, X, y, ids)
    assert at_once == one_by_one
    for name in ("counted", "records", "clip_report", "shrunk"):
        assert getattr(at_once, name) == getattr(one_by_one, name)


def test_what_is_averaged_at_once_is_what_stands_in_arrays_of_numbers() -> None:
    X, y = np.ones((6, 4)), np.arange(6) % 3
    assert averages_of(PLAN.schema, X, y, 2) is not None
    for other in (X.tolist(), X.astype(object), np.where(X, math.nan, X)):
        assert averages_of(PLAN.schema, other, y, 2) is None
    assert averages_of(ps.ClassSchema(3, 4, "NAS", 1.0), X, y, 2) is None
    assert averages_of(ps.ClassSchema(3, 4, "NAB", 1.0, grid_bits=20), X, y, 1 << 13) is None  # past 2^53 together
    assert averages_of(ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0, folds=2), X, y, 2) is None


def test_a_person_counts_as_one_record_and_rows_are_known_here_alone() -> None:
    X, y = rows_of(PLAN.schema, 9, np.random.default_rng(0))
    found = summed(PLAN.schema, X, y, [1, 1, 1, 1, 1, 1, 2, 2, 3])
    assert (found.counted, found.records, found.shrunk) == (3, 9, 0)
    assert 3 - 9 / 4096 < found.real().N.sum() <= 3
    assert "9" not in repr(found)
    assert ps.session.contribution(PLAN, found).take().ring == PLAN.ring


def test_only_rows_that_can_be_read_are_averaged() -> None:
    """So one that cannot is as good as none, and a person without any adds nothing."""
    X, y = rows_of(PLAN.schema, 4, np.random.default_rng(1))
    X[1, 0] = math.nan
    with pytest.warns(UnreadableRecordsWarning, match="1 of the records cannot be read"):
        found = summed(PLAN.schema, X, y, [1, 1, 1, 1])
    assert found == summed(PLAN.schema, X[[0, 2, 3]], y[[0, 2, 3]], [1, 1, 1])
    with pytest.warns(UnreadableRecordsWarning):
        assert not flatten(summed(PLAN.schema, X[[1, 1]], y[[1, 1]], [1, 1])).any()


def test_kinds_whose_sums_are_no_sums_over_rows_average_nobody() -> None:
    schema = ps.SitesSchema(5, 1.0)
    with pytest.raises(DataError, match="these are no sums over persons"):
        summed(schema, np.ones((2, 4)), np.ones(2), [1, 1])
