"""A stream between machines: totals equal measuring afresh, whoever is away, is killed or lies."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import RecordRegistry, Stream
from privstats.contrib.streams.inbox import RecordInbox
from privstats.contrib.streams.party import waiting
from privstats.dp import Ledger
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.host import Host
from privstats.engines.network.round_host import Waiting
from privstats.engines.network.session_end import StoredStatements
from privstats.engines.network.statements import EndStatements, Envelope
from privstats.engines.network.transport import Reply
from privstats.errors import DataError, SessionEndedError
from tests.contrib.streams.ward import Ward, exact, plan_of
from tests.course.cases import promise
from tests.faults import Fuse, Killed, killed, killed_in_a_child

EVERYBODY = (0, 1, 2, 3, 4)
DAILY = (3, 13)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("epochs", "away", "unlearned", "settled"),
    [
        (6, {1: (1,), 2: (0, 4)}, 4, (0, 3, 5)),
        pytest.param(
            *(20, {3: (1,), 4: (1,), 7: (0, 4), 11: (2,), 12: (3,), 16: (0,)}, 9, (0, 2, 6, 10, 13, 19)),
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["6 epochs", "20 epochs"],
)
def test_epochs_with_parties_away_and_one_unlearned_are_measuring_afresh(
    epochs: int, away: dict[int, tuple[int, ...]], unlearned: int, settled: tuple[int, ...], tmp_path: Path
) -> None:
    """``settled`` are the epochs after which no party owes anything."""
    ward = Ward(tmp_path, exact(epochs))
    for epoch in range(epochs):
        for party in range(5):
            if party != 4 or epoch < unlearned:
                ward.bring(party, 2, list(ward.inside[party])[:1] if epoch % 2 else ())
        if epoch == unlearned:
            ward.bring(4, 0, list(ward.inside[4]))  # the whole client is unlearned
        here = tuple(party for party in range(5) if party not in away.get(epoch, ()))
        assert ward.epoch(away.get(epoch, ())) == (here,)
        if epoch in settled:
            assert np.array_equal(ward.total(), ward.afresh())
    assert ward.inside[4] == {}
    for party in range(5):
        (entry,) = ward.account(party).entries
        assert entry.nodes == epochs
        assert len(entry.begun) == epochs - sum(party in each for each in away.values())
    with pytest.raises(SessionEndedError, match=f"epoch {epochs - 1} of {epochs} ended, and with it the stream"):
        ward.net.run()


@pytest.mark.ci
@pytest.mark.parametrize("helpers", [0, pytest.param(2, marks=pytest.mark.nightly)], ids=["interactive", "split"])
def test_a_server_killed_at_any_message_loses_no_epoch_and_sends_none_twice(helpers: int, tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(3), helpers)
    ward.bring_all()
    for message in (7, 12, 5) if not helpers else (4, 9, 6):
        killed_at(ward, message)
    while len(ward.releases()) < 1:
        ward.epoch()
    ward.bring_all()
    ward.epoch()
    assert [each and each.survivors for each in ward.releases()] == [EVERYBODY] * 2
    assert np.array_equal(ward.total(), ward.afresh())


def killed_at(ward: Ward, message: int) -> None:
    """The server is killed as it sends the message of a number."""
    killed_in_a_child(ward.net.run, message, "tests.engines.network.fake.FakeNet.push")


@pytest.mark.ci
@pytest.mark.parametrize("at", [pytest.param(at, marks=() if at in DAILY else pytest.mark.nightly) for at in range(26)])
def test_a_party_killed_at_any_write_loses_no_record_and_sends_none_twice(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back and answers, or sits the round out and sends with the next; the ledger's writes are among these."""
    ward = Ward(tmp_path, exact(2))
    ward.bring_all()
    fuse = Fuse(monkeypatch, "pathlib.Path.replace", "privstats.dp.ledger.file.Log.append")
    answer, ward.net.answer = ward.net.answer, lambda *message: victim(*message)  # type: ignore[method-assign]

    def victim(node: int, kind: str, data: bytes) -> Reply:
        if node == 101 and not fuse.left:
            fuse.left = at + 1
        elif node != 101:
            kept, fuse.left = fuse.left, 0
        try:
            return answer(node, kind, data)
        except Killed:
            fuse.left = -1
            return Reply("error:8")
        finally:
            if node != 101:
                fuse.left = kept

    ward.net.run()
    fuse.left = -1
    ward.bring_all()
    ward.net.run()
    assert np.array_equal(ward.total(), ward.afresh())
    assert all(0 in release.survivors for release in ward.releases() if release)


