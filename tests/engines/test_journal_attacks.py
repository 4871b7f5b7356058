"""What a crash, a second process, a full disk or a late message could do to a journal, and does not."""

import copy
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from privstats.engines.faults import Fault
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.engines.journal import server as journal_server
from privstats.engines.loopback import run
from privstats.errors import LedgerError, LocalProtocolError, NothingToResumeError, SessionEndedError
from privstats.secagg.interactive.state import STEPS
from tests.engines.test_journal import KEY, begun, resumed, resumed_client
from tests.faults import full_disk, interrupted
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until
from tests.threads import join


class TestServer:
    def test_what_is_resumed_is_read_under_the_lock(self, tmp_path: Path, monkeypatch) -> None:
        """Read before, it could be what another process has since replaced: synced uploads were rolled back."""
        cohort = cohort_of()
        first = JournaledServer.create(tmp_path, KEY, cohort.server)
        *most, last = [(client, cohort.clients[client].receive(message)[0][1]) for client, message in first.outbox]
        for client, answer in most:
            first.receive(client, answer)
        original = journal_server.held

        def held_late(place, *flags):
            first.receive(*last)  # while the second process has come as far as this
            first.close()
            return original(place, *flags)

        monkeypatch.setattr(journal_server, "held", held_late)
        with resumed(cohort, tmp_path) as second:
            assert second.waiting_for == frozenset()

    @pytest.mark.parametrize("what", ["another key", "another roster", "a damaged snapshot", "a damaged record"])
    def test_a_resume_that_fails_leaves_no_lock(self, tmp_path: Path, what: str) -> None:
        with begun(tmp_path) as (cohort, server):
            server.receive(0, cohort.clients[0].receive(server.outbox.to(0))[0][1])
        key, roster = KEY, cohort.roster
        if what == "another key":
            key = b"x" * 32
        elif what == "another roster":
            roster = type(roster)(roster.publics[::-1], server=roster.server)
        else:
            path = tmp_path / "snapshot" if "snapshot" in what else next(tmp_path.glob("segment.*"))
            whole = path.read_bytes()
            path.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
        with pytest.raises(LocalProtocolError, match="does not open"):
            resumed(cohort, tmp_path, key, roster=roster)
        if "damaged" in what:
            path.write_bytes(whole)
        with resumed(cohort, tmp_path) as server:
            assert server.waiting_for == frozenset(range(1, 6))

    def test_a_second_creator_removes_nothing(self, tmp_path: Path) -> None:
        with begun(tmp_path) as (cohort, server):
            (tmp_path / "snapshot").rename(tmp_path / "hidden")  # as before its first write
            with pytest.raises(LocalProtocolError, match="in use"):
                JournaledServer.create(tmp_path, KEY, cohort_of().server)
            assert list(tmp_path.glob("segment.*"))
            (tmp_path / "hidden").rename(tmp_path / "snapshot")
            assert server.step == "advertise"

    def test_a_full_disk_gives_up_memory_and_not_the_disk(self, tmp_path: Path) -> None:
        """An upload that is in memory only would be taken for a repeat at the client's next attempt."""
        with begun(tmp_path) as (cohort, server):
            upload = cohort.clients[0].receive(server.outbox.to(0))[0][1]
            with full_disk(), pytest.raises(LocalProtocolError, match=r"be written.*close it and resume \(No space"):
                server.receive(0, upload)
            with pytest.raises(LocalProtocolError, match="close it and resume"):
                server.receive(0, upload)
        with resumed(cohort, tmp_path) as server:
            assert 0 in server.waiting_for
            assert not server.receive(0, upload)
            assert 0 not in server.waiting_for

    def test_two_calls_at_once_are_one(self, tmp_path: Path, monkeypatch) -> None:
        with begun(tmp_path) as (cohort, server):
            answer = cohort.clients[0].receive(server.outbox.to(0))[0][1]
            refusals: list[str] = []
            append = server._files.append_many

            def meanwhile(*group: object) -> object:
                thread = threading.Thread(target=lambda: refusals.append(refusal(server.receive, 0, answer)))
                thread.start()
                join(thread)
                return append(*group)

            monkeypatch.setattr(server._files, "append_many", meanwhile)
            server.receive(0, answer)
        assert len(refusals) == 1
        assert "one call at a time" in refusals[0]

    def test_making_a_server_happens_once(self, tmp_path: Path) -> None:
        cohort, made = cohort_of(), []

        def make():
            made.append(cohort_of().server)
            return made[-1]

        for _ in range(3):
            with JournaledServer.resume_or_create(tmp_path / "new", KEY, make, **cohort.place()) as server:
                assert server.start().to(0) == server.outbox.to(0)
        assert len(made) == 1
        other = cohort.place() | {"parameters": cohort_of(5).parameters}
        with pytest.raises(LocalProtocolError, match="another plan"):
            JournaledServer.resume_or_create(tmp_path / "other", KEY, make, **other)


