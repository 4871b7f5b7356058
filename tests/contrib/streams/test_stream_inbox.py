"""What a party brings to a stream: kept once, in order, noted once, and measured where it is due."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from privstats import Cohort, measure
from privstats.contrib.streams import Pending, Stream
from privstats.contrib.streams.inbox import Batch, RecordInbox, picked, read_batch
from privstats.encoding import flatten
from privstats.errors import DataError, PrivstatsError
from privstats.intake.meaning import meaning_of
from tests.contrib.streams.streams import CLASSES, EXACT, World, plan_of, registry
from tests.course.cases import promise


@pytest.fixture
def inbox(tmp_path: Path) -> RecordInbox:
    stream = Stream(plan_of(privacy=EXACT), 4, deletions=True, allow_disclosing_leavers=True)
    return RecordInbox(tmp_path / "party", stream)


def file_of(world: World, place: Path, names: list[str], leave: Any = ()) -> Path:
    path = place / "batch.npz"
    rows = [world.rows[name] for name in names]
    X, y = np.array([row[0] for row in rows]).reshape(-1, 4), np.array([row[1] for row in rows], int)
    np.savez(path, ids=np.array(names, "U20"), X=X, y=y, leave=np.array(list(leave), "U20"))
    return path


def test_a_day_of_texts_changes_no_value_of_another_day() -> None:
    days = {
        0: Batch(("a",), np.array([[0.1]], np.float32), np.array([1])),
        1: Batch(("b",), np.array([["x"]]), np.array(["?"])),
    }
    X, y = picked(days, ("a", "b")) or ((), ())
    assert [meaning_of(X[0, 0]), meaning_of(X[1, 0])] == [float(np.float32(0.1)), "x"]
    assert [meaning_of(label) for label in y] == [1.0, "?"]


def test_batches_go_in_order_and_a_change_is_what_measuring_gives(inbox: RecordInbox, tmp_path: Path) -> None:
    inbox.home.mkdir()
    world, book = World(), registry(tmp_path, inbox.stream)
    first, second = world.born(0, 3), world.born(0, 2)
    assert inbox.batches() == {}
    assert inbox.bring(file_of(world, tmp_path, first)).ids == tuple(first)
    inbox.bring(file_of(world, tmp_path, second, leave=first[:1]))
    assert list(inbox.batches()) == [0, 1]
    for _ in range(2):  # a call that was killed is made good, and one that was not changes nothing
        inbox.register(book)
    assert [book.state(name) for name in (*first, *second)] == ["gone", "in", "in", "in", "in"]
    pending = inbox.pending(book, 0)
    assert pending.entering == (*first[1:], *second)
    assert np.array_equal(flatten(inbox.change(book, pending)), flatten(world.change(pending.entering)))


def test_a_note_that_was_cut_between_two_batches_goes_on(inbox: RecordInbox, tmp_path: Path) -> None:
    inbox.home.mkdir()
    world, book = World(), registry(tmp_path, inbox.stream)
    first, second = world.born(0, 2), world.born(0, 2)
    inbox.bring(file_of(world, tmp_path, first))
    inbox.bring(file_of(world, tmp_path, second, leave=first))
    inbox.bring(file_of(world, tmp_path, []))
    book.enter(first)
    book.enter(second)  # killed before the leavers of the same batch
    inbox.register(book)
    assert [book.state(name) for name in (*first, *second)] == ["gone", "gone", "in", "in"]


def test_two_that_bring_at_once_are_kept_apart(inbox: RecordInbox, tmp_path: Path, monkeypatch) -> None:
    inbox.home.mkdir()
    world = World()
    inbox.bring(file_of(world, tmp_path, world.born(0, 2)))
    monkeypatch.setattr(RecordInbox, "_numbers", lambda _: [])  # the other has not seen the first
    with pytest.raises(PrivstatsError, match="exists"):
        inbox.bring(file_of(world, tmp_path, world.born(0, 2)))


def test_a_client_brings_no_more_than_it_is_priced_for(tmp_path: Path) -> None:
    """Found out when a node is opened, it would be in no epoch any more."""
    privacy = promise(unit="client", max_records_per_client=3, epsilon=8.0)
    inbox, world = RecordInbox(tmp_path / "party", Stream(plan_of(privacy=privacy), 4)), World()
    inbox.home.mkdir()
    inbox.bring(file_of(world, tmp_path, world.born(0, 2)))
    with pytest.raises(DataError, match="would have 4 records in the stream, and the plan prices at most 3"):
        inbox.bring(file_of(world, tmp_path, world.born(0, 2)))
    with pytest.raises(DataError, match="without deletions"):
        inbox.bring(file_of(world, tmp_path, [], leave=list(world.rows)[:1]))
    assert inbox.stream.first.schema == CLASSES


def test_attack_a_record_that_has_left_hides_others_that_leave(inbox: RecordInbox, tmp_path: Path) -> None:
    """The book would have taken the whole batch for noted, and what leaves beside it would have stayed for good."""
    inbox.home.mkdir()
    world = World()
    names = world.born(0, 3)
    inbox.bring(file_of(world, tmp_path, names))
    inbox.bring(file_of(world, tmp_path, [], leave=names[:1]))
    for leave, count in ((names[:2], "1"), ([names[1], names[1]], "some")):
        with pytest.raises(DataError, match=f"{count} records in leave that never entered, left already or occur"):
            inbox.bring(file_of(world, tmp_path, [], leave=leave))
    inbox.bring(file_of(world, tmp_path, [], leave=names[1:]))
    book = registry(tmp_path, inbox.stream)
    inbox.register(book)
    assert [book.state(name) for name in names] == ["gone"] * 3


def test_attack_another_process_brings_the_same_records_between_the_look_and_the_write(
    inbox: RecordInbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept twice, they could be entered by nobody, and the party would be in no epoch any more."""
    inbox.home.mkdir()
    world = World()
    batch, check = file_of(world, tmp_path, world.born(0, 2)), RecordInbox.check

    def meanwhile(self: RecordInbox, *arguments: Any) -> None:
        check(self, *arguments)
        monkeypatch.setattr(RecordInbox, "check", check)
        inbox.bring(batch)

    monkeypatch.setattr(RecordInbox, "check", meanwhile)
    with pytest.raises(PrivstatsError, match="exists"):
        inbox.bring(batch)
    inbox.register(registry(tmp_path, inbox.stream))
    assert list(inbox.batches()) == [0]


