"""A folder that is restored in place, with all counters in it, is refused in every role: one counter lies outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledLeader, JournaledServer
from privstats.engines.journal.client_file import client_outside, never
from privstats.errors import LocalProtocolError, RestoredError, SessionEndedError
from privstats.secagg import Roster
from privstats.secagg.machines import session_id
from tests.engines.test_journal import resumed, resumed_client
from tests.engines.test_journal_kills import killed_everywhere
from tests.engines.test_journal_leader import maker, offered, panel_of, place_of
from tests.engines.test_journal_leader import resumed as leader_of
from tests.engines.test_journal_restored import (
    COPIED,
    DECISIONS,
    RESTORED,
    backup_of_server,
    listed,
    played,
    put_back,
    vouched,
)
from tests.engines.test_journal_uploads import KEY, Journals, shown
from tests.faults import Fuse
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until
from tests.secagg.upload.cohorts import answer_of, list_of, uploads_of

BEGAN = "holds nothing, and a .* of this run began on this machine before, as .*/counts/"


@pytest.fixture
def party(tmp_path: Path) -> Path:
    """A party's folder, in which its sessions and the counters beside them lie."""
    (tmp_path / "party" / "sessions").mkdir(parents=True)
    return tmp_path / "party"


def path_in(party: Path) -> Path:
    return party / "sessions" / "client"


def backed_up(party: Path) -> Path:
    return Path(shutil.copytree(party, party.with_name("backup"), dirs_exist_ok=True))


def place_in(cohort: Cohort) -> dict[str, Any]:
    return {"parameters": cohort.parameters, "index": 0, "identity": cohort.identities[0], "roster": cohort.roster}


def anew(cohort: Cohort, path: Path, **named: Any) -> JournaledClient:
    return JournaledClient.resume_or_create(path, KEY, lambda: cohort.client(0), **place_in(cohort), **named)


def test_attack_a_partys_folder_restored_in_place_signs_a_second_list(party: Path) -> None:
    """Two lists that differ in one client unmask that client; the double of the refusal is the word of the operator."""
    cohort = cohort_of()
    play_until(cohort, "agree")
    JournaledClient.create(path_in(party), KEY, cohort.clients[0]).close()
    backup = backed_up(party)
    lists = listed(cohort, (0, 1, 2, 3, 4, 5)), listed(cohort, (0, 1, 2, 3, 4))
    with resumed_client(cohort, path_in(party), 0) as client:
        client.receive(lists[0])
    put_back(backup, party)
    assert (party / "sessions.counts" / "client").read_text() == "1\n", "the counter beside it went back, too"
    for _ in range(2):  # a refusal leaves it as it is
        with pytest.raises(RestoredError, match=RESTORED):
            resumed_client(cohort, path_in(party), 0)
    with vouched(cohort, path_in(party)) as double:
        assert len(double.receive(lists[1])) == 1


def test_attack_a_folder_restored_from_before_the_session_begins_a_second_client(party: Path) -> None:
    """A second vector under a second noise: the difference of two sums is one party's."""
    cohort = cohort_of()
    backup = backed_up(party)
    anew(cohort, path_in(party)).close()
    put_back(backup, party)
    made: list[int] = []
    with pytest.raises(RestoredError, match=BEGAN):
        JournaledClient.resume_or_create(path_in(party), KEY, lambda: made.append(1), **place_in(cohort))
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
    assert outside is not None
    assert outside.path.parent.parent == tmp_path / ".local/state/privstats/counts"


# --- a server ---


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_server_restored_in_place_from_before_a_decision_is_refused(party: Path, decision: str) -> None:
    cohort = cohort_of()
    server, _ = backup_of_server(cohort, party / "journal", 1)
    backup = backed_up(party)
    with server:
        DECISIONS[decision](cohort, server)
    put_back(backup, party)
    for _ in range(2):
        with pytest.raises(RestoredError, match=RESTORED):
            resumed(cohort, party / "journal")
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    with JournaledServer.resume(party / "journal", KEY, restored=True, **named) as server:
        assert server.step == "share"
    resumed(cohort, party / "journal").close()


