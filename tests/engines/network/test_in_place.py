"""A party's folder, a helper's or the host's, restored in place as a whole: nothing is answered or spent twice."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.dp import Ledger
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.round_host import Ended
from privstats.engines.network.statements import Envelope
from privstats.errors import LedgerError
from tests.engines.network.courses.study import course_study
from tests.engines.network.fake import FolderNet, Study, study_of
from tests.engines.network.test_withdrawn import PRIVACY, account, capped, party_at

OLDER = "its folder was restored from a backup"


def opening_of(study: Study, peer: int) -> bytes:
    """The opening of a second session under one roster, as a server would send it that wants a second sum."""
    server = ps.session.server(study.plan, study.roster, identity=study.server)
    return bytes(party_at(study, peer).folder.header.encode()) + server.start().to(peer)


def backed_up(home: Path) -> Path:
    return Path(shutil.copytree(home, home.parent / f"{home.name} backup"))


def ended(study: Study) -> None:
    assert isinstance(FolderNet(study).run(), Ended)


def restored(home: Path, backup: Path) -> None:
    """As rsync with --delete, into the folder that is there."""
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in backup.iterdir():
        (shutil.copytree if path.is_dir() else shutil.copy2)(path, home / path.name)
    home.chmod(0o700)


def test_attack_a_party_restored_in_place_spends_and_answers_a_second_time(tmp_path: Path) -> None:
    study = capped(tmp_path)
    backup = backed_up(study.home(0))
    ended(study)
    assert len(account(study, 0).counted) == 1
    restored(study.home(0), backup)
    for use in (Party.open, Folder.open):
        with pytest.raises(LedgerError, match=OLDER):
            use(study.home(0))
    ledger = str(study.home(0) / "ledger")
    asked = CliRunner().invoke(app, ["ledger", "restored", ledger], input="n\n")
    assert asked.exit_code == 1
    assert "The ledger forgets later spends" in asked.output
    done = CliRunner().invoke(app, ["ledger", "restored", ledger, "--yes"])
    assert "3 later records are forgotten" in done.output.replace("\n", "")
    said: list[str] = []
    assert party_at(study, 0, said.append).answer("open", opening_of(study, 0)).code == "restored"
    assert "was put back from a backup or copied" in said[0]
    assert len(account(study, 0).counted) == 0, "nothing was spent or drawn for it"


def test_a_host_restored_in_place_is_refused_and_releases_no_second_time(tmp_path: Path) -> None:
    study = study_of(tmp_path, privacy=PRIVACY)
    for home in (study.host, *(study.home(peer) for peer in range(5))):
        Ledger.create(home / "ledger").set_cap("beds", unit="record", adjacency="add-remove", epsilon=9.0, delta=1e-5)
    backup = backed_up(study.host)
    ended(study)
    restored(study.host, backup)
    with pytest.raises(LedgerError, match=OLDER):
        Host.open(study.host)


@pytest.mark.ci
def test_a_party_of_a_course_restored_in_place_begins_no_round_a_second_time(tmp_path: Path) -> None:
    study = course_study(tmp_path)
    backup = backed_up(study.home(0))
    net = FolderNet(study)
    assert isinstance(net.run(), Ended)
    assert len(study.account(0).entries[0].begun) > 1
    restored(study.home(0), backup)
    with pytest.raises(LedgerError, match=OLDER):
        Party.open(study.home(0))
    (study.home(0) / "ledger").unlink()
    (study.home(0) / "ledger.head").unlink()  # as in a folder from before its ledger
    Ledger.create(study.home(0) / "ledger").set_cap(
        "ward", unit="record", adjacency="add-remove", epsilon=9.0, delta=1e-5
    )
    opened = next(data for node, data in net.whole if node == 100 and Envelope.decode(data).kind == "open")
    assert net.told(100, opened).code == "restored"
    assert not any(entry.begun for entry in study.account(0).entries)
