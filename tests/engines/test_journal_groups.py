"""Groups of messages: one wait for the disk, no answer before it, and a kill inside a group loses nothing answered."""

import os
from pathlib import Path

import numpy as np
import pytest

from privstats.errors import LocalProtocolError
from tests.engines.test_journal_uploads import Journals
from tests.faults import Fuse, Killed, full_disk


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path)


def finished(journals: Journals) -> tuple[int, ...]:
    """The survivors at the end; the sum over them is checked."""
    run, helpers = journals.run, [journals.helper(number) for number in (1, 2)]
    with journals.leader() as leader:
        while leader.step != "done":
            while leader.step != "report" and leader.waiting_for:
                for peer, message in leader.outbox:
                    if peer in leader.waiting_for:
                        ((_, answer),) = helpers[peer - run.parameters.clients].receive(message)
                        leader.receive(peer, answer)
            leader.end_step()
        total, survivors = leader.result
    assert np.array_equal(total.lift(), run.sum_over(survivors))
    for helper in helpers:
        helper.close()
    return survivors


def test_a_group_waits_for_the_disk_once_and_answers_each_of_its_messages(journals: Journals, monkeypatch) -> None:
    run, waits = journals.run, []
    reports = [(sender, run.report(sender)) for sender in range(6)]
    second = run.client(1, life=1).start()[0][1]
    real = os.fsync
    with journals.leader() as leader:
        monkeypatch.setattr(os, "fsync", lambda handle: (waits.append(handle), real(handle)))
        items = [*reports[:4], reports[0], (1, second), (5, reports[4][1]), (99, second), (4, b"x")]
        codes = [refusal and refusal.code for refusal in leader.receive_many(items)]
        assert codes == [None, None, None, None, None, "already_here", "wrong_sender", "stranger", "malformed"]
        assert len(waits) == 1
        assert leader.accepted == 4
        assert leader.receive_many([]) == []
        assert leader.receive_many(reports) == [None] * 6
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


def test_a_kill_inside_a_group_loses_no_message_that_was_answered(tmp_path: Path, monkeypatch) -> None:
    """With a repeat, and a second report of one sender, in the group."""
    fuse = Fuse(monkeypatch, "os.fsync")
    for waits in range(1, 5):  # three groups, and once no kill
        os.environ["XDG_STATE_HOME"] = str(tmp_path / f"{waits}.state")
        journals = Journals(tmp_path / str(waits))
        run, answered = journals.run, set()
        second = run.client(1, life=1).start()[0][1]
        groups = ([0, 1], [2, 0, -1], [3, 4])
        with journals.leader() as leader:
            fuse.left = waits
            try:
                for group in groups:
                    items = [(1, second) if sender < 0 else (sender, run.report(sender)) for sender in group]
                    refusals = leader.receive_many(items)
                    answered |= {sender for (sender, _), refusal in zip(items, refusals, strict=True) if not refusal}
            except Killed:
                pass
            killed, fuse.left = fuse.left <= 0 and waits <= 3, 0
        assert killed == (waits <= 3), "one wait for each group"
        with journals.leader() as leader:
            assert not answered & leader.waiting_for
            assert leader.receive_many([(sender, run.report(sender)) for sender in range(6)]) == [None] * 6
        assert finished(journals) == (0, 1, 2, 3, 4, 5)


def test_a_group_that_cannot_be_written_is_not_answered_and_ends_the_process(journals: Journals) -> None:
    reports = [(sender, journals.run.report(sender)) for sender in range(6)]
    with journals.leader() as leader:
        leader.receive_many(reports[:2])
        with full_disk(), pytest.raises(LocalProtocolError, match="could not be written"):
            leader.receive_many(reports[2:])
        with pytest.raises(LocalProtocolError, match="close it and resume"):
            leader.receive_many(reports)
    with journals.leader() as leader:
        assert leader.waiting_for == {2, 3, 4, 5}
        assert leader.receive_many(reports) == [None] * 6
    assert finished(journals) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("item", [(0, "text"), ("0", b"x"), (True, b"x"), (0, memoryview(b"xyz")[::2])])
def test_a_group_with_a_wrong_argument_is_received_not_even_in_part(journals: Journals, item: tuple) -> None:
    report = journals.run.report(0)
    with journals.leader() as leader:
        with pytest.raises(LocalProtocolError):
            leader.receive_many([(0, report), item])
        assert 0 in leader.waiting_for
        assert leader.receive_many([(0, report)]) == [None]
