"""The server's folder: killed at any moment, run again, ended once; the release equals the survivors' sum."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.nodes import NodeMap
from privstats.engines.network.round_host import Ended, RoundHost, Waiting
from privstats.engines.network.transport import Reply
from privstats.errors import (
    AggregationError,
    LedgerError,
    LocalProtocolError,
    NothingToResumeError,
    PrivstatsError,
    SessionEndedError,
)
from privstats.secagg.protocols import PROTOCOLS
from tests import made
from tests.engines.network.fake import FolderNet, Study, study_of
from tests.faults import Fuse, Killed, killed
from tests.lengths import sized

CENTRAL = made.promise()


def ended(net: FolderNet) -> Ended:
    """The session's end, with its release held against the records themselves."""
    found = net.run()
    assert isinstance(found, Ended), found.sentence
    assert np.array_equal(found.releases[0].vector, net.study.exact(found.releases[0].survivors))
    return found


def released(net: FolderNet) -> tuple[int, ...]:
    """The survivors of a session that ends now, or had ended before its process was killed."""
    try:
        return ended(net).releases[0].survivors
    except SessionEndedError:
        release = ps.Release.load(net.study.host / "release.safetensors", signed_by=net.study.server.public)
        assert np.array_equal(release.vector, net.study.exact(release.survivors))
        return release.survivors


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_session_from_folders_to_a_signed_release(protocol: str, tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path, protocol))
    found, host = ended(net), net.study.host
    assert found.releases[0].survivors == tuple(range(5))
    signed = ps.Release.load(host / "release.safetensors", signed_by=net.study.server.public)
    assert signed == found.releases[0]
    assert not any(net.logs.values())
    assert found.sentence.endswith("with parties 0, 1, 2, 3, 4: host/release.safetensors")
    assert sorted(path.name for path in host.iterdir()) == [
        *("ended.json", "identity.pem", "journal", "journal.counts", "journal.key", "ledger", "ledger.head"),
        *("nodes.json", "plan.toml", "release.safetensors", "roster.toml", "status.json"),
    ]
    assert list((host / "journal").iterdir()) == []
    homes = (host, *map(net.study.home, range(5)))
    written = {path.name for home in homes for path in home.rglob("*") if path.is_file() and path.stat().st_mode & 0o77}
    assert written <= {"plan.toml", "roster.toml", "records.py", "records.npz"}, (
        "what people copied there, and nothing that we wrote"
    )
    with pytest.raises(SessionEndedError, match="host/release.safetensors. A new one needs a new run name"):
        net.run()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_too_few_wait_and_the_next_run_goes_on(protocol: str, tmp_path: Path, capsys) -> None:
    net = FolderNet(study_of(tmp_path, protocol))
    net.goes = dict.fromkeys((101, 103, 104), 0.0)
    found = net.run()
    assert isinstance(found, Waiting)
    assert found.sentence == (
        f"step {net.study.plan.masking.steps[0]}: 2 of 5 answered, the plan needs 3; "
        "missing: 1 (Bonn), 3 (St. Mary), 4 (Essen). "
        'Nothing is lost: "flwr run study/app study" goes on from here'
    )
    net.goes = {103: 0.0}
    assert ended(net).releases[0].survivors == (0, 1, 2, 4)


def test_where_the_longer_list_decides_it_is_the_one_that_is_waited_for(tmp_path: Path) -> None:
    """A random graph needs more clients on a list than in a sum."""
    cohort, names = ps.Cohort(20, 14, 10_000), [f"site {place}" for place in range(20)]
    random = {"cohort": cohort, "graph": "sparse"}
    net = FolderNet(study_of(tmp_path, names=names, **random))
    needed = net.study.plan.masking.min_listed
    assert 14 < needed < 20
    net.goes = dict.fromkeys(range(100 + needed - 1, 120), 0.0)
    found = net.run()
    assert isinstance(found, Waiting)
    assert found.sentence.startswith(f"step advertise: {needed - 1} of 20 answered, the plan needs {needed}; missing: ")