def test_a_batch_of_leavers_alone_hides_no_batch_before_it_that_was_not_noted(
    inbox: RecordInbox, tmp_path: Path
) -> None:
    """Brought before the first epoch, it would have passed for noted, and nothing would ever have entered."""
    inbox.home.mkdir()
    world = World()
    names = world.born(0, 3)
    inbox.bring(file_of(world, tmp_path, names))
    inbox.bring(file_of(world, tmp_path, [], leave=names[:1]))
    book = registry(tmp_path, inbox.stream)
    inbox.register(book)
    assert [book.state(name) for name in names] == ["gone", "in", "in"]
    assert inbox.pending(book, 0).entering == tuple(names[1:])


@pytest.mark.parametrize("name", ["", "n" * 201])
def test_a_name_that_the_book_would_refuse_is_refused_before_it_is_kept(
    name: str, inbox: RecordInbox, tmp_path: Path
) -> None:
    inbox.home.mkdir()
    np.savez(tmp_path / "batch.npz", ids=np.array([name]), X=np.zeros((1, 4)), y=np.zeros(1, int))
    with pytest.raises(DataError, match="1 to 200 characters"):
        inbox.bring(tmp_path / "batch.npz")
    assert inbox.batches() == {}


def test_no_more_is_brought_under_a_promise_than_an_epoch_has_room_for(tmp_path: Path) -> None:
    """Found out when a node is opened, the server would see it; put off, one record would move others."""
    plan = replace(plan_of(), cohort=Cohort(5, 3, 14))
    for deletions, room in ((True, 2), (False, 14)):
        inbox, world = RecordInbox(tmp_path / f"{room}", Stream(plan, 4, deletions=deletions)), World()
        inbox.home.mkdir()
        inbox.bring(file_of(world, tmp_path, world.born(0, room)))
        with pytest.raises(DataError, match=f"would move {room + 1} of this party's records, .* room for {room}"):
            inbox.bring(file_of(world, tmp_path, world.born(0, 1)), lambda _, at=room: at)
        names = [f"0-{place}" for place in range(room + 1)]
        with pytest.raises(DataError, match=f"{room + 1} records are due at round 1 and the plan has room for {room}"):
            inbox.change(registry(inbox.home, inbox.stream), Pending(1, tuple(names), ()))
    few = RecordInbox(tmp_path / "few", Stream(replace(plan, cohort=Cohort(5, 3, 4)), 4, deletions=True))
    with pytest.raises(DataError, match="is no record for each of 5 clients"):
        few.bring(file_of(World(), tmp_path, []))


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
def test_a_record_that_cannot_be_read_keeps_no_other_out(tmp_path: Path) -> None:
    """Under a promise it is left out; before, its party was missing from the sum, and everybody saw it."""
    box = RecordInbox(tmp_path / "party", Stream(plan_of(), 4, deletions=True))
    box.home.mkdir()
    X = np.eye(4)[:3] / 2
    np.savez(tmp_path / "batch.npz", ids=["a", "b", "c"], X=np.where(np.arange(3)[:, None] == 1, np.nan, X), y=[0] * 3)
    box.bring(tmp_path / "batch.npz")
    book = registry(tmp_path, box.stream)
    box.register(book)
    pending = box.pending(book, 0)
    change = box.change(book, pending)
    book.charge(box.stream.first, [], pending).check_moments(change)
    assert (change.entered, change.left) == (3, 0)
    assert np.array_equal(flatten(change), flatten(measure(CLASSES, X[[0, 2]], [0, 0])))


