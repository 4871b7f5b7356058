"""One more row, of any hostile value, in any container and through any door: nothing moves but by that row.

Values of the others are halves of a grid step in float32, which become other numbers when they are written as texts and
read again: an array that gives all rows the type of one moves them.
"""

import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import privstats as ps
from privstats.contrib.streams import PersonRows
from privstats.course import alone
from privstats.moments import Records, exact_moments
from tests import made
from tests.moments.test_readable import published_of
from tests.schema.samples import SCHEMAS

VALUES: tuple[Any, ...] = (
    *("x", "0.1", "", b"\xff", "7" * 2000, None, float("nan"), float("inf"), np.ma.masked, True, 3 + 1j, 0.1),
    *(2**63, 10**30, 10**400, Decimal("0.1"), Decimal("sNaN"), np.longdouble("1e400"), np.float16(0.1), np.uint64(3)),
    *(date(2020, 1, 2), datetime(2020, 1, 2), np.datetime64("2020-01-02"), np.timedelta64(3, "s"), [0.1], {}, object()),
)
ROWS: tuple[Any, ...] = (None, "x", 0.1, [], [0.1], [0.1] * 9, [[0.1] * 4] * 2, np.eye(4), np.ones(4, object), {}, b"x",
    [10**400] * 4, [np.longdouble("1e400")] * 4, csr_array(np.eye(4)))  # fmt: skip
SUMS = [schema for schema in SCHEMAS if schema.task not in ("sites", "within", "gaussians", "party-softmax",
    "party-update", "counts", "hazard") and not getattr(schema, "module", None)]  # fmt: skip
"""Kinds of which every record adds for itself, to rows of features."""
CLASSES = ps.ClassSchema(3, 4, "NAB", 1.0)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(action="ignore"):
        yield


def halves(n: int, columns: int, seed: int = 0) -> np.ndarray:
    """Odd numbers of half grid steps, which float32 holds."""
    return ((2 * np.random.default_rng(seed).integers(-1500, 1500, (n, columns)) + 1) / 2**13).astype(np.float32)


def rows_of(schema: Any, n: int = 6) -> tuple[list[list[Any]], list[Any]]:
    """Lists of float32, and labels or targets."""
    wide = ps.transforms.input_features(schema.transform, schema.features - schema.appended)
    X, kind = halves(n, wide), getattr(schema, "rows", schema)
    if schema.transform and schema.task == "effect":
        X[:, -2], X[:, -1] = np.arange(n) % 3, np.arange(n) % 2
    if isinstance(kind, ps.ClassSchema):
        y: Any = [place % kind.classes for place in range(n)]
        y = y if kind.class_names is None else [kind.class_names[label] for label in y]
    else:
        targets = getattr(kind, "targets", 1)
        y = [list(row) for row in np.abs(halves(n, targets, 1))] if targets > 1 else list(np.abs(halves(n, 1, 1)[:, 0]))
    return [list(row) for row in X], y


def added(schema: Any, X: Any, y: Any, unreadable: Any = "leave out", **persons: Any) -> Any:
    """What the records add, and how many they are."""
    found = exact_moments(schema, X, y, published=published_of(schema), unreadable=unreadable, **persons)
    return ps.encoding.flatten(found), found.records, getattr(found, "counted", 0)


def differ(more: Any, fewer: Any, alone: Any, what: Any) -> None:
    """The one record adds what it adds by itself."""
    np.testing.assert_array_equal(more[0], fewer[0] + alone[0], repr(what))
    assert more[1:] == tuple(a + b for a, b in zip(fewer[1:], alone[1:], strict=True)), repr(what)


def hostile(width: int, y: Any, part: int = 0, of: int = 1) -> Iterator[tuple[Any, Any]]:
    """Rows with labels or targets, each with a value of another type in one of both; a part of all of them."""
    for value in VALUES[part::of]:
        yield [value] * width, y
        yield [0.25] * (width - 1) + [value], y
        yield [0.25] * width, [value] * len(y) if isinstance(y, list) else value
    for row in ROWS[part::of]:
        yield row, y
        yield [0.25] * width, row


@pytest.mark.parametrize("place", range(len(SUMS)), ids=lambda at: f"{SUMS[at].task}-{SUMS[at].statistics}")
def test_one_row_of_a_list_moves_the_sums_of_every_kind_by_itself(place: int) -> None:
    schema = SUMS[place]
    X, y = rows_of(schema)
    base = added(schema, np.array(X, np.float64), np.array(y))
    np.testing.assert_array_equal(added(schema, X, y)[0], base[0])
    for row, label in hostile(len(X[0]), y[0], place % 5, 5):
        one = added(schema, [row], [label])
        differ(added(schema, [*X[:3], row, *X[3:]], [*y[:3], label, *y[3:]]), base, one, (row, label))