def test_an_epoch_with_too_few_waits_and_given_up_its_records_go_with_the_next(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(2))
    ward.bring_all()
    ward.net.goes = dict.fromkeys((101, 102, 103), 0.0)
    found = ward.net.run()
    assert isinstance(found, Waiting)
    assert found.sentence.startswith("course, round 0: step advertise: 2 of 5 answered")
    assert "without a sum: it was given up" in Host.open(ward.study.host).give_up()
    assert ward.epoch() == (None, EVERYBODY)
    assert np.array_equal(ward.total(), ward.afresh())


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("model", ["distributed", pytest.param("central", marks=pytest.mark.nightly)])
def test_a_tree_has_a_node_for_every_span_and_is_spent_once(model: Any, tmp_path: Path) -> None:
    ward = Ward(tmp_path, Stream(plan_of(promise(model=model, epsilon=20.0)), 2, "tree"))
    ward.bring_all()
    assert ward.epoch(away=(2,)) == ((0, 1, 3, 4),)
    ward.bring_all()
    assert ward.epoch() == (EVERYBODY, EVERYBODY)  # the epoch's leaf, and the root over both
    assert np.array_equal(ward.releases()[2].vector, ward.afresh())  # type: ignore[union-attr]
    for party in range(5):
        account = ward.account(party)
        assert account.mu == pytest.approx(ward.stream.mu)
        assert len(account.entries) == 1
    if model == "central":
        assert Ledger.open(ward.study.host / "ledger").accounts()[0].entries[0].begun == (0, 1, 2)


@pytest.mark.parametrize("helpers", [pytest.param(0, marks=pytest.mark.nightly), 2], ids=["interactive", "split"])
def test_a_correlated_stream_weighs_exact_sums_and_draws_each_epoch_once(helpers: int, tmp_path: Path) -> None:
    ward = Ward(tmp_path, Stream(plan_of(promise(epsilon=20.0)), 3, "square-root"), helpers)
    ward.bring_all()
    ward.net.goes = dict.fromkeys(range(101, 105), 0.0)
    assert isinstance(ward.net.run(), Waiting)
    seed = (ward.study.host / "seed").read_bytes()
    assert ward.epoch() == (EVERYBODY,)
    ward.bring_all()
    path = ward.study.host / "nodes" / "1" / "release.safetensors"
    with killed("privstats.engines.network.session_end.SessionHistory.add"):
        ward.net.run()
    first = ps.Release.load(path)
    path.unlink()
    assert ward.epoch() == (EVERYBODY,)
    assert ps.Release.load(path) == first
    assert (ward.study.host / "seed").read_bytes() == seed
    total = ward.stream.total(ward.releases())
    truth = np.array(ward.counts())
    # six standard deviations in each of three entries: 6e-9
    assert np.abs(total.moments.N - truth).max() < 6 * total.sigma["N"]


# --- who left and was not counted, and the lies around it ---


def upload_lost(ward: Ward, party: int = 4) -> None:
    """An epoch in which a party's vector leaves it and arrives nowhere."""
    answer = ward.net.answer

    def losing(node: int, kind: str, data: bytes) -> Reply:
        reply = answer(node, kind, data)
        if node == 100 + party and ward.book(party).outstanding:
            ward.net.goes = {node: 0.0}
            return Reply("error:8")
        return reply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ward.net, "answer", losing)
        assert ward.epoch() == (tuple(each for each in EVERYBODY if each != party),)


@pytest.mark.nightly
def test_a_vector_lost_on_its_way_is_sent_again_by_the_words_of_those_who_were_in(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(3))
    ward.bring_all()
    upload_lost(ward)
    assert ward.book(4).outstanding == (0,)
    ward.bring_all()
    assert ward.epoch(away=(4,)) == ((0, 1, 2, 3),)
    ward.bring_all()
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())
    assert "round 0: our upload is in no sum, by proof: its records go with the next round" in ward.net.logs[104]


