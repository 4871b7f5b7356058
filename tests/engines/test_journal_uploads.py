"""The one upload, killed at any moment: the exact sum, one report per client, one answer per helper, or nothing."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from privstats.encoding import RingVector
from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledServer
from privstats.engines.loopback import run
from privstats.errors import (
    AggregationError,
    LedgerError,
    LocalProtocolError,
    NothingToResumeError,
    RemoteProtocolError,
)
from privstats.secagg import Helper, Panel
from privstats.secagg.upload import messages
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.leader import Leader
from tests.engines.killed import Killed
from tests.faults import Fuse, full_disk, interrupted
from tests.faults import Killed as Cut
from tests.secagg.upload.cohorts import Uploads, answer_of, batch_of, body_of, list_of, refused, uploads_of

KEY = b"k" * 32


class Journals:
    """A run whose leader and helpers keep journals, with the panel that they offered."""

    def __init__(
        self,
        place: Path,
        helpers: int = 2,
        noise: Callable[[], RingVector] | None = None,
        make: Callable[..., Uploads] = uploads_of,
    ) -> None:
        noisy = {"noisy_helpers": True, "helper_class": partial(Helper, noise=noise)} if noise else {}
        self.run, self.place, self.noise = make(helpers=helpers, **noisy), place, noise
        self.offers = [self.offered(number) for number in range(1, helpers + 1)]
        identities = tuple(member.public for member in self.run.members)
        self.panel = Panel(identities, (self.run.keys[0].offer, *self.offers))
        self.run.panel = self.panel
        self.run.context = self.panel.context(self.run.parameters, self.run.roster)
        self.run.clients = [self.run.client(index) for index in range(self.run.parameters.clients)]

    def offered(self, number: int):
        with JournaledHelper.offer(
            self.home(number), KEY, identity=self.run.members[number], place=number, noise=self.noise, **self.common
        ) as made:
            assert made.state == "offered"
            return made.offered

    @property
    def common(self) -> dict:
        return {"parameters": self.run.parameters, "roster": self.run.roster}

    def home(self, number: int) -> Path:
        return self.place / f"helper {number}"

    def files(self, number: int) -> Path:
        return self.home(number) / self.run.roster.digest.hex()

    def helper(
        self, number: int, *, bound: bool = True, home: Path | None = None, restored: bool = False
    ) -> JournaledHelper:
        given = {"identity": self.run.members[number], "restored": restored, "noise": self.noise, **self.common}
        found = JournaledHelper.resume(home or self.home(number), KEY, **given)
        if bound and found.state in ("offered", "bound"):
            found.bind(self.panel)
        return found

    def leader(self) -> JournaledServer:
        return JournaledServer.resume_or_create(
            self.place / "leader", KEY, self.fresh_leader, identity=self.run.members[0], **self.common
        )

    def fresh_leader(self) -> Leader:
        return Leader(keys=self.run.key(0), panel=self.panel, **self.common)


@pytest.mark.ci
def test_leader_and_helpers_killed_between_any_two_messages_end_in_the_exact_sum(tmp_path: Path) -> None:
    """SIGKILL of everybody after every single message; one client stays silent."""
    journals = Journals(tmp_path)
    leader = Killed(journals.leader)
    helpers = [Killed(lambda number=number: journals.helper(number)) for number in (1, 2)]
    n = journals.run.parameters.clients
    for client in range(n - 1):
        leader("receive", client, journals.run.report(client))
        leader.again()
    for _ in range(3):
        for peer, message in leader("outbox"):
            helper, answers = helpers[peer - n], []
            for _ in range(2):  # killed after the answer, asked again, the same answer
                answers.append(helper("receive", message))
                helper.again()
            assert answers[0] == answers[1]
            leader.again()
            leader("receive", peer, answers[0][0][1])
            leader.again()
        leader("end_step")
        leader.again()
    packed, survivors = leader("result")
    total = journals.run.parameters.ring.unpack(packed).lift()
    assert survivors == list(range(n - 1))
    assert np.array_equal(total, journals.run.sum_over(tuple(survivors)))
    for each in (leader, *helpers):
        each.kill()
    for number in (1, 2):
        assert sorted(path.name for path in journals.files(number).iterdir()) == ["end"]


def test_journaled_machines_run_in_the_loopback(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    clients = [
        JournaledClient.create(tmp_path / f"client {index}", KEY, client)
        for index, client in enumerate(journals.run.clients)
    ]
    helpers = [journals.helper(number) for number in (1, 2)]
    with journals.leader() as leader:
        outcome = run(leader, clients, helpers=helpers, dropouts={"report": {2}})
    assert outcome.survivors == (0, 1, 3, 4, 5)
    assert np.array_equal(outcome.total.lift(), journals.run.sum_over(outcome.survivors))
    assert len(outcome.helper_cpu) == len(outcome.helper_sent) == len(outcome.helper_received) == 2


# --- the client ---


def test_a_charged_client_tells_before_its_report_leaves(tmp_path: Path) -> None:
    uploads, told = uploads_of(), []

    def refuse(_: bytes) -> None:
        raise OSError(28, "no space")

    client = uploads.client(0, on_upload=refuse)
    with pytest.raises(OSError, match="no space"):
        client.start()
    assert (client.answer, client.upload, client.charged) == (b"", b"", True)
    sealed = client.export(KEY)
    place = {"parameters": uploads.parameters, "index": 0, "identity": uploads.identities[0], "roster": uploads.roster}
    deaf = type(client).resume(sealed, KEY, **place)
    with pytest.raises(LedgerError, match="must record its upload"):
        deaf.start()
    assert deaf.answer == b""
    again = type(client).resume(sealed, KEY, on_upload=told.append, **place)
    ((_, report),) = again.start()
    assert not uploads.leader.receive(0, report)
    assert told == [again.upload]
    with JournaledClient.create(tmp_path / "c", KEY, uploads.client(0), on_upload=told.append) as journaled:
        journaled.start()
        journaled.start()
    assert len(told) == 2


@pytest.mark.parametrize("waits", range(1, 9))
def test_a_client_killed_between_report_ledger_and_sending_has_one_report_and_no_spend_without_it(
    tmp_path: Path, monkeypatch, waits: int
) -> None:
    """At every wait for the disk: what the ledger has heard of lies on the disk, also where it cannot be made again."""
    uploads, place, told, made = uploads_of(), tmp_path / "client", [], []
    bound = {"parameters": uploads.parameters, "index": 0, "identity": uploads.identities[0], "roster": uploads.roster}
    report = Client._report
    monkeypatch.setattr(Client, "_report", lambda self: made.append(report(self)) or other(made[-1], len(made)))
    JournaledClient.create(place, KEY, uploads.client(0, on_upload=told.append)).close()

    def sent() -> bytes:
        with JournaledClient.resume(place, KEY, on_upload=told.append, **bound) as client:
            ((_, data),) = client.start()
            return data

    fuse = Fuse(monkeypatch, "os.fsync")
    fuse.left = waits
    with suppress(Cut):
        sent()
    fuse.left, before = 0, list(told)
    data = sent()
    assert data == sent()
    assert len(set(told)) == 1
    if before:  # the ledger had heard of it, so it was not made anew
        assert len(made) == 1


def other(report: tuple[bytes, bytes], number: int) -> tuple[bytes, bytes]:
    """A report that differs at each making, as one with a witness may from machine to machine."""
    return report[0] + bytes([number]), report[1] + bytes([number])


# --- the helper ---


def shown(journals: Journals, number: int = 1) -> JournaledHelper:
    helper = journals.helper(number)
    helper.receive(batch_of(journals.run, number, (0, 1, 2, 3, 4)))
    return helper


def test_a_run_is_offered_once_and_known_for_ever(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    with pytest.raises(LocalProtocolError, match="knows this run"):
        journals.offered(1)
    with shown(journals) as helper:
        helper.receive(list_of(journals.run, (0, 1, 2, 3)))
    with pytest.raises(LocalProtocolError, match="knows this run"):
        journals.offered(1)
    with pytest.raises(LocalProtocolError, match="place on the panel is 1 to 2"):
        JournaledHelper.offer(journals.home(1), KEY, identity=journals.run.members[0], place=0, **journals.common)


def test_the_same_key_is_offered_after_a_restart(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    with journals.helper(1, bound=False) as helper:
        assert (helper.state, helper.step, helper.answer, helper.index) == ("offered", "check", b"", 6)
        assert helper.offered == journals.offers[0]
        with pytest.raises(LocalProtocolError, match="bind it to one"):
            helper.receive(b"anything")
        with pytest.raises(LocalProtocolError, match="discard it"):
            helper.abandon()


def test_a_key_is_bound_to_one_panel(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    with journals.helper(1) as helper:
        helper.bind(journals.panel)
        other = Panel(journals.panel.identities, (*journals.panel.offers[:2], journals.run.keys[2].offer))
        with pytest.raises(LocalProtocolError, match="serves one panel, once"):
            helper.bind(other)
    second = Panel(journals.panel.identities, (journals.panel.offers[0], journals.run.keys[1].offer, other.offers[2]))
    with (
        journals.helper(2, bound=False) as helper,
        pytest.raises(LocalProtocolError, match="does not hold this member"),
    ):
        helper.bind(second)


def test_after_the_answer_there_is_no_key_on_disk_and_the_answer_is_repeated(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    question = list_of(journals.run, (0, 1, 2, 3))
    with shown(journals) as helper:
        first = helper.receive(question)
        assert helper.state == "revealed"
        assert not any((journals.files(1) / name).exists() for name in ("keys", "sealing", "log"))
        assert helper.receive(question) == first
    for _ in range(2):
        with journals.helper(1) as helper:
            assert (helper.step, helper.index, helper.faults, helper.ended, helper.upload) == ("done", 6, (), "", b"")
            assert helper.receive(question) == first
            assert helper.answer == first[0][1]
            assert helper.start() == []
            with refused("session_over"):
                helper.receive(list_of(journals.run, (0, 1, 2, 3, 4)))
            with pytest.raises(LocalProtocolError, match="counts as a release"):
                helper.abandon()
            with pytest.raises(LocalProtocolError, match="its box key is gone"):
                _ = helper.offered
            with pytest.raises(LocalProtocolError, match="serves one panel, once"):
                helper.bind(journals.panel)
            with pytest.raises(LocalProtocolError, match="is not exported"):
                helper.export(KEY)


def test_a_helper_that_has_answered_hashes_no_larger_message_than_it_could_have_answered(
    tmp_path: Path, monkeypatch
) -> None:
    journals = Journals(tmp_path)
    with shown(journals) as helper:
        helper.receive(list_of(journals.run, (0, 1, 2, 3)))
    with journals.helper(1) as helper:
        monkeypatch.setattr("privstats.engines.journal.helper.sha256", lambda _: pytest.fail("hashed"))
        with refused("session_over"):
            helper.receive(bytes(messages.largest_request(journals.run.parameters) + 1))


def test_an_abandoned_run_says_so_after_every_restart(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    with shown(journals) as helper:
        told = helper.abandon()
    with journals.helper(1) as helper:
        assert helper.step == "failed"
        assert helper.abandon() == told
        with refused("session_over"):
            helper.receive(list_of(journals.run, (0, 1, 2, 3)))
        with pytest.raises(LocalProtocolError, match="a message is bytes"):
            helper.receive(1 << 60)
    with journals.leader() as leader:
        leader.receive(journals.run.peer(1), told[0][1])
        with pytest.raises(AggregationError, match="these have abandoned the run: helper 1"):
            leader.end_step()
        with journals.helper(2) as other:
            leader.receive(journals.run.peer(2), other.abandon()[0][1])
        words = leader.abandoned
    assert sorted(words) == [1, 2]
    with journals.leader() as leader:
        assert leader.abandoned == words


@pytest.mark.parametrize("bound", [True, False])
def test_a_discarded_run_is_known_and_has_no_key(tmp_path: Path, bound: bool) -> None:
    journals = Journals(tmp_path)
    with journals.helper(1, bound=bound) as helper:
        helper.discard()
        helper.discard()
        assert helper.state == "abandoned"
    assert sorted(path.name for path in journals.files(1).iterdir()) == ["end"]
    with pytest.raises(LocalProtocolError, match="knows this run"):
        journals.offered(1)


def test_a_backup_of_all_of_a_helper_reads_a_client_which_the_page_warns_of(tmp_path: Path) -> None:
    """A copy of the home is refused unless somebody vouches for it; a copy of the whole machine looks like this."""
    journals = Journals(tmp_path, helpers=1)
    shown(journals).close()
    shutil.copytree(journals.home(1), tmp_path / "backup")
    with journals.helper(1) as helper:
        more = answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))
    with pytest.raises(LocalProtocolError, match="was restored from a backup or copied after its box key was bound"):
        journals.helper(1, home=tmp_path / "backup")
    with journals.helper(1, home=tmp_path / "backup", restored=True) as twin:
        less = answer_of(journals.run, twin, list_of(journals.run, (0, 1, 3, 4)))
    vector = body_of(journals.run, 2)
    vector.add(more)
    vector.subtract(less)
    assert np.array_equal(vector.lift(), journals.run.values[2])


def test_old_blocks_of_keys_and_log_do_not_open_once_the_run_has_ended(tmp_path: Path) -> None:
    """What a disk keeps of removed files is sealed under a key that was overwritten: no second life from there."""
    journals = Journals(tmp_path, helpers=1)
    helper = shown(journals)
    old = {name: (journals.files(1) / name).read_bytes() for name in ("keys", "log")}
    sealing = (journals.files(1) / "sealing").open("rb")  # the block itself, after the file has gone
    helper.receive(list_of(journals.run, (0, 1, 2, 3, 4)))
    helper.close()
    assert sealing.read() == bytes(os.fstat(sealing.fileno()).st_size)
    sealing.close()
    (journals.files(1) / "end").unlink()
    for name, data in old.items():
        (journals.files(1) / name).write_bytes(data)
    with pytest.raises(NothingToResumeError):
        journals.helper(1)


def test_a_batch_that_comes_again_gets_its_answer_again_and_is_kept_once(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    batch = batch_of(journals.run, 1, (0, 1, 2))
    with journals.helper(1) as helper:
        first, kept = helper.receive(batch), (journals.files(1) / "log").stat().st_size
        assert helper.receive(batch) == first
        assert (journals.files(1) / "log").stat().st_size == kept
        assert helper.charged is False


def test_a_part_that_cannot_be_kept_is_not_answered(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    batch = batch_of(journals.run, 1, (0, 1, 2))
    helper = journals.helper(1)
    with full_disk(), pytest.raises(LocalProtocolError, match="nothing was sent"):
        helper.receive(batch)
    helper.close()
    with journals.helper(1) as again:
        assert again.receive(batch)


def test_a_kill_between_the_end_and_the_destruction_is_finished_at_the_next_start(tmp_path: Path) -> None:
    journals, question = Journals(tmp_path), None
    helper, question = shown(journals), list_of(journals.run, (0, 1, 2, 3))

    with interrupted(JournaledHelper, "_destroy"):
        helper.receive(question)
    helper.close()
    assert "keys" in {path.name for path in journals.files(1).iterdir()}
    with journals.helper(1) as again:
        assert again.receive(question)
        with pytest.raises(RemoteProtocolError, match="session_over"):
            again.receive(list_of(journals.run, (0, 1, 2, 3, 4)))
    assert sorted(path.name for path in journals.files(1).iterdir()) == ["end"]