class Unheard(list[float]):
    """Whose length and entries cannot be asked for."""

    def __len__(self) -> int:
        raise RuntimeError

    __iter__ = __len__  # type: ignore[assignment]


def test_a_row_of_a_class_that_cannot_be_asked_is_left_out_alone() -> None:
    X, y = rows_of(CLASSES)
    base, odd = added(CLASSES, X, y), Unheard([0.25] * 4)
    for row, label in ((odd, 0), ([0.25] * 3 + [odd], 0), ([0.25] * 4, odd)):
        differ(added(CLASSES, [*X[:3], row, *X[3:]], [*y[:3], label, *y[3:]]), base, (0, 0, 0), type(row))


@pytest.mark.parametrize("schema", SUMS[:4], ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_one_row_that_can_be_read_moves_no_other_where_others_are_refused(schema: Any) -> None:
    X, y = rows_of(schema)
    base, read = added(schema, np.array(X, np.float64), np.array(y), "refuse"), 0
    for row, label in hostile(len(X[0]), y[0]):
        rows = [*X[:3], row, *X[3:]], [*y[:3], label, *y[3:]]
        try:
            one = added(schema, [row], [label], "refuse")
        except ps.DataError:
            with pytest.raises(ps.errors.RecordError):
                added(schema, *rows, "refuse")
            continue
        differ(added(schema, *rows, "refuse"), base, one, (row, label))
        read += 1
    assert read > 10


@pytest.mark.parametrize("schema", SUMS[:4], ids=lambda schema: f"{schema.task}-{schema.statistics}")
@pytest.mark.parametrize("kind", ["M8[ns]", "m8[ns]", "M8[D]"])
def test_one_gap_under_a_mask_makes_no_numbers_of_the_times_of_others(schema: Any, kind: str) -> None:
    X, y = rows_of(schema)
    times = np.ones((len(X), len(X[0])), kind)
    base = added(schema, times, np.array(y))
    masked = np.ma.array(times, mask=np.eye(len(X), len(X[0]), dtype=bool))
    differ(added(schema, masked, np.array(y)), base, (0, 0, 0), kind)
    assert base[1] == 0, "a time is no number"
    assert added(schema, masked[:0], np.array(y)[:0])[1] == 0


def test_one_cell_of_a_table_moves_the_counts_and_hazards_by_its_own_record() -> None:
    counts, hazard = (next(each for each in SCHEMAS if each.task == task) for task in ("counts", "hazard"))
    columns = {
        "sex": ["f", "m", "m"], "age": list(np.array([39.5, 40, 59], np.float32)), "months": [3, np.float32(6.5), 30],
        "died": [0, 1, 1], **{name: list(column) for name, column in zip(("arm", "dose"), halves(3, 2).T, strict=True)},
    }  # fmt: skip
    for schema in (counts, hazard):
        names = [name for name in columns if schema is hazard or name in ("sex", "age")]
        whole = {name: columns[name] for name in names if name != "sex" or schema is counts}
        base = added(schema, whole, None)
        for value in VALUES:
            for name in whole:
                row = {each: value if each == name else column[1] for each, column in whole.items()}
                one = added(schema, {each: [entry] for each, entry in row.items()}, None)
                more = {each: [*column[:1], row[each], *column[1:]] for each, column in whole.items()}
                differ(added(schema, more, None), base, one, (name, value))


CLIPS = (made.plan(CLASSES, ps.Cohort(3, 3, 1000), made.promise(unit="person", max_records_per_person=4,
    person_clip=2.0)).person_clip, ps.encoding.PersonAverage())  # fmt: skip
IDS = ["anna"] * 4 + ["ben"] * 3 + ["7", "7.0", "carl"]


def containers(X: Sequence[Sequence[float]], *more: Any) -> Iterator[tuple[str, Any]]:
    """The rows, and perhaps one more, in every container that can hold them."""
    whole: Any = [*(list(each) for each in X), *more]
    yield "lists", whole
    yield "tuples", tuple(tuple(each) if isinstance(each, list) else each for each in whole)
    yield "arrays in a list", [np.array(each) if place < len(X) else each for place, each in enumerate(whole)]
    yield "a deque", deque(whole)
    if not all(isinstance(row, list) and len(row) == len(X[0]) for row in more):
        return
    values = [value for row in more for value in row]
    objects = np.empty((len(whole), len(X[0])), object)
    for place, each in enumerate(whole):
        for column, value in enumerate(each):
            objects[place, column] = value
    yield "an array of objects", objects
    for name, kind in (("float64", np.float64), ("float32", np.float32)):
        if all(isinstance(value, float | np.floating) for value in values):
            yield name, objects.astype(kind)
            yield f"a mask over {name}", np.ma.masked_invalid(objects.astype(kind))
            yield f"a tensor of {name}", pytest.importorskip("torch").tensor(objects.astype(kind))
    if any(isinstance(value, Decimal) and value.is_snan() for value in values):  # pandas raises
        return
    columns = {f"c{place}": [float(v) if isinstance(v, np.float32) else v for v in column]
        for place, column in enumerate(objects.T)}  # fmt: skip
    yield from ((name, table) for name, table in ps.testing.held(columns).items() if not isinstance(table, Mapping))


LISTS = ("lists", "tuples", "arrays in a list", "a deque")


def of_containers(width: int, rows: Sequence[Any], lists: bool) -> Iterator[tuple[str, Any, Any, Any]]:
    """By name the container of plain rows, that with one more, and that row."""
    X = halves(len(IDS), width)
    plain = dict(containers(X))
    for row in rows:
        for name, table in containers(X, row):
            if (name in LISTS) is lists and not ("CSV" in name and any(isinstance(each, complex) for each in row)):
                yield name, plain[name], table, row  # pandas writes 1 as (1+0j) beside 3+1j


@pytest.mark.parametrize(
    ("clip", "lists"),
    [(CLIPS[0], True), pytest.param(CLIPS[0], False, marks=pytest.mark.ci),
        *(pytest.param(CLIPS[1], lists, marks=pytest.mark.nightly) for lists in (True, False))],
)  # fmt: skip
def test_rows_of_one_person_more_move_sums_and_digests_by_that_person(clip: Any, lists: bool) -> None:
    """In every container: by ``measure``, and by ``PersonRows``, which streams hold against what entered."""
    y, terms, tried = [place % 3 for place in range(len(IDS))], {"person_clip": clip}, dict[str, int]()
    X = halves(len(IDS), 4)
    base, digests = added(CLASSES, X, y, persons=IDS, **terms), PersonRows.of(X, y, IDS).digests
    rows = [[0.25] * 3 + [value] for value in VALUES] + list(ROWS if lists else ())
    for name, plain, table, row in of_containers(4, rows, lists):
        ids, labels = [*IDS, "zoe"], [*y, 1]
        if name not in tried:
            np.testing.assert_array_equal(added(CLASSES, plain, y, persons=IDS, **terms)[0], base[0], name)
            assert PersonRows.of(plain, y, IDS).digests == digests, name
        one = added(CLASSES, [row], [1], persons=["zoe"], **terms)
        differ(added(CLASSES, table, labels, persons=ids, **terms), base, one, (name, row))
        here = PersonRows.of(table, labels, ids)
        assert {person: here.digests[person] for person in digests} == digests, (name, row)
        for some, want in ((here.without(["zoe"]), base), (here.only(["zoe"]), one)):
            np.testing.assert_array_equal(
                ps.encoding.flatten(some.measured(CLASSES, clip, "leave out")), want[0], repr(row)
            )
        tried[name] = tried.get(name, 0) + 1
    if lists:
        assert tried == dict.fromkeys(LISTS, len(VALUES) + len(ROWS))
    else:
        assert {"an array of objects", "a frame", "an Arrow table", "a tensor of float32"} <= set(tried)


PERSONS = made.plan(CLASSES, ps.Cohort(2, 2, 1000), made.promise(unit="person", person_clip="average"))
RECORDS = made.plan(CLASSES, ps.Cohort(2, 2, 1000), made.promise())
TERMS = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged"}
Rows = tuple[Any, Any, Any]


def release(rows: Rows) -> None:
    ps.private_release(CLASSES, RECORDS.privacy, *rows[:2], ledger="uncharged")


def release_of_persons(rows: Rows) -> None:
    ps.private_release(CLASSES, PERSONS.privacy, *rows[:2], persons=rows[2], ledger="uncharged")


def releases(rows: Rows) -> None:
    unit = ps.ClassSchema(3, 4, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    course = ps.Rounds.within(alone.single_party_plan(unit, made.promise()), rounds=1, expected_records=100)
    ps.private_releases(course, *rows[:2], ledger="uncharged")


def fit_private(rows: Rows) -> None:
    ps.heads.LDA().fit_private(*rows[:2], clip_norm=1.0, classes=(0, 1, 2), **TERMS)


def fit_private_in_rounds(rows: Rows) -> None:
    ps.heads.RefinedSoftmax(rounds=1).fit_private(
        *rows[:2], clip_norm=1.0, classes=(0, 1, 2), expected_records=100, **TERMS
    )


def estimator(rows: Rows) -> None:
    ps.heads.Private(ps.heads.NaiveBayes(), clip_norm=1.0, classes=(0, 1, 2), **TERMS).fit(*rows[:2])


def simulate(rows: Rows) -> None:
    ps.simulate(RECORDS, [rows[:2], ([], [])], rng=ps.randomness.seeded(0))


def simulate_persons(rows: Rows) -> None:
    ps.simulate(PERSONS, [rows, ([], [], [])], rng=ps.randomness.seeded(0))


def simulate_a_stream(rows: Rows) -> None:
    ps.simulate(ps.Stream(PERSONS, epochs=1), [[rows, ([], [], [])]], rng=ps.randomness.seeded(0))


_LONG = (simulate, simulate_persons, simulate_a_stream)  # sessions with masks
DOORS = (release, release_of_persons, releases, fit_private, fit_private_in_rounds, estimator,
    *(pytest.param(door, marks=pytest.mark.ci) for door in _LONG))  # fmt: skip


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_one_row_more_moves_what_is_measured_behind_every_door_by_itself(door, monkeypatch):
    """What is measured first, for later rounds follow from noise; a row that is refused is refused alone too."""
    seen: list[Any] = []

    def watched(*given: Any, **terms: Any) -> Any:
        seen.append(exact_moments(*given, **terms))
        return seen[-1]

    monkeypatch.setattr("privstats.course.alone.exact_moments", watched)
    monkeypatch.setattr("privstats.workflows.simulate.exact_moments", watched)

    def through(X: Any, y: Any, ids: Any) -> Any:
        seen.clear()
        try:
            door((X, y, ids))
        except ps.DataError:  # a record that is refused; what comes behind the sums is no matter of this test
            if not seen:
                return None
        return ps.encoding.flatten(seen[0])

    X, y = [list(row) for row in halves(len(IDS), 4)], [np.int64(place % 3) for place in range(len(IDS))]
    base, tried = through(np.array(X, np.float64), np.array(y), IDS), 0
    for value in ("0.25", True, Decimal("0.25"), 10**30, b"0.25", "x", None, np.datetime64("2020-01-02")):
        for row, label in (([0.25] * 3 + [value], 1), ([0.25] * 4, value), (value, 1), ([0.25] * 4, "1")):
            more, one = through([*X, row], [*y, label], [*IDS, "zoe"]), through([row], [label], ["zoe"])
            assert (more is None) == (one is None), (row, label)
            if one is not None:
                np.testing.assert_array_equal(more, base + one, repr((row, label)))
                tried += 1
    assert tried >= 12


def test_one_row_more_keeps_no_other_out_of_a_split() -> None:
    X = halves(40, 3).astype(object)
    kept = Records(X, np.arange(40)).summed(0.5, 1).y.tolist()
    for value in VALUES:
        row = np.empty((1, 3), object)
        row[0, :2], row[0, 2:] = 0.25, [value] if not isinstance(value, list) else [[value]]
        more = Records(np.concatenate([X, row]), np.arange(41)).summed(0.5, 1)
        assert [each for each in more.y.tolist() if each < 40] == kept, value


def test_rows_of_a_frame_stand_in_the_order_of_the_plan_and_in_no_other() -> None:
    """Whose columns have names is summed by them, in a stream as by ``measure``."""
    frames, names = pytest.importorskip("pandas"), ("a", "b", "c", "d")
    schema = ps.ClassSchema(3, 4, "NAB", 1.0, feature_names=names)
    X, y = halves(len(IDS), 4), np.arange(len(IDS)) % 3
    turned = frames.DataFrame(X, columns=list(names))[["d", "b", "a", "c"]]
    want = added(schema, X, y, persons=IDS, person_clip=CLIPS[0])[0]
    found = PersonRows.of(turned, y, IDS).measured(schema, CLIPS[0], "leave out")
    np.testing.assert_array_equal(ps.encoding.flatten(found), want)
