"""Killed at any moment, the server ends in the exact sum, and a client never unmasks twice."""

import hashlib
import itertools
import os
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import Ring
from privstats.engines import loopback
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.engines.records import MAX_SEALED, At, RecordLog, overwrite, read_record, read_sealed, write_sealed
from privstats.errors import LocalProtocolError, NothingToResumeError, RemoteProtocolError, SessionEndedError
from privstats.secagg import Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.wire import to_bitmap
from tests.engines.killed import Killed
from tests.faults import full_disk
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until

KEY = b"k" * 32


def resumed(cohort: Cohort, directory: Path, key: bytes = KEY, **change: Any) -> JournaledServer:
    return JournaledServer.resume(directory, key, **cohort.place() | change)


@contextmanager
def begun(directory: Path) -> Iterator[tuple[Cohort, JournaledServer]]:
    """A cohort, and its server with a journal in this directory."""
    cohort = cohort_of()
    with JournaledServer.create(directory, KEY, cohort.server) as server:
        yield cohort, server


def resumed_client(cohort: Cohort, path: Path, index: int = 0, **change: Any) -> JournaledClient:
    return JournaledClient.resume(path, KEY, **cohort.place(index), **change)


def serving(cohort: Cohort, directory: Path) -> SimpleNamespace:
    """A server's journal, as a process of its own serves it."""
    place = cohort.place()
    server = JournaledServer.resume_or_create(directory, KEY, lambda: Server(**place), **place)

    def receive(sender: int, data: bytes) -> None:
        try:
            server.receive(sender, data)
        except RemoteProtocolError as refusal:
            assert refusal.code in ("not_expected", "wrong_type")

    def state() -> list:
        awaited = [each for each in server.outbox if each[0] in server.waiting_for]
        total, survivors = server.result if server.step == "done" else (None, ())
        return [[server.step, awaited, total.pack() if total else b"", survivors]]

    return SimpleNamespace(receive=receive, end=lambda: server.end_step() and None, state=state)


@pytest.fixture
def process(cohort: Cohort, tmp_path: Path) -> Iterator[Killed]:
    server = Killed(lambda: serving(cohort, tmp_path / "journal"))
    yield server
    server.kill()


def check(cohort: Cohort, state: list, survivors: list[int]) -> None:
    step, _, packed, listed = state
    assert (step, listed) == ("done", survivors)
    assert np.array_equal(cohort.parameters.ring.unpack(packed).lift(), cohort.sum_over(tuple(survivors)))


@pytest.mark.nightly
def test_a_server_killed_between_any_two_messages_ends_in_the_exact_sum(cohort: Cohort, process: Killed) -> None:
    """SIGKILL after every single message and every end of a step, dropouts at each step."""
    gone, kills = set(), 0
    vanishing = {"mask": 5, "unmask": 0}
    for step in STEPS:
        ((at, awaited, *_),) = process("state")
        assert at == step
        gone.add(vanishing.get(step))
        for client, message in awaited:
            if client not in gone:
                process("receive", client, cohort.clients[client].receive(message)[0][1])
                process.again()
                kills += 1
        process("end")
        process.again()
        kills += 1
    check(cohort, *process("state"), [0, 1, 2, 3, 4])
    assert kills == 6 + 6 + 6 + 5 + 5 + 4 + 6


@pytest.mark.ci
def test_a_server_killed_while_it_works_ends_in_the_exact_sum(cohort: Cohort, process: Killed) -> None:
    """SIGKILL at moments that have nothing to do with messages; unacknowledged answers are sent again."""
    delays = np.random.default_rng(5).uniform(0, np.geomspace(0.004, 0.2, 400))
    ((step, awaited, *_),) = process("state")
    for kills, delay in enumerate(delays):  # noqa: B007 - read after the loop
        if step == "done":
            break
        if awaited:
            client, message = awaited[0]
            process.tell("receive", client, cohort.clients[client].receive(message)[0][1])
        else:
            process.tell("end")
        time.sleep(delay)
        process.again()
        ((step, awaited, *_),) = process("state")
    check(cohort, *process("state"), [0, 1, 2, 3, 4, 5])
    assert kills >= 30


