"""A journal that was put back from a backup, or copied, is refused in every role unless its operator vouches for it."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledLeader, JournaledServer
from privstats.engines.journal.client_file import forget_answer, never
from privstats.engines.journal.rollback import Counter
from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError, RestoredError
from privstats.secagg.interactive import messages
from privstats.secagg.wire import to_bitmap
from tests.engines.test_journal import resumed, resumed_client
from tests.engines.test_journal_leader import maker, offered, panel_of, place_of
from tests.engines.test_journal_leader import resumed as leader_of
from tests.engines.test_journal_uploads import KEY, Journals, shown
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until
from tests.secagg.upload.cohorts import answer_of, list_of, uploads_of

COPIED = "was restored from a backup or copied after its box key was bound"
RESTORED = "was restored from a backup or copied after it was written, so another copy of this"


BEGAN = "holds nothing, and a .* of this run began on this machine before, as .*/counts/"
Root: TypeAlias = Callable[[Path], Path]


@pytest.fixture(params=["alone", "with its folder"])
def root(request) -> Root:
    """What is put back of a machine's place: it alone, or all of the party's folder with the counters beside it."""
    return (lambda place: place) if request.param == "alone" else (lambda place: place.parent)


def path_in(party: Path) -> Path:
    return party / "sessions" / "client"


def backed_up(place: Path, name: Path | None = None) -> Path:
    return Path(shutil.copytree(place, name or place.with_name("backup"), dirs_exist_ok=True))


def test_attack_a_helper_that_is_put_back_answers_a_second_list(party: Path, root: Root) -> None:
    journals = Journals(party, helpers=1)
    home = journals.home(1)
    shown(journals).close()
    backup = backed_up(root(home))
    with journals.helper(1) as helper:
        answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))
    put_back(backup, root(home))
    for _ in range(2):  # a refusal leaves it as it is
        with pytest.raises(RestoredError, match=COPIED):
            journals.helper(1)
    with journals.helper(1, restored=True) as double:
        answer_of(journals.run, double, list_of(journals.run, (0, 1, 2, 3)))


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path / "place", helpers=1)


def put_back(source: Path, target: Path) -> None:
    """As a restore into the folder that is there: the folder keeps its inode, its content is the backup's."""
    for path in target.rglob("*"):
        if path.is_file():
            path.unlink()
    for path in source.rglob("*"):
        if path.is_file():
            shutil.copy2(path, target / path.relative_to(source))


def backup_of(journals: Journals, tmp_path: Path) -> Path:
    return shutil.copytree(journals.home(1), tmp_path / "backup")


def test_a_helper_that_was_shown_a_part_and_is_put_back_before_it_is_refused(journals, tmp_path) -> None:
    with journals.helper(1):
        backup = backup_of(journals, tmp_path)
    shown(journals).close()
    put_back(backup, journals.home(1))
    with pytest.raises(LocalProtocolError, match=COPIED):
        journals.helper(1)


def test_a_key_that_was_not_bound_may_lie_anywhere(journals, tmp_path) -> None:
    elsewhere = shutil.copytree(journals.home(1), tmp_path / "elsewhere")
    with journals.helper(1, home=elsewhere) as helper:
        assert helper.state == "bound"


def test_a_twin_whose_time_is_up_signs_nothing(journals, tmp_path, monkeypatch) -> None:
    """The other one may have answered, and parties would take a counted upload for an prove_excluded one."""
    shown(journals).close()
    backup = backup_of(journals, tmp_path)
    with journals.helper(1) as helper:
        answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))
    put_back(backup, journals.home(1))
    resume = partial(JournaledHelper.resume, journals.home(1), KEY, identity=journals.run.members[1], **journals.common)
    monkeypatch.setattr("time.time", lambda: float(1 << 41))
    with pytest.raises(RestoredError):  # one look at a clock ends nothing
        resume()
    monkeypatch.setattr("time.time", lambda: float((1 << 41) + 86_400))
    with resume() as helper:
        assert (helper.state, helper.answer) == ("abandoned", b"")


# --- a client of the interactive protocol ---


