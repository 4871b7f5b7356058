"""Between machines: a party whose upload came too late is sent the proof that it is in no sum, and frees itself."""

from pathlib import Path

import msgspec
import pytest

from privstats.engines.network import statements
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.round_host import Waiting
from privstats.engines.network.transport import Reply
from privstats.errors import SessionEndedError
from tests.engines.network.fake import FolderNet
from tests.engines.network.test_withdrawn import OF_EACH_PROTOCOL, account, capped, spent


def losing_the_last(place: Path, protocol: str) -> FolderNet:
    """Party 4 is gone with its upload, which its ledger has heard of, on the way."""
    net = FolderNet(capped(place, protocol))
    plain = net.answer

    def lost(node: int, kind: str, data: bytes) -> Reply:
        reply = plain(node, kind, data)
        entries = account(net.study, 4).entries
        if node != 104 or kind == "over" or not entries or not entries[0].released:
            return reply
        net.goes |= {104: net.now + 0.1}
        return Reply("error:5")

    net.answer = lost  # type: ignore[method-assign]
    return net


def without_the_last(place: Path, protocol: str) -> FolderNet:
    """A session that succeeds without party 4."""
    net = losing_the_last(place, protocol)
    ended = net.run()
    assert ended.releases[0].survivors == (0, 1, 2, 3)
    return net


@OF_EACH_PROTOCOL
def test_a_party_that_is_left_out_after_its_upload_frees_itself_when_it_is_back(tmp_path: Path, protocol: str) -> None:
    net = without_the_last(tmp_path, protocol)
    assert spent(net.study) == [1] * 5
    net.goes = {}
    for _ in range(2):
        with pytest.raises(SessionEndedError):
            net.run()
        assert spent(net.study) == [1, 1, 1, 1, 0]
    (entry,) = account(net.study, 4).entries
    assert entry.released
    assert entry.freed
    assert not any(net.logs.values())


@pytest.mark.ci
@OF_EACH_PROTOCOL
def test_what_others_signed_of_another_session_frees_nobody(tmp_path: Path, protocol: str) -> None:
    net = without_the_last(tmp_path / "one", protocol)
    other = without_the_last(tmp_path / "two", protocol)
    party = Party.open(net.study.home(4), net.logs[104].append).first
    said = (other.study.host / "words").read_bytes()
    right = msgspec.msgpack.decode((net.study.host / "words").read_bytes(), type=statements.EndStatements)
    fewer = msgspec.msgpack.encode(statements.EndStatements(dict(list(right.statements.items())[:1]), right.offers))
    for beside in (said, fewer, b"\xc1", msgspec.msgpack.encode(statements.EndStatements({}, right.offers))):
        session_ended = statements.session_ended(net.study.server, party.folder.header, beside=beside)
        assert party.answer("over", session_ended).code in {"failed", "refused", "damaged"}
        assert spent(net.study) == [1] * 5


@OF_EACH_PROTOCOL
def test_whoever_is_in_the_sum_is_not_freed_by_the_same_words(tmp_path: Path, protocol: str) -> None:
    net = without_the_last(tmp_path, protocol)
    party = Party.open(net.study.home(0), net.logs[100].append).first
    session_ended = statements.session_ended(
        net.study.server, party.folder.header, beside=(net.study.host / "words").read_bytes()
    )
    assert party.answer("over", session_ended).code == "failed"
    assert {"interactive": "in the sum", "split": "a list with this client"}[protocol] in net.logs[100][-1]
    assert spent(net.study) == [1] * 5


def test_one_helper_that_answered_and_one_that_gave_up_free_a_late_report_and_no_listed_one(tmp_path: Path) -> None:
    """The session fails after helper 1's answer: who was on its list may have been counted there, who came late not."""
    net, answered = losing_the_last(tmp_path, "split"), list[int]()

    def meanwhile(node: int, kind: str) -> None:
        if kind == "helper" and node in answered:  # its second question is the list
            net.goes |= dict.fromkeys({105, 106} - {node}, 0.0)
        if kind == "helper":
            answered.append(node)

    net.meanwhile = meanwhile
    assert isinstance(net.run(), Waiting)
    net.goes, net.meanwhile = {}, lambda *_: None
    Host.open(net.study.host).give_up()
    for _ in range(2):
        with pytest.raises(SessionEndedError):
            net.run()
    assert spent(net.study) == [1, 1, 1, 1, 0]