@pytest.mark.ci
def test_without_anybodys_words_what_left_stays_out(tmp_path: Path) -> None:
    """Damage in the server's folder stops nobody."""
    ward = Ward(tmp_path, exact(2))
    ward.bring_all()
    mine = ward.afresh([4])
    upload_lost(ward)
    words = ward.study.host / "nodes" / "0" / "words"
    words.write_bytes(b"no words")
    assert StoredStatements(words.parent).proof == b""
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total() + mine, ward.afresh())


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_the_list_of_a_central_server_is_proof_enough(tmp_path: Path) -> None:
    ward = Ward(tmp_path, Stream(plan_of(promise(epsilon=20.0)), 2))
    ward.bring_all()
    upload_lost(ward)
    ward.bring_all()
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())


def lied_about(ward: Ward) -> None:
    """The server says that party 4 was not in round 0, whose list all others have signed."""
    host, node = Host.open(ward.study.host).folder, Host.open(ward.study.host).folder.round(0)
    release = ward.releases()[0]
    shutil.copy(node.home / "release.safetensors", node.home / "true")
    ps.Release(release.plan, release.vector, (0, 1, 2, 3)).save(node.home / "release.safetensors", host.identity)
    assert not (node.home / "words").exists()  # everybody was in the sum, so nothing is kept that could free anybody
    lie = EndStatements({place: b"\x0f" + ward.study.identities[place].sign(b"any other words") for place in (1, 2, 3)})
    (node.home / "words").write_bytes(msgspec.msgpack.encode(lie))


@pytest.mark.ci
def test_attack_a_server_invents_a_list_without_a_party_that_it_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Believed, it would collect the party's records in every epoch anew."""
    for name, believed in (("ours", False), ("double", True)):
        ward = Ward(tmp_path / name, exact(2))
        ward.bring_all()
        ward.epoch()
        before, mine = ward.afresh(), ward.afresh([4])
        lied_about(ward)
        ward.bring_all()
        fresh = ward.afresh() - before
        with monkeypatch.context() as patch:
            if believed:
                patch.setattr("privstats.contrib.streams.record_registry.prove_excluded_upload", lambda *_, **__: b"")
                patch.setattr("privstats.contrib.streams.record_registry.hmac.compare_digest", lambda *_: True)
            ward.epoch()
        seen = ward.releases()[1].vector  # type: ignore[union-attr]
        assert np.array_equal(seen, fresh + (mine if believed else 0))
        said = "the signed statements do not prove that our records are in no sum: the statement of client 1"
        assert any(said in line for line in ward.net.logs[104]) is not believed


def everything_again(registry: RecordRegistry, view: Any, level: int) -> tuple[set[bytes], set[bytes]]:
    """Whatever was sent before, every record that is in is to be added."""
    return {key for (key,) in view.held.connection.execute("SELECT key FROM registry_states")}, set()


@pytest.mark.ci
def test_attack_a_server_asks_for_an_epoch_again_with_another_cohort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_folder: Path
) -> None:
    """The difference of the two sums would be the one party that is missing."""
    for name, forgetful in (("ours", False), ("double", True)):
        ward = Ward(tmp_path / name, exact(2))
        ward.bring_all()
        ward.epoch()
        (first,) = ward.releases()
        shutil.rmtree(ward.study.host / "nodes" / "0")  # as if there had been no epoch
        ward.net.goes = {104: 0.0}
        with monkeypatch.context() as patch:
            if forgetful:
                for party in range(4):
                    shutil.rmtree(ward.study.home(party) / "nodes" / "0" / "sessions")
                shutil.rmtree(state_folder)
                patch.setattr(RoundFolder, "begun", False)
                patch.setattr(RecordRegistry, "_take", lambda *_: None)
                patch.setattr(RecordRegistry, "_leave", lambda *_: None)
                patch.setattr(RecordRegistry, "_due", everything_again)
            found = ward.net.run()
        if forgetful:
            stolen = first.vector - found.releases[0].vector  # type: ignore[union-attr]
            assert np.array_equal(stolen, ward.afresh([4]))
        else:
            assert isinstance(found, Waiting)
            assert "0 of 5 answered" in found.sentence
            session_ended = "party 0 has ended this session: start a new one with a new run name"
            assert any(session_ended in line for line in ward.net.lines)


