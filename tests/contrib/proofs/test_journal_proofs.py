"""Sessions with proofs through restarts: one rho, one answer and one report of everybody, also put down at any time."""

from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from privstats.contrib.proofs.field_streams import FieldStreams
from privstats.engines.journal import JournaledClient, JournaledHelper
from privstats.errors import RemoteProtocolError
from privstats.secagg.upload import messages
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.leader import Leader
from tests.contrib.proofs.proved import Proved, doubled, proved_of, with_client
from tests.engines.test_journal_kills import killed_everywhere
from tests.engines.test_journal_uploads import KEY, Journals
from tests.faults import Fuse
from tests.secagg.upload.cohorts import signed_batch


def test_leader_and_helpers_put_down_after_every_message_refuse_the_liar_and_sum_the_others(
    tmp_path: Path, monkeypatch
) -> None:
    """A helper that goes on computes answers for the batch that it is asked, and none for those in its log."""
    journals, computed = Journals(tmp_path, make=proved_of), []
    run = with_client(journals.run, 3, doubled())
    helped = FieldStreams.helped
    monkeypatch.setattr(FieldStreams, "helped", lambda *given: computed.append(given[5]) or helped(*given))
    n = run.parameters.clients

    def leader(call):
        with journals.leader() as each:
            return call(each)

    for client in range(n - 1):
        leader(lambda each, client=client: each.receive(client, run.report(client)))
    for _ in range(3):
        for peer, message in leader(lambda each: list(each.outbox)):
            answers = []
            for _ in range(2):
                with journals.helper(peer - n + 1) as helper:
                    answers.append(helper.receive(message))
            assert answers[0] == answers[1]
            leader(lambda each, peer=peer, answer=answers[0][0][1]: each.receive(peer, answer))
        leader(lambda each: each.end_step())
    total, survivors = leader(lambda each: each.result)
    assert survivors == (0, 1, 2, 4)
    assert np.array_equal(total.lift(), run.sum_over(survivors))
    assert len(computed) == 2 * 2 * (n - 1)  # two helpers, asked twice; nothing at a restart
    assert len(set(computed)) == 1


def test_a_client_sends_the_report_on_its_disk_where_another_witness_would_be_found_now(
    tmp_path: Path, monkeypatch
) -> None:
    run, told = proved_of(), []
    place = {"parameters": run.parameters, "index": 0, "identity": run.identities[0], "roster": run.roster}
    client = run.client(0)
    JournaledClient.create(tmp_path / "client", KEY, client, on_upload=told.append).close()
    with JournaledClient.resume(tmp_path / "client", KEY, on_upload=told.append, **place) as first:
        ((_, report),) = first.start()
    monkeypatch.setattr(Client, "_report", None)  # nothing is made again, on no BLAS
    with JournaledClient.resume(tmp_path / "client", KEY, on_upload=told.append, **place) as again:
        assert again.start() == [("server", report)]
    assert len(set(told)) == 1
    run.leader.receive(0, report)


@pytest.fixture
def fuse(monkeypatch) -> Fuse:
    return Fuse(monkeypatch, "os.fsync")


def asked_again(helper: JournaledHelper, run: Proved, batch: bytes) -> None:
    """Another query about the same reports, which no helper that answered one takes."""
    message = run.read(batch, messages.ProvedBatch)
    for part in (0, 1):
        with pytest.raises(RemoteProtocolError, match="wrong_part|out_of_order|session_over"):
            helper.receive(signed_batch(run, 1, msgspec.structs.replace(message, rho=b"r" * 32, part=part)))


@pytest.mark.ci
def test_a_helper_killed_at_every_wait_for_the_disk_answers_one_query(tmp_path: Path, fuse: Fuse) -> None:
    led: dict[Path, tuple[Journals, Leader, bytes]] = {}
    left: dict[Path, set[bytes]] = {}

    def begin(place: Path) -> None:
        journals = Journals(place, helpers=1, make=partial(proved_of, clients=3, min_survivors=3))
        leader = journals.fresh_leader()
        for index in range(journals.run.parameters.clients):
            leader.receive(index, journals.run.report(index))
        led[place], left[place] = (journals, leader, dict(leader.end_step())[3]), set()

    def act(place: Path) -> None:
        journals, leader, batch = led[place]
        with journals.helper(1, bound=False) as helper:
            if helper.step == "check":
                helper.bind(journals.panel)
            if left[place]:  # an answer has left, so this life knows of it
                asked_again(helper, journals.run, batch)
            if leader.step == "check":
                ((_, answer),) = helper.receive(batch)
                left[place].add(answer)
                asked_again(helper, journals.run, batch)
                leader.receive(3, answer)
                leader.end_step()
            ((_, reveal),) = helper.receive(dict(leader.outbox)[3])
        leader.receive(3, reveal)
        leader.end_step()
        assert np.array_equal(leader.result[0].lift(), journals.run.sum_over(leader.result[1]))

    assert killed_everywhere(fuse, tmp_path, begin, act) >= 8
    assert all(len(answers) == 1 for answers in left.values())


@pytest.mark.nightly
def test_a_leader_killed_at_every_wait_for_the_disk_asks_one_query_about_a_part(tmp_path: Path, fuse: Fuse) -> None:
    """The batch is on its way before the kill, or is made again: of every part helpers see the same bytes."""
    journals: dict[Path, Journals] = {}
    sent: dict[Path, set[bytes]] = {}

    def begin(place: Path) -> None:
        journals[place] = with_client_of(Journals(place, helpers=1, make=proved_of))

    def act(place: Path) -> None:
        made = journals[place]
        n = made.run.parameters.clients
        with made.leader() as leader, made.helper(1, bound=False) as helper:
            if helper.step == "check":
                helper.bind(made.panel)
            for index in filter(leader.awaits, range(n)):
                leader.receive(index, made.run.report(index))
            while leader.step not in ("done", "failed"):
                for peer, message in leader.outbox:
                    if messages.is_kind(message, messages.ProvedBatch):
                        sent.setdefault(place, set()).add(message)
                    ((_, answer),) = helper.receive(message)
                    leader.receive(peer, answer)
                leader.end_step()
            assert leader.result[1] == (0, 1, 2, 4, 5)

    assert killed_everywhere(fuse, tmp_path, begin, act) >= 20
    assert all(len(batches) == 1 for batches in sent.values())


def with_client_of(journals: Journals) -> Journals:
    """The run with a client that proves twice its sums."""
    with_client(journals.run, 3, doubled())
    return journals
