"""The leader's application: the sum is exact, one thread calls the journal, and no helper is asked twice."""

import asyncio
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.folders import helper_folder
from privstats.contrib.http.helper import Dialler
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.settings import Settings
from privstats.engines.journal import JournaledHelper, JournaledServer
from privstats.engines.network.folder import Folder
from privstats.errors import LocalProtocolError, SessionEndedError
from tests.contrib.http.desk import Desk, Helpers, one_pass, opened, pumped, study_of_devices
from tests.engines.test_earlier_box_keys import BEFORE, Offers, secrets_in, store_before, under_x25519


def test_a_run_is_exact_and_every_device_hears_that_its_report_is_on_the_disk(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    with Desk(study.leader) as desk, Helpers(study, lambda: desk) as helpers:
        run = opened(desk, study)
        for index in (0, 1, 3, 4, 5):
            report = run.report(study.moments(index), index, study.identities[index])
            assert desk.put(study, index, report).status == 201
            assert desk.put(study, index, report).status == 200
        desk.call(desk.run.close_reports)
        helpers.join()
        assert desk.run.ended is not None, desk.lines
        assert desk.run.ended.survivors == (0, 1, 3, 4, 5)
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert release.survivors == (0, 1, 3, 4, 5)
    assert np.array_equal(release.vector, study.exact(release.survivors))


@pytest.mark.parametrize("offers", BEFORE)
def test_a_run_of_an_earlier_version_ends_at_leader_and_helper(tmp_path: Path, offers: Offers) -> None:
    """A leader read shorter offers at the places of today's, and neither could resume or end."""
    study = study_of_devices(tmp_path)
    for home, member in ((study.leader, "leader"), (study.helper(1), "sessions")):
        start = LeaderRun.open if member == "leader" else dialled
        start(home).close()
        run = home / member / study.roster.digest.hex()
        store_before(run, offers, Folder.open(home).key)
        if member == "leader":  # once they were read first, so that the key was never destroyed
            (home / "panel.offers").write_bytes(b"".join(under_x25519(0, bytes(32))[:2]))
        for _ in range(2):  # a second start once made a fresh key in the same run, or polled for ever
            with pytest.raises(SessionEndedError, match="began under an earlier version"):
                start(home)
            assert not secrets_in(run)


def test_a_run_that_an_earlier_version_leads_ends_with_that_version(tmp_path: Path) -> None:
    """Its journal holds the key and the reports, which count as sent: neither may be removed, nor the run repeated."""
    study = study_of_devices(tmp_path)
    LeaderRun.open(study.leader).close()
    journal = study.leader / "leader" / study.roster.digest.hex() / "server" / "snapshot"
    journal.parent.mkdir()
    journal.write_bytes(b"state")
    (study.leader / "panel.offers").write_bytes(b"".join(under_x25519(0, bytes(32))))
    refusal = r"bring that version back and end the run with it; if no report has arrived, .* in a new folder$"
    with pytest.raises(LocalProtocolError, match=rf"panel\.offers holds offers of an earlier version, .*: {refusal}"):
        LeaderRun.open(study.leader)
    assert journal.read_bytes() == b"state"


def dialled(home: Path) -> JournaledHelper:
    return Dialler(helper_folder(home), Settings.read(home))._role.machine()


def test_all_calls_of_the_journal_are_one_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report during a helper's poll once found the journal busy, and was answered with a failure."""
    callers: Counter[str] = Counter()

    def counted(name: str) -> None:
        real = getattr(JournaledServer, name)

        def call(self, *arguments, **named):
            callers[threading.current_thread().name] += 1
            return real(self, *arguments, **named)

        monkeypatch.setattr(JournaledServer, name, call)

    study = study_of_devices(tmp_path, 24)
    with Desk(study.leader) as desk, Helpers(study, lambda: desk) as helpers:
        run = opened(desk, study)
        reports = [run.report(study.moments(index), index, study.identities[index]) for index in range(24)]
        for name in ("receive", "receive_many", "end_step", "step_status", "_leaving", "release", "awaits"):
            counted(name)
        path = f"/v1/runs/{study.run}/reports"

        async def crowd() -> Counter[int]:
            asked = (
                desk.asked("PUT", f"{path}/{index}", data, {"content-type": REPORT, SIGNATURE: data[-64:].hex()})
                for index, data in enumerate(reports)
            )
            return Counter([reply.status for reply in await asyncio.gather(*asked)])

        assert desk.does(crowd()) == {201: 24}
        helpers.join()
        assert desk.run.ended is not None
        assert not [line for line in desk.lines if "failed" in line]
    assert set(callers) == {"privstats-owner"}


def test_a_helper_that_has_answered_waits_for_the_others(tmp_path: Path) -> None:
    """The machine's outbox still lists it: who took that for a question asked it without an end."""
    study = study_of_devices(tmp_path, 4)
    with Desk(study.leader) as desk:
        pumped(study, desk)
        run = opened(desk, study)
        for index in range(4):
            desk.put(study, index, run.report(study.moments(index), index, study.identities[index]))
        while desk.run.step.name != "reveal":
            for place in (1, 2):
                one_pass(study, desk, place)
        assert desk.call(lambda: [desk.run.waits_for(place) for place in (1, 2)]) == [True, False]
        assert desk.call(lambda: desk.run.exchange(2, b"")) is None
        one_pass(study, desk, 1)
        assert desk.run.ended is not None


def test_a_folder_with_the_roster_in_bytes_is_the_same_run(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path)
    for home in (study.leader, study.helper(1)):
        study.roster.save(home / "roster.bin")
        with pytest.raises(LocalProtocolError, match=r"holds roster\.toml and roster\.bin: keep the one"):
            Folder.open(home)
        (home / "roster.toml").unlink()
        assert Folder.open(home).roster == study.roster
    (study.leader / "roster.bin").unlink()
    with pytest.raises(LocalProtocolError, match=r"has no roster\.toml"):
        Folder.open(study.leader)
