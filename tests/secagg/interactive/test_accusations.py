"""A lying client whose boxes open nowhere: honest clients accuse nobody falsely, and the server names the suspect.

Under version 1 one such client made every honest one end the session and call the honest server a liar, and nobody
learned whose boxes were bad. Who lies, the owner of a box or whoever says that it does not open, nobody can prove.
"""

import msgspec
import numpy as np
import pytest

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.blame import signers
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, forge, play_until, read, sparse_cohort
from tests.secagg.interactive.inside import inside

LIAR = 5


def spoilt(cohort: Cohort, dropouts: dict | None = None) -> dict[int, bytes]:
    """Everybody shares honestly but the liar, whose boxes are garbage; the messages that open checking."""
    outbox = play_until(cohort, "share", dropouts)
    ((_, data),) = cohort.clients[LIAR].receive(outbox[LIAR])
    message = read(cohort, LIAR, data, messages.Share)
    garbage = msgspec.structs.replace(message, boxes=b"!" * len(message.boxes))
    cohort.server.receive(LIAR, forge(cohort, LIAR, garbage))
    return answered(cohort, {client: data for client, data in outbox.items() if client != LIAR})


def answered(cohort: Cohort, outbox: dict[int, bytes]) -> dict[int, bytes]:
    step, following = cohort.server.step, []
    for client, message in outbox.items():
        following = list(cohort.server.receive(client, cohort.clients[client].receive(message)[0][1])) or following
    return dict(following if cohort.server.step != step else cohort.server.end_step())


@pytest.mark.parametrize(
    ("min_survivors", "dropouts"),
    [(6, {}), (4, {"advertise": {0, 1}})],
    ids=["every client is needed", "all that are left are needed"],
)
def test_a_liar_cannot_make_honest_clients_accuse_an_honest_server(min_survivors: int, dropouts: dict) -> None:
    cohort = cohort_of(6, min_survivors, 1)
    outbox = spoilt(cohort, dropouts)
    with pytest.raises(AggregationError, match=f"client {LIAR} may have broken the protocol, which is unproven") as end:
        answered(cohort, outbox)
    assert (end.value.step, end.value.code) == ("check", "unproven_boxes")
    accused = [fault for fault in cohort.server.faults if fault.code == "accused"]
    assert [(fault.peer, fault.step, fault.proven) for fault in accused] == [(LIAR, "share", False)]
    honest = [str(client) for client in sorted(outbox) if client != LIAR]
    assert f"by clients {', '.join(honest)};" in str(accused[0])
    for client, message in cohort.server.abandon():
        machine = cohort.clients[client]
        assert [(fault.peer, fault.proven) for fault in machine.faults] == (
            [(LIAR, False)] if str(client) in honest else []
        )
        if client in outbox:
            machine.receive(message)
            assert (machine.step, machine.ended) == ("failed", "unproven_boxes")


def test_where_others_suffice_the_liar_is_named_and_the_sum_is_exact(cohort: Cohort) -> None:
    total, survivors = finish(cohort, spoilt(cohort))
    assert survivors == (0, 1, 2, 3, 4)
    assert cohort.clients[LIAR].upload == b""
    assert np.array_equal(total, cohort.sum_over(survivors))
    assert [(fault.peer, fault.code, fault.proven) for fault in cohort.server.faults] == [(LIAR, "accused", False)]


@pytest.mark.parametrize("owners", [(0,), (0, 1, 2), (0, 1, 2, 3, 4)])
def test_a_false_accuser_stops_nobody_but_itself(cohort: Cohort, owners: tuple[int, ...]) -> None:
    outbox = play_until(cohort, "check")
    ((_, data),) = cohort.clients[LIAR].receive(outbox.pop(LIAR))
    accusing = msgspec.structs.replace(read(cohort, LIAR, data, messages.Check), failed=owners)
    cohort.server.receive(LIAR, forge(cohort, LIAR, accusing))
    outbox = answered(cohort, outbox)
    assert (LIAR in outbox) == (len(owners) == 1)
    outbox.pop(LIAR, None)
    total, survivors = finish(cohort, outbox)
    assert survivors == (0, 1, 2, 3, 4)
    assert np.array_equal(total, cohort.sum_over(survivors))
    *disputed, accuser = cohort.server.faults
    assert [(fault.peer, fault.code, fault.proven) for fault in disputed] == [
        (each, "accused", False) for each in owners
    ]
    assert all(f"by clients {LIAR};" in str(fault) for fault in disputed)
    assert (accuser.peer, accuser.code, accuser.proven) == (LIAR, "accuser", False)
    assert f"the shares of clients {', '.join(map(str, owners))};" in str(accuser)


