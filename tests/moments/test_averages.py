"""What a person adds is the exact average of the rows, cut toward zero once, in any order, batch and company."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import privstats as ps
from tests import made
from tests.dp.test_averages import SUMMED, published, rows_of
from tests.lengths import sized

PLAN = made.plan(SUMMED[0], ps.Cohort(3, 3, 9), made.promise(unit="person", person_clip="average"))


def some(values: Any, where: Any) -> Any:
    return {name: column[where] for name, column in values.items()} if isinstance(values, dict) else values[where]


def summed(
    schema: Any, X: Any, y: Any, ids: Any, said: Any = None, unreadable: Any = "leave out"
) -> ps.moments.PersonMoments:
    terms = {"persons": ids, "person_clip": ps.encoding.PersonAverage(), "published": said, "unreadable": unreadable}
    found = ps.moments.exact_moments(schema, X, y, **terms)
    assert isinstance(found, ps.moments.PersonMoments)
    return found


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize("schema", SUMMED, ids=lambda schema: schema.task)
@settings(max_examples=sized(12, 300))
@given(owners=st.lists(st.integers(0, 4), min_size=1, max_size=14), seed=st.integers(0, 2**32))
def test_it_is_the_average_by_its_definition_for_any_order_and_partition(schema: Any, owners: list[int], seed: int):
    """Every row is measured alone, by the records' own code, and averaged in rationals; parties add, bit for bit."""
    rng, ids = np.random.default_rng(seed), np.array(owners)
    (X, y), said = rows_of(schema, len(ids), rng), published(schema, rng)
    want = np.zeros_like(ps.encoding.flatten(summed(schema, X, y, ids, said)))
    for person in set(owners):
        alone = [
            ps.moments.exact_moments(
                schema, some(X, [row]), None if y is None else y[[row]], published=said, unreadable="leave out"
            )
            for row in np.flatnonzero(ids == person)
        ]
        rows = [ps.encoding.flatten(each) for each in alone if each.records]
        for place, total in enumerate(sum(row.astype(object) for row in rows) if rows else ()):
            want[place] += math.trunc(Fraction(total, len(rows)))
    party, order = ids % 2, rng.permutation(len(ids))
    parts = []
    for which in (0, 1):
        mine = order[party[order] == which]
        parts.append(summed(schema, some(X, mine), None if y is None else y[mine], ids[mine], said))
    np.testing.assert_array_equal(ps.encoding.flatten(parts[0] + parts[1]), want)
    assert parts[0] + parts[1] == summed(schema, X, y, ids, said)


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
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 of the records cannot be read"):
        found = summed(PLAN.schema, X, y, [1, 1, 1, 1])
    assert found == summed(PLAN.schema, X[[0, 2, 3]], y[[0, 2, 3]], [1, 1, 1])
    with pytest.warns(ps.errors.UnreadableRecordsWarning):
        assert not ps.encoding.flatten(summed(PLAN.schema, X[[1, 1]], y[[1, 1]], [1, 1])).any()


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize(
    "schema",
    [each if each.task in ("score", "gradients") else pytest.param(each, marks=pytest.mark.ci) for each in SUMMED],
    ids=lambda schema: schema.task,
)
def test_what_an_average_divides_by_is_the_rows_that_can_be_read_in_every_container(schema: Any) -> None:
    """And so is what counts towards the limits of a plan, beside persons whose rows are texts or not."""
    rng, ids = np.random.default_rng(2), np.array(list("aaaaabbbccd"))
    (X, y), said = rows_of(schema, len(ids), rng), published(schema, rng)
    columns = {name: np.array(values, object) for name, values in X.items()} if isinstance(X, dict) else None
    whole = np.array(list(columns.values())).T if columns is not None else X
    least = [
        each.name for each in getattr(schema, "numbers", None) or () if not each.missing
    ]  # in the others a gap is a cell
    last = list(columns).index(least[-1]) if columns is not None and least else whole.shape[1] - 1
    names = columns or getattr(schema, "feature_names", None) or tuple(map(str, range(whole.shape[1])))
    read = np.ones(len(ids), bool)
    if y is not None and schema.task != "mean":  # which reads none
        y, read[2] = y.astype(float), False
        y[2] = math.nan
    for gaps in ((math.nan,) * 3, (math.inf, math.nan, -math.inf), (math.nan, "x", 10**400)):
        rows, fine = whole.astype(object), read.copy()
        for place, gap in zip((1, 6, 10), gaps, strict=True):
            rows[place, last], fine[place] = gap, False
        kept = {name: column[fine] for name, column in X.items()} if isinstance(X, dict) else X[fine]
        want = summed(schema, kept, None if y is None else y[fine], ids[fine], said)
        table = dict(zip(names, rows.T.tolist(), strict=True))
        for name, container in containers(rows, table, lists=columns is None).items():
            found = summed(schema, container, y, ids, said)
            assert found == want, (name, gaps)
            assert (found.records, found.counted) == (want.records, want.counted), (name, gaps)
            if y is not None:
                assert summed(schema, container, y.tolist(), ids, said) == want, (name, gaps)


def containers(rows: Any, table: dict[str, list[Any]], *, lists: bool) -> dict[str, Any]:
    found = {name: each for name, each in ps.testing.held(table).items() if not lists or not isinstance(each, dict)}
    if not lists:
        return found
    found |= {"rows": rows.tolist(), "tuples": tuple(map(tuple, rows)), "objects": rows}
    if all(isinstance(value, float) for value in rows.reshape(-1)):
        torch, numbers = pytest.importorskip("torch"), rows.astype(float)
        found |= {"numbers": numbers, "a mask": np.ma.masked_invalid(numbers), "a tensor": torch.tensor(numbers)}
        found["sparse rows"] = csr_array(numbers)
    return found


def test_kinds_whose_sums_are_no_sums_over_rows_average_nobody() -> None:
    schema = ps.SitesSchema(5, 1.0)
    with pytest.raises(ps.DataError, match="this schema cannot bound a person"):
        summed(schema, np.ones((2, 4)), np.ones(2), [1, 1])
