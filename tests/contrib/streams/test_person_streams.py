"""Streams of persons: all rows of one enter and leave together, and no schedule that a registry admits passes mu."""

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.streams import (
    MomentsDelta,
    Pending,
    PersonDelta,
    PersonRegistry,
    PersonRows,
    RecordRegistry,
)
from privstats.course import spend
from tests import made
from tests.contrib.streams.streams import SECRET, levels_of
from tests.contrib.streams.test_record_registry import sent
from tests.contrib.streams.test_stream import columns_of
from tests.made import refused

CLASSES = ps.ClassSchema(3, 4, "NAB", 1.0)
RIDGE = ps.RidgeSchema(4, 1, clip_norm=1.0, target_bound=2.0)
CLIENTS = 3
MECHANISMS: tuple[Any, ...] = ("increments", "tree", "square-root")
ADJACENCIES = ("add-remove", "replace-one")


def stream_of(mechanism: Any = "increments", epochs: int = 4, *, schema: Any = CLASSES, **kind: Any) -> ps.Stream:
    terms = {name: kind.pop(name) for name in ("deletions", "repeats") if name in kind}
    most = {} if kind.get("person_clip") == "average" else {"max_records_per_person": 5}
    promise = made.promise(**{"unit": "person", **most, "person_clip": 2.0, **kind})
    return ps.Stream(made.plan(schema, ps.Cohort(CLIENTS, 2, 3000), promise), epochs, mechanism, **terms)


def book_of(folder: Path, stream: ps.Stream) -> PersonRegistry:
    path, privacy = folder / "party.db", stream.plan.privacy
    ledger = ps.dp.Ledger.open(path) if path.exists() else ps.dp.Ledger.create(path)
    assert isinstance(privacy, ps.Privacy)
    if not ledger.accounts():
        cap = {"epsilon": privacy.epsilon, "delta": privacy.delta}
        ledger.set_cap("ward", unit="person", adjacency=privacy.adjacency, **cap)
    return PersonRegistry.open(stream, ledger, spend(stream, ledger, "ward", b"may"), SECRET)


def rows_of(rng: np.random.Generator, schema: Any, counts: dict[str, int]) -> PersonRows:
    """So many rows of each, short or far beyond the bounds, alike or not."""
    names = [name for name, count in counts.items() for _ in range(count)]
    X = (rng.normal(size=4) + rng.choice([0.0, 0.3]) * rng.normal(size=(len(names), 4))) * rng.choice([0.1, 1.0, 9.0])
    y = rng.integers(0, 3, len(names)) if schema is CLASSES else rng.normal(size=len(names))
    return PersonRows.of(X, y, names)


def added(stream: ps.Stream, rows: PersonRows) -> np.ndarray:
    """The integers that these persons add, measured at once and alone."""
    plan = stream.plan
    return ps.encoding.flatten(ps.moments.exact_moments(plan.schema, rows.X, rows.y, persons=list(rows.persons),
                                            person_clip=plan.person_clip))  # fmt: skip


def far(stream: ps.Stream, nodes: np.ndarray) -> float:
    """How many times the plan's mu a change of what is released is worth, ``(nodes, size)``, by the noise alone."""
    return math.sqrt(float(((nodes / levels_of(stream)) ** 2).sum())) / stream.plan.noise.mu


def seen(stream: ps.Stream, sums: np.ndarray) -> np.ndarray:
    """What the nodes release of sums of theirs: of the square root weighed, from the definition."""
    return columns_of("square-root", stream.epochs) @ sums if stream.row.correlated else sums


@st.composite
def schedules(draw: Any) -> dict[str, Any]:
    epochs = draw(st.sampled_from([1, 2, 4, 8]))
    enters = draw(st.integers(0, epochs - 1))
    return {
        "epochs": epochs,
        "enters": enters,
        "leaves": draw(st.none() | st.integers(enters, epochs - 1)),
        "away": draw(st.sets(st.integers(0, epochs - 1))),
        "lost": draw(st.sets(st.integers(0, 2 * epochs))),
    }