def test_a_helper_that_goes_is_named_and_waited_for(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path, "split"))

    def meanwhile(node: int, kind: str) -> None:
        if kind == "open":
            net.goes = {106: 0.0}

    net.meanwhile = meanwhile
    found = net.run()
    assert isinstance(found, Waiting)
    assert found.sentence.startswith("step check: 1 of 2 answered, the plan needs 2; missing: helper 2. ")
    net.goes, net.meanwhile = {}, lambda *_: None
    assert ended(net).releases[0].survivors == tuple(range(5))


def test_gathering_tells_who_refuses_and_takes_nobodys_word_twice(tmp_path: Path) -> None:
    study = study_of(tmp_path, "split")
    net, plain, tries = FolderNet(study), None, []
    plain = net.answer

    def answer(node: int, kind: str, data: bytes) -> Reply:
        tries.append(node)
        if kind == "hello" and node == 105 and tries.count(105) == 1:
            return Reply("busy")
        if kind == "hello" and node == 106 and tries.count(106) == 1:
            return Reply("ok", b"in nobody's name")
        return plain(node, kind, data)

    net.answer = answer
    ended(net)
    assert net.lines[:2] == ["node node-105 is busy", "node node-106: malformed"]


@pytest.fixture
def fuse(monkeypatch) -> Fuse:
    return Fuse(monkeypatch)


@pytest.mark.ci
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_killed_at_one_write_after_another_ends_in_the_exact_sum_of_all(
    protocol: str, tmp_path: Path, fuse: Fuse
) -> None:
    """Every run dies at a later write than the one before it, in whichever folder that write is, and is run again."""
    net, deaths = FolderNet(study_of(tmp_path, protocol)), 0
    while True:
        fuse.left = deaths + 1
        try:
            assert released(net) == tuple(range(5))
        except Killed:
            deaths += 1
            continue
        break
    assert deaths > 10
    for peer in range(5):
        ((entry,),) = (account.entries for account in Ledger.open(net.study.home(peer) / "ledger").accounts())
        assert entry.released is not None


WRITES = range(1, 140)
KILLS = [(protocol, at) for place, protocol in enumerate(PROTOCOLS) for at in WRITES[place :: sized(4, 1)]]


@pytest.mark.nightly
@pytest.mark.parametrize(("protocol", "at"), KILLS)
def test_a_server_killed_once_at_any_write_ends_in_the_exact_sum_of_all(
    protocol: str, at: int, tmp_path: Path, fuse: Fuse
) -> None:
    net = FolderNet(study_of(tmp_path, protocol))
    fuse.left = at
    try:
        ended(net)
    except Killed:
        fuse.left = 0
        assert released(net) == tuple(range(5))


def test_a_run_killed_after_its_release_was_written_writes_the_same_again(tmp_path: Path, monkeypatch) -> None:
    """Central noise is drawn once: a second release would let the noise be averaged away."""
    study = study_of(tmp_path, privacy=CENTRAL)
    for home in (study.host, *(study.home(peer) for peer in range(5))):
        account_in(home)
    net = FolderNet(study)
    with killed("privstats.engines.network.session_end.SessionHistory.add"):
        net.run()
    first = ps.Release.load(study.host / "release.safetensors")
    found = net.run()
    assert found.releases[0] == first == ps.Release.load(study.host / "release.safetensors")
    (account,) = Ledger.open(study.host / "ledger").accounts()
    assert len(account.entries) == 1


def account_in(home: Path, **changes) -> Ledger:
    ledger = Folder.open(home).ledger
    ledger.set_cap("beds", **{"unit": "record", "adjacency": "add-remove", "epsilon": 9.0, "delta": 1e-5, **changes})
    return ledger


def test_central_noise_is_charged_at_the_server_and_the_session_waits_for_the_account(tmp_path: Path) -> None:
    study = study_of(tmp_path, privacy=CENTRAL)
    for peer in range(5):
        account_in(study.home(peer))
    net = FolderNet(study)
    with pytest.raises(LedgerError, match=f"privstats ledger cap {study.host}/ledger DATASET"):
        net.run()
    account_in(study.host)
    found = net.run()
    assert not np.array_equal(found.releases[0].vector, study.exact(range(5)))


