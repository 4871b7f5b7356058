"""A folder that is restored in place, with all counters in it, is refused in every role: one counter lies outside."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledServer
from privstats.engines.journal.client_file import client_outside, never
from privstats.errors import LocalProtocolError, RestoredError, SessionEndedError
from privstats.secagg import Roster
from privstats.secagg.machines import session_id
from tests.engines.test_journal import resumed, resumed_client
from tests.engines.test_journal_leader import panel_of
from tests.engines.test_journal_restored import BEGAN, COPIED, RESTORED, backed_up, path_in, put_back
from tests.engines.test_journal_uploads import KEY
from tests.faults import fails
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until
from tests.secagg.upload.cohorts import uploads_of


def anew(cohort: Cohort, path: Path, **named: Any) -> JournaledClient:
    return JournaledClient.resume_or_create(path, KEY, lambda: cohort.client(0), **cohort.place(0), **named)


def test_attack_a_folder_restored_from_before_the_session_begins_a_second_client(party: Path) -> None:
    """A second vector under a second noise: the difference of two sums is one party's."""
    cohort = cohort_of()
    backup = backed_up(party)
    anew(cohort, path_in(party)).close()
    put_back(backup, party)
    made: list[int] = []
    with pytest.raises(RestoredError, match=BEGAN):
        JournaledClient.resume_or_create(path_in(party), KEY, lambda: made.append(1), **cohort.place(0))
    with pytest.raises(RestoredError, match=BEGAN):
        JournaledClient.create(path_in(party), KEY, cohort.client(0))
    assert made == [], "nothing was spent or drawn for it"
    anew(cohort, path_in(party), restored=True).close()
    anew(cohort, path_in(party)).close()


def test_a_client_that_was_ended_here_begins_in_no_older_folder(party: Path) -> None:
    cohort = cohort_of()
    backup = backed_up(party)
    never(path_in(party), KEY, client_outside(session_id(cohort.parameters, cohort.roster), 0))
    with pytest.raises(SessionEndedError):
        anew(cohort, path_in(party))
    put_back(backup, party)
    with pytest.raises(RestoredError, match=BEGAN):
        anew(cohort, path_in(party))


def test_a_client_of_another_folder_on_this_machine_is_another_copy(party: Path, tmp_path: Path) -> None:
    cohort = cohort_of()
    anew(cohort, path_in(party)).close()
    with pytest.raises(RestoredError, match=BEGAN):
        anew(cohort, tmp_path / "elsewhere")


def test_parties_of_one_machine_are_counted_apart(tmp_path: Path) -> None:
    cohort = cohort_of()
    for place, client in enumerate(cohort.clients):
        JournaledClient.create(tmp_path / str(place), KEY, client).close()
        resumed_client(cohort, tmp_path / str(place), place).close()


def test_a_roster_that_names_no_run_may_be_used_again(tmp_path: Path) -> None:
    cohort = cohort_of()
    cohort.roster = Roster(cohort.roster.publics, server=cohort.roster.server)
    for day in ("monday", "tuesday"):
        anew(cohort, tmp_path / day).close()
        anew(cohort, tmp_path / day).close()


def test_a_state_folder_that_is_lost_locks_nobody_out_and_counts_from_there(party: Path, state_folder: Path) -> None:
    """As in a container whose home is gone with it; a restore before the next answer is not noticed."""
    cohort = cohort_of()
    outbox = play_until(cohort, "share")
    JournaledClient.create(path_in(party), KEY, cohort.clients[0]).close()
    backup = backed_up(party)
    shutil.rmtree(state_folder)
    with resumed_client(cohort, path_in(party), 0) as client:
        client.receive(outbox[0])
    put_back(backup, party)
    with pytest.raises(RestoredError, match=RESTORED):
        resumed_client(cohort, path_in(party), 0)


def test_a_counter_that_cannot_be_read_admits_no_older_folder(party: Path) -> None:
    """An unreadable counter counted as none, and the older copy's next answer replaced it."""
    cohort = cohort_of()
    outbox = play_until(cohort, "share")
    empty = backed_up(party)
    JournaledClient.create(path_in(party), KEY, cohort.clients[0]).close()
    begun = Path(shutil.copytree(party, party.parent / "begun"))
    with resumed_client(cohort, path_in(party), 0) as client:
        client.receive(outbox[0])
    cases = (
        (begun, resumed_again, RESTORED, "privstats.engines.journal.rollback"),
        (begun, resumed_again, RESTORED, "privstats.files.outside"),
        (empty, anew, BEGAN, "privstats.files.outside"),
    )
    for backup, act, match, reader in cases:
        put_back(backup, party)
        unreadable = fails(OSError(errno.EMFILE, "Too many open files"), f"{reader}.open_plain")
        with unreadable, pytest.raises(LocalProtocolError, match="Too many open files"):
            act(cohort, path_in(party))
        with pytest.raises(RestoredError, match=match):
            act(cohort, path_in(party))