def test_a_server_restored_from_before_the_session_begins_one_that_no_client_answers(party: Path) -> None:
    """So it is not refused: who has lost a session may begin it anew with clients that have not begun."""
    cohort = cohort_of()
    backup = backed_up(party)
    JournaledServer.create(party / "journal", KEY, cohort.server).close()
    put_back(backup, party)
    JournaledServer.create(party / "journal", KEY, cohort_of().server).close()
    resumed(cohort, party / "journal").close()


# --- a panel ---


def in_place(journals: Journals) -> Path:
    return journals.home(1).parent


def test_attack_a_helpers_folder_restored_in_place_answers_a_second_list(party: Path) -> None:
    journals = Journals(party, helpers=1)
    shown(journals).close()
    backup = backed_up(in_place(journals))
    with journals.helper(1) as helper:
        answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))
    put_back(backup, in_place(journals))
    for _ in range(2):
        with pytest.raises(RestoredError, match=COPIED):
            journals.helper(1)
    with journals.helper(1, restored=True) as double:
        answer_of(journals.run, double, list_of(journals.run, (0, 1, 2, 3)))


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


def test_a_leader_restored_in_place_leads_no_second_server(party: Path, tmp_path: Path) -> None:
    run, home = uploads_of(), party / "home"
    empty = backed_up(party)
    with offered(run, home) as leader:
        panel = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
        early = Path(shutil.copytree(party, tmp_path / "early"))
        leader.lead(panel, maker(run, panel)).close()
    led = Path(shutil.copytree(party, tmp_path / "led"))
    put_back(early, party)
    with pytest.raises(RestoredError, match=COPIED):
        leader_of(run, home)
    with JournaledLeader.resume(home, KEY, restored=True, **place_of(run)) as leader:
        leader.lead(panel, maker(run, panel)).close()
    put_back(led, party)  # the journal of the run itself
    with leader_of(run, home) as leader, pytest.raises(RestoredError, match="another copy of this server"):
        leader.lead(panel, maker(run, panel))
    shutil.rmtree(home)
    put_back(empty, party)
    with pytest.raises(RestoredError, match=BEGAN):
        offered(run, home)


# --- kills ---


@pytest.fixture
def fuse(monkeypatch) -> Fuse:
    return Fuse(monkeypatch, "os.fsync")


def then_refused(party: Path, backups: Path, again: Callable[[], Any]) -> None:
    """After an answer, however often it was cut short before, the folder of before it is refused."""
    put_back(backups / party.name, party)
    with pytest.raises(RestoredError):
        again()


@pytest.mark.parametrize("step", ["share", "agree", "unmask"])
def test_a_kill_between_two_writes_locks_no_client_out_and_lets_no_older_copy_in(
    tmp_path: Path, fuse: Fuse, step: str
) -> None:
    """Also behind the last answer, which is repeated as often as it is asked for."""
    cohort, backups = cohort_of(), tmp_path / "backups"
    outbox = play_until(cohort, step)
    sealed = cohort.clients[0].export(KEY)
    client = type(cohort.clients[0])

    def begin(party: Path) -> None:
        path_in(party).parent.mkdir(parents=True)
        JournaledClient.create(path_in(party), KEY, client.resume(sealed, KEY, **place_in(cohort))).close()
        shutil.copytree(party, backups / party.name)

    def act(party: Path) -> None:
        with resumed_client(cohort, path_in(party), 0) as journaled:
            assert len(journaled.receive(outbox[0])) == 1
        fuse.left = 0
        then_refused(party, backups, lambda: resumed_client(cohort, path_in(party), 0))

    assert killed_everywhere(fuse, tmp_path / "parties", begin, act) == 6