def test_a_torn_record_is_as_if_it_had_never_arrived_unless_it_was_answered(tmp_path: Path) -> None:
    cohort, journal = cohort_of(), tmp_path / "journal"
    with JournaledServer.create(journal, KEY, cohort.server) as server:
        outbox = dict(server.outbox)
        mark = (journal / "mark").read_bytes()
        server.receive(0, cohort.clients[0].receive(outbox[0])[0][1])
    before = {path.name: path.read_bytes() for path in journal.iterdir()}
    log = next(journal.glob("segment.*")).name
    for size in (*range(10), len(before[log]) // 2, len(before[log]) - 1):
        for name, content in (before | {log: before[log][:size]}).items():
            (journal / name).write_bytes(content)
        with pytest.raises(LocalProtocolError, match=rf"{log} ends after 0 of the 1 records that were answered"):
            resumed(cohort, journal)
        (journal / "mark").write_bytes(mark)
        for _ in range(2):
            with resumed(cohort, journal) as server:
                assert server.waiting_for == frozenset(range(6))
    for name, content in (before | {"mark": mark}).items():
        (journal / name).write_bytes(content)
    for _ in range(2):
        with resumed(cohort, journal) as server:
            assert server.waiting_for == frozenset(range(1, 6))


def test_a_log_left_over_by_a_crash_is_cleared_away(tmp_path: Path) -> None:
    cohort = cohort_of()
    JournaledServer.create(tmp_path, KEY, cohort.server).close()
    kept = {path.name for path in tmp_path.iterdir()}
    (tmp_path / "segment.0").write_bytes(b"from before the last snapshot")
    with resumed(cohort, tmp_path) as server:
        assert server.step == "advertise"
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_the_log_stays_within_a_few_vectors(tmp_path: Path) -> None:
    """While uploads arrive, snapshots replace the log: disk does not grow with clients times size either."""
    ring = Ring(((1 << 17, 32),))
    cohort = cohort_of(12, 12, 0, ring=ring)
    largest = 0
    with JournaledServer.create(tmp_path, KEY, cohort.server) as journaled:
        for _ in ("advertise", "share", "check", "mask"):
            for client, message in journaled.outbox:
                journaled.receive(client, cohort.clients[client].receive(message)[0][1])
                largest = max(largest, sum(path.stat().st_size for path in tmp_path.iterdir()))
            journaled.end_step()
    assert largest < 8 * ring.wire_bytes + (2 << 20)


def test_nothing_on_disk_can_be_read_without_the_key(tmp_path: Path) -> None:
    with begun(tmp_path) as (cohort, server):
        session = cohort.server._state.session
        server.receive(0, cohort.clients[0].receive(dict(server.outbox)[0])[0][1])
    assert all(session not in path.read_bytes() for path in tmp_path.iterdir())
    with pytest.raises(LocalProtocolError, match="another key"):
        resumed(cohort, tmp_path, b"x" * 32)


def test_a_directory_serves_one_session_and_one_process(tmp_path: Path) -> None:
    cohort = cohort_of()
    for nowhere in (tmp_path, tmp_path / "missing"):
        with pytest.raises(NothingToResumeError, match="holds no session"):
            resumed(cohort, nowhere)
    JournaledServer.create(tmp_path, KEY, cohort.server).close()
    with pytest.raises(LocalProtocolError, match="already holds a session"):
        JournaledServer.create(tmp_path, KEY, cohort_of().server)
    server = resumed(cohort, tmp_path)
    with pytest.raises(LocalProtocolError, match="another process"):
        resumed(cohort, tmp_path)
    server.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_has_unmasked_repeats_its_answer_and_gives_no_other(tmp_path: Path, monkeypatch) -> None:
    """A server that was killed while the last answers were on their way asks again."""
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    path = tmp_path / "client"
    with JournaledClient.create(path, KEY, cohort.clients[0]) as client:
        ((_, answer),) = client.receive(outbox[0])
    for _ in range(2):
        with resumed_client(cohort, path) as client:
            assert (client.step, client.index, client.answer, client.upload) == ("done", 0, answer, b"")
            assert (client.start(), client.faults, client.ended, client.charged) == ([], (), "", False)
            assert client.receive(outbox[0]) == [("server", answer)]
            for other in (outbox[1], outbox[0][:-1], b""):
                with pytest.raises(RemoteProtocolError, match="only repeats its last answer"):
                    client.receive(other)
            with monkeypatch.context() as patch:
                patch.setattr("privstats.engines.journal.client.sha256", lambda _: pytest.fail("hashed"))
                with pytest.raises(RemoteProtocolError, match="only repeats its last answer"):
                    client.receive(bytes(messages.largest_request(cohort.parameters) + 1))
            with pytest.raises(LocalProtocolError, match="no state to save"):
                client.export(KEY)
    with pytest.raises(LocalProtocolError, match="already holds a client"):
        JournaledClient.create(path, KEY, cohort_of().clients[0])
    with resumed_client(cohort, path) as client:
        client.discard()
    with pytest.raises(SessionEndedError, match="must not come back"):
        resumed_client(cohort, path)


def test_what_is_left_of_a_client_that_has_unmasked_holds_no_secret(tmp_path: Path) -> None:
    """Disk and key together give the message that went to the server, which only it can open, and what is public."""
    cohort = cohort_of()
    outbox, path = play_until(cohort, "unmask"), tmp_path / "client"
    with JournaledClient.create(path, KEY, cohort.clients[0]) as client:
        ((_, answer),) = client.receive(outbox[0])
        public = {"receipt": client.receipt, "agreement": client.agreement}
    left = msgspec.msgpack.decode(read_sealed(path, KEY))
    assert left == {"state": b"", "question": hashlib.sha256(outbox[0]).digest(), "answer": answer, **public} | {
        "mark": {"count": 2}
    }
    assert len(public["receipt"]) == 68
    assert {len(word) for word in public["agreement"].values()} == {65}


def test_a_client_that_caught_the_server_lying_never_comes_back(tmp_path: Path) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "agree")
    path = tmp_path / "client"
    with JournaledClient.create(path, KEY, cohort.clients[0]) as client, pytest.raises(RemoteProtocolError):
        client.receive(outbox[0][:-1])
    too_short = to_bitmap({0, 1, 2}, 6)
    _, lie = cohort.server._send(0, messages.Survivors(cohort.server._state.session, too_short))
    with resumed_client(cohort, path) as client:
        assert client.step == "agree"
        with pytest.raises(RemoteProtocolError):
            client.receive(lie)
    with pytest.raises(SessionEndedError, match="must not come back"):
        resumed_client(cohort, path)


