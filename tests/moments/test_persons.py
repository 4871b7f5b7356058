"""Who is one person follows from the ids, each by itself, and what a person adds from the rows of that person alone."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import privstats as ps
from privstats.encoding import flatten
from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.moments import PersonMoments, exact_moments, persons
from privstats.workflows.simulate import run
from tests import made
from tests.made import refused

CLASSES = ps.ClassSchema(3, 4, "NAB", 1.0)
COUNTS = ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60))), (("sex", "age"), ("age",)))
PROMISE = {"unit": "person", "max_records_per_person": 4, "person_clip": 2.0}
PLAN = made.plan(CLASSES, ps.Cohort(3, 3, 1000), made.promise(**PROMISE))
NOBODY = ("", " ", None, math.nan, "n/a", "NaN", "nan", b"NULL", 2**53, float(2**60), str(2**53), 1.5, math.inf)


def records(schema: Any, n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if schema is COUNTS:
        return {"sex": rng.choice(["f", "m"], n), "age": rng.choice([1.0, 50.0, 59.0], n)}, None
    return rng.standard_normal((n, 4)) * 0.6, rng.integers(0, 3, n)


def summed(X: Any, y: Any, ids: Any, schema: Any = CLASSES, **how: Any) -> PersonMoments:
    plan = PLAN if schema is CLASSES else made.plan(schema, PLAN.cohort, PLAN.privacy)
    found = exact_moments(schema, X, y, persons=ids, person_clip=plan.person_clip, **how)
    assert isinstance(found, PersonMoments)
    return found


def some(values: Any, where: Any) -> Any:
    return {name: column[where] for name, column in values.items()} if isinstance(values, dict) else values[where]


@pytest.mark.parametrize("schema", [CLASSES, COUNTS])
@given(owners=st.lists(st.integers(0, 6), max_size=30), parties=st.integers(1, 3), seed=st.integers(0, 2**32))
def test_parties_together_sum_what_all_persons_at_one_party_sum(schema, owners, parties, seed):
    """Bit for bit, for every partition of persons and every order of rows."""
    ids, rng = np.array(owners, np.int64), np.random.default_rng(seed)
    X, y = records(schema, len(ids), seed)
    whole = summed(X, y, ids, schema)
    parts = []
    for party in range(parties):
        mine = rng.permutation(np.flatnonzero(ids % parties == party))
        parts.append(summed(some(X, mine), None if y is None else y[mine], ids[mine], schema))
    assert sum(parts[1:], parts[0]) == whole
    assert sum(part.records for part in parts) == whole.records == len(ids)


@given(owners=st.lists(st.integers(0, 3), min_size=1, max_size=24), seed=st.integers(0, 2**32))
def test_a_person_adds_the_same_beside_whomever(owners: list[int], seed: int) -> None:
    ids = np.array(owners)
    X, y = records(CLASSES, len(ids), seed)
    one = ids == ids[0]
    alone, others, both = (summed(X[rows], y[rows], ids[rows]) for rows in (one, ~one, one | ~one))
    np.testing.assert_array_equal(flatten(alone) + flatten(others), flatten(both))


def test_persons_of_few_rows_count_in_full_and_others_shrink_as_a_whole() -> None:
    X, y = records(CLASSES, 6)
    plain = exact_moments(CLASSES, X, y)
    full = summed(X, y, [1, 1, 2, 2, 3, 3])
    assert full.shrunk == 0
    assert np.array_equal(flatten(full), flatten(plain))
    one = summed(np.repeat(X[:1], 40, axis=0), np.repeat(y[:1], 40), [7] * 40)
    weight = one.real().N[y[0]]
    assert (one.shrunk, one.records) == (1, 40)
    assert 1 < weight < 40
    np.testing.assert_allclose(
        one.real().A[y[0]] / weight, exact_moments(CLASSES, X[:1], y[:1]).real().A[y[0]], atol=1e-3
    )


def test_an_id_says_the_same_in_every_container_and_beside_whatever_else() -> None:
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    arrow = pytest.importorskip("pyarrow")
    X, y = records(CLASSES, 9)
    X, y, ids = np.abs(X), y * 0, [7, 7, 7, 12, 12, 12, 12, 9, 9]
    want = summed(X, y, ids)
    assert want.shrunk > 0
    written: list[Any] = [
        [str(each) for each in ids],
        [f"{each:03d}" for each in ids],
        [f" {each}.0 " for each in ids],
        np.array(ids, float),
        np.array(ids, np.uint8),
        ["7", 7, 7.0, "12", 12.0, b"12", np.int8(12), "9", 9],
        pandas.Series(ids, index=range(40, 49)),
        pandas.Series(ids, dtype="Int64"),
        torch.tensor(ids),
    ]
    for each in written:
        assert summed(X, y, each) == want
    for rows in (X.tolist(), csr_array(X), torch.tensor(X), pandas.DataFrame(X)):
        assert summed(rows, y if not isinstance(rows, list) else y.tolist(), ids) == want
    for column in (arrow.array, lambda values: arrow.chunked_array([values[:4], values[4:]])):
        assert summed(X, column(y), column(np.array(ids))) == want


def test_a_gap_beside_an_id_changes_no_other_person() -> None:
    """It makes integers floats in some containers, which tell two large ones not apart."""
    X, y = records(CLASSES, 5)
    with pytest.warns(UnreadableRecordsWarning, match="^1 of the records have no id of a person"):
        found = summed(X, y, np.array([3, 3, 3, 4, math.nan]))
    assert found == summed(X[:4], y[:4], [3, 3, 3, 4])


class Broken:
    """A value that cannot say what it is."""

    def item(self) -> Any:
        raise RuntimeError("broken")


def test_spans_and_broken_values_stop_no_one() -> None:
    X, y = records(CLASSES, 4)
    with pytest.warns(UnreadableRecordsWarning, match="^2 of the records have no id of a person"):
        assert summed(X, y, [np.timedelta64(5, "ms"), 5000] * 2) == summed(X[1::2], y[1::2], [1, 1])
    with pytest.warns(UnreadableRecordsWarning, match="^1 of the records have no id of a person"):
        assert summed(X, y, ["a", "a", "a", Broken()]) == summed(X[:3], y[:3], [1, 1, 1])


def test_ids_are_one_column() -> None:
    X, y = records(CLASSES, 6)
    for ids in (np.ones((6, 1)), np.ones((6, 2), object), np.array(1)):
        refused(DataError, r"persons must be one id for each row, \(n,\), got an array of [02] axes", summed, X, y, ids)


@pytest.mark.parametrize("nobody", NOBODY)
def test_a_row_of_nobody_is_left_out_and_counted(nobody: Any) -> None:
    X, y = records(CLASSES, 4)
    with pytest.warns(UnreadableRecordsWarning, match="^2 of the records have no id of a person") as said:
        found = summed(X, y, ["a", nobody, "a", nobody], unreadable="leave out")
    assert (len(said), found.records, found) == (1, 2, summed(X[::2], y[::2], ["a", "a"]))


def test_a_row_that_cannot_be_read_leaves_its_person_and_nobody_else() -> None:
    X, y = records(CLASSES, 8)
    X[0, 2] = math.nan
    ids = ["a"] * 4 + ["b"] * 4
    with pytest.warns(UnreadableRecordsWarning, match="^1 of the records cannot be read") as said:
        found = summed(X, y, ids, unreadable="leave out")
    assert (len(said), found.records, found) == (1, 7, summed(X[1:], y[1:], ids[1:]))


def test_ids_are_in_no_text() -> None:
    X, y = records(CLASSES, 9)
    found = summed(X, y, ["ANNA-SECRET"] * 9)
    assert "SECRET" not in repr(found) + repr(vars(found))
    assert repr(found).startswith("PersonMoments(statistics='NAB'")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: summed(X, y, [1, 2]), "persons has 2 ids, and X or y another number of rows"),
        (lambda X, y: summed(X, y[:5], [1] * 6), "give one id for each row"),
        (lambda X, y: summed([(X, y)], None, [1]), "batches do not show which person a row belongs to"),
        (lambda X, y: summed(iter([(X, y)]), None, [1]), "one person's rows cannot be selected from a list_iterator"),
        (lambda X, y: summed(X, y, "pid"), "persons must be an id for each row, got a text: give table\\['pid'\\]"),
        (lambda X, y: ps.measure(CLASSES, X, y, persons=[1] * 6, person_clip=None), "go together"),
        (lambda X, y: ps.measure(ps.SitesSchema(5, 1.0), X, X[:, 0], persons=[1] * 6, person_clip=PLAN.person_clip),
            "this schema cannot bound a person: one person's contribution cannot be clipped"),
    ],
)  # fmt: skip
def test_what_cannot_be_summed_over_persons_is_refused(call: Any, words: str) -> None:
    refused(DataError, words, call, *records(CLASSES, 6))


def test_sums_of_other_promises_do_not_add_up() -> None:
    X, y = records(CLASSES, 3)
    wider = made.plan(CLASSES, PLAN.cohort, made.promise(**{**PROMISE, "person_clip": 3.0}))
    other = exact_moments(CLASSES, X, y, persons=[1] * 3, person_clip=wider.person_clip)
    refused(DataError, "under different plans cannot be added", lambda: summed(X, y, [1] * 3) + other)


def test_the_rows_of_one_person_stop_no_party() -> None:
    """A person counts towards every limit as a public number of records, and no row more."""
    schema = ps.ClassSchema(2, 2, "NA", 1.0)
    plan = made.plan(schema, ps.Cohort(3, 3, 1000), made.promise(**PROMISE))
    ids = [str(place) for place in range(50)] + ["z"] * 2000
    X, y = np.tile([1.0, 0.0], (len(ids), 1)), np.zeros(len(ids), int)
    mine = exact_moments(schema, X, y, persons=ids, person_clip=plan.person_clip)
    assert isinstance(mine, PersonMoments)
    assert mine.records == 2050
    assert mine.counted == 50 + plan.person_clip.most_records(schema) == 70
    assert (mine + mine).counted == 140
    assert ps.session.contribution(plan, mine, None, index=0).take().ring == plan.ring
    other = exact_moments(schema, X[:9], y[:9], persons=ids[:9], person_clip=plan.person_clip)
    assert run(plan, [mine, other, other], rng=ps.randomness.seeded(1)).exact
    full = exact_moments(schema, X[:1001], y[:1001], persons=range(1001), person_clip=plan.person_clip)
    with pytest.raises(DataError, match="a client holds more records than cohort.max_records=1000"):
        ps.session.contribution(plan, full, None, index=0)


@pytest.mark.parametrize("schema", [CLASSES, ps.ClassSchema(3, 4, "NAS", 1.0)], ids=["NAB", "NAS"])
def test_rows_of_one_person_that_pass_64_bits_stop_no_party(schema: Any, monkeypatch: Any) -> None:
    """Here with totals of few bits: at 20 grid bits 63 of them are full with 8,388,608 rows."""
    X, y = records(schema, 300)
    whole = summed(X, y, ["z"] * 300, schema)
    want, bits = flatten(whole), schema.bound.bit_length()
    for room in (bits + 12, bits + 6):  # all at once, and in parts over a power of two
        monkeypatch.setattr(persons, "_BITS", room)
        found = summed(X, y, ["z"] * 300, schema)
        assert (found.records, found.counted, found.shrunk) == (300, whole.counted, 1)
        np.testing.assert_allclose(
            flatten(found), want, rtol=0 if room > bits + 9 else 1e-3, atol=0 if room > bits + 9 else 4
        )


@given(
    schema=st.sampled_from(
        [CLASSES, COUNTS, ps.ClassSchema(3, 4, "NAS", 1.0), ps.RidgeSchema(4, clip_norm=1.0, target_bound=2.0)]
    ),
    alike=st.booleans(),
    length=st.sampled_from([0.0, 0.1, 9.0]),
    seed=st.integers(0, 2**32),
)
def test_no_entry_of_a_person_is_beyond_the_records_that_are_counted(schema, alike, length, seed):
    """Nor is the sum of all counts: the ring and the check of a sum are as wide as those records."""
    plan = made.plan(schema, PLAN.cohort, PLAN.privacy)
    X, y = records(schema, 400, seed)
    if alike:
        X, y = some(X, np.zeros(400, int)), None if y is None else y[np.zeros(400, int)]
    if not isinstance(X, dict):
        X = X * length
    found = exact_moments(schema, X, y, persons=["z"] * 400, person_clip=plan.person_clip)
    vector, counted = flatten(found), found.counted
    assert counted is not None
    for segment, place in zip(plan.layout.segments, plan.layout.slices, strict=True):
        entries = np.abs(vector[place])
        assert (entries.sum() if segment.name == "N" else entries.max()) <= counted * segment.bound


def test_a_session_takes_one_partys_persons_and_nothing_else() -> None:
    X, y = records(CLASSES, 6)
    mine = summed(X, y, [1] * 6)
    with pytest.raises(DataError, match="measure with persons=ids, person_clip=plan.person_clip"):
        ps.session.contribution(PLAN, ps.measure(CLASSES, X, y))
    with pytest.raises(DataError, match="sums over several parties, in which a person may count twice"):
        ps.session.contribution(PLAN, mine + mine)
    with pytest.raises(DataError, match="these sums were measured per person, and the plan's promise is not"):
        ps.session.contribution(made.plan(CLASSES, PLAN.cohort, made.promise()), mine)
    assert ps.session.contribution(PLAN, mine).take().ring == PLAN.ring


def test_a_simulation_gives_what_one_party_with_all_persons_would_give() -> None:
    """Rows with ids as shards; without noise of its own the sum is the centralised one, by every integer."""
    X, y = records(CLASSES, 60)
    ids = np.arange(60) % 9
    shards = [(X[ids % 3 == party], y[ids % 3 == party], ids[ids % 3 == party]) for party in range(3)]
    simulated = run(PLAN, shards, rng=ps.randomness.seeded(1))
    assert simulated.exact
    assert simulated.release.plan == PLAN
    with warnings.catch_warnings(action="ignore"), pytest.raises(DataError, match="must be .X, y, ids. or moments"):
        ps.simulate(PLAN, [(X, y)] * 3)


def test_sums_over_an_unknown_number_of_persons_never_wrap_around() -> None:
    privacy = ps.Privacy(
        model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5, max_records_per_person=2,
        person_clip=2,
    )  # fmt: skip
    plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 100), privacy=privacy)
    arrays = {"N": np.zeros(2, np.int64), "A": np.full((2, 2), 1 << 62, np.int64)}
    half = PersonMoments(plan.schema, arrays, plan.person_clip)
    with pytest.raises(DataError, match="could pass 64 bits"):
        _ = half + half
    small = PersonMoments(plan.schema, {**arrays, "A": np.ones((2, 2), np.int64)}, plan.person_clip)
    assert (small + small).arrays["A"].tolist() == [[2, 2], [2, 2]]
