"""What could leave a journaled machine before it is on disk, be written elsewhere, or be removed by who has let go."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from privstats.engines.journal import JournaledClient, JournaledServer, server_files
from privstats.errors import LocalProtocolError
from tests.engines.test_journal import KEY, begun, resumed, resumed_client
from tests.engines.test_journal_attacks import play, refusal
from tests.faults import full_disk, interrupted
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until
from tests.secagg.interactive.test_secrets import leaks, shown
from tests.threads import join


def answer_all(cohort: Cohort, server: JournaledServer, but: int = -1) -> None:
    for client, message in server.outbox:
        if client != but:
            server.receive(client, cohort.clients[client].receive(message)[0][1])


def test_messages_of_a_step_that_could_not_be_written_do_not_leave(tmp_path: Path) -> None:
    """The disk held the step before: resumed, it closed with others and sealed other messages under one nonce."""
    with begun(tmp_path) as (cohort, server):
        play(cohort, server, until="mask")
        answer_all(cohort, server, but=5)
        with full_disk(), pytest.raises(LocalProtocolError, match="could not be written"):
            server.end_step()
        with pytest.raises(LocalProtocolError, match="close it and resume"):
            list(server.outbox)
    with resumed(cohort, tmp_path) as server:
        assert (server.step, server.waiting_for) == ("mask", {5})


def test_messages_of_a_step_do_not_leave_while_it_is_being_written(tmp_path: Path, monkeypatch) -> None:
    """Another thread that sends ``outbox`` again found the next step's messages, which a kill would have undone."""
    cohort, taken = cohort_of(), []
    with JournaledServer.create(tmp_path, KEY, cohort.server) as server:
        answer_all(cohort, server)
        write = server_files.write_sealed

        def meanwhile(*arguments) -> None:
            thread = threading.Thread(target=lambda: taken.append(refusal(lambda: list(server.outbox))))
            thread.start()
            join(thread)
            write(*arguments)

        monkeypatch.setattr(server_files, "write_sealed", meanwhile)
        following = server.end_step()
        assert "one call at a time" in taken[0]
        assert dict(following) == dict(server.outbox)


def test_an_answer_is_not_seen_while_it_is_being_written(tmp_path: Path, monkeypatch) -> None:
    """Sent by another thread, it would be one of two answers after a kill: two masked vectors, two lists signed."""
    cohort, seen = cohort_of(), []
    opening = play_until(cohort, "mask")[0]
    with JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0]) as client:
        before = client.answer
        monkeypatch.setattr(client, "_save", lambda _: seen.append(client.answer))
        ((_, upload),) = client.receive(opening)
        assert seen == [before]
        assert client.answer == upload


def test_a_journal_keeps_its_place_when_the_process_moves(tmp_path: Path, monkeypatch) -> None:
    """A daemon that changed its folder wrote the newer states elsewhere, and a restart found an older client."""
    cohort = cohort_of()
    opening = play_until(cohort, "unmask")[0]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with JournaledClient.create("client", KEY, cohort.clients[0]) as client:
        monkeypatch.chdir(tmp_path / "elsewhere")
        client.receive(opening)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with resumed_client(cohort, tmp_path / "client") as client:
        assert client.step == "done"
    monkeypatch.chdir(tmp_path)
    with JournaledServer.create("server", KEY, cohort_of().server) as server:
        monkeypatch.chdir(tmp_path / "elsewhere")
        answer_all(cohort_of(), server)
        server.end_step()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with resumed(cohort_of(), tmp_path / "server") as server:
        assert server.step == "share"


def test_two_names_of_one_journal_are_one_journal(tmp_path: Path) -> None:
    """Through a link, each process locked a file of its own and both ran the client."""
    cohort = cohort_of()
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "client").symlink_to(tmp_path / "here" / "client")
    with (
        JournaledClient.create(tmp_path / "here" / "client", KEY, cohort.clients[0]),
        pytest.raises(LocalProtocolError, match="in use"),
    ):
        resumed_client(cohort, tmp_path / "there" / "client")


