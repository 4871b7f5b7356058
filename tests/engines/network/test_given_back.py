"""A run of the one upload that is given up: what it cost comes back once every helper signs that it never answered."""

from pathlib import Path

import msgspec
import pytest

from privstats.dp import Ledger
from privstats.engines.network import statements
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.roles import HelperRole
from privstats.engines.network.round_host import Waiting
from privstats.engines.network.session_end import SessionHistory
from privstats.errors import SessionEndedError
from tests import made
from tests.engines.network.courses.study import course_study
from tests.engines.network.fake import FolderNet, open_accounts, study_of

PRIVACY = made.promise("distributed", epsilon=2.0)
HELPERS = (105, 106)


@pytest.fixture
def net(tmp_path: Path) -> FolderNet:
    """Two of five parties have reported, which is too few, and each ledger has room for one release."""
    found = FolderNet(study_of(tmp_path, "split", privacy=PRIVACY))
    open_accounts(found.study, 2.001)
    found.goes = dict.fromkeys((102, 103, 104), 0.0)
    assert isinstance(found.run(), Waiting)
    found.goes = {}
    assert [spent(found, peer) for peer in range(5)] == [1, 1, 0, 0, 0]
    return found


def spent(net: FolderNet, peer: int) -> int:
    return len(Ledger.open(net.study.home(peer) / "ledger").account("beds").counted)


def session_ended(net: FolderNet) -> None:
    with pytest.raises(SessionEndedError, match="it was given up"):
        net.run()


def test_what_a_given_up_run_cost_is_given_back_and_the_next_run_fits_under_the_cap(net: FolderNet) -> None:
    Host.open(net.study.host).give_up()
    assert spent(net, 0) == 1  # nobody has signed anything yet
    session_ended(net)
    assert [spent(net, peer) for peer in range(5)] == [0] * 5
    entry = Ledger.open(net.study.home(0) / "ledger").account("beds").entries[0]
    assert entry.freed is not None
    session_ended(net)  # and heard again it changes nothing
    after = FolderNet(net.study.renewed())
    for peer in (2, 3, 4):  # which never heard of the first run
        Ledger.open(net.study.home(peer) / "ledger").skip_to_counter(after.study.roster.members, 1)
    assert after.run().releases[0].survivors == tuple(range(5))  # type: ignore[union-attr]
    assert [spent(net, peer) for peer in range(5)] == [1] * 5
    assert not any(after.logs.values())


def test_a_helper_that_is_away_signs_nothing_and_the_spend_stays_until_it_has(net: FolderNet) -> None:
    Host.open(net.study.host).give_up()
    net.goes = {106: 0.0}
    session_ended(net)
    assert spent(net, 0) == 1
    net.goes = {}
    session_ended(net)
    assert spent(net, 0) == 0


def test_a_helper_that_has_answered_signs_nothing(net: FolderNet) -> None:
    """Every report came and one helper has told its part of the sum: the run counts as a release."""
    answered: list[int] = []

    def meanwhile(node: int, kind: str) -> None:
        if kind == "helper" and node in answered:  # its second question is the list
            net.goes = dict.fromkeys({*HELPERS} - {node}, 0.0)
        if kind == "helper":
            answered.append(node)

    net.meanwhile = meanwhile
    assert isinstance(net.run(), Waiting)
    role = Party.open(net.homes[answered[-1]]).first.role
    assert isinstance(role, HelperRole)
    with role._resumed() as helper:
        assert helper.step == "done"
    net.goes, net.meanwhile = {}, lambda *_: None
    Host.open(net.study.host).give_up()
    session_ended(net)
    assert [spent(net, peer) for peer in range(5)] == [1] * 5


def test_a_word_that_the_server_alone_made_up_gives_nothing_back(net: FolderNet) -> None:
    study = net.study
    party = Party.open(study.home(0), net.logs[100].append).first
    Host.open(study.host).give_up()
    (ended_session,) = SessionHistory(study.host).all()
    offers = tuple(map(bytes.fromhex, ended_session.panel))
    for beside in (
        b"\xc1",
        msgspec.msgpack.encode(statements.EndStatements({1: b"", 2: b""}, offers)),
        msgspec.msgpack.encode(statements.EndStatements({1: b"x" * 100}, offers)),
        msgspec.msgpack.encode(statements.EndStatements({}, offers[:1])),
    ):
        said = statements.session_ended(study.server, party.folder.header, beside=beside)
        assert party.answer("over", said).code in {"damaged", "failed", "refused"}
        assert party.answer("over", said[:-1]).code == "damaged", "the signature covers the statements"
        assert spent(net, 0) == 1


def test_a_node_of_a_course_is_never_given_back(tmp_path: Path) -> None:
    study = course_study(tmp_path, helpers=2)
    net = FolderNet(study)
    net.goes = dict.fromkeys((102, 103, 104), 0.0)
    assert isinstance(net.run(), Waiting)
    net.goes = {}
    Host.open(study.host).give_up()
    with pytest.raises(SessionEndedError, match="the course ended without a sum. A new one"):
        net.run()
    (entry,) = study.account(0).entries
    assert (entry.begun, entry.freed) == ((0,), None)
