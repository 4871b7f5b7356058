"""Noise of a panel through kills: one draw of every member in what leaves, and what left is repeated, never redrawn."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.encoding import RingVector
from privstats.engines.journal import JournaledHelper
from privstats.engines.network.round_host import Ended
from privstats.errors import LocalProtocolError
from privstats.secagg import Helper, HelperKeys, Identity
from privstats.secagg.prg import ctr_keystream
from tests.engines.killed import Killed
from tests.engines.network.fake import FolderNet, study_of
from tests.engines.test_journal_uploads import KEY, Journals, shown
from tests.secagg.interactive.cohorts import RING
from tests.secagg.upload.cohorts import batch_of, list_of, uploads_of

LEAST = 1000


def draw(seed: bytes) -> RingVector:
    """Every entry 1000 or 1001, as the seed says: sums say how many draws are in them."""
    coins = np.frombuffer(ctr_keystream(seed, bytes(16), RING.size), np.uint8) & 1
    return RING.encode(LEAST + coins.astype(np.int64))


def test_helpers_killed_after_every_message_answer_with_one_draw_each(tmp_path: Path) -> None:
    journals = Journals(tmp_path, noise=draw)
    leader = journals.fresh_leader()
    helpers = [Killed(lambda number=number: journals.helper(number)) for number in (1, 2)]
    n = journals.run.parameters.clients
    for client in range(n):
        leader.receive(client, journals.run.report(client))
    while leader.step != "done":
        for peer, message in leader.outbox:
            helper, answers = helpers[peer - n], []
            for _ in range(2):  # killed after the answer, asked again, the same answer
                answers.append(helper("receive", message))
                helper.again()
            assert answers[0] == answers[1]
            leader.receive(peer, answers[0][0][1])
        leader.end_step()
    total, survivors = leader.result
    noise = total.lift() - journals.run.sum_over(survivors)
    assert set(noise.tolist()) <= {2 * LEAST, 2 * LEAST + 1, 2 * LEAST + 2}  # which of them is up to chance
    for each in helpers:
        each.kill()


def test_an_answer_that_did_not_reach_the_disk_is_made_again_with_the_same_draw(tmp_path: Path, monkeypatch) -> None:
    drawn: list[bytes] = []
    journals = Journals(tmp_path, noise=lambda seed: drawn.append(seed) or draw(seed))
    question, helper = list_of(journals.run, (0, 1, 2, 3)), shown(journals)
    with monkeypatch.context() as patch:
        patch.setattr("privstats.engines.records.os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
        with pytest.raises(LocalProtocolError, match="nothing was sent"):
            helper.receive(question)
    helper.close()
    with journals.helper(1) as again:
        ((_, first),) = again.receive(question)
    with journals.helper(1) as after:
        assert after.receive(question) == [("server", first)]
        assert after.answer == first
    assert len(drawn) == 2
    assert drawn[0] == drawn[1]


def test_a_second_machine_with_the_same_box_key_draws_the_same_for_a_list_and_another_for_another() -> None:
    """A machine that was put back whole: two answers to one list average nothing away, as without noise."""
    seeds: list[bytes] = []
    answers = []
    kept = partial(Helper, noise=lambda seed: seeds.append(seed) or draw(seed))
    run = uploads_of(noisy_helpers=True, helper_class=kept)
    batch = batch_of(run, 1, (0, 1, 2, 3, 4))
    for listed in ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3, 4)):
        machine = run.helper(run.key(1))
        machine.receive(batch)
        ((_, answer),) = machine.receive(list_of(run, listed))
        answers.append(answer)
    assert answers[0] == answers[1]
    assert seeds[0] == seeds[1] != seeds[2]


def test_a_kill_after_the_answer_is_on_disk_keeps_that_draw(tmp_path: Path, monkeypatch) -> None:
    drawn: list[bytes] = []
    journals = Journals(tmp_path, noise=lambda seed: drawn.append(seed) or draw(seed))
    question, helper = list_of(journals.run, (0, 1, 2, 3)), shown(journals)

    def killed(_: JournaledHelper) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(JournaledHelper, "_destroy", killed)
        with pytest.raises(KeyboardInterrupt):
            helper.receive(question)
    helper.close()
    for _ in range(2):
        with journals.helper(1) as again:
            ((_, answer),) = again.receive(question)
            assert again.answer == answer
    assert len(drawn) == 1


def test_a_helper_without_its_noise_is_neither_offered_nor_resumed(tmp_path: Path) -> None:
    journals = Journals(tmp_path, noise=draw)
    place = {"identity": journals.run.members[1], **journals.common}
    told = "every helper of this plan adds noise to its answer: give noise=session.helper_noise"
    with pytest.raises(LocalProtocolError, match=told):
        JournaledHelper.offer(tmp_path / "elsewhere", KEY, place=1, **place)
    assert not (tmp_path / "elsewhere").exists()
    with shown(journals) as helper:
        assert helper.state == "bound"
    with pytest.raises(LocalProtocolError, match=told):
        JournaledHelper.resume(journals.home(1), KEY, **place)
    with journals.helper(1) as helper:
        helper.receive(list_of(journals.run, (0, 1, 2, 3)))
    with JournaledHelper.resume(journals.home(1), KEY, **place) as ended:  # which draws nothing any more
        assert ended.state == "revealed"


@pytest.mark.nightly
def test_a_session_between_folders_releases_the_noise_of_every_member_once(tmp_path: Path) -> None:
    """Leader and helpers from their folders; the leader's ledger is charged beside the parties'."""
    promise = ps.Privacy(model="panel", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
    net = FolderNet(study_of(tmp_path, "split", privacy=promise))
    for home in (net.study.host, *(net.study.home(peer) for peer in range(5))):
        Ledger.create(home / "ledger").set_cap("beds", unit="record", adjacency="add-remove", epsilon=2.001, delta=1e-5)
    found = net.run()
    assert isinstance(found, Ended), found.sentence
    (release,), plan = found.releases, net.study.plan
    z = (release.vector - net.study.exact(release.survivors)) / np.repeat(
        [plan.noise.grid_sigma(segment) for segment in plan.layout.segments], [s.size for s in plan.layout.segments]
    )
    assert 0.2 < z.std() / np.sqrt(3) < 2.5
    assert release.sigma["A"] == pytest.approx(np.sqrt(3) * plan.noise.sigma["A"])
    for home in (net.study.host, net.study.home(0)):
        assert len(Ledger.open(home / "ledger").account("beds").counted) == 1


def test_a_leaders_release_is_the_same_after_every_kill(tmp_path: Path) -> None:
    members = [Identity.generate(os.urandom) for _ in range(2)]
    people = [Identity.generate(os.urandom) for _ in range(3)]
    promise = ps.Privacy(model="panel", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
    schema = ps.ClassSchema(2, 3, "NA", 1.0)
    panel = {"protocol": "split", "panel": [each.public.hex() for each in members]}
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 90), privacy=promise, **panel)
    roster = ps.secagg.Roster([each.public for each in people], server=members[0].public, run=os.urandom(16))
    keys = [HelperKeys(member, place, plan.masking, roster) for place, member in enumerate(members)]
    offered = ps.secagg.Panel(tuple(member.public for member in members), tuple(key.offer for key in keys))
    common = {"roster": roster, "panel": offered}
    helper = ps.session.helper(plan, keys=keys[1], **common)
    named = {"parameters": plan.masking, "roster": roster, "identity": members[0]}
    made = lambda: ps.session.server(plan, roster, keys=keys[0], panel=offered)  # noqa: E731
    releases = []
    with ps.engines.journal.JournaledServer.resume_or_create(tmp_path, KEY, made, **named) as server:
        for index, person in enumerate(people):
            moments = ps.measure(schema, np.full((4, 3), 0.25), [0, 1, 1, 0])
            client = ps.session.client(plan, moments, index=index, identity=person, charge="uncharged", **common)
            server.receive(index, client.start()[0][1])
        while server.step != "done":
            for peer, message in server.outbox:
                server.receive(peer, helper.receive(message)[0][1])
            server.end_step()
        releases.append(server.release(plan, "uncharged"))
        with pytest.raises(LocalProtocolError, match="not handed out again"):
            _ = server.result
    for _ in range(2):
        with ps.engines.journal.JournaledServer.resume(tmp_path, KEY, **named) as server:
            assert server.noise_due
            releases.append(server.release(plan, "uncharged"))
    assert releases[0] == releases[1] == releases[2]
    assert releases[0].vector.tolist() == releases[2].vector.tolist()
