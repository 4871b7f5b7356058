"""What proves that an upload of the interactive protocol is in no sum, and the lies that do not."""

import os
from dataclasses import replace

import pytest

from privstats.engines import loopback
from privstats.engines.faults import Fault
from privstats.engines.journal import JournaledClient
from privstats.engines.journal.client_file import forget_answer, receipt_and_agreement
from privstats.errors import LocalProtocolError
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.interactive.messages import survivors_statement
from privstats.secagg.interactive.non_inclusion import Receipt, prove_excluded
from privstats.secagg.masking_facts import RECORDED
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import RING, sparse_cohort

CLIENTS, COLLUDERS = 6, 1
PARTIES = [Identity(bytes([i + 1]) * 32) for i in range(CLIENTS)]
SERVER = Identity(b"\x77" * 32)
ROSTER = Roster([each.public for each in PARTIES], server=SERVER.public, run=b"one")
LOST = (Fault("mask", 0, "up", "drop"),)


def parameters(**changes) -> Parameters:
    usual = {"clients": CLIENTS, "min_survivors": 4, "colluders": COLLUDERS, "ring": RING, "plan_digest": bytes(32)}
    return Parameters.solve(**{**usual, **changes})


def played(faults=LOST, wrap=lambda _, client: client):
    """A session's clients after its end."""
    rules = parameters()
    clients = [
        wrap(i, Client(rules, RING.zeros(), index=i, identity=each, roster=ROSTER)) for i, each in enumerate(PARTIES)
    ]
    loopback.run(Server(rules, roster=ROSTER, identity=SERVER), clients, faults=faults)
    return clients


def test_every_client_that_was_in_hands_out_the_same_proof() -> None:
    clients = played()
    upload = Receipt.decode(clients[0].receipt).upload
    assert upload == clients[0].upload
    for client in clients[1:]:
        assert len(client.agreement) >= parameters().threshold
        assert prove_excluded(parameters(), clients[0].receipt, client.agreement, roster=ROSTER) == upload
        assert Receipt.decode(client.receipt).index == client.index


def test_before_the_end_nothing_is_handed_out() -> None:
    client = Client(parameters(), RING.zeros(), index=0, identity=PARTIES[0], roster=ROSTER)
    assert (client.agreement, client.receipt) == ({}, b"")
    client.discard()
    assert (client.agreement, client.receipt) == ({}, b"")


def test_lists_that_are_forged_long_after_a_session_are_believed() -> None:
    """Who breaks Ed25519 later signs as these parties do, and no time limit refuses it: a plan's facts say so."""
    (receipt,) = (Receipt.decode(client.receipt) for client in played(faults=())[:1])
    bitmap = to_bitmap(range(1, CLIENTS), CLIENTS)
    statement = survivors_statement(receipt.transcript, bitmap)
    forged = {signer: bitmap + PARTIES[signer].sign(statement) for signer in range(1, CLIENTS)}
    assert prove_excluded(parameters(), receipt.encode(), forged, roster=ROSTER) == receipt.upload
    assert "a forged proof that an upload is in no sum, would then be believed" in RECORDED


def test_attack_colluders_sign_a_list_without_a_client_that_is_in_the_sum() -> None:
    """A party that believed fewer than t signatures would send again what is counted; honest clients sign one list."""
    clients = played(faults=())
    mine = clients[0].receipt
    bitmap = to_bitmap(range(1, CLIENTS), CLIENTS)
    lie = PARTIES[1].sign(survivors_statement(Receipt.decode(mine).transcript, bitmap))
    words = {1: bitmap + lie}
    with pytest.raises(LocalProtocolError, match="1 clients have signed 1 lists of this session, and 4 on one list"):
        prove_excluded(parameters(), mine, words, roster=ROSTER)
    with pytest.raises(LocalProtocolError, match="have signed 2 lists"):
        prove_excluded(parameters(), mine, {**clients[2].agreement, **words}, roster=ROSTER)
    trusting = parameters()
    object.__setattr__(trusting, "threshold", COLLUDERS)
    assert prove_excluded(trusting, mine, words, roster=ROSTER) == clients[0].upload


def test_attack_a_list_of_another_session_of_the_same_run() -> None:
    """A server that opens two sessions shows a client of one the list of the other, which lacks it."""
    sent, other = played(faults=())[0], played()[1]
    with pytest.raises(LocalProtocolError, match="client 1 is not its signed list"):
        prove_excluded(parameters(), sent.receipt, other.agreement, roster=ROSTER)


def test_on_a_random_graph_a_list_proves_it_with_the_signatures_of_more_than_half() -> None:
    cohort = sparse_cohort()
    assert loopback.run(cohort.server, cohort.clients, faults=LOST).survivors == tuple(range(1, 20))
    lost, agreement = cohort.clients[0], cohort.clients[11].agreement
    assert len(agreement) == cohort.parameters.signatures == 11
    proven = prove_excluded(cohort.parameters, lost.receipt, agreement, roster=cohort.roster)
    assert proven == lost.upload
    receipt = Receipt.decode(lost.receipt, complete=False)
    for other in (lost.receipt[:68], replace(receipt, place=bytes(64)).encode()):  # an older rule, another committee
        with pytest.raises(LocalProtocolError, match="a receipt of this protocol has 132|under other parameters"):
            prove_excluded(cohort.parameters, other, agreement, roster=cohort.roster)
    fewer = dict(sorted(agreement.items())[:10])
    with pytest.raises(LocalProtocolError, match="10 clients have signed 1 lists of this session, and 11 on one list"):
        prove_excluded(cohort.parameters, lost.receipt, fewer, roster=cohort.roster)


def test_a_client_that_ended_on_its_disk_still_has_both(tmp_path) -> None:
    key = os.urandom(32)

    def journaled(index: int, client: Client) -> JournaledClient:
        return JournaledClient.create(tmp_path / str(index), key, client)

    clients = played(wrap=journaled)
    assert clients[1].agreement
    receipt, agreement = clients[0].receipt, clients[1].agreement
    for client in clients:
        client.close()
    places = {"parameters": parameters(), "roster": ROSTER}
    with JournaledClient.resume(tmp_path / "1", key, index=1, identity=PARTIES[1], **places) as again:
        assert (again.agreement, again.receipt) == (agreement, clients[1].receipt)
        again.discard()
    assert receipt_and_agreement(tmp_path / "1", key)[1] == agreement
    forget_answer(tmp_path / "2", key)
    assert receipt_and_agreement(tmp_path / "2", key)[1] == clients[2].agreement
    assert receipt_and_agreement(tmp_path / "0", key)[0] == receipt
    assert prove_excluded(parameters(), receipt, agreement, roster=ROSTER) == clients[0].upload