class TestClient:
    def test_the_ledger_hears_of_an_upload_before_it_leaves(self, tmp_path: Path) -> None:
        cohort, told = cohort_of(), []
        outbox = play_until(cohort, "mask")
        with JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0], on_upload=refuse) as client:
            with pytest.raises(LedgerError, match="locked"):
                client.receive(outbox[0])
            assert client.answer == b""
        with resumed_client(cohort, tmp_path / "client", on_upload=told.append) as client:
            assert client.step == "mask"
            ((_, upload),) = client.receive(outbox[0])
            assert client.receive(outbox[0]) == [("server", upload)]
        with resumed_client(cohort, tmp_path / "client", on_upload=told.append) as client:
            assert client.receive(outbox[0]) == [("server", upload)]
        assert [len(name) for name in told] == [32]

    def test_an_upload_repeated_after_a_crash_is_the_same_to_the_byte(self, tmp_path: Path) -> None:
        """The ledger was told and the process died before the state was saved: the ledger hears the same name again."""
        cohort, told = cohort_of(), []
        outbox = play_until(cohort, "mask")
        with JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0], on_upload=told.append) as client:
            with interrupted("privstats.engines.journal.client_file.write_sealed"):
                client.receive(outbox[0])
            with pytest.raises(LocalProtocolError, match="was interrupted"):
                client.receive(outbox[0])
        with resumed_client(cohort, tmp_path / "client", on_upload=told.append) as client:
            client.receive(outbox[0])
        assert len(told) == 2
        assert told[0] == told[1]

    def test_a_restart_makes_and_spends_once(self, tmp_path: Path) -> None:
        """``create(session.client(...))`` spent the budget before it found the journal."""
        cohort, spent = cohort_of(), []
        outbox = play_until(cohort, "unmask")

        def make():
            spent.append(1)
            return cohort.clients[0]

        place = cohort.place(0)
        for _ in range(3):
            JournaledClient.resume_or_create(tmp_path / "client", KEY, make, **place).close()
        with JournaledClient.resume_or_create(str(tmp_path / "client"), KEY, make, **place) as client:
            client.receive(outbox[0])
        with JournaledClient.resume_or_create(tmp_path / "client", KEY, make, **place) as client:
            assert client.step == "done"
            client.discard()
        with pytest.raises(SessionEndedError, match="must not come back"):
            JournaledClient.resume_or_create(tmp_path / "client", KEY, make, **place)
        with pytest.raises(NothingToResumeError, match="no session to resume"):
            JournaledClient.resume(tmp_path / "elsewhere", KEY, **place)
        assert len(spent) == 1
        with pytest.raises(LocalProtocolError, match="another plan or place"):
            JournaledClient.resume_or_create(tmp_path / "new", KEY, make, **cohort.place(1))


class TestLoopback:
    @pytest.mark.parametrize("journaled", [False, True])
    @pytest.mark.parametrize(("kind", "direction"), [("duplicate", "up"), ("duplicate", "down"), ("late", "up")])
    def test_a_repeat_of_the_last_message_loses_no_sum(
        self, tmp_path: Path, journaled: bool, kind: str, direction: str
    ) -> None:
        cohort = cohort_of()
        server = JournaledServer.create(tmp_path, KEY, cohort.server) if journaled else cohort.server
        clients = [
            JournaledClient.create(tmp_path / f"client {index}", KEY, client) if journaled else client
            for index, client in enumerate(cohort.clients)
        ]
        outcome = run(server, clients, faults=[Fault("unmask", 5, direction, kind)])
        assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))
        assert outcome.survivors == (0, 1, 2, 3, 4, 5)


def play(cohort: Cohort, server: JournaledServer, until: str) -> None:
    for step in STEPS:
        if step == until:
            return
        for client, message in server.outbox:
            server.receive(client, cohort.clients[client].receive(message)[0][1])
        server.end_step()


def refusal(call, *args) -> str:
    try:
        call(*args)
    except LocalProtocolError as error:
        return str(error)
    return ""


def refuse(_: bytes) -> None:
    raise LedgerError("the ledger is locked")


@pytest.mark.parametrize("key", [b"short", "k" * 32, None])
def test_a_key_that_is_none_is_refused_in_one_sentence(tmp_path: Path, key) -> None:
    with pytest.raises(LocalProtocolError, match="under a key of 32 bytes, got"):
        JournaledServer.create(tmp_path, key, cohort_of().server)
    with pytest.raises(LocalProtocolError, match="under a key of 32 bytes, got"):
        JournaledClient.create(tmp_path / "client", key, cohort_of().clients[0])


def test_a_path_that_is_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LocalProtocolError, match="kept at a path, got int"):
        JournaledServer.create(3, KEY, cohort_of().server)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LocalProtocolError, match=r"cannot be made \(File exists\)"):
        JournaledServer.create(tmp_path / "file", KEY, cohort_of().server)
    with pytest.raises(LocalProtocolError, match=r"cannot be opened \(No such file or directory\)"):
        JournaledClient.create(tmp_path / "nowhere" / "client", KEY, cohort_of().clients[0])


def test_two_processes_cannot_resume_one_state(tmp_path: Path) -> None:
    cohort = cohort_of()
    JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0]).close()
    with resumed_client(cohort, tmp_path / "client") as client:
        pid = os.fork()
        if pid == 0:
            code = 2
            try:
                assert "in use" in refusal(lambda: resumed_client(cohort, tmp_path / "client"))
                assert "another process" in refusal(client.receive, b"")
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with pytest.raises(LocalProtocolError, match="would be a second one"):
            copy.deepcopy(client)
        assert len(client.export(KEY)) > 32
        assert client.faults == ()