def test_a_closed_object_removes_nobodys_journal(tmp_path: Path) -> None:
    """The process that had gone on with it lost its session."""
    cohort = cohort_of()
    first = JournaledServer.create(tmp_path, KEY, cohort.server)
    first.close()
    with resumed(cohort, tmp_path) as second:
        with pytest.raises(LocalProtocolError, match="is closed"):
            first.discard()
        answer_all(cohort, second)
    with resumed(cohort, tmp_path) as second:
        assert second.waiting_for == frozenset()


def test_a_journal_that_was_given_up_can_be_discarded(tmp_path: Path) -> None:
    with begun(tmp_path) as (cohort, server):
        answer_all(cohort, server)
        with interrupted(server, "_compact"):
            server.end_step()
        server.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_goes_with_its_object_also_where_a_child_lives_on(tmp_path: Path) -> None:
    """A forked worker inherits the handle, and with it kept the journal locked after its owner had closed it."""
    cohort = cohort_of()
    client = JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0])
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        client.close()
        resumed_client(cohort, tmp_path / "client").close()
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(pid, 0)


def test_leaving_the_block_waits_for_the_last_call_and_lets_go(tmp_path: Path, monkeypatch) -> None:
    """A worker was still inside, so closing was refused, and the lock stayed with the process for good."""
    cohort, inside, goes_on = cohort_of(), threading.Event(), threading.Event()
    opening = play_until(cohort, "mask")[0]
    with JournaledClient.create(tmp_path / "client", KEY, cohort.clients[0]) as client:
        save = client._save

        def slow(question: bytes) -> None:
            inside.set()
            assert goes_on.wait(60)
            save(question)

        monkeypatch.setattr(client, "_save", slow)
        worker = threading.Thread(target=client.receive, args=(opening,))
        worker.start()
        assert inside.wait(60)
        threading.Timer(0.05, goes_on.set).start()
    join(worker)
    with resumed_client(cohort, tmp_path / "client") as client:
        assert client.step == "agree"


def test_a_message_sent_again_costs_no_disk(tmp_path: Path) -> None:
    """In the next step its sender is awaited again, so a recorded message was written down at every repeat."""
    with begun(tmp_path) as (cohort, server):
        old = {client: cohort.clients[client].receive(message)[0][1] for client, message in server.outbox}
        for ends in (False, True):
            for client, message in old.items():
                server.receive(client, message)
            if ends:
                server.end_step()
            size = next(tmp_path.glob("segment.*")).stat().st_size
            for client, message in old.items():
                assert not server.receive(client, message)
            assert next(tmp_path.glob("segment.*")).stat().st_size == size
    with resumed(cohort, tmp_path) as server:
        assert not server.receive(0, old[0])


def test_an_abort_that_could_not_be_written_does_not_leave(tmp_path: Path) -> None:
    with begun(tmp_path) as (cohort, server):
        with full_disk(), pytest.raises(LocalProtocolError, match="could not be written"):
            server.abandon()
        with pytest.raises(LocalProtocolError, match="close it and resume"):
            server.abandon()
    with resumed(cohort, tmp_path) as server:
        assert server.step == "advertise"


def test_a_finished_session_tells_so_after_a_restart(tmp_path: Path) -> None:
    with begun(tmp_path) as (cohort, server):
        play(cohort, server, until="done")
        before = dict(server.abandon())
        size = next(tmp_path.glob("segment.*")).stat().st_size
    with resumed(cohort, tmp_path) as server:
        assert dict(server.abandon()) == before
        assert next(tmp_path.glob("segment.*")).stat().st_size == size
        total, survivors = server.result
    assert np.array_equal(total.lift(), cohort.sum_over(survivors))


def test_the_seed_of_the_noise_is_shown_by_no_printer() -> None:
    seed = b"\x01the seed of the central noise\x02\x03"
    assert not leaks(shown(server_files.Snapshot(1, seed, b"state")), seed)
