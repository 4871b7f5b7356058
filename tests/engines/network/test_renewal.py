"""A study's next run: what outlives a run moves, what belongs to it stays, and a ledger is never in two places."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from privstats.dp import Ledger
from privstats.engines.network import renewal
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.renewal import Renewed
from privstats.engines.network.status_file import supervised
from privstats.errors import InUseError, LocalProtocolError, PrivstatsError
from tests import made
from tests.engines.network.fake import RECORDS, FolderNet, Study, open_accounts, study_of

PRIVACY = made.promise("distributed", epsilon=2.0)


def received(study: Study, place: Path) -> Study:
    """The next run's folders as the coordinator sends them: documents, and a script that no party has written."""
    after = replace(study, place=place, roster=study.roster.renewed())
    for home in (after.host, *(after.home(peer) for peer in range(len(after.peers)))):
        home.mkdir(parents=True)
        home.chmod(0o700)
        (home / "plan.toml").write_text(study.plan.to_toml())
        after.roster.save(home / "roster.toml")
        if home != after.host:
            (home / "records.py").write_text(RECORDS)
    return after


def renew(old: Path, new: Path, **named: bool) -> Renewed:
    return renewal.renew(old, new, untouched=RECORDS.encode(), **named)


def test_two_runs_of_one_study_charge_one_ledger_and_end_in_two_releases(tmp_path: Path) -> None:
    study = study_of(tmp_path / "first", "split", privacy=PRIVACY)
    open_accounts(study, 5.0)
    FolderNet(study).ended()
    after = received(study, tmp_path / "second")
    (study.host / ".flower").mkdir()
    (study.host / ".flower" / "superlink.db").write_text("nodes")
    moved = renew(study.host, after.host)
    assert {"identity.pem", ".flower"} <= {*moved.moved}
    for peer in range(len(study.peers)):
        (study.home(peer) / "agreed").write_text("{}")
        moved = renew(study.home(peer), after.home(peer))
        assert moved.moved[-1] == "identity.pem"
        assert {"agreed", "ledger", "ledger.head"} <= {*moved.moved}, "of a helper as well, whose ledger is empty"
    assert {path.name for path in study.home(0).iterdir()} >= {"plan.toml", "sessions", "journal.key"}
    assert not (study.home(0) / "records.npz").exists()
    assert (study.host / "release.safetensors").exists(), "the first release stays where it was"
    assert (after.host / ".flower" / "superlink.db").read_text() == "nodes"
    FolderNet(after).ended()
    (account,) = Ledger.open(after.home(0) / "ledger").accounts()
    assert [entry.run for entry in account.entries] == [study.roster.run, after.roster.run]


def test_a_move_that_was_interrupted_is_completed_by_the_same_call(tmp_path: Path, monkeypatch) -> None:
    study = study_of(tmp_path / "first")
    open_accounts(study, 5.0)
    after, plain, done = received(study, tmp_path / "second"), shutil.move, list[Path]()

    def killed(source: Path, target: Path) -> None:
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(source)
        plain(source, target)

    monkeypatch.setattr(shutil, "move", killed)
    with pytest.raises(KeyboardInterrupt):
        renew(study.home(0), after.home(0))
    monkeypatch.setattr(shutil, "move", plain)
    assert not done[0].exists()
    renew(study.home(0), after.home(0))
    assert {"ledger", "ledger.head", "records.npz", "records.py"} <= {path.name for path in after.home(0).iterdir()}
    assert Party.open(after.home(0)).prepare() is not None
    with pytest.raises(PrivstatsError, match=r"has no identity.pem: it was renewed before, or is another folder"):
        renew(study.home(0), after.home(0))


def test_a_script_that_the_party_has_written_in_the_new_folder_stays(tmp_path: Path) -> None:
    study = study_of(tmp_path / "first")
    after = received(study, tmp_path / "second")
    (after.home(0) / "records.py").write_text("mine = True")
    (study.home(1) / "records.py").write_text("ours = True")
    assert renew(study.home(0), after.home(0)).script_stays
    assert (after.home(0) / "records.py").read_text() == "mine = True"
    assert not renew(study.home(1), after.home(1)).script_stays
    assert (after.home(1) / "records.py").read_text() == "ours = True"


class TestRefused:
    @pytest.fixture
    def study(self, tmp_path: Path) -> Study:
        return study_of(tmp_path / "first")

    def test_a_run_that_is_not_another_one(self, study: Study, tmp_path: Path) -> None:
        after = received(study, tmp_path / "second")
        study.roster.save(after.home(0) / "roster.toml")
        with pytest.raises(LocalProtocolError, match="has the run name of the old folder"):
            renew(study.home(0), after.home(0))

    def test_a_roster_without_this_identity_or_with_another_part_for_it(self, study: Study, tmp_path: Path) -> None:
        after, other = received(study, tmp_path / "second"), study_of(tmp_path / "other")
        other.roster.renewed().save(after.home(0) / "roster.toml")
        for home in (study.home(0), study.host):
            with pytest.raises(LocalProtocolError, match="has no such place in .* that name your key"):
                renew(home, after.home(0))

    def test_a_ledger_that_is_there_already(self, study: Study, tmp_path: Path) -> None:
        after = received(study, tmp_path / "second")
        for home in (study.home(0), after.home(0)):
            Ledger.create(home / "ledger")
        with pytest.raises(PrivstatsError, match="both have ledger, ledger.head: move away what is not meant"):
            renew(study.home(0), after.home(0))
        assert (study.home(0) / "identity.pem").exists()

    def test_a_folder_in_use(self, study: Study, tmp_path: Path) -> None:
        after = received(study, tmp_path / "second")
        for home, new, task in ((study.home(0), after.home(0), "joined"), (study.host, after.host, "served")):
            with supervised(home, task, ""), pytest.raises(InUseError, match=r"is used by process \d+: end serve, or"):
                renew(home, new)

    def test_a_session_that_has_not_ended(self, study: Study, tmp_path: Path) -> None:
        after, net = received(study, tmp_path / "second"), FolderNet(study)
        net.goes = dict.fromkeys(range(102, 105), 0.0)
        net.run()
        with pytest.raises(LocalProtocolError, match=r"has not ended: run it to its end, or .* give-up /"):
            renew(study.host, after.host)
        with pytest.raises(LocalProtocolError, match=r"has not heard the end of its session: .* flower withdraw '/"):
            renew(study.home(0), after.home(0))
        Host.open(study.host).give_up()
        renew(study.host, after.host)
        Party.open(study.home(0)).first.withdraw()
        renew(study.home(0), after.home(0))
        renew(study.home(1), after.home(1), unfinished=True)