def test_a_kill_while_a_client_begins_lets_it_begin_and_no_second_one(tmp_path: Path, fuse: Fuse) -> None:
    cohort, backups = cohort_of(), tmp_path / "backups"

    def begin(party: Path) -> None:
        path_in(party).parent.mkdir(parents=True)
        shutil.copytree(party, backups / party.name)

    def act(party: Path) -> None:
        anew(cohort, path_in(party)).close()
        fuse.left = 0
        then_refused(party, backups, lambda: anew(cohort, path_in(party)))

    assert killed_everywhere(fuse, tmp_path / "parties", begin, act) >= 6


def test_a_kill_between_two_writes_of_a_server_lets_no_older_copy_in(tmp_path: Path, fuse: Fuse) -> None:
    cohort, backups = cohort_of(4, 3, 0), tmp_path / "backups"
    sealed = b""
    with JournaledServer.create(tmp_path / "first", KEY, cohort.server) as server:
        played(cohort, server, 1, range(4))
        for client, message in server.outbox:
            server.receive(client, cohort.clients[client].receive(message)[0][1])
        sealed = server.export(KEY)
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}

    def begin(host: Path) -> None:
        machine = type(cohort.server).resume(sealed, KEY, **named)
        machine.start = lambda: None  # it has
        JournaledServer.create(host / "journal", KEY, machine).close()
        shutil.copytree(host, backups / host.name)

    def act(host: Path) -> None:
        with resumed(cohort, host / "journal") as server:
            if server.step == "share":
                server.end_step()
        fuse.left = 0
        then_refused(host, backups, lambda: resumed(cohort, host / "journal"))

    assert killed_everywhere(fuse, tmp_path / "hosts", begin, act) >= 6


def test_a_kill_between_two_writes_of_a_helper_lets_no_older_copy_in(tmp_path: Path, fuse: Fuse) -> None:
    backups, there = tmp_path / "backups", {}

    def begin(place: Path) -> None:
        there[place] = Journals(place, helpers=1)
        shown(there[place]).close()
        shutil.copytree(place, backups / place.name)

    def act(place: Path) -> None:
        with there[place].helper(1, bound=False) as helper:
            helper.receive(list_of(there[place].run, (0, 1, 2, 3, 4)))
        fuse.left = 0
        then_refused(place, backups, lambda: there[place].helper(1))

    assert killed_everywhere(fuse, tmp_path / "places", begin, act) >= 6


def test_a_kill_between_two_writes_of_a_leader_lets_no_older_copy_in(tmp_path: Path, fuse: Fuse) -> None:
    run, backups, panels = uploads_of(), tmp_path / "backups", {}

    def begin(place: Path) -> None:
        with offered(run, place / "home") as leader:
            panels[place] = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
            leader._bind(panels[place])
        shutil.copytree(place, backups / place.name)

    def act(place: Path) -> None:
        with leader_of(run, place / "home") as leader:
            leader.lead(panels[place], maker(run, panels[place])).close()
        fuse.left = 0
        then_refused(place, backups, lambda: leader_of(run, place / "home"))

    assert killed_everywhere(fuse, tmp_path / "places", begin, act) >= 12


def test_a_kill_while_a_client_is_kept_from_beginning_keeps_older_folders_from_it(tmp_path: Path, fuse: Fuse) -> None:
    cohort, backups = cohort_of(), tmp_path / "backups"
    outside = client_outside(session_id(cohort.parameters, cohort.roster), 0)

    def begin(party: Path) -> None:
        path_in(party).parent.mkdir(parents=True)
        shutil.copytree(party, backups / party.name)

    def act(party: Path) -> None:
        never(path_in(party), KEY, outside)
        with pytest.raises(SessionEndedError):
            anew(cohort, path_in(party))
        fuse.left = 0
        then_refused(party, backups, lambda: anew(cohort, path_in(party)))

    assert killed_everywhere(fuse, tmp_path / "parties", begin, act) >= 6