@pytest.mark.parametrize("failed", [(LIAR,), (0, 0), (1, 0), (6,)])
def test_nobody_can_accuse_whoever_sent_it_no_box(cohort: Cohort, failed: tuple[int, ...]) -> None:
    outbox = play_until(cohort, "check")
    ((_, data),) = cohort.clients[LIAR].receive(outbox.pop(LIAR))
    message = msgspec.structs.replace(read(cohort, LIAR, data, messages.Check), failed=failed)
    with pytest.raises(RemoteProtocolError, match="strangers") as refusal:
        cohort.server.receive(LIAR, forge(cohort, LIAR, message))
    assert refusal.value.proven
    total, survivors = finish(cohort, answered(cohort, outbox))
    assert survivors == (0, 1, 2, 3, 4)
    assert np.array_equal(total, cohort.sum_over(survivors))


def test_nobody_can_accuse_a_client_that_did_not_share(cohort: Cohort) -> None:
    outbox = play_until(cohort, "check", {"share": {0}})
    ((_, data),) = cohort.clients[LIAR].receive(outbox[LIAR])
    message = msgspec.structs.replace(read(cohort, LIAR, data, messages.Check), failed=(0,))
    with pytest.raises(RemoteProtocolError, match="strangers"):
        cohort.server.receive(LIAR, forge(cohort, LIAR, message))


def test_shares_of_a_box_that_was_called_unusable_are_refused(cohort: Cohort) -> None:
    """Whoever said so in its check message has shown itself a liar."""
    outbox = play_until(cohort, "check")
    ((_, data),) = cohort.clients[LIAR].receive(outbox.pop(LIAR))
    message = read(cohort, LIAR, data, messages.Check)
    cohort.server.receive(LIAR, forge(cohort, LIAR, msgspec.structs.replace(message, failed=(0,))))
    outbox = answered(cohort, answered(cohort, answered(cohort, outbox)))
    with pytest.raises(RemoteProtocolError, match="strangers") as refusal:
        cohort.server.receive(LIAR, cohort.clients[LIAR].receive(outbox[LIAR])[0][1])
    assert (refusal.value.peer, refusal.value.proven) == (LIAR, True)


def test_accusations_survive_a_restart_of_the_server(cohort: Cohort) -> None:
    outbox = answered(cohort, spoilt(cohort))
    sealed = cohort.server.export(b"k" * 32)
    cohort.server = type(cohort.server).resume(sealed, b"k" * 32, **cohort.place())
    assert [fault.peer for fault in cohort.server.faults] == [LIAR]
    total, survivors = finish(cohort, outbox)
    assert np.array_equal(total, cohort.sum_over(survivors))


def test_in_a_sparse_graph_a_client_needs_a_quorum_of_neighbours_that_proved_themselves() -> None:
    """Enough survivors overall are not enough: those around it are who would lift its masks."""
    cohort = sparse_cohort()
    graph = Graph(cohort.parameters, cohort.roster)
    around = graph.neighbours(0)
    assert signers(range(20), {0: around[:2]}, graph) == list(range(20))
    assert signers(range(20), {0: around[:3]}, graph) == list(range(1, 20))
    outbox = play_until(cohort, "check")
    deliver = read(cohort, 0, outbox[0], messages.Deliver)
    spoiled = msgspec.structs.replace(
        deliver, boxes=bytes(3 * messages.BOX_BYTES) + deliver.boxes[3 * messages.BOX_BYTES :]
    )
    outbox[0] = inside(cohort.server).send(0, spoiled)[1]
    failed = answered(cohort, outbox)
    assert 0 not in failed
    everybody = messages.Dealers(inside(cohort.server).state.session, to_bitmap(range(20), 20), ())
    with pytest.raises(RemoteProtocolError, match="too_few_neighbours"):
        cohort.clients[0].receive(inside(cohort.server).send(0, everybody)[1])
    assert cohort.clients[0].upload == b""