def test_a_folder_that_cannot_be_written_is_one_sentence(inbox: RecordInbox, tmp_path: Path) -> None:
    with pytest.raises(PrivstatsError, match="cannot make .*records: No such file or directory; nothing was queued"):
        inbox.bring(file_of(World(), tmp_path, []))


@pytest.mark.parametrize("kind", ["an array", "no rows", "no labels", "no array", "damaged"])
def test_attack_a_file_of_records_that_is_none_is_one_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "batch.npz"
    whole = {"ids": np.array(["a"]), "X": np.zeros((1, 4)), "y": np.zeros(1, int)}
    if kind == "an array":
        with path.open("wb") as file:
            np.save(file, whole["X"])
    elif kind == "no array":
        with ZipFile(path, "w") as file:
            for name in whole:
                file.writestr(name, b"1")
    elif kind == "damaged":
        np.savez_compressed(path, **{**whole, "ids": np.array([str(place) for place in range(1000)])})
        held = bytearray(path.read_bytes())
        held[60:62] = b"\xff\x55"
        path.write_bytes(held)
    else:
        np.savez(path, **{**whole, {"no rows": "X", "no labels": "y"}[kind]: np.float64(1)})
    with pytest.raises(DataError, match="cannot read|must hold X with one row"):
        read_batch(path)


@pytest.mark.parametrize("again", ["007", "7.0", "+7"])
def test_an_id_that_is_written_in_another_way_is_no_new_record(inbox: RecordInbox, tmp_path: Path, again: str) -> None:
    """A column of ids is of integers until one of them holds a letter."""
    inbox.home.mkdir()
    X, y = np.ones((2, 4)) / 8, np.zeros(2, int)
    for ids in (np.array([7, 8]), np.array(["9", "x7"])):
        np.savez(tmp_path / "batch.npz", ids=ids, X=X, y=y)
        inbox.bring(tmp_path / "batch.npz")
    for ids in ([again, "10"], ["11", "011"], [" x7", "10"], ["\u00e9", "e\u0301"]):
        np.savez(tmp_path / "batch.npz", ids=np.array(ids), X=X, y=y)
        with pytest.raises(DataError, match="holds 1 ids in another spelling than before"):
            inbox.bring(tmp_path / "batch.npz")
    np.savez(tmp_path / "batch.npz", ids=np.array(["70", "77", "x007"]), X=np.ones((3, 4)) / 8, y=np.zeros(3, int))
    assert inbox.bring(tmp_path / "batch.npz").ids == ("70", "77", "x007")


def test_an_id_that_lost_a_character_in_decoding_is_none(inbox: RecordInbox, tmp_path: Path) -> None:
    """Two records may have it, of which one would be taken for the other."""
    inbox.home.mkdir()
    ids = np.array([each.decode("utf-8", "replace") for each in (b"M\xfcller", b"M\xf6ller")])
    np.savez(tmp_path / "batch.npz", ids=ids, X=np.ones((2, 4)) / 8, y=np.zeros(2, int))
    with pytest.raises(DataError, match=r"has an invalid id: .* no U\+FFFD"):
        inbox.bring(tmp_path / "batch.npz")
