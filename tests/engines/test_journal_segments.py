"""Segments of a server's journal: bytes written once, parts that wait on disk alone, and what a disk may lose of them.

The file system double knows what was waited for: a power cut keeps that, and of the rest any pages.
"""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.encoding import Ring
from privstats.engines import records
from privstats.engines.journal import JournaledServer
from privstats.engines.journal.segments import HighWater
from privstats.engines.records import RecordLog
from privstats.errors import LocalProtocolError
from privstats.secagg.upload import batching
from tests.contrib.proofs.proved import proved_of
from tests.engines.test_journal_groups import finished
from tests.engines.test_journal_uploads import Journals
from tests.faults import Fuse, Killed
from tests.secagg.upload.cohorts import uploads_of

PAGE = 64
"""Of the double; a record here has some 250 bytes."""


def polled(leader: JournaledServer, journals: Journals, number: int) -> bool:
    """Bring a helper the part or list that it is due, and its answer back; False if there is none."""
    peer = journals.run.peer(number)
    if peer not in leader.outbox.clients or not leader.awaits(peer):
        return False
    with journals.helper(number, bound=False) as helper:
        if helper.state in ("offered", "bound"):
            helper.bind(journals.panel)
        ((_, answer),) = helper.receive(leader.outbox.to(peer))
    leader.receive(peer, answer)
    return True


# --- what is written, and where bodies are ---


@contextmanager
def counted() -> Iterator[list[int]]:
    """The bytes of every durable write."""
    written: list[int] = []
    log, whole, mark = records._write_all, records.write_synced, HighWater.write
    with pytest.MonkeyPatch.context() as patch:

        def synced(path: Path, *parts: bytes) -> None:
            written.append(sum(map(len, parts)))
            whole(path, *parts)

        patch.setattr(records, "_write_all", lambda file, data: (written.append(len(data)), log(file, data)))
        for module in ("privstats.engines.records", "privstats.engines.journal.rollback"):
            patch.setattr(f"{module}.write_synced", synced)
        patch.setattr(HighWater, "write", lambda *told: (written.append(24), mark(*told)))
        yield written


@pytest.mark.parametrize(
    ("clients", "entries", "parts"), [(150, 2_730, 40), pytest.param(40, 125_205, 8, marks=pytest.mark.ci)]
)
@pytest.mark.parametrize("away", [False, True], ids=["helpers answer", "a helper is away"])
def test_a_leader_writes_at_most_fifteen_per_cent_more_than_it_receives(
    tmp_path: Path, monkeypatch, clients: int, entries: int, parts: int, away: bool
) -> None:
    make = partial(uploads_of, clients=clients, min_survivors=4, ring=Ring(((entries, 35),)))
    journals = Journals(tmp_path, helpers=1, make=lambda **named: make(**named))
    monkeypatch.setattr(batching, "PART_BYTES", parts * journals.run.parameters.upload_bytes)
    received = 0
    with journals.leader() as leader, counted() as written:
        for first in range(0, clients, 10):
            group = [(sender, journals.run.report(sender)) for sender in range(first, first + 10)]
            assert leader.receive_many(group) == [None] * 10
            received += sum(len(report) for _, report in group)
            if not away:
                written_here = sum(written)
                while polled(leader, journals, 1):
                    pass
                del written[:]
                written.append(written_here)  # the helper's own journal is not the leader's
        leader.end_step()
    assert sum(written) <= 1.15 * received


@pytest.mark.parametrize("make", [uploads_of, proved_of], ids=["plain", "proved"])
def test_parts_that_wait_are_on_disk_alone_and_a_helper_may_be_away_for_long(tmp_path: Path, monkeypatch, make) -> None:
    """Six parts wait, of which memory holds none; after a restart they are read back and settled."""
    journals = Journals(tmp_path, make=make)
    size = journals.run.parameters.upload_bytes
    monkeypatch.setattr(batching, "PART_BYTES", size)  # each report is a part
    with journals.leader() as leader:
        reports = [(sender, journals.run.report(sender)) for sender in range(6)]
        assert leader.receive_many(reports) == [None] * 6, "no report is sent away"
        while polled(leader, journals, 1):
            pass
        state = leader._server._state
        assert len(state.parts) == 6
        assert not any(part.bodies for part in (state.open, *state.parts.values()))
        largest = max(len(report) for _, report in reports)
        leader._compact()
        assert (tmp_path / "leader" / "snapshot").stat().st_size < 6 * largest / 2 + 4000
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


