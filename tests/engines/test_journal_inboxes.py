"""Boxes of a large session are in its journal's log alone: written once, read back once, and killed at every write.

The threshold is lowered to sessions of four clients; one test of the night has 2,001.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from privstats.engines.journal import JournaledServer, server_files
from privstats.engines.journal.server_files import SNAPSHOT, Snapshot
from privstats.errors import LocalProtocolError
from privstats.secagg import Server
from privstats.secagg.interactive import messages, server_steps
from tests.engines.test_journal import resumed
from tests.engines.test_journal_kills import killed_everywhere
from tests.engines.test_journal_uploads import KEY
from tests.faults import Fuse
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until


@pytest.fixture
def shelving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_steps, "SHELVED_ABOVE", 3)


@pytest.fixture(params=["one snapshot a step", pytest.param("one snapshot a message", marks=pytest.mark.ci)])
def snapshots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param.endswith("message"):
        monkeypatch.setattr(server_files, "_LEAST_LIMIT", -(1 << 20))
        monkeypatch.setattr(server_files, "_SNAPSHOT_SHARE", 0)


def sharing() -> tuple[Cohort, dict[int, bytes]]:
    """A session whose server waits for shares, and each client's share."""
    cohort = cohort_of(4, 3, 0)
    outbox = play_until(cohort, "share")
    return cohort, {client: cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()}


def journaled(cohort: Cohort, directory: Path) -> JournaledServer:
    """A journal of a copy of the cohort's server, at its step."""
    machine = Server.resume(cohort.server.export(KEY), KEY, **cohort.place())
    machine.start = lambda: None  # it has
    return JournaledServer.create(directory, KEY, machine)


def take(server: JournaledServer, answers: dict[int, bytes]) -> None:
    """Receive one answer after another, and close the step."""
    for client in sorted(server.waiting_for):
        server.receive(client, answers[client])
    server.end_step()


def ended(server: JournaledServer, cohort: Cohort) -> None:
    """Play honestly to the end; the sum is exact."""
    while server.step != "done":
        answered = {client: cohort.clients[client].receive(message)[0][1] for client, message in server.outbox}
        take(server, answered)
    total, survivors = server.result
    assert survivors == (0, 1, 2, 3)
    assert total.lift().tolist() == cohort.sum_over(survivors).tolist()


def box_bytes(cohort: Cohort) -> int:
    """All boxes of a session on a complete graph."""
    n = cohort.parameters.clients
    return n * (n - 1) * messages.BOX_BYTES


def state_in(directory: Path) -> bytes:
    return Snapshot.read(directory, KEY).state


def segments_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("segment.*"), key=lambda path: int(path.suffix[1:]))


@pytest.mark.usefixtures("shelving", "snapshots")
def test_a_kill_at_any_write_loses_no_box_and_sends_no_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "first") as server:
        take(server, shares)
        delivered = dict(server.outbox)
    checks = {client: cohort.clients[client].receive(message)[0][1] for client, message in delivered.items()}
    last = tmp_path

    def begin(host: Path) -> None:
        nonlocal last
        last = host
        host.mkdir(parents=True)
        journaled(cohort, host / "journal").close()

    def act(host: Path) -> None:
        with resumed(cohort, host / "journal") as server:
            if server.step == "share":
                take(server, shares)
            if server.step == "check":
                assert dict(server.outbox) == delivered
                take(server, checks)
            assert server.step == "mask"

    assert killed_everywhere(Fuse(monkeypatch), tmp_path / "hosts", begin, act) >= 12
    with resumed(cohort, last / "journal") as server:
        ended(server, cohort)


@pytest.mark.usefixtures("snapshots")
def test_boxes_are_written_once_and_removed_with_their_step(tmp_path: Path, shelving: None) -> None:
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "journal") as server:
        take(server, shares)
        assert len(state_in(tmp_path / "journal")) < box_bytes(cohort)
        assert sum(path.stat().st_size for path in segments_in(tmp_path / "journal")) > sum(map(len, shares.values()))
        delivered = dict(server.outbox)
    with resumed(cohort, tmp_path / "journal") as server:
        assert dict(server.outbox) == delivered
        take(server, {client: cohort.clients[client].receive(delivered[client])[0][1] for client in delivered})
        assert [path.stat().st_size for path in segments_in(tmp_path / "journal")] == [0]
        ended(server, cohort)