def test_attack_a_server_replays_the_opening_of_an_epoch(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(2))
    ward.bring_all()
    ward.epoch()
    opened = next(data for node, data in ward.net.whole if node == 100)
    ward.bring_all()  # and what it could collect by that
    before = ward.account(0)
    assert ward.party(0).answer("round", opened).code == "over"
    assert ward.account(0) == before


def test_attack_another_roster_is_another_stream(tmp_path: Path) -> None:
    """The same course under a roster that the party did not install, by the same server."""
    ward = Ward(tmp_path, exact(2))
    ward.bring_all()
    ward.study.roster.renewed().save(ward.study.home(0) / "roster.toml")
    ward.net.run()
    assert any("runs another roster" in line for line in ward.net.lines)
    assert ward.releases()[0].survivors == (1, 2, 3, 4)  # type: ignore[union-attr]


@pytest.mark.nightly
def test_records_that_were_moved_away_are_asked_for_and_nothing_is_marked(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(2))
    ward.bring_all()
    ward.party(0).prepare()
    RecordInbox(ward.study.home(0), ward.stream).register(ward.book(0))
    (ward.study.home(0) / "records" / "0.npz").rename(tmp_path / "away.npz")
    assert ward.epoch() == ((1, 2, 3, 4),)
    assert any("4 records that are due are in no file of party 0/records" in line for line in ward.net.logs[100])
    (tmp_path / "away.npz").rename(ward.study.home(0) / "records" / "0.npz")
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())


def all_at(ward: Ward, corner: float, leave: bool) -> None:
    """Everybody brings 100 records of the first class at one corner, and takes off what it had."""
    ward.rng = Corner(corner)  # type: ignore[assignment]
    for party in range(5):
        ward.bring(party, 100, list(ward.inside[party]) if leave else ())


class Corner:
    """Records that are all alike."""

    def __init__(self, at: float) -> None:
        self.at = at

    def normal(self, size: tuple[int, int]) -> np.ndarray:
        return np.full(size, self.at)

    def integers(self, low: int, high: int, size: int) -> np.ndarray:
        return np.zeros(size, int)


@pytest.mark.ci
def test_attack_records_that_leave_hide_a_sum_of_more_records_than_the_ring_is_made_for(tmp_path: Path) -> None:
    """500 leave at one corner and 500 enter at the other: the counts say 0, and the sums of x wrapped unseen."""
    ward = Ward(tmp_path, exact(3))
    all_at(ward, -2.0, leave=False)
    ward.epoch()
    all_at(ward, 2.0, leave=True)
    assert ward.epoch() == (EVERYBODY,)
    assert ward.counts() == [500, 0, 0]
    assert np.array_equal(ward.total(), np.zeros_like(ward.total()))  # who leaves goes first
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())


@pytest.mark.nightly
def test_a_party_that_brought_more_than_an_epoch_has_room_for_sends_it_in_parts(tmp_path: Path) -> None:
    """Refused when the round is opened, it would be in no epoch any more, and one record would decide."""
    ward = Ward(tmp_path, exact(4))
    ward.bring_all()
    ward.bring(4, 250)
    for _ in range(2):
        ward.epoch()
        assert not np.array_equal(ward.total(), ward.afresh())
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())


def test_what_waits_for_the_next_epoch_is_counted_before_and_after_the_first(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(1))
    ward.bring(0, 4)
    ward.bring(0, 2, list(ward.inside[0])[:1])
    assert waiting(ward.party(0).folder) == 5
    ward.epoch()
    assert waiting(ward.party(0).folder) == 0
    ward.bring(0, 2, list(ward.inside[0])[:1])
    assert waiting(ward.party(0).folder) == 3