def played(folder: Path, stream: ps.Stream, way: dict[str, Any], rows: PersonRows) -> np.ndarray:
    """The sums of every node that a registry admits of one person, ``(nodes, size)``, lost ones included: they left."""
    folder.mkdir()
    book, sums = book_of(folder, stream), np.zeros((stream.most, stream.first.layout.size), np.int64)
    for node, place in enumerate(stream.nodes):
        state = book.state("7")
        if state == "new" and place.epoch >= way["enters"]:
            book.enter(rows)
        elif state == "in" and stream.deletions and way["leaves"] is not None and place.epoch >= way["leaves"]:
            book.leave(["7"])
        if place.epoch in way["away"]:
            continue
        pending = book.pending(node, ["7"])
        sums[node] = ps.encoding.flatten(book.delta(pending, rows))
        assert sent(book, node, ["7"]) == pending
        if node in way["lost"] and stream.repeats:
            book.lose(node)
    return sums


@pytest.mark.ci
@settings(deadline=None)
@given(
    mechanism=st.sampled_from(MECHANISMS),
    adjacency=st.sampled_from(ADJACENCIES),
    schema=st.sampled_from([CLASSES, RIDGE]),
    ways=st.tuples(schedules(), schedules()),
    terms=st.tuples(st.booleans(), st.integers(0, 2), st.sampled_from([2.0, 5.0, "average"])),
    sizes=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    opposed=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_no_schedule_of_a_person_and_of_no_exchange_passes_the_promise(
    tmp_path_factory: Any, mechanism: Any, adjacency: str, schema: Any, ways: Any, terms: Any, sizes: Any,
    opposed: bool, seed: int,
) -> None:  # fmt: skip
    deletions, repeats = terms[0], 0 if mechanism == "square-root" else terms[1]
    epochs, rng, folder = ways[0]["epochs"], np.random.default_rng(seed), tmp_path_factory.mktemp("play")
    kind: Any = {"schema": schema, "adjacency": adjacency, "deletions": deletions, "person_clip": terms[2]}
    stream = stream_of(mechanism, epochs, repeats=repeats, **kind)
    one = rows_of(rng, schema, {"7": sizes[0]})
    other = PersonRows(-one.X, one.y, one.persons) if opposed else rows_of(rng, schema, {"7": sizes[1]})
    there = {**ways[1], "enters": ways[1]["enters"] % epochs}
    first, second = played(folder / "a", stream, ways[0], one), played(folder / "b", stream, there, other)
    assert far(stream, seen(stream, first)) <= 1 + 1e-9
    if adjacency == "replace-one":
        assert far(stream, seen(stream, first - second)) <= 1 + 1e-9


@pytest.mark.parametrize("clip", [2.0, "average"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_price_is_spent_by_the_worst_person(mechanism: Any, clip: Any, tmp_path: Path) -> None:
    """So no smaller noise would do: a person of many rows, who comes and goes at the worst epochs."""
    stream = stream_of(mechanism, deletions=True, person_clip=clip)
    rows, reached = PersonRows.of(np.tile([0.5, 0.5, 0.5, 0.5], (30, 1)), [0] * 30, ["7"] * 30), []
    for enters, leaves in combinations(range(4), 2):
        way = {"enters": enters, "leaves": leaves, "away": (), "lost": ()}
        reached.append(far(stream, seen(stream, played(tmp_path / f"{enters}{leaves}", stream, way, rows))))
    assert 0.995 < max(reached) <= 1


@pytest.mark.parametrize(("mechanism", "least"), [("increments", 0.86), ("tree", 0.6), ("square-root", 0.6)])
def test_one_who_enters_where_the_other_leaves_is_paid_for(mechanism: Any, least: float, tmp_path: Path) -> None:
    """Persons alike, whose sums are counts alone: what a record's exchange costs would be too little."""
    stream = stream_of(mechanism, adjacency="replace-one", deletions=True)
    rows, ways = PersonRows.of(np.zeros((30, 4)), [0] * 30, ["7"] * 30), ((0, 1), (1, 2))
    one, other = (
        played(tmp_path / f"{at}", stream, {"enters": at, "leaves": till, "away": (), "lost": ()}, rows)
        for at, till in ways
    )
    assert least < far(stream, seen(stream, one - other)) <= 1


def test_rows_that_came_apart_would_pass_the_promise() -> None:
    """Why all rows enter together: in one node of a tree a person's halves add up, each shortened for itself."""
    stream, rows = stream_of("tree"), PersonRows.of(np.full((60, 4), 0.5), [0] * 60, ["7"] * 60)
    half = added(stream, PersonRows(rows.X[:30], rows.y[:30], rows.persons[:30]))
    sums = np.zeros((stream.most, half.size), np.int64)
    for node, place in enumerate(stream.nodes):
        sums[node] = (int(place.since <= 0 <= place.epoch) + int(place.since <= 1 <= place.epoch)) * half
    assert far(stream, sums) > 1.5


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_fresh_half_at_each_level_is_refused(mechanism: Any, tmp_path: Path) -> None:
    stream, rng = stream_of(mechanism, deletions=True), np.random.default_rng(1)
    book, rows = book_of(tmp_path, stream), rows_of(rng, CLASSES, {"anna": 4, "ben": 1})
    book.enter(rows)
    due = book.pending(0, ["anna", "ben"])
    fewer = PersonRows(rows.X[1:], rows.y[1:], rows.persons[1:])
    more = PersonRows(np.vstack([rows.X, rows.X[:1]]), np.append(rows.y, 0), (*rows.persons, "ben"))
    for changed, count in ((fewer, 1), (more, 1), (PersonRows(rows.X + 1e-9, rows.y, rows.persons), 2)):
        refused(
            ps.DataError, f"rows of {count} persons are not those with which they entered", book.delta, due, changed
        )
    refused(ps.DataError, "rows of 1 persons who are due are missing", book.delta, due, rows.only(["anna"]))
    refused(ps.DataError, "rows of 2 persons who are due are missing", book.delta, due)
    turned = PersonRows(rows.X[::-1].astype(object), rows.y[::-1].astype(str), rows.persons[::-1])
    assert book.delta(due, turned) == book.delta(due, rows)


def test_a_changed_row_is_refused_when_its_person_leaves(tmp_path: Path) -> None:
    """What leaves is what entered: else something of the person would stay for good."""
    stream, rng = stream_of("square-root", deletions=True), np.random.default_rng(2)
    book, rows = book_of(tmp_path, stream), rows_of(rng, CLASSES, {"anna": 3, "ben": 7})
    book.enter(rows)
    sent(book, 0, ["anna", "ben"])
    book.leave(["anna"])
    due = book.pending(1, ["anna", "ben"])
    assert (due.entering, due.leaving) == ((), ("anna",))
    since = PersonRows(np.vstack([rows.X, rows.X[:1]]), np.append(rows.y, rows.y[0]), (*rows.persons, "anna"))
    for changed in (since, PersonRows(rows.X[1:], rows.y[1:], rows.persons[1:])):
        refused(ps.DataError, "pass exactly these", book.delta, due, changed)
    assert np.array_equal(ps.encoding.flatten(book.delta(due, rows)), -added(stream, rows.only(["anna"])))


def test_a_person_is_unlearned_by_id_and_is_gone_to_the_last_integer(tmp_path: Path) -> None:
    stream, rng = stream_of("increments", deletions=True), np.random.default_rng(3)
    book, rows = book_of(tmp_path, stream), rows_of(rng, CLASSES, {"7": 9, "ben": 2, "cleo": 1})
    book.enter(rows)
    total = book.delta(book.pending(0, rows.names), rows)
    sent(book, 0, list(rows.names))
    book.leave(["007"])
    assert (book.state("7.0"), book.state("ben")) == ("gone", "in")
    total = total + book.delta(book.pending(1, rows.names), rows)
    assert np.array_equal(ps.encoding.flatten(total), added(stream, rows.without(["7"])))
    assert (total.entered, total.left) == (3, 1)
    with pytest.raises(
        ps.LedgerError, match="1 of these persons have entered the stream before, and a person enters once"
    ):
        book.enter(rows.only(["7"]))


def test_who_comes_again_is_refused_and_others_are_told_apart(tmp_path: Path) -> None:
    stream, rng = stream_of(), np.random.default_rng(4)
    book = book_of(tmp_path, stream)
    book.enter(rows_of(rng, CLASSES, {"7": 2}))
    later = rows_of(rng, CLASSES, {"007": 1, "ben": 2})
    refused(ps.LedgerError, "1 of these persons", book.enter, later)
    assert book.state("ben") == "new"  # all or nothing
    book.enter(later.without(["7"]))
    refused(ps.LedgerError, "without deletions", book.leave, ["7"])
    assert book_of(tmp_path, stream).records() == {"in": 2}  # read from the disk


def test_a_registry_of_another_rule_of_ids_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another rule two forms of an id may be two persons, or one form nobody's."""
    stream = stream_of(deletions=True)
    with monkeypatch.context() as another:
        another.setattr(PersonRegistry, "rule", 1)
        book_of(tmp_path, stream)
    refused(ps.LedgerError, "reads ids of persons by rule 1, and this privstats by rule 2", book_of, tmp_path, stream)


def test_marks_are_keyed_and_a_rewritten_one_is_found(tmp_path: Path) -> None:
    """The file shows no digest of rows that somebody could guess, and nobody swaps a person's rows there."""
    stream, rng = stream_of(), np.random.default_rng(5)
    book, rows = book_of(tmp_path, stream), rows_of(rng, CLASSES, {"anna": 2})
    book.enter(rows)
    held = (tmp_path / "party.db").read_bytes()
    assert rows.digests["anna"][:16] not in held
    with book._log.looking() as view:
        (mark,) = view.marks.values()
    assert mark in held
    (tmp_path / "party.db").write_bytes(held.replace(mark, bytes(16)))
    refused(ps.LedgerError, "was edited", book.delta, Pending(0, ("anna",), ()), rows)


def test_each_registry_is_of_its_unit(tmp_path: Path) -> None:
    persons, records = stream_of(), ps.Stream(made.plan(CLASSES, ps.Cohort(3, 2, 300), made.promise()), 4)
    ledger = ps.dp.Ledger.create(tmp_path / "ledger.db")
    for name, unit in (("rows", "record"), ("patients", "person")):
        ledger.set_cap(name, unit=unit, adjacency="add-remove", epsilon=3.0, delta=1e-5)  # type: ignore[arg-type]
    entries = spend(persons, ledger, "patients", b"a"), spend(records, ledger, "rows", b"b")
    assert {entry.apart for entry in entries} == {"holding"}
    with pytest.raises(ps.LedgerError, match="another unit than a record: open a PersonRegistry"):
        RecordRegistry.open(persons, ledger, entries[0], SECRET)
    with pytest.raises(ps.LedgerError, match="another unit than a person: open a RecordRegistry"):
        PersonRegistry.open(records, ledger, entries[1], SECRET)
    for dataset, said in (("rows", "the plan weighs whole persons"), ("none", "no account")):
        refused(ps.LedgerError, said, spend, persons, ledger, dataset, b"c")
    assert ledger.account("patients").mu == pytest.approx(persons.mu)


@pytest.mark.parametrize("wrong", [["anna"], ("X", "y"), None])
def test_a_person_enters_with_rows(wrong: Any, tmp_path: Path) -> None:
    book = book_of(tmp_path, stream_of())
    refused(ps.LedgerError, "pass PersonRows.of", book.enter, wrong)
    refused(ps.LedgerError, "an id names no person", book.pending, 0, ["n/a"])


def test_a_charge_takes_the_sums_of_its_persons_alone(tmp_path: Path) -> None:
    stream, rng = stream_of(), np.random.default_rng(6)
    book, rows = book_of(tmp_path, stream), rows_of(rng, CLASSES, {"anna": 3, "ben": 1})
    book.enter(rows)
    due = book.pending(0, rows.names)
    charge = book.charge(stream.first, [], due)
    charge.check_moments(book.delta(due, rows))
    clip = stream.plan.person_clip
    assert clip is not None
    one, records = rows.only(["anna"]).measured(CLASSES, clip, "refuse"), ps.measure(CLASSES, rows.X, rows.y)
    for moments in (MomentsDelta.of(one), one, MomentsDelta.of(records)):
        refused(ps.LedgerError, "not the moments of the 2 persons that go with node 0", charge.check_moments, moments)
    for moments in (MomentsDelta.of(records), records):
        refused(ps.DataError, "the plan's promise is per person", ps.session.contribution, stream.first, moments)
    plan, change = made.plan(CLASSES, ps.Cohort(3, 2, 300), made.promise()), book.delta(due, rows)
    refused(ps.DataError, "the plan's promise is not", ps.session.contribution, plan, change)


@pytest.mark.parametrize("schema", [CLASSES, RIDGE], ids=["classes", "ridge"])
def test_masked_totals_are_measuring_all_who_are_in(schema: Any) -> None:
    """Under a promise whose noise is drawn apart: what goes into the ring is exact, with clients that vanish."""
    stream, rng = stream_of("increments", 3, schema=schema, deletions=True), np.random.default_rng(7)
    clip = stream.plan.person_clip
    assert clip is not None
    inside: list[list[PersonRows]] = [[] for _ in range(CLIENTS)]
    epochs = []
    for epoch in range(3):
        shards = []
        for client in range(CLIENTS):
            counts = {f"{epoch}{name}": int(rng.integers(1, 9)) for name in "abc"}
            coming, going = rows_of(rng, schema, counts), inside[client][:1] if epoch else []
            inside[client] = [*inside[client][len(going) :], *(coming.only([name]) for name in coming.names)]
            out = going[0].measured(schema, clip, "refuse") if going else None
            shards.append(MomentsDelta.of(coming.measured(schema, clip, "refuse"), out))
        epochs.append(shards)
    total: Any = sum(change for shards in epochs for change in shards)
    assert isinstance(total, PersonDelta)
    afresh: Any = sum(rows.measured(schema, clip, "refuse") for party in inside for rows in party)
    assert total.settled() == afresh
    releases = ps.simulate(stream, epochs, [None, {"mask": {1}}], ps.randomness.seeded(1))
    moved = np.abs(stream.total(releases).vector - ps.encoding.flatten(afresh))
    assert (moved < 6 * math.sqrt(3) * levels_of(stream)).all()


def test_a_simulated_stream_takes_a_person_once() -> None:
    stream, rng = stream_of("increments", 2), np.random.default_rng(8)
    shard = (rng.normal(size=(4, 4)), np.zeros(4, int), ["a", "a", "7", "8"])
    again = (rng.normal(size=(2, 4)), np.zeros(2, int), ["007", "b"])
    with pytest.raises(ps.DataError, match=r"epochs\[1\]\[2\] holds 1 persons a second time"):
        ps.simulate(stream, [[shard] * 3, [(*again[:2], ["b", "c"])] * 2 + [again]])


@pytest.mark.parametrize("container", ["lists", "frame", "target"])
def test_a_declared_word_is_no_gap_when_a_person_leaves(container: str, tmp_path: Path) -> None:
    """The digest of rows with a declared ``none`` was that of rows with a gap, whose sums differ."""
    pandas = pytest.importorskip("pandas")
    cells = ps.Cells((ps.Categories("x", ("none", "one", "two")), ps.Categories("z", ("a", "b", "c"))))
    names = ("none", "ill") if container == "target" else None
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,), class_names=names)
    book = book_of(tmp_path, stream_of(schema=schema, deletions=True))

    def rows(word: str | None) -> PersonRows:
        if container == "target":
            return PersonRows.of([["one", "a"], ["one", None]], ["ill", word], ["7", "7"])
        X = [[word, "a"], ["one", None]]
        return PersonRows.of(pandas.DataFrame(X, columns=["x", "z"]) if container == "frame" else X, [0, 1], ["7"] * 2)

    assert rows("none").digests == rows(None).digests, "where nothing declares the word, it is a gap"
    book.enter(rows("none"))
    sent(book, 0, ["7"])
    book.leave(["7"])
    due = book.pending(1, ["7"])
    refused(
        ps.errors.DataError, "the rows of 1 persons are not those with which they entered", book.delta, due, rows(None)
    )
    assert book.delta(due, rows(" NONE")).left == 1


EDGES: Any = ("2019-03-28T00:30:00",)
OWN_WAYS = ps.Cells(
    (
        ps.Dates("day", EDGES, written="ISO in Europe/Berlin"),
        ps.Categories("ward", ("042", "42"), as_text=True),
    )
)


@pytest.mark.parametrize("container", ["lists", "frame", "objects"])
def test_rows_are_those_of_the_declaration_when_a_person_leaves(container: str, tmp_path: Path) -> None:
    """The digests of 042 and 42, and of midnight in Greenwich and in Berlin, were alike, and their sums differ."""
    pandas = pytest.importorskip("pandas")
    schema = ps.ClassSchema(2, OWN_WAYS.width, "NAB", 1.0, transform=(OWN_WAYS,))
    book = book_of(tmp_path, stream_of(schema=schema, deletions=True))

    def rows(day: str, ward: str) -> PersonRows:
        X = [[day, ward], [None, 42]]
        frame = pandas.DataFrame({"Ward": [ward, 42], "other": 1, "day": [day, None]})
        forms = {"lists": X, "objects": np.array(X, object), "frame": frame}
        return PersonRows.of(forms[container], [0, 1], ["7"] * 2)

    book.enter(rows("2019-03-28", "042"))
    sent(book, 0, ["7"])
    book.leave(["7"])
    due = book.pending(1, ["7"])
    for other in (rows("2019-03-28", "42"), rows("2019-03-28T00:00:00Z", "042")):
        refused(ps.errors.DataError, "the rows of 1 persons are not those with which", book.delta, due, other)
    assert book.delta(due, rows("2019-03-27T23:00:00Z", " 042")).left == 1


def test_a_digest_of_declared_columns_is_the_same_in_every_container() -> None:
    pandas = pytest.importorskip("pandas")
    X: list[list[Any]] = [["2019-03-27T23:00:00Z", "042"], [None, 42], ["2019-03-28", "NA"], [7, True]]
    forms = X, np.array(X, object), pandas.DataFrame(X, columns=["day", "ward"]), pandas.DataFrame(X)
    y, names = [0, 1, 1, 0], ["a", "b", "c", "d"]
    first, *others = (
        replace(PersonRows.of(form, labels, names), cells=OWN_WAYS).digests
        for form in forms
        for labels in (y, np.array(y))
    )
    assert all(each == first for each in others)
    assert first != PersonRows.of(X, y, names).digests
    numbers = [[1.0, 42.0], [2.0, 43.0]]
    plain = [
        replace(PersonRows.of(form, [0, 1], names[:2]), cells=OWN_WAYS).digests
        for form in (numbers, np.array(numbers), pandas.DataFrame(numbers))
    ]
    assert plain[0] == plain[1] == plain[2]
