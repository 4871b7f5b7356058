"""What a party brings to a stream: kept once, in order, noted once, and measured where it is due."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.course import Stream
from privstats.encoding import flatten
from privstats.engines.streams import Brought
from privstats.errors import DataError, LedgerError, PrivstatsError
from tests.course.streams import CLASSES, EXACT, World, holding, plan_of, promise


@pytest.fixture
def brought(tmp_path: Path) -> Brought:
    stream = Stream(plan_of(privacy=EXACT), 4, deletions=True, allow_disclosing_leavers=True)
    return Brought(tmp_path / "party", stream)


def file_of(world: World, place: Path, names: list[str], leave: Any = ()) -> Path:
    path = place / "batch.npz"
    rows = [world.rows[name] for name in names]
    X, y = np.array([row[0] for row in rows]).reshape(-1, 4), np.array([row[1] for row in rows], int)
    np.savez(path, ids=np.array(names, "U20"), X=X, y=y, leave=np.array(list(leave), "U20"))
    return path


def test_batches_go_in_order_and_a_change_is_what_measuring_gives(brought: Brought, tmp_path: Path) -> None:
    brought.home.mkdir()
    world, book = World(), holding(tmp_path, brought.stream)
    first, second = world.born(0, 3), world.born(0, 2)
    assert brought.batches() == {}
    assert brought.bring(file_of(world, tmp_path, first)).ids == tuple(first)
    brought.bring(file_of(world, tmp_path, second, leave=first[:1]))
    assert list(brought.batches()) == [0, 1]
    for _ in range(2):  # a call that was killed is made good, and one that was not changes nothing
        brought.note(book)
    assert [book.state(name) for name in (*first, *second)] == ["gone", "in", "in", "in", "in"]
    due = brought.due(book, 0)
    assert due.entering == (*first[1:], *second)
    assert np.array_equal(flatten(brought.change(book, due)), flatten(world.change(due.entering)))


def test_a_note_that_was_cut_between_two_batches_goes_on(brought: Brought, tmp_path: Path) -> None:
    brought.home.mkdir()
    world, book = World(), holding(tmp_path, brought.stream)
    first, second = world.born(0, 2), world.born(0, 2)
    brought.bring(file_of(world, tmp_path, first))
    brought.bring(file_of(world, tmp_path, second, leave=first))
    brought.bring(file_of(world, tmp_path, []))
    book.enter(first)
    book.enter(second)  # killed before the leavers of the same batch
    brought.note(book)
    assert [book.state(name) for name in (*first, *second)] == ["gone", "gone", "in", "in"]


def test_what_cannot_be_is_refused_before_it_is_kept(brought: Brought, tmp_path: Path) -> None:
    brought.home.mkdir()
    world = World()
    names = world.born(0, 2)
    brought.bring(file_of(world, tmp_path, names))
    with pytest.raises(DataError, match="2 records a second time"):
        brought.bring(file_of(world, tmp_path, names))
    with pytest.raises(DataError, match="1 records that leave and were never in"):
        brought.bring(file_of(world, tmp_path, [], leave=["nobody"]))
    assert list(brought.batches()) == [0]
    with pytest.raises(LedgerError, match="enters once|not in"):
        holding(tmp_path, brought.stream).leave(["nobody"])


def test_two_that_bring_at_once_are_kept_apart(brought: Brought, tmp_path: Path, monkeypatch) -> None:
    brought.home.mkdir()
    world = World()
    brought.bring(file_of(world, tmp_path, world.born(0, 2)))
    monkeypatch.setattr(Brought, "_numbers", lambda _: [])  # the other has not seen the first
    with pytest.raises(PrivstatsError, match="exists"):
        brought.bring(file_of(world, tmp_path, world.born(0, 2)))


def test_a_client_brings_no_more_than_it_is_priced_for(tmp_path: Path) -> None:
    """Found out when a node is opened, it would be in no epoch any more."""
    privacy = promise(unit="client", max_records_per_client=3, epsilon=8.0)
    brought, world = Brought(tmp_path / "party", Stream(plan_of(privacy=privacy), 4)), World()
    brought.home.mkdir()
    brought.bring(file_of(world, tmp_path, world.born(0, 2)))
    with pytest.raises(DataError, match="would have 4 records in the stream, and the plan prices at most 3"):
        brought.bring(file_of(world, tmp_path, world.born(0, 2)))
    with pytest.raises(DataError, match="without deletions"):
        brought.bring(file_of(world, tmp_path, [], leave=list(world.rows)[:1]))
    assert brought.stream.first.schema == CLASSES
