"""Between machines: whoever sent nothing has back what a session cost, at its end or by a command."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.dp import Account, Ledger
from privstats.engines.network import statements
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party, RoundParty
from privstats.engines.network.round_host import Ended, Waiting
from privstats.errors import InUseError, LedgerError, SessionEndedError
from privstats.secagg.protocols import PROTOCOLS
from tests import made
from tests.engines.network.fake import FolderNet, Study, open_accounts, study_of
from tests.faults import interrupted

PRIVACY = made.promise("distributed", epsilon=2.0)
OF_EACH_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


def capped(place: Path, protocol: str = "interactive") -> Study:
    """Five parties, and each ledger has room for one release."""
    study = study_of(place, protocol, privacy=PRIVACY)
    open_accounts(study, 2.001)
    return study


def party_at(study: Study, peer: int, say: Callable[[str], None] | None = None) -> RoundParty:
    """A party's side of the session."""
    return Party.open(study.home(peer), say).first


def account(study: Study, peer: int) -> Account:
    return Ledger.open(study.home(peer) / "ledger").account("beds")


def spent(study: Study) -> list[int]:
    return [len(account(study, peer).counted) for peer in range(5)]


def ended_at_the_opening(study: Study) -> FolderNet:
    """Two of five answer the opening, and the session is given up."""
    net = FolderNet(study)
    net.goes = dict.fromkeys((102, 103, 104), 0.0)
    assert isinstance(net.run(), Waiting)
    assert spent(study) == [1, 1, 0, 0, 0]
    Host.open(study.host).give_up()
    return net


def test_three_sessions_that_end_at_the_opening_cost_nothing_and_the_fourth_is_held(tmp_path: Path) -> None:
    study = capped(tmp_path)
    for _ in range(3):
        with pytest.raises(SessionEndedError, match="given up"):
            ended_at_the_opening(study).run()
        assert spent(study) == [0] * 5
        study = study.renewed()
    for peer in (2, 3, 4):
        ledger = Ledger.open(study.home(peer) / "ledger")
        ledger.skip_to_counter(study.roster.members, 3)
    assert isinstance(FolderNet(study).run(), Ended)
    assert spent(study) == [1] * 5


def test_who_is_left_out_before_its_upload_of_a_session_that_succeeds_has_back_what_it_cost(tmp_path: Path) -> None:
    study = capped(tmp_path)
    net = FolderNet(study)

    def meanwhile(node: int, kind: str) -> None:
        if kind == "step":  # everybody has advertised; party 4 is away until the session has its sum
            net.goes = {104: net.now}
        if kind == "over":
            net.goes = {}

    net.meanwhile = meanwhile
    ended = net.run()
    assert ended.releases[0].survivors == (0, 1, 2, 3)
    net.goes = {}
    with pytest.raises(SessionEndedError):
        net.run()  # which tells whoever is back
    assert spent(study) == [1, 1, 1, 1, 0]


def test_a_party_that_was_killed_between_its_wipe_and_its_ledger_is_told_again(tmp_path: Path) -> None:
    study = capped(tmp_path)
    net = ended_at_the_opening(study)

    session_ended = statements.session_ended(study.server, party_at(study, 0).folder.header)
    with interrupted(Ledger, "withdraw"):
        party_at(study, 0).answer("over", session_ended)
    assert spent(study)[0] == 1
    for _ in range(2):
        assert party_at(study, 0, net.logs[100].append).answer("over", session_ended).code == "ok"
        assert spent(study)[0] == 0


@OF_EACH_PROTOCOL
def test_an_end_that_comes_while_the_upload_leaves_gives_nothing_back(tmp_path: Path, protocol: str) -> None:
    """The server's best: it says that it is over to a party whose upload is on its way."""
    study = capped(tmp_path, protocol)
    net = FolderNet(study)
    session_ended = statements.session_ended(study.server, party_at(study, 0).folder.header)

    told: list[str] = []

    def meanwhile(node: int, kind: str) -> None:
        if node == 100 and account(study, 0).entries and account(study, 0).entries[0].released and kind != "over":
            told.append(party_at(study, 0, net.logs[100].append).answer("over", session_ended).code)

    net.meanwhile = meanwhile
    if protocol == "split":
        net.goes = dict.fromkeys((102, 103, 104), 0.0)
        assert isinstance(net.run(), Waiting)
        told.append(party_at(study, 0).answer("over", session_ended).code)
    else:
        net.run()
    assert set(told) == {"ok"}
    (entry,) = account(study, 0).entries
    assert (entry.withdrawn, entry.freed) == (None, None)
    assert entry.released