@pytest.mark.parametrize("damage", [b"", b"\x00\x00", b"-1\n", b"3 or 4\n"])
def test_a_damaged_counter_admits_no_older_folder(party: Path, state_folder: Path, damage: bytes) -> None:
    """It counted as none: each counter is replaced as a whole, so what is no number is no trace of a kill."""
    cohort = cohort_of()
    outbox = play_until(cohort, "share")
    empty = backed_up(party)
    JournaledClient.create(path_in(party), KEY, cohort.clients[0]).close()
    begun = Path(shutil.copytree(party, party.parent / "begun"))
    with resumed_client(cohort, path_in(party), 0) as client:
        client.receive(outbox[0])
    newest = Path(shutil.copytree(party, party.parent / "newest"))
    (outside,) = state_folder.rglob("client.*")
    beside = party / "sessions.counts" / "client"
    cases = ((begun, resumed_again, outside), (empty, anew, outside), (newest, resumed_again, beside))
    for backup, act, counter in cases:
        put_back(backup, party)
        was = counter.read_bytes()
        counter.write_bytes(damage)
        with pytest.raises(LocalProtocolError, match=f"{counter} is damaged: .* remove that file and resume"):
            act(cohort, path_in(party))
        counter.write_bytes(was)
    beside.unlink()
    resumed_client(cohort, path_in(party), 0).close()
    assert beside.read_bytes() == was, "as the journal says"


def resumed_again(cohort: Cohort, path: Path) -> JournaledClient:
    return resumed_client(cohort, path, 0)


@pytest.mark.parametrize("lacks", ["a folder", "a home"])
def test_a_state_folder_that_cannot_be_written_keeps_the_answer_here(
    party: Path, tmp_path: Path, monkeypatch, lacks: str
) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "share")
    state = os.environ["XDG_STATE_HOME"]
    with JournaledClient.create(path_in(party), KEY, cohort.clients[0]) as client:
        if lacks == "a folder":
            (tmp_path / "file").touch()
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        else:
            monkeypatch.delenv("XDG_STATE_HOME")
            monkeypatch.setattr("pathlib.Path.home", no_home)
        with pytest.raises(LocalProtocolError, match="nothing was sent.*XDG_STATE_HOME"):
            client.receive(outbox[0])
    monkeypatch.setenv("XDG_STATE_HOME", state)
    with resumed_client(cohort, path_in(party), 0) as client:
        assert client.step == "check"


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_relative_state_folder_is_ignored(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path))
    outside = client_outside(bytes(64), 0)
    assert outside.path.parent.parent == tmp_path / ".local/state/privstats/counts"


# --- a server ---


def test_a_server_restored_from_before_the_session_begins_one_that_no_client_answers(party: Path) -> None:
    """So it is not refused: who has lost a session may begin it anew with clients that have not begun."""
    cohort = cohort_of()
    backup = backed_up(party)
    JournaledServer.create(party / "journal", KEY, cohort.server).close()
    put_back(backup, party)
    JournaledServer.create(party / "journal", KEY, cohort_of().server).close()
    resumed(cohort, party / "journal").close()


# --- a panel ---


def test_a_helper_restored_from_before_it_was_bound_or_offered_its_key_is_refused(party: Path, tmp_path: Path) -> None:
    run, home = uploads_of(), party / "home"
    place = {"identity": run.members[1], "parameters": run.parameters, "roster": run.roster}
    empty = backed_up(party)
    with JournaledHelper.offer(home, KEY, place=1, **place) as helper:
        panel = panel_of(run, [run.keys[0].offer, helper.offered, *(keys.offer for keys in run.keys[2:])])
        unbound = Path(shutil.copytree(party, tmp_path / "unbound"))
        helper.bind(panel)
    put_back(unbound, party)
    with pytest.raises(RestoredError, match=COPIED):
        JournaledHelper.resume(home, KEY, **place)
    put_back(empty, party)
    with pytest.raises(RestoredError, match=BEGAN):
        JournaledHelper.offer(home, KEY, place=1, **place)