def listed(cohort: Cohort, clients: tuple[int, ...]) -> bytes:
    """The message in which the server lists these as survivors, to client 0."""
    bitmap = to_bitmap(set(clients), len(cohort.clients))
    return cohort.server._send(0, messages.Survivors(cohort.server._state.session, bitmap))[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "client"


def test_attack_a_client_that_is_put_back_signs_a_second_list(party: Path, root: Root) -> None:
    """Two lists that differ in one client unmask that client; the double of the refusal is the word of the operator."""
    cohort, path = cohort_of(), path_in(party)
    play_until(cohort, "agree")
    JournaledClient.create(path, KEY, cohort.clients[0]).close()
    backup = backed_up(root(path.parent))
    lists = listed(cohort, (0, 1, 2, 3, 4, 5)), listed(cohort, (0, 1, 2, 3, 4))
    with resumed_client(cohort, path) as client:
        assert len(client.receive(lists[0])) == 1
        with pytest.raises(RemoteProtocolError):
            client.receive(lists[1])
    put_back(backup, root(path.parent))
    went_back = (party / "sessions.counts" / "client").read_text() == "1\n"
    assert went_back == (root(path.parent) == party), "the counter beside it, too"
    for _ in range(2):  # a refusal leaves it as it is
        with pytest.raises(RestoredError, match=RESTORED):
            resumed_client(cohort, path)
    with resumed_client(cohort, path, restored=True) as double:
        assert len(double.receive(lists[1])) == 1


@pytest.mark.parametrize("end", ["unmasks", "is given up", "is forgotten"])
def test_a_client_that_has_ended_is_not_put_back(path: Path, end: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    JournaledClient.create(path, KEY, cohort.clients[0]).close()
    backup = path.read_bytes()
    with resumed_client(cohort, path) as client:
        if end == "is given up":
            client.discard()
        else:
            client.receive(outbox[0])
    if end == "is forgotten":
        forget_answer(path, KEY)
    path.write_bytes(backup)
    with pytest.raises(RestoredError, match=RESTORED):
        resumed_client(cohort, path)


def test_a_last_answer_may_be_put_back_and_copied(path: Path, tmp_path: Path) -> None:
    """A copy gives the same bytes to the same message, and nothing to any other."""
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    with JournaledClient.create(path, KEY, cohort.clients[0]) as client:
        ((_, answer),) = client.receive(outbox[0])
    shutil.copytree(path.parent, tmp_path / "copy")
    forget_answer(path, KEY)
    for place in (path, tmp_path / "copy" / "client"):
        place.write_bytes((tmp_path / "copy" / "client").read_bytes())
        with resumed_client(cohort, place, 0) as client:
            assert client.answer == answer


def test_a_client_that_was_copied_is_refused_until_its_operator_vouches(path: Path, tmp_path: Path) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "share")
    JournaledClient.create(path, KEY, cohort.clients[0]).close()
    copy = Path(shutil.copytree(path.parent, tmp_path / "copy")) / "client"
    with pytest.raises(RestoredError, match=RESTORED):
        resumed_client(cohort, copy)
    with resumed_client(cohort, copy, restored=True) as client:
        assert client.step == "share"
    with resumed_client(cohort, copy) as client:
        client.receive(outbox[0])
    copy.write_bytes(path.read_bytes())  # what was vouched for is the newest from there on
    with pytest.raises(RestoredError, match=RESTORED):
        resumed_client(cohort, copy)


def test_a_client_that_no_release_wrote_is_refused(path: Path) -> None:
    """It counted nothing, so that an older copy of it would go unnoticed."""
    cohort = cohort_of()
    JournaledClient.create(path, KEY, cohort.clients[0]).close()
    saved = msgspec.msgpack.decode(read_sealed(path, KEY))
    assert saved.pop("mark") == {"count": 1, "folder": path.parent.stat().st_ino}
    write_sealed(path, KEY, msgspec.msgpack.encode(saved))
    with pytest.raises(LocalProtocolError, match="a journal from before the first release of privstats"):
        resumed_client(cohort, path)


# --- a server ---


def played(cohort: Cohort, server: JournaledServer, steps: int, present: range = range(6)) -> None:
    for _ in range(steps):
        for client, message in server.outbox:
            if client in present:
                server.receive(client, cohort.clients[client].receive(message)[0][1])
        server.end_step()


def backup_of_server(cohort: Cohort, directory: Path, steps: int) -> tuple[JournaledServer, Path]:
    with JournaledServer.create(directory, KEY, cohort.server) as server:
        played(cohort, server, steps)
    backup = Path(shutil.copytree(directory, directory.with_name("backup")))
    return resumed(cohort, directory), backup


def ended(server: JournaledServer) -> None:
    with pytest.raises(AggregationError):
        server.end_step()


DECISIONS: dict[str, Callable[[Cohort, JournaledServer], object]] = {
    "the next step": lambda cohort, server: played(cohort, server, 1),
    "an end without a sum": lambda cohort, server: ended(server),
    "a session given up": lambda cohort, server: server.abandon(),
    "a session that is over": lambda cohort, server: server.discard(),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_server_that_is_put_back_from_before_a_decision_is_refused(party: Path, root: Root, decision: str) -> None:
    cohort, journal = cohort_of(), party / "journal"
    with JournaledServer.create(journal, KEY, cohort.server) as server:
        played(cohort, server, 1)
    backup = backed_up(root(journal))
    with resumed(cohort, journal) as server:
        DECISIONS[decision](cohort, server)
    put_back(backup, root(journal))
    for _ in range(2):
        with pytest.raises(RestoredError, match=RESTORED):
            resumed(cohort, journal)
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    with JournaledServer.resume(journal, KEY, restored=True, **named) as server:
        assert server.step == "share"
    resumed(cohort, journal).close()


def test_a_log_that_lacks_the_last_answers_is_a_log_before_they_arrived(tmp_path: Path) -> None:
    """The clients repeat them, so nothing can be told apart, and nobody is stopped for it."""
    cohort = cohort_of()
    server, backup = backup_of_server(cohort, tmp_path / "journal", 1)
    with server:
        server.receive(0, cohort.clients[0].receive(dict(server.outbox)[0])[0][1])
    put_back(backup, tmp_path / "journal")
    with resumed(cohort, tmp_path / "journal") as server:
        assert 0 in server.waiting_for
        played(cohort, server, 1)


def test_a_server_that_was_copied_is_refused_until_its_operator_vouches(tmp_path: Path) -> None:
    cohort = cohort_of()
    server, backup = backup_of_server(cohort, tmp_path / "journal", 1)
    server.close()
    with pytest.raises(RestoredError, match=RESTORED):
        resumed(cohort, backup)
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    with JournaledServer.resume(backup, KEY, restored=True, **named) as server:
        played(cohort, server, 1)
    resumed(cohort, backup).close()


def test_a_server_that_no_release_wrote_is_refused(tmp_path: Path) -> None:
    cohort = cohort_of()
    server, backup = backup_of_server(cohort, tmp_path / "journal", 1)
    server.close()
    kept = msgspec.msgpack.decode(read_sealed(backup / "snapshot", KEY))
    assert kept.pop("mark") == {"count": 2, "folder": (tmp_path / "journal").stat().st_ino}
    write_sealed(backup / "snapshot", KEY, msgspec.msgpack.encode(kept))
    put_back(backup, tmp_path / "journal")
    with pytest.raises(LocalProtocolError, match="a journal from before the first release of privstats"):
        resumed(cohort, tmp_path / "journal")


def test_the_next_session_in_the_same_directory_is_not_taken_for_an_older_one(tmp_path: Path) -> None:
    for _ in range(2):
        cohort = cohort_of()
        JournaledServer.create(tmp_path / "journal", KEY, cohort.server).close()
        with resumed(cohort, tmp_path / "journal") as server:
            played(cohort, server, 1)
        with resumed(cohort, tmp_path / "journal") as server:
            server.discard()


# --- a leader ---


def test_a_leader_that_is_put_back_from_before_it_led_leads_no_second_server(
    party: Path, root: Root, tmp_path: Path
) -> None:
    run, home = uploads_of(), party / "home"
    empty = backed_up(party)
    with offered(run, home) as leader:
        panel = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
        early = backed_up(root(home), tmp_path / "early")
        with pytest.raises(ZeroDivisionError):  # the process fails between the two
            leader.lead(panel, lambda _: 1 // 0)
    bound = backed_up(root(home), tmp_path / "bound")
    leader_of(run, home).close()
    with leader_of(run, home) as leader:
        leader.lead(panel, maker(run, panel)).close()
    led = backed_up(root(home), tmp_path / "led")
    for backup in (early, bound):
        put_back(backup, root(home))
        for _ in range(2):
            with pytest.raises(RestoredError, match=COPIED):
                leader_of(run, home)
    with JournaledLeader.resume(home, KEY, restored=True, **place_of(run)) as leader:
        leader.lead(panel, maker(run, panel)).close()
    put_back(led, root(home))  # the journal of the run itself
    with leader_of(run, home) as leader, pytest.raises(RestoredError, match="another copy of this server"):
        leader.lead(panel, maker(run, panel))
    with JournaledLeader.resume(home, KEY, restored=True, **place_of(run)) as leader:
        leader.lead(panel, maker(run, panel)).close()
    shutil.rmtree(home)
    put_back(empty, party)
    with pytest.raises(RestoredError, match=BEGAN):
        offered(run, home)


# --- the count itself ---


NOT_WRITTEN = "could not be written.*repair that.*Is a directory: .*counts"


def blocked(counts: Path) -> None:
    """A count that no process can read or write: a folder stands in its place."""
    counts.unlink(missing_ok=True)
    counts.mkdir()


def test_a_count_that_cannot_be_written_is_one_sentence_as_a_client_resumes(path: Path) -> None:
    """A kill came between its journal and its count, and the disk is full by now."""
    cohort, counts = cohort_of(), Counter.of(path.parent, path.name).path
    JournaledClient.create(path, KEY, cohort.clients[0]).close()
    blocked(counts)
    for resume in (lambda: resumed_client(cohort, path), lambda: resumed_client(cohort, path, restored=True)):
        with pytest.raises(LocalProtocolError, match=NOT_WRITTEN):
            resume()
    counts.rmdir()
    resumed_client(cohort, path).close()


def test_a_count_that_cannot_be_written_is_one_sentence_as_a_client_is_kept_from_beginning(path: Path) -> None:
    counts = Counter.of(path.parent, path.name).path
    counts.mkdir(parents=True)
    with pytest.raises(LocalProtocolError, match=NOT_WRITTEN):
        never(path, KEY)


@pytest.mark.parametrize("restored", [False, True], ids=["resumed", "vouched"])
def test_a_count_that_cannot_be_written_is_one_sentence_as_a_helper_resumes(journals, restored: bool) -> None:
    shown(journals).close()
    (counts,) = (path for path in journals.home(1).parent.rglob("*.counts/*") if path.is_file())
    blocked(counts)
    with pytest.raises(LocalProtocolError, match=NOT_WRITTEN):
        journals.helper(1, restored=restored)
    counts.rmdir()
    journals.helper(1).close()
