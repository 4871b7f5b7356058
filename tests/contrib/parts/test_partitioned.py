"""Sums of parts: any partition, order and tree gives the bits of all records at once, and no part counts twice."""

import pickle
import warnings
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.parts import Partitioned, PartSum, measure
from privstats.contrib.parts.partitioned import persons_in
from privstats.errors import DataError, RecordError, SchemaError
from privstats.intake.person_ids import persons_of
from privstats.kinds.base import kind_of
from tests import made
from tests.moments.test_person_sums import some
from tests.schema.samples import SCHEMAS
from tests.schema.test_contract import published, records_of

RECORDS = 40
ADDS = [schema for schema in SCHEMAS if not kind_of(schema).refuses_parts]
OTHERS = [schema for schema in SCHEMAS if kind_of(schema).refuses_parts]
NAMES = [f"{schema.task}-{place}" for place, schema in enumerate(ADDS)]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def of_persons(schema: Any) -> list[Any]:
    """The clips under which a kind promises persons."""
    found = []
    for more in ({"max_records_per_person": 6, "person_clip": 1.5}, {"person_clip": "average"}):
        proved = set(schema.statistics) <= set(schema.proved)
        if proved and not schema.refuses_persons(averaged=more["person_clip"] == "average"):
            promise = made.promise("central", unit="person", **more)
            plan = made.plan(schema, ps.Cohort(3, 3, 600), promise, published=published(schema))
            found.append(plan.person_clip)
    return found


def test_the_kinds_that_do_not_add_up_are_those_whose_sums_depend_on_all_records_of_a_party() -> None:
    assert {schema.task for schema in OTHERS} == {"sites", "within", "gaussians", "party-softmax", "party-update"}


@pytest.mark.parametrize("schema", OTHERS, ids=lambda schema: schema.task)
def test_a_kind_that_does_not_add_up_is_refused_by_name_with_the_remedy(schema: Any) -> None:
    sentence = f"a {type(schema).__name__} cannot be measured in parts: .* pass all records to privstats.measure"
    with pytest.raises(SchemaError, match=sentence):
        Partitioned(schema)


@st.composite
def cuts(draw: st.DrawFn) -> list[np.ndarray]:
    """Parts of the records, some of them empty, in any order."""
    order = np.array(draw(st.permutations(range(RECORDS))))
    ends = sorted(draw(st.lists(st.integers(0, RECORDS), max_size=6)))
    return np.split(order, ends)


def added(sums: list[PartSum], choose: Any) -> PartSum:
    """Add values two by two, in any tree."""
    level = list(sums)
    while len(level) > 1:
        left, right = (level.pop(choose(len(level))) for _ in range(2))
        level.append(left + right)
    return level[0]