@pytest.mark.ci
def test_who_misses_the_end_keeps_no_answer_beyond_the_next_round(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(2), helpers=2)
    ward.party(5).prepare()  # a helper brings nothing
    push = ward.net.push

    def deaf(node: int, kind: str, data: bytes, *, ttl: float) -> str:
        envelope = Envelope.decode(data)
        return "" if (envelope.kind, envelope.place) == ("over", 0) else push(node, kind, data, ttl=ttl)  # type: ignore[arg-type]

    ward.net.waiting[""] = []
    ward.net.push = deaf  # type: ignore[method-assign]
    sizes = []
    for _ in range(2):
        ward.bring_all()
        ward.epoch()
        sessions = (ward.study.home(0) / "nodes" / "0" / "sessions").iterdir()
        sizes.append(max(path.stat().st_size for path in sessions))
    assert sizes[0] > 1000  # the report, for a server that asks again
    assert sizes[1] < 240  # what was signed of it, and that it has ended
    assert np.array_equal(ward.total(), ward.afresh())


@pytest.mark.nightly
def test_records_of_a_round_that_every_helper_abandoned_go_with_the_next(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(3), helpers=2)
    ward.bring_all()

    def meanwhile(node: int, kind: str) -> None:
        if kind == "open":
            ward.net.goes = {106: 0.0}

    ward.net.meanwhile = meanwhile
    assert isinstance(ward.net.run(), Waiting)
    assert all(ward.book(party).outstanding == (0,) for party in range(5))
    Host.open(ward.study.host).give_up()
    ward.net.meanwhile = lambda *_: None
    ward.bring_all()
    assert isinstance(ward.net.run(), Waiting)  # one helper's word is not every helper's
    assert not StoredStatements(ward.study.host / "nodes" / "0").proof
    assert ward.epoch(away=(2,)) == ((0, 1, 3, 4),)  # who was away hears of it with the round after
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())
    assert "round 0: our upload is in no sum, by proof: its records go with the next round" in ward.net.logs[102]


@pytest.mark.ci
def test_what_a_tree_has_no_room_for_is_refused_when_it_is_brought(tmp_path: Path) -> None:
    """In the round it was refused there: who brought more in two epochs than a node holds was missing from its sum."""
    ward = Ward(tmp_path, Stream(plan_of(promise(epsilon=20.0)), 4, "tree", deletions=True))  # room for 100 of a party

    def brought(count: int, leave: list[str]) -> None:
        folder = ward.party(4).folder
        place = tmp_path / "batch.npz"
        ids = [f"4/{epoch}/{each}" for each in range(count)]
        np.savez(place, ids=np.array(ids, "U20"), X=np.ones((count, 4)), y=[0] * count, leave=np.array(leave, "U20"))
        RecordInbox(folder.home, ward.stream).bring(place, partial(waiting, folder))

    for epoch, (count, nodes) in enumerate(((60, 1), (40, 2))):
        if epoch:
            with pytest.raises(DataError, match="a node of the tree would move 120 of this party's records, .* 100"):
                brought(60, [])
        brought(count, [])
        assert ward.epoch() == (EVERYBODY,) * nodes
    epoch = 2
    with pytest.raises(DataError, match="make a stream with a larger max_records"):
        brought(1, [])
    brought(0, [f"4/0/{each}" for each in range(60)])  # which the top has not seen, and will not
    assert ward.epoch() == (EVERYBODY,)
    epoch = 3
    with pytest.raises(DataError, match="would move 120"):  # beside those that leave, in the span of two epochs
        brought(60, [])
    brought(40, [])
    assert ward.epoch() == (EVERYBODY,) * 3
    assert not any("has room for" in line for lines in ward.net.logs.values() for line in lines)


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("brought", [60, 100])
def test_records_that_come_back_keep_no_party_out_of_a_sum(brought: int, tmp_path: Path) -> None:
    """Taken back beside as many new ones, they were more than a round has room for, in that round and every later."""
    ward = Ward(tmp_path, Stream(plan_of(promise(epsilon=20.0)), 3, deletions=True))
    ward.bring_all()
    ward.bring(4, 36)
    upload_lost(ward)
    ward.bring(4, brought)
    assert ward.epoch() == (EVERYBODY,)
    assert ward.epoch() == (EVERYBODY,)
    assert np.array_equal(ward.total(), ward.afresh())
    stayed = [line for line in ward.net.logs[104] if "no room for its records" in line]
    assert len(stayed) == (brought == 100)  # beside 60 there was room at once; beside 100, in the epoch after
