"""Sessions with proofs through restarts: one rho, one answer and one report of everybody, also put down at any time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privstats.engines.journal import JournaledClient
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.field_streams import FieldStreams
from privstats.secagg.upload.proof.field import P
from tests.engines.test_journal_uploads import KEY, Journals
from tests.secagg.upload.proved import lying, proved_of, with_client


def test_leader_and_helpers_put_down_after_every_message_refuse_the_liar_and_sum_the_others(
    tmp_path: Path, monkeypatch
) -> None:
    """A helper that goes on computes answers for the batch that it is asked, and none for those in its log."""
    journals, computed = Journals(tmp_path, make=proved_of), []
    run = with_client(journals.run, 3, lying(lambda x, w: (x * np.uint64(2) % np.uint64(P), w)))
    helped = FieldStreams.helped
    monkeypatch.setattr(FieldStreams, "helped", lambda *given: computed.append(given[3]) or helped(*given))
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