@pytest.mark.parametrize("schema", ADDS, ids=NAMES)
@settings(max_examples=6, deadline=None)
@given(cut=cuts(), seed=st.integers(0, 3), data=st.data())
def test_any_partition_order_and_tree_gives_the_whole(schema: Any, cut: Any, seed: int, data: st.DataObject) -> None:
    X, y = records_of(schema, RECORDS, np.random.default_rng(seed))
    ids = np.arange(RECORDS)
    for clip in (None, *of_persons(schema)):
        door = Partitioned(schema, published(schema), "leave out", clip)
        terms: Any = {"published": published(schema), "unreadable": "leave out", "person_clip": clip}
        whole = ps.moments.exact_moments(schema, X, y, **terms, persons=None if clip is None else ids // 3)
        if clip is not None:  # parts are of whole persons
            cut = [np.concatenate([at[at % 3 == 0] + k for k in range(3)]) for at in cut]
            cut = [at[at < RECORDS] for at in cut]
        sums = [
            door.measure(some(X, at), some(y, at), persons=None if clip is None else (ids // 3)[at], part=str(place))
            for place, at in enumerate(cut)
        ]
        if not clip:
            sums.append(door.zero)
        found = added(sums, lambda n: data.draw(st.integers(0, n - 1)))
        assert found.moments == whole
        assert door.decode(door.encode(found)) == found
        for name in ("records", "counted", "clip_report", "edge_report", "published", "shrunk", "persons", "parties"):
            for each in (
                found.moments,
                door.decode(door.encode(found)).moments,
                pickle.loads(pickle.dumps(found)).moments,
            ):
                assert getattr(each, name, None) == getattr(whole, name, None), name
        assert door.total(door.encode(each) for each in sums if each != door.zero) == whole


def test_parties_that_measure_in_parts_release_what_one_party_with_all_records_releases() -> None:
    schema = ps.ClassSchema(3, 4, "NAB", 1.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)) / 2, rng.integers(0, 3, 90)
    door = Partitioned(schema)
    shards = [slice(0, 31), slice(31, 33), slice(33, 90)]
    party = [door.total(door.measure(X[at][k::4], y[at][k::4]) for k in range(4)) for at in shards]
    assert sum(party[1:], party[0]) == ps.measure(schema, X, y)
    assert party == [ps.measure(schema, X[at], y[at]) for at in shards]


SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
X, Y = np.arange(24).reshape(12, 2) / 48, np.arange(12) % 2
CLIP = made.plan(
    SCHEMA, ps.Cohort(3, 3, 600), made.promise("central", unit="person", max_records_per_person=6, person_clip=1.5)
).person_clip


def test_a_retried_part_replaces_itself() -> None:
    door = Partitioned(SCHEMA)
    wrong = door.measure(X[:3], Y[:3], part="monday")  # the file was longer when it was read again
    sums = [wrong, door.measure(X[6:], Y[6:], part="tuesday"), door.measure(X[:6], Y[:6], part="monday")]
    assert door.total(sums) == ps.measure(SCHEMA, X, Y)
    assert door.total([*sums, door.encode(sums[1])]) == ps.measure(SCHEMA, X, Y)
    with pytest.raises(DataError, match="part 'monday' is in both sums, so its records would count twice"):
        door.total([wrong + sums[1], sums[2]])


def test_parts_without_a_name_all_count() -> None:
    door = Partitioned(SCHEMA)
    assert door.total([door.measure(X, Y), door.measure(X, Y)]) == ps.measure(SCHEMA, [*X, *X], [*Y, *Y])


def test_no_part_is_one_sentence_and_a_part_without_rows_is_a_sum() -> None:
    door = Partitioned(SCHEMA)
    with pytest.raises(DataError, match="no part was measured; pass at least one, possibly of no rows"):
        door.total([])
    assert door.total([door.zero, door.measure(X[:0], Y[:0])]) == ps.measure(SCHEMA, X[:0], Y[:0])
    assert door.zero + door.zero == door.zero


def test_a_person_in_two_parts_is_refused_before_anything_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Partitioned(SCHEMA, person_clip=CLIP)
    left = door.measure(X[:6], Y[:6], persons=["007", "b", "b", "c", "c", None])
    right = door.measure(X[6:], Y[6:], persons=[7.0, 8.0, 8.0, 9.0, 9.0, np.nan])
    monkeypatch.setattr(ps.moments.PersonMoments, "__add__", lambda *_: pytest.fail("sums were added"))
    with pytest.raises(
        DataError, match=r"a person has rows in two parts, and would count in full in both: pass shared="
    ):
        left + right
    monkeypatch.undo()
    fine = door.measure(X[6:], Y[6:], persons=[70, 80, 80, 90, 90, 90])
    assert (left + fine).moments.records == 11  # an id is missing


def test_the_column_of_ids_is_taken_by_name_and_is_no_feature() -> None:
    door = Partitioned(ps.ClassSchema(2, 2, "NA", 1.0, feature_names=("a", "b")), person_clip=CLIP)
    table = pd.DataFrame({"a": X[:, 0], "Pid": np.arange(12) // 4, "ill": Y, "b": X[:, 1]})
    found = door.measure(table, "ill", persons="pid").moments
    assert found == ps.measure(door.schema, X, Y, persons=np.arange(12) // 4, person_clip=CLIP)
    with pytest.raises(DataError, match="partition 3: persons='id' names no column of X"):
        door.measure(table, "ill", persons="id", part="3")
    with pytest.raises(DataError, match="persons='id' names no column of X"):
        door.measure(X, Y, persons="id")
    with pytest.raises(DataError, match="persons= and person_clip= go together"):
        door.measure(X, Y)


def test_an_error_names_the_part_and_keeps_its_class() -> None:
    with pytest.raises(RecordError, match="partition north: X holds NaN"):
        Partitioned(SCHEMA).measure([[np.nan, 0.0]], [0], part="north")


def test_bytes_of_another_plan_or_of_nothing_are_refused() -> None:
    door, sums = Partitioned(SCHEMA), Partitioned(SCHEMA).measure(X, Y)
    content = door.encode(sums)
    for other in (
        Partitioned(replace(SCHEMA, clip_norm=2.0)),
        Partitioned(SCHEMA, unreadable="leave out"),
        Partitioned(SCHEMA, person_clip=CLIP),
    ):
        with pytest.raises(DataError, match="measured under another plan or version; measure its part again"):
            other.decode(content)
    with pytest.raises(DataError, match="these bytes are no sum of a part"):
        door.decode(content[:-1])
    short = msgspec.msgpack.encode({**msgspec.msgpack.decode(content), "vector": b"123"})
    with pytest.raises(DataError, match="damaged; measure the part again"):
        door.decode(short)


def test_a_repr_shows_no_sum_and_no_id() -> None:
    door = Partitioned(SCHEMA, person_clip=CLIP)
    shown = repr(door.measure(X, Y, persons=np.arange(12), part="north"))
    assert shown == "PartSum(parts=('north',))"


@given(st.lists(st.one_of(st.none(), st.integers(-30, 30), st.sampled_from(["7", "007", "a", " a", "1.5", "n/a"]))))
def test_equal_fingerprints_are_equal_persons(ids: list[Any]) -> None:
    codes, bits = persons_of(ids), persons_in(ids)
    assert len(bits) == len(set(codes[codes >= 0].tolist()))
    assert (np.sort(bits) == bits).all()
    split = [persons_in([each]).tolist() for each in ids]
    assert sorted({bit for each in split for bit in each}) == bits.tolist()
    numbers = np.array([each for each in ids if isinstance(each, int)], np.int64)
    assert persons_in(numbers).tolist() == persons_in([str(each) for each in numbers]).tolist()


@pytest.mark.filterwarnings("default::UserWarning")
def test_one_warning_counts_what_no_part_could_read() -> None:
    cells = ps.Cells((ps.Numeric("age", (40,)), ps.Categories("sex", ("f", "m"))))
    schema = ps.ClassSchema(2, statistics="NA", clip_norm=1.0, transform=(cells,))
    tables = [
        {"age": [50, "Anna"], "sex": ["f", sex], "ill": [1, ill]} for sex, ill in (("m", 0), ("x", 7), ("m", None))
    ]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = measure(schema, map(pd.DataFrame, tables), "ill", unreadable="leave out")
    assert found.records == 4
    excluded, missing = (str(each.message) for each in told)
    assert "2 of the records cannot be read and are excluded" in excluded
    assert "3 of 'age' are no numbers" in missing
    assert "1 of 'sex' are not among its listed values" in missing
    assert {each.filename for each in told} == {__file__}

    door, sums = Partitioned(schema, unreadable="leave out"), []
    with warnings.catch_warnings(action="error"):
        for table in tables:
            sums.append(door.encode(door.measure(pd.DataFrame(table), "ill")))
    assert not any(b"Anna" in each for each in sums)
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        assert door.total(sums) == found
    assert "2 of the records cannot be read and are excluded" in str(again[0].message)
    assert "3 of 'age' are no numbers" in str(again[1].message)
    assert {each.filename for each in again} == {__file__}
