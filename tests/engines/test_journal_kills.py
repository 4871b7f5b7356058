"""No kill is taken for a backup: every role, cut short at every single wait for the disk, goes on where it stood."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from privstats.engines.journal import JournaledClient, JournaledServer
from tests.engines.test_journal_leader import maker, offered, panel_of
from tests.engines.test_journal_leader import resumed as leader_of
from tests.engines.test_journal_uploads import KEY, Journals
from tests.faults import Fuse, Killed
from tests.secagg.interactive.cohorts import cohort_of
from tests.secagg.upload.cohorts import batch_of, list_of, uploads_of


def killed_everywhere(fuse: Fuse, place: Path, begin: Callable[[Path], None], act: Callable[[Path], None]) -> int:
    """``act`` in a fresh place for every wait, killed there and done again; gives how many waits there are."""
    for waits in range(100):
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


def test_a_client_killed_at_every_wait_for_the_disk_is_never_taken_for_a_copy(tmp_path: Path, fuse: Fuse) -> None:
    cohort = cohort_of()
    place = {"parameters": cohort.parameters, "index": 0, "identity": cohort.identities[0], "roster": cohort.roster}
    outbox = dict(cohort.server.start())
    for step in cohort.server.steps:
        sealed, answers = cohort.clients[0].export(KEY), set()

        def begin(folder: Path, sealed: bytes = sealed) -> None:
            folder.mkdir(parents=True)
            JournaledClient.create(folder / "client", KEY, type(cohort.clients[0]).resume(sealed, KEY, **place)).close()

        def act(folder: Path, message: bytes = outbox[0], answers: set = answers) -> None:
            with JournaledClient.resume(folder / "client", KEY, **place) as client:
                answers.add(client.receive(message)[0][1])

        assert killed_everywhere(fuse, tmp_path / step, begin, act) == 6  # journal, both counts and their folders
        assert answers == {cohort.clients[0].receive(outbox[0])[0][1]}
        cohort.server.receive(0, *answers)
        for other in range(1, 6):
            cohort.server.receive(other, cohort.clients[other].receive(outbox[other])[0][1])
        outbox = dict(cohort.server.end_step())


def test_a_server_killed_at_every_wait_for_the_disk_is_never_taken_for_a_copy(tmp_path: Path, fuse: Fuse) -> None:
    cohort = cohort_of(4, 3, 0)
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    with JournaledServer.create(tmp_path / "journal", KEY, cohort.server) as server:
        for step in server.steps:
            for client, message in server.outbox:
                server.receive(client, cohort.clients[client].receive(message)[0][1])
            sealed = server.export(KEY)

            def begin(folder: Path, sealed: bytes = sealed) -> None:
                machine = type(cohort.server).resume(sealed, KEY, **named)
                machine.start = lambda: None  # it has
                JournaledServer.create(folder, KEY, machine).close()

            def act(folder: Path, before: str = step) -> None:
                with JournaledServer.resume(folder, KEY, **named) as server:
                    if server.step == before:
                        server.end_step()
                    assert server.step != before

            assert killed_everywhere(fuse, tmp_path / step, begin, act) >= 3
            server.end_step()
        assert server.result[1] == (0, 1, 2, 3)


def test_a_panel_killed_at_every_wait_for_the_disk_is_never_taken_for_a_copy(tmp_path: Path, fuse: Fuse) -> None:
    run = uploads_of()
    panels = {}

    def offer(home: Path) -> None:
        with offered(run, home) as leader:
            panels[home] = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])

    def lead(home: Path) -> None:
        with leader_of(run, home) as leader:
            leader.lead(panels[home], maker(run, panels[home])).close()

    journals: dict[Path, Journals] = {}

    def join(place: Path) -> None:
        journals[place] = Journals(place, helpers=1)

    def help_out(place: Path) -> None:
        with journals[place].helper(1, bound=False) as helper:
            if helper.step == "check":
                helper.bind(journals[place].panel)
                helper.receive(batch_of(journals[place].run, 1, (0, 1, 2, 3, 4)))
            helper.receive(list_of(journals[place].run, (0, 1, 2, 3, 4)))

    assert killed_everywhere(fuse, tmp_path / "leaders", offer, lead) >= 12
    assert killed_everywhere(fuse, tmp_path / "helpers", join, help_out) >= 12