def test_a_party_that_heard_no_end_withdraws_by_itself_and_speaks_no_more(tmp_path: Path, state_folder: Path) -> None:
    study = capped(tmp_path)
    net = ended_at_the_opening(study)
    home, run = study.home(0), study.roster.run.hex()
    study.roster.save(tmp_path / "then.toml")
    study.renewed()  # the folder has the next run's roster by now
    named = ["flower", "withdraw", str(home), "--yes", "--roster", str(tmp_path / "then.toml")]
    first, again = (CliRunner().invoke(app, named) for _ in range(2))
    assert (first.exit_code, first.output) == (0, f"run {run} is withdrawn: beds has its cost back\n")
    assert (again.exit_code, again.output) == (0, first.output)
    assert spent(study) == [0, 1, 0, 0, 0]
    study.roster.save(home / "roster.toml")
    party = party_at(study, 0, net.logs[100].append)
    opening = party.folder.header.encode()
    opening += ps.session.server(study.plan, study.roster, identity=study.server).start().to(0)
    assert party.answer("open", opening).code == "over"
    (home / "sessions" / party.folder.session).unlink()  # and where somebody removes what is left of it
    assert party.answer("open", opening).code == "restored"
    shutil.rmtree(state_folder)  # of this user, too
    assert party.answer("open", opening).code == "ledger"
    assert "was withdrawn" in net.logs[100][-1]


def test_the_command_refuses_what_has_left_a_helper_and_what_is_being_answered(tmp_path: Path, monkeypatch) -> None:
    study = capped(tmp_path, "split")
    net = FolderNet(study)
    net.goes = dict.fromkeys((102, 103, 104), 0.0)
    assert isinstance(net.run(), Waiting)
    path = study.home(1) / "sessions" / party_at(study, 1).folder.session
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with monkeypatch.context() as patch:
            patch.setattr("privstats.engines.network.roles.check_waiting", lambda _: None)
            with pytest.raises(InUseError):
                party_at(study, 1).withdraw()
    for peer, why in ((0, "only proof that it is in no sum"), (5, "a helper's, which spends nothing")):
        with pytest.raises(LedgerError, match=why):
            party_at(study, peer).withdraw()
    nothing = CliRunner().invoke(app, ["flower", "withdraw", str(study.home(3)), "--yes"])
    assert "is left; it cost nothing here" in nothing.output
    party = party_at(study, 0)
    assert party.answer("hello", party.folder.header.encode()).code == "ok"
    assert spent(study) == [1, 1, 0, 0, 0]


@OF_EACH_PROTOCOL
def test_a_party_that_leaves_before_it_has_spent_is_in_no_sum(tmp_path: Path, protocol: str) -> None:
    """By its own command, and by the server's word that it is over: an opening that comes later finds the end."""
    study = capped(tmp_path, protocol)
    run = study.roster.run.hex()
    left = CliRunner().invoke(app, ["flower", "withdraw", str(study.home(0)), "--yes"])
    assert (left.exit_code, left.output) == (0, f"run {run} is left; it cost nothing here\n")
    session_ended = statements.session_ended(study.server, party_at(study, 1).folder.header)
    assert party_at(study, 1).answer("over", session_ended).code == "ok"
    ended = FolderNet(study).run()
    assert ended.releases[0].survivors == (2, 3, 4)
    assert [account(study, peer).entries for peer in (0, 1)] == [(), ()]


def test_an_opening_that_is_answered_while_its_party_leaves_gives_back_what_it_spent(
    tmp_path: Path, monkeypatch
) -> None:
    study = capped(tmp_path)
    party = party_at(study, 0)
    opening = party.folder.header.encode()
    opening += ps.session.server(study.plan, study.roster, identity=study.server).start().to(0)
    role = party.role
    journal = role._journal

    def meanwhile(*make: object, **told: object) -> object:
        assert party_at(study, 0).answer("open", opening).code == "ok"
        assert spent(study)[0] == 1
        return journal(*make, **told)

    monkeypatch.setattr(role, "_journal", meanwhile)
    assert role.withdraw() == ("beds",)
    assert spent(study)[0] == 0


# --- what anybody can send ---


@OF_EACH_PROTOCOL
def test_an_opening_that_the_server_did_not_sign_costs_nothing(tmp_path: Path, protocol: str) -> None:
    """64 public bytes and junk; under the interactive protocol also a damaged opening, and one of the run before."""
    study = capped(tmp_path, protocol)
    openings = [b"", b"\0" * 300, os.urandom(500)]
    if protocol == "interactive":
        before = study.roster
        study = study.renewed()
        whole, older = (
            bytes(ps.session.server(study.plan, roster, identity=study.server).start().to(0))
            for roster in (study.roster, before)
        )
        openings += [whole[:-1] + bytes([whole[-1] ^ 1]), older]
    party = party_at(study, 0)
    header = party.folder.header.encode()
    for opening in openings:
        assert party.answer("open", header + opening).code in {"damaged", "refused", "failed"}
        assert not (study.home(0) / "moments").exists()
    assert account(study, 0).entries == ()


def test_a_session_that_failed_is_no_loss_to_whoever_had_sent_nothing(tmp_path: Path) -> None:
    """Too few shared, and the operator gives it up."""
    study = capped(tmp_path)
    net = FolderNet(study)
    net.meanwhile = lambda node, kind: net.goes.update({104: 0.0, 103: 0.0, 102: 0.0}) if kind == "step" else None
    assert isinstance(net.run(), Waiting)
    Host.open(study.host).give_up()
    net.goes, net.meanwhile = {}, lambda *_: None
    with pytest.raises(SessionEndedError):
        net.run()
    assert sum(spent(study)) == 0