@pytest.mark.parametrize("model", ["central", "distributed"])
def test_a_server_whose_account_cannot_pay_asks_no_party_for_anything(tmp_path: Path, model: str) -> None:
    """Everybody answered, and only the release said that the account has too little."""
    study = study_of(tmp_path, privacy=replace(CENTRAL, model=model))
    for peer in range(5):
        account_in(study.home(peer))
    ledger = account_in(study.host, epsilon=0.01)
    with pytest.raises(LedgerError, match="account 'beds' would reach epsilon"):
        FolderNet(study).run()
    assert not (study.host / "journal").exists()
    for home in (study.host, study.home(0)):
        assert Ledger.open(home / "ledger").account("beds").entries == ()
    account_in(study.host)
    assert isinstance(FolderNet(study).run(), Ended)
    assert len(ledger.account("beds").entries) == 1


@pytest.mark.ci
def test_distributed_noise_is_charged_at_the_parties_and_at_the_server_where_it_keeps_an_account(
    tmp_path: Path,
) -> None:
    study = study_of(tmp_path, privacy=replace(CENTRAL, model="distributed"))
    for peer in range(5):
        account_in(study.home(peer))
    net = FolderNet(study)
    assert isinstance(net.run(), Ended)
    assert (
        "host/ledger has no account, which is as it should be: the parties draw the noise, and their ledgers hold this "
        "release"
    ) in net.lines
    account_in(study.host)
    (study.host / "release.safetensors").unlink()
    net = FolderNet(study.renewed())
    assert isinstance(net.run(), Ended)
    assert len(Ledger.open(study.host / "ledger").account("beds").entries) == 1


def test_a_release_that_is_refused_leaves_the_session_where_it_is(tmp_path: Path, monkeypatch) -> None:
    net, plain = FolderNet(study_of(tmp_path)), ps.session.release
    with monkeypatch.context() as patch:
        patch.setattr(ps.session, "release", refuse)
        for _ in range(2):
            with pytest.raises(AggregationError, match="too-many-records"):
                net.run()
    assert plain is ps.session.release
    assert ended(net).releases[0].survivors == tuple(range(5))


def refuse(*_, **__):
    raise AggregationError("release", "too-many-records", "the sum holds more than the plan admits")


def test_a_run_that_waited_for_the_lock_of_one_that_ended_opens_no_second_session(tmp_path: Path, monkeypatch) -> None:
    """It had looked for the tombstone before the other wrote it, and every party would have refused its session."""
    net = FolderNet(study_of(tmp_path))
    ended(net)
    plain, looks = RoundHost._make_room, []
    (net.study.host / "ended.json").rename(net.study.host / "later.json")

    def meanwhile(self, nodes) -> None:
        looks.append(nodes)
        (self.folder.home / "later.json").rename(self.folder.home / "ended.json")

    monkeypatch.setattr(RoundHost, "_make_room", meanwhile)
    with pytest.raises(SessionEndedError, match="this session ended on"):
        net.run()
    assert looks
    assert plain is not RoundHost._make_room


def test_the_next_session_takes_a_new_run_name_and_leaves_the_old_release_alone(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path, privacy=replace(CENTRAL, model="distributed")))
    for peer in range(5):
        account_in(net.study.home(peer))
    net.run()
    again = FolderNet(net.study.renewed())
    with pytest.raises(PrivstatsError, match="is of a session that has ended: move it away first"):
        again.run()
    (net.study.host / "release.safetensors").rename(net.study.host / "first.safetensors")
    again.run()
    history = json.loads((net.study.host / "ended.json").read_text())
    assert [ended_session["survivors"] for ended_session in history] == [[0, 1, 2, 3, 4]] * 2
    assert len({ended_session["session"] for ended_session in history}) == 2