def test_a_session_at_the_threshold_has_its_boxes_in_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_steps, "SHELVED_ABOVE", 4)
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "journal") as server:
        take(server, shares)
        assert len(state_in(tmp_path / "journal")) > box_bytes(cohort)
        assert len(segments_in(tmp_path / "journal")) == 1


def test_boxes_from_before_the_threshold_was_lowered_stay_in_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal of an earlier version may have them there when it is resumed."""
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "journal") as server:
        server.receive(0, shares[0])
        server.mark_known_noise([0])  # writes a snapshot
    monkeypatch.setattr(server_steps, "SHELVED_ABOVE", 3)
    with resumed(cohort, tmp_path / "journal") as server:
        take(server, shares)
        assert len(state_in(tmp_path / "journal")) > box_bytes(cohort)
    with resumed(cohort, tmp_path / "journal") as server:
        ended(server, cohort)


def lost(path: Path) -> None:
    path.unlink()


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def sent_to_one(cohort: Cohort, directory: Path) -> None:
    with resumed(cohort, directory) as server:
        try:
            server.outbox.to(0)
        finally:
            with pytest.raises(LocalProtocolError, match="has lost a message that it had answered"):
                server.outbox.to(1)


@pytest.mark.usefixtures("shelving")
@pytest.mark.parametrize(
    ("spoil", "what"), [(lost, "is missing, and with it"), (damaged, "record . of .* does not open")]
)
def test_a_lost_or_damaged_message_is_named_and_nothing_is_sent(
    tmp_path: Path, spoil: Callable[[Path], None], what: str
) -> None:
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "journal") as server:
        take(server, shares)
        delivered = dict(server.outbox)
    boxes = segments_in(tmp_path / "journal")[0]
    shutil.copy(boxes, tmp_path / "backup")
    spoil(boxes)
    with pytest.raises(LocalProtocolError, match=what):
        sent_to_one(cohort, tmp_path / "journal")
    shutil.copy(tmp_path / "backup", boxes)
    with resumed(cohort, tmp_path / "journal") as server:
        assert dict(server.outbox) == delivered


@pytest.mark.usefixtures("shelving")
def test_a_server_that_leaves_its_journal_takes_its_boxes_along(tmp_path: Path) -> None:
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "journal") as server:
        take(server, shares)
        delivered = dict(server.outbox)
    with resumed(cohort, tmp_path / "journal") as server:
        whole = server.export(KEY)
    alone = Server.resume(whole, KEY, **cohort.place())
    assert dict(alone.outbox) == delivered
    assert not list(alone.shelved)
    torn = Server.resume(state_in(tmp_path / "journal"), KEY, **cohort.place())
    with pytest.raises(LocalProtocolError, match="in the journal that it was exported from"):
        torn.outbox.to(0)


@pytest.mark.usefixtures("shelving")
def test_another_message_in_place_of_a_share_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, shares = sharing()
    with journaled(cohort, tmp_path / "journal") as server:
        take(server, shares)
    torn = Server.resume(state_in(tmp_path / "journal"), KEY, **cohort.place())
    others = {"too_large": shares[0] + bytes(10_000), "bad_tag": shares[1], "wrong_version": bytes(len(shares[0]))}
    monkeypatch.setattr(messages, "decode", None)
    for code, other in others.items():
        torn.fetch = lambda _, other=other: other
        with pytest.raises(LocalProtocolError, match=f"in place of the share of client 0 .{code}.: restore"):
            torn.outbox.to(0)


@pytest.mark.nightly
def test_a_session_of_2001_clients_is_resumed_from_its_log(tmp_path: Path) -> None:
    cohort = cohort_of(2_001, 1_700, 5, graph="sparse")
    parameters = cohort.parameters
    outbox = play_until(cohort, "share")
    with journaled(cohort, tmp_path / "journal") as server:
        for client, message in outbox.items():
            server.receive(client, cohort.clients[client].receive(message)[0][1])
        server.end_step()
        delivered = {client: server.outbox.to(client) for client in (0, 1_000, 2_000)}
    boxes = parameters.clients * parameters.neighbours * messages.BOX_BYTES
    assert sum(path.stat().st_size for path in segments_in(tmp_path / "journal")) > boxes
    assert (tmp_path / "journal" / SNAPSHOT).stat().st_size < boxes // 2
    with resumed(cohort, tmp_path / "journal") as server:
        assert {client: server.outbox.to(client) for client in delivered} == delivered
        for client, message in delivered.items():
            server.receive(client, cohort.clients[client].receive(message)[0][1])
        assert len(server.waiting_for) == parameters.clients - len(delivered)
