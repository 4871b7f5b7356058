"""Every role, cut short at every single wait for the disk, goes on where it stood; no kill is taken for a backup.

After its answer, however often it was cut short before, the folder of before it is refused.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.engines.journal.client_file import client_outside, never
from privstats.errors import RestoredError, SessionEndedError
from privstats.secagg.machines import session_id
from tests.engines.test_journal import resumed, resumed_client
from tests.engines.test_journal_in_place import anew
from tests.engines.test_journal_leader import maker, offered, panel_of
from tests.engines.test_journal_leader import resumed as leader_of
from tests.engines.test_journal_restored import path_in, put_back
from tests.engines.test_journal_uploads import KEY, Journals
from tests.faults import Fuse, Killed
from tests.secagg.interactive.cohorts import STEPS, cohort_of, play_until
from tests.secagg.upload.cohorts import batch_of, list_of, uploads_of


def killed_everywhere(fuse: Fuse, place: Path, begin: Callable[[Path], None], act: Callable[[Path], None]) -> int:
    """``act`` in a fresh place for every wait, killed there and done again; gives how many waits there are."""
    for waits in range(200):
        os.environ["XDG_STATE_HOME"] = str(place / f"{waits}.state")  # each place stands for a machine
        begin(fresh := place / str(waits))
        fuse.left = waits + 1
        try:
            act(fresh)
        except Killed:
            fuse.left = 0
            act(fresh)
            continue
        fuse.left = 0
        return waits
    raise AssertionError("it never comes through")


@pytest.fixture
def fuse(monkeypatch) -> Fuse:
    return Fuse(monkeypatch, "os.fsync")


def new_party(backups: Path) -> Callable[[Path], None]:
    """The beginning of a party that has no journal yet; a backup of its folder is kept."""

    def begin(party: Path) -> None:
        path_in(party).parent.mkdir(parents=True)
        shutil.copytree(party, backups / party.name)

    return begin


def then_refused(party: Path, backups: Path, again: Callable[[], Any]) -> None:
    """After an answer, however often it was cut short before, the folder of before it is refused."""
    put_back(backups / party.name, party)
    with pytest.raises(RestoredError):
        again()


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_between_two_writes_locks_no_client_out_and_lets_no_older_copy_in(
    tmp_path: Path, fuse: Fuse, step: str
) -> None:
    """Also behind the last answer, which is repeated as often as it is asked for."""
    cohort, backups, answers = cohort_of(), tmp_path / "backups", set()
    outbox = play_until(cohort, step)
    sealed = cohort.clients[0].export(KEY)
    client = type(cohort.clients[0])

    def begin(party: Path) -> None:
        path_in(party).parent.mkdir(parents=True)
        JournaledClient.create(path_in(party), KEY, client.resume(sealed, KEY, **cohort.place(0))).close()
        shutil.copytree(party, backups / party.name)

    def act(party: Path) -> None:
        with resumed_client(cohort, path_in(party), 0) as journaled:
            answers.add(journaled.receive(outbox[0])[0][1])
        fuse.left = 0
        then_refused(party, backups, lambda: resumed_client(cohort, path_in(party), 0))

    assert killed_everywhere(fuse, tmp_path / "parties", begin, act) == 6  # journal, both counts and their folders
    encapsulates = step in ("advertise", "share")  # what is made again is another message
    assert encapsulates or answers == {cohort.clients[0].receive(outbox[0])[0][1]}


def test_a_kill_while_a_client_begins_lets_it_begin_and_no_second_one(tmp_path: Path, fuse: Fuse) -> None:
    cohort, backups = cohort_of(), tmp_path / "backups"

    def act(party: Path) -> None:
        anew(cohort, path_in(party)).close()
        fuse.left = 0
        then_refused(party, backups, lambda: anew(cohort, path_in(party)))

    assert killed_everywhere(fuse, tmp_path / "parties", new_party(backups), act) >= 6


def test_a_kill_between_two_writes_of_a_server_lets_no_older_copy_in(tmp_path: Path, fuse: Fuse) -> None:
    cohort = cohort_of(4, 3, 0)
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    with JournaledServer.create(tmp_path / "journal", KEY, cohort.server) as server:
        for step in server.steps:
            for client, message in server.outbox:
                server.receive(client, cohort.clients[client].receive(message)[0][1])
            sealed, backups = server.export(KEY), tmp_path / f"backups of {step}"

            def begin(host: Path, sealed: bytes = sealed, backups: Path = backups) -> None:
                machine = type(cohort.server).resume(sealed, KEY, **named)
                machine.start = lambda: None  # it has
                JournaledServer.create(host / "journal", KEY, machine).close()
                shutil.copytree(host, backups / host.name)

            def act(host: Path, before: str = step, backups: Path = backups) -> None:
                with resumed(cohort, host / "journal") as server:
                    if server.step == before:
                        server.end_step()
                    assert server.step != before
                fuse.left = 0
                then_refused(host, backups, lambda: resumed(cohort, host / "journal"))

            assert killed_everywhere(fuse, tmp_path / step, begin, act) >= 3
            server.end_step()
        assert server.result[1] == (0, 1, 2, 3)


def test_a_kill_between_two_writes_of_a_helper_lets_no_older_copy_in(tmp_path: Path, fuse: Fuse) -> None:
    backups, there = tmp_path / "backups", {}

    def begin(place: Path) -> None:
        there[place] = Journals(place, helpers=1)
        shutil.copytree(place, backups / place.name)

    def act(place: Path) -> None:
        with there[place].helper(1, bound=False) as helper:
            if helper.step == "check":
                helper.bind(there[place].panel)
                helper.receive(batch_of(there[place].run, 1, (0, 1, 2, 3, 4)))
            helper.receive(list_of(there[place].run, (0, 1, 2, 3, 4)))
        fuse.left = 0
        then_refused(place, backups, lambda: there[place].helper(1))

    assert killed_everywhere(fuse, tmp_path / "places", begin, act) >= 12


def test_a_kill_between_two_writes_of_a_leader_lets_no_older_copy_in(tmp_path: Path, fuse: Fuse) -> None:
    run, backups, panels = uploads_of(), tmp_path / "backups", {}

    def begin(place: Path) -> None:
        with offered(run, place / "home") as leader:
            panels[place] = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
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

    def act(party: Path) -> None:
        never(path_in(party), KEY, outside)
        with pytest.raises(SessionEndedError):
            anew(cohort, path_in(party))
        fuse.left = 0
        then_refused(party, backups, lambda: anew(cohort, path_in(party)))

    assert killed_everywhere(fuse, tmp_path / "parties", new_party(backups), act) >= 6