def test_a_session_that_has_not_ended_is_not_lost_to_the_next(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    net.goes = dict.fromkeys(range(101, 105), 0.0)
    assert isinstance(net.run(), Waiting)
    first = net.study.roster
    with pytest.raises(LocalProtocolError, match="a session of another plan, roster or version .* has not ended"):
        FolderNet(net.study.renewed()).run()
    for home in (net.study.host, *(net.study.home(peer) for peer in range(5))):
        first.save(home / "roster.toml")
    net.goes = {}
    ended(net)


def test_a_journal_left_by_a_run_that_died_after_its_end_is_taken_away(tmp_path: Path, monkeypatch) -> None:
    net = FolderNet(study_of(tmp_path))
    with killed("privstats.engines.journal.server.JournaledServer.discard"):
        net.run()
    assert (net.study.host / "journal" / "snapshot").exists()
    (net.study.host / "release.safetensors").rename(tmp_path / "release")
    (records := net.study.home(0) / "records.py").write_text(
        f"allow_second_exact_release = True\n{records.read_text()}"
    )
    again = FolderNet(net.study.renewed())
    for peer in range(1, 5):
        (again.study.home(peer) / "records.py").write_text(
            f'dataset = "another"\n{(again.study.home(peer) / "records.py").read_text()}'
        )
    ended(again)


class TestGivingUp:
    def test_a_session_that_is_given_up_is_over_for_everybody(self, tmp_path: Path) -> None:
        net = FolderNet(study_of(tmp_path))
        net.goes = dict.fromkeys(range(102, 105), 0.0)
        net.run()
        said = Host.open(net.study.host).give_up()
        assert said.endswith("without a sum: it was given up")
        with pytest.raises(SessionEndedError, match="There is nothing to give up"):
            Host.open(net.study.host).give_up()
        net.goes = {}
        with pytest.raises(SessionEndedError, match="it was given up. A new one needs a new run name"):
            net.run()
        assert [kind for _, kind, _ in net.pushed[-5:]] == ["over"] * 5
        assert not (net.study.host / "release.safetensors").exists()

    def test_a_session_that_never_began_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(NothingToResumeError, match="host/journal holds no session: nothing has begun"):
            Host.open(study_of(tmp_path).host).give_up()

    def test_killed_on_the_way_it_is_over_all_the_same(self, tmp_path: Path, monkeypatch) -> None:
        net = FolderNet(study_of(tmp_path))
        net.goes = dict.fromkeys(range(102, 105), 0.0)
        net.run()
        with killed("privstats.engines.network.session_end.SessionHistory.add"):
            Host.open(net.study.host).give_up()
        with pytest.raises(SessionEndedError, match="without a sum: it failed, or was given up"):
            net.run()


def test_a_session_that_fails_says_why_and_is_over(tmp_path: Path, monkeypatch) -> None:
    net = FolderNet(study_of(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("privstats.secagg.interactive.server.unmask", refuse)
        with pytest.raises(AggregationError, match="too-many-records"):
            net.run()
    with pytest.raises(SessionEndedError, match=r"without a sum: aggregation aborted at step 'release'"):
        net.run()


def test_who_does_not_hear_the_end_is_not_waited_for_long(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    net.dropped = {"over"}
    ended(net)
    assert 20 <= net.now < 30


def test_a_tombstone_that_is_damaged_is_no_leave_to_begin_again(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    ended(net)
    for damaged in (b"[{", b'[{"session": "\xff"'):
        (net.study.host / "ended.json").write_bytes(damaged)
        with pytest.raises(LocalProtocolError, match="ended.json is damaged: bring it back"):
            net.run()


def test_a_map_of_nodes_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    net.goes = dict.fromkeys((102, 103, 104), 0.0)
    net.run()
    (net.study.host / "nodes.json").write_text("[{")
    net.goes = {}
    assert ended(net).releases[0].survivors == tuple(range(5))


def test_enough_answers_of_the_wrong_kind_are_not_enough(tmp_path: Path) -> None:
    """Whatever the reason is why a step cannot be closed, the sentence says it."""
    from privstats.secagg.machines import StepStatus

    study: Study = study_of(tmp_path)
    abort = AggregationError("agree", "too_few_signatures", "")
    host, net = RoundHost(Folder.open(study.host).round(0)), FolderNet(study)
    registry = host._places(NodeMap(study.host, "x"))
    said = host._short(StepStatus("agree", (0, 1, 2), (3, 4), abort), registry)
    assert said.startswith(
        "step agree: 3 of 5 answered, which is not enough (too few signatures); missing: 3 (St. Mary)"
    )
    assert net.lines == []