def test_a_client_that_heard_the_abort_never_comes_back(tmp_path: Path) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "mask")
    path = tmp_path / "client"
    with JournaledClient.create(path, KEY, cohort.clients[0]) as client:
        client.receive(outbox[0])
        assert client.receive(dict(cohort.server.abandon())[0]) == []
        assert client.answer == b""
    with pytest.raises(LocalProtocolError, match="must not come back"):
        resumed_client(cohort, path)


def test_a_log_left_by_a_session_that_is_gone_does_not_reach_the_next_one(tmp_path: Path) -> None:
    first = cohort_of()
    with JournaledServer.create(tmp_path, KEY, first.server) as server:
        server.receive(0, first.clients[0].receive(dict(server.outbox)[0])[0][1])
        stale = (tmp_path / "segment.1").read_bytes()
    (tmp_path / "snapshot").unlink()
    (tmp_path / "segment.2").write_bytes(stale)
    second = cohort_of()
    with JournaledServer.create(tmp_path, KEY, second.server) as server:
        server.receive(0, second.clients[0].receive(dict(server.outbox)[0])[0][1])
    with resumed(second, tmp_path) as server:
        assert 0 not in server.waiting_for


def test_a_record_that_could_not_be_synced_counts_as_never_written(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log", KEY)
    log.append(b"one")
    with full_disk(), pytest.raises(OSError, match="No space"):
        log.append(b"two")
    log.append(b"three")
    log.close()
    assert list(RecordLog(tmp_path / "log", KEY).records()) == [b"one", b"three"]


def test_a_sealed_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_sealed(path, KEY, b"one")
    (tmp_path / "file.new").write_bytes(b"half of tw")
    assert read_sealed(path, KEY) == b"one"
    write_sealed(path, KEY, b"two")
    assert read_sealed(path, KEY) == b"two"
    path.rename(tmp_path / "other")
    with pytest.raises(LocalProtocolError, match="does not open"):
        read_sealed(tmp_path / "other", KEY)


def test_no_damage_of_a_log_is_read_as_its_end(tmp_path: Path) -> None:
    """Neither a flipped bit nor another byte, in a length too: what had been accepted would be gone without a word."""
    log = RecordLog(tmp_path / "log", KEY)
    for record in (b"one", b"two", b"three"):
        log.append(record)
    log.close()
    whole = (tmp_path / "log").read_bytes()
    silent = []
    for place, change in itertools.product(range(len(whole)), (*(1 << bit for bit in range(8)), 0x7F, 0xFF)):
        changed = bytearray(whole)
        changed[place] ^= change
        (tmp_path / "log").write_bytes(changed)
        damaged = RecordLog(tmp_path / "log", KEY)
        try:
            silent.append((place, change, list(damaged.records())))
        except LocalProtocolError:
            assert (tmp_path / "log").read_bytes() == changed, "what is damaged is left as it is"
        damaged.close()
    assert silent == []


def test_a_torn_tail_of_any_length_is_cut(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log", KEY)
    log.append(b"one")
    first = log.size
    log.append(b"two" * 300)
    log.close()
    whole = (tmp_path / "log").read_bytes()
    for left in (*range(first, first + 40), len(whole) - 1):
        (tmp_path / "log").write_bytes(whole[:left])
        torn = RecordLog(tmp_path / "log", KEY)
        assert list(torn.records()) == [b"one"]
        torn.append(b"two")
        torn.close()
        torn = RecordLog(tmp_path / "log", KEY)
        assert list(torn.records()) == [b"one", b"two"]
        torn.close()


def test_a_log_that_no_release_wrote_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Its lengths have no check, so damage to one would read as the end."""
    sealed = bytes(12) + AESGCM(KEY).encrypt(bytes(12), b"one", b"log\0" + bytes(8))
    (tmp_path / "log").write_bytes(len(sealed).to_bytes(8, "big") + sealed)
    log = RecordLog(tmp_path / "log", KEY)
    with pytest.raises(LocalProtocolError, match="record 0 of .* or before the first release of privstats"):
        list(log.records())
    log.close()
    assert (tmp_path / "log").read_bytes().endswith(sealed)


def test_the_seed_of_the_noise_is_written_once_and_overwritten_before_it_is_removed(tmp_path: Path) -> None:
    """A second handle on the file stands for its blocks, which a file system keeps after a file was removed."""
    cohort = cohort_of()
    server = JournaledServer.create(tmp_path, KEY, cohort.server)
    assert server._files.seed == read_sealed(tmp_path / "seed", KEY)
    assert server._files.seed not in read_sealed(tmp_path / "snapshot", KEY)
    written = (tmp_path / "seed").read_bytes()
    loopback.run(server, cohort.clients)
    server.close()
    where = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    again = JournaledServer.resume(tmp_path, KEY, **where)
    assert again._files.seed == server._files.seed
    with (tmp_path / "seed").open("rb") as blocks, (tmp_path / "snapshot").open("rb") as others:
        again.discard()
        assert list(tmp_path.iterdir()) == []
        assert blocks.read() == bytes(len(written))
        assert not any(others.read())


def test_a_sealed_file_larger_than_a_cipher_can_seal_is_refused_unread(tmp_path):
    path, key = tmp_path / "keys", bytes(32)
    path.touch()
    os.truncate(path, MAX_SEALED + 1)
    tracemalloc.start()
    with pytest.raises(LocalProtocolError, match="keys does not open: it is damaged"):
        read_sealed(path, key)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_log_whose_record_claims_more_than_a_cipher_can_seal_is_damaged(tmp_path):
    path = tmp_path / "log"
    log = RecordLog(path, bytes(32))
    length = ((1 << 63) + MAX_SEALED + 1).to_bytes(8, "big")
    check = hashlib.sha256(b"log\0" + bytes(8) + length).digest()[:8]
    path.write_bytes(length + check)
    os.truncate(path, MAX_SEALED + 17)
    with pytest.raises(LocalProtocolError, match="record 0 of .*log does not open"):
        list(log.records())
    with pytest.raises(LocalProtocolError, match="record 0 of .*log does not open"):
        read_record(path, bytes(32), At(0, 0, bytes(16)))
    log.close()


def test_a_large_file_is_overwritten_in_pieces(tmp_path):
    path, size = tmp_path / "key", (5 << 20) + 3
    path.write_bytes(b"s" * size)
    tracemalloc.start()
    overwrite(path)
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()
    assert path.stat().st_size == size
    assert not any(path.read_bytes())