@pytest.mark.usefixtures("small_parts")
def test_a_segment_goes_when_its_parts_are_settled_and_a_newer_snapshot_is_there(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    place = tmp_path / "leader"

    def segments() -> list[str]:
        return sorted(path.name for path in place.glob("segment.*"))

    with journals.leader() as leader:
        leader.receive_many([(sender, journals.run.report(sender)) for sender in range(4)])
        leader._compact()
        waiting = segments()
        assert len(waiting) >= 2, "the live one, and one with bodies"
        while polled(leader, journals, 1) or polled(leader, journals, 2):
            pass
        leader._compact()
        assert len(segments()) == 1
        assert not set(segments()) & set(waiting)
    (place / waiting[0]).write_bytes(b"removed, and back after a power cut")
    with journals.leader() as leader:
        assert len(segments()) == 1
        leader.receive_many([(sender, journals.run.report(sender)) for sender in (4, 5)])
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


# --- kills ---


def played(journals: Journals, answered: set[int]) -> tuple[int, ...]:
    """The run from where it stands to its end: groups with a repeat, helper 1 at once and helper 2 at the end."""
    run = journals.run
    with journals.leader() as leader:
        assert not (answered & leader.waiting_for if leader.step == "report" else set())
        for group in ((0, 1), (2, 0, 3), (4,), (5, 3)):
            if leader.step == "report":
                assert leader.receive_many([(sender, run.report(sender)) for sender in group]) == [None] * len(group)
                answered.update(group)
                polled(leader, journals, 1)
        while leader.step != "done":
            while leader.step != "report" and (polled(leader, journals, 1) or polled(leader, journals, 2)):
                pass
            leader.end_step()
        total, survivors = leader.result
    assert np.array_equal(total.lift(), run.sum_over(survivors))
    return survivors


KILLED_FROM = [pytest.param(first, marks=[pytest.mark.nightly] if first % 4 else []) for first in range(12)]
"""The first write of twelve at which somebody is killed: every fourth by day, all of them in the night."""


PLACES = (
    "os.fsync",
    "pathlib.Path.replace",
    "pathlib.Path.unlink",
    "privstats.engines.records._write_all",
    "privstats.engines.journal.segments.HighWater.write",
)


def comes_through(
    place: Path, monkeypatch: pytest.MonkeyPatch, first: int, session: Callable[[Journals, int], Callable[[], Any]]
) -> None:
    """Killed at every twelfth write from ``first`` on: what plays a session goes on from the disk, to the exact sum."""
    fuse = Fuse(monkeypatch, *PLACES)
    for at in range(first + 1, 1000, 12):
        monkeypatch.setenv("XDG_STATE_HOME", str(place / f"{at}.state"))
        play = session(Journals(place / str(at)), at)
        fuse.left = at
        try:
            play()
        except Killed:
            fuse.left = 0
            assert play() == (0, 1, 2, 3, 4, 5)
            continue
        fuse.left = 0
        assert at > 100, f"it came through; the last kill was here:\n{fuse.stack}"
        return
    pytest.fail("it never comes through")


@pytest.mark.ci
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("first", KILLED_FROM)
def test_leader_and_helpers_killed_at_any_write_lose_nothing_that_was_answered(
    tmp_path: Path, monkeypatch, first: int
) -> None:
    comes_through(tmp_path, monkeypatch, first, lambda journals, _: partial(played, journals, set()))


@pytest.mark.parametrize("size", [1, 20, 200, 400, 700])
def test_a_group_that_a_kill_cut_short_in_its_middle_is_as_if_its_rest_had_never_arrived(
    tmp_path: Path, monkeypatch, size: int
) -> None:
    journals = Journals(tmp_path)

    def torn(file: io.FileIO, data: bytes) -> None:
        file.write(data[:size])
        raise Killed

    with journals.leader() as leader:
        leader.receive(5, journals.run.report(5))
        group = [(sender, journals.run.report(sender)) for sender in range(4)]
        with monkeypatch.context() as patch:
            patch.setattr(records, "_write_all", torn)
            with pytest.raises(Killed):
                leader.receive_many(group)
    with journals.leader() as leader:
        assert 5 not in leader.waiting_for
        leader.receive_many([(sender, journals.run.report(sender)) for sender in range(5)])
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


# --- what a power cut, a failed wait and rot do ---


class Disk:
    """What is on the disk of each file that was waited for; the rest is in memory, and a power cut takes of it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, bytes] = {}
        real = os.fsync

        def fsync(handle: int) -> None:
            real(handle)
            path = Path(f"/proc/self/fd/{handle}")
            if path.is_file():
                self.synced[os.fstat(handle).st_ino] = path.read_bytes()

        patch.setattr(os, "fsync", fsync)

    def power_cut(self, folder: Path, rng: np.random.Generator) -> None:
        """Each page that was not waited for stays, or is as it was, or zeros."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                now = path.read_bytes()
                before = self.synced.get(path.stat().st_ino, b"")[: len(now)].ljust(len(now), b"\0")
                pages = [now[at : at + PAGE] for at in range(0, len(now), PAGE)]
                for number, page in enumerate(pages):
                    if rng.random() < 0.5 and page != before[number * PAGE : (number + 1) * PAGE]:
                        pages[number] = before[number * PAGE : (number + 1) * PAGE]
                path.write_bytes(b"".join(pages))


SEEDS = [
    pytest.param(seed, marks=[] if seed < 4 else pytest.mark.ci if seed < 20 else pytest.mark.nightly)
    for seed in range(60)
]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the double finds files by their handles in /proc")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("small_parts")
def test_after_a_power_cut_at_any_write_it_opens_and_every_answer_stands(
    tmp_path: Path, monkeypatch, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    disk, journals = Disk(monkeypatch), Journals(tmp_path)
    fuse = Fuse(monkeypatch, *PLACES)
    answered: set[int] = set()
    for _ in range(8):
        fuse.left = int(rng.integers(1, 60))
        try:
            played(journals, answered)
        except Killed:
            fuse.left = 0
            disk.power_cut(tmp_path / "leader", rng)
    fuse.left = 0
    assert played(journals, answered) == (0, 1, 2, 3, 4, 5)


def marked(journals: Journals) -> tuple[Path, Path, bytes]:
    """A leader with three reports, of which the mark covers one: its live segment, its mark, and the mark of all."""
    place = journals.place / "leader"
    with journals.leader() as leader:
        leader.receive(0, journals.run.report(0))
        before = (place / "mark").read_bytes()
        leader.receive_many([(sender, journals.run.report(sender)) for sender in (1, 2)])
    after = (place / "mark").read_bytes()
    (place / "mark").write_bytes(before)
    return next(place.glob("segment.*")), place / "mark", after


def rotten(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_what_no_disk_may_hold_is_written_anew_before_a_repeat_is_answered(tmp_path: Path) -> None:
    """After a failed wait for the disk its pages count as clean: they can be read, and are nowhere."""
    journals = Journals(tmp_path)
    segment, _, _ = marked(journals)
    whole = segment.stat().st_size
    with journals.leader() as leader:
        assert leader.waiting_for == {3, 4, 5}
        assert leader.receive_many([(1, journals.run.report(1))]) == [None]
    content = segment.read_bytes()
    segment.write_bytes(content[: whole // 3 + 8].ljust(whole, b"\0"))  # the power fails: they were nowhere
    with journals.leader() as leader:
        assert leader.waiting_for == {3, 4, 5}
        leader.receive_many([(sender, journals.run.report(sender)) for sender in (3, 4, 5)])
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("offset", [3, 10, 20, 100])
def test_damage_above_the_mark_cuts_and_below_it_is_refused_with_the_segments_name(tmp_path: Path, offset: int) -> None:
    journals = Journals(tmp_path)
    segment, _, all_answered = marked(journals)
    record = segment.stat().st_size // 3
    before = {path: path.read_bytes() for path in segment.parent.iterdir()}

    def put_back(rot: int, **changed: bytes) -> None:
        for path, content in before.items():
            path.write_bytes(changed.get(path.name, content))
        rotten(segment, rot)

    put_back(record + offset, mark=all_answered)
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match=rf"record 1 of .*{segment.name} does not open"):
            journals.leader()
    put_back(offset)
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match=rf"record 0 of .*{segment.name} does not open"):
            journals.leader()
    put_back(record + offset)
    with journals.leader() as leader:
        assert leader.waiting_for == {1, 2, 3, 4, 5}
        leader.receive_many([(sender, journals.run.report(sender)) for sender in range(6)])
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("fault", ["rot", "a missing segment", "another record there"])
def test_a_report_that_waits_for_a_helper_and_is_gone_is_refused_and_never_left_out(tmp_path: Path, fault: str) -> None:
    journals = Journals(tmp_path)
    with journals.leader() as leader:
        leader.receive_many([(sender, journals.run.report(sender)) for sender in range(6)])
        segment = next((tmp_path / "leader").glob("segment.*"))
        leader.end_step()
        content = segment.read_bytes()
        size = len(content) // 6
        if fault == "rot":
            rotten(segment, 2 * size + 100)
        elif fault == "another record there":
            whole = segment.read_bytes()
            segment.write_bytes(whole[: 2 * size] + whole[3 * size : 4 * size] + whole[3 * size :])
        else:
            segment.unlink()
        with pytest.raises(LocalProtocolError, match=rf"record \d of .*{segment.name} does not open"):
            [polled(leader, journals, helper) for helper in (1, 2)]
        with pytest.raises(LocalProtocolError, match="has lost a message that it had answered"):
            leader.end_step()
        assert leader.step == "check", "it has not failed: whoever ended it now would lose all reports"
    if fault == "a missing segment":
        with pytest.raises(LocalProtocolError, match=rf"{segment.name} is missing"):
            journals.leader()
    segment.write_bytes(content)
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


def test_a_mark_that_does_not_say_counts_every_record_as_answered(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    segment, mark, _ = marked(journals)
    for content in (b"", bytes(24), b"x" * 24, mark.read_bytes()[:20]):
        mark.write_bytes(content)
        with journals.leader() as leader:
            assert leader.waiting_for == {3, 4, 5}
        mark.write_bytes(content)
        whole = segment.read_bytes()
        rotten(segment, len(whole) - 5)
        with pytest.raises(LocalProtocolError, match="record 2 of .* does not open"):
            journals.leader()
        segment.write_bytes(whole)


def test_a_snapshot_of_before_its_mark_is_refused(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    place = tmp_path / "leader"
    with journals.leader() as leader:
        old = {path.name: path.read_bytes() for path in place.iterdir() if path.name != "mark"}
        leader.receive(0, journals.run.report(0))
        leader._compact()
        leader.receive(1, journals.run.report(1))
    for name, content in old.items():
        (place / name).write_bytes(content)
    with pytest.raises(LocalProtocolError, match="has a snapshot from before segment 2, of which it has answered 1"):
        journals.leader()


def test_a_helper_whose_last_part_lost_a_page_is_asked_again(tmp_path: Path, monkeypatch) -> None:
    """Its counter says which parts it has answered: damage behind them cuts, damage among them is refused."""
    journals = Journals(tmp_path)
    monkeypatch.setattr(batching, "PART_BYTES", 2 * journals.run.parameters.upload_bytes)
    with journals.leader() as leader:
        leader.receive_many([(sender, journals.run.report(sender)) for sender in range(6)])
        assert polled(leader, journals, 1)
        with monkeypatch.context() as patch, journals.helper(1) as helper:
            patch.setattr("privstats.engines.journal.rollback.Counter.keep", lambda *_: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                helper.receive(leader.outbox.to(6))
        log = journals.files(1) / "log"
        whole = log.read_bytes()
        rotten(log, len(whole) - 40)
        with journals.helper(1) as helper:
            assert helper._machine.parts == 1
        assert len(list(RecordLog(log, _sealing(journals)).records())) == 1
        rotten(log, 40)
        with pytest.raises(LocalProtocolError, match="record 0 of"):
            journals.helper(1)
        rotten(log, 40)
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


def _sealing(journals: Journals) -> Any:
    with journals.helper(1) as helper:
        return helper._box_key.sealing
