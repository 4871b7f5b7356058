"""A server that repeats its session name and key on a sparse graph, with advertisements of clients that are long gone.

Clients notice a phantom only among their neighbours, so several of them, far apart, stay below what each client counts.
The names that a list needs beyond ``min_survivors`` cover them, and a run name that is never repeated lets none in.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import Client, Parameters, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import self_stream
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.prg import add_masks, reduce
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import PLAN, RING, Cohort, nothing, stream
from tests.secagg.interactive.inside import inside

PARAMETERS = Parameters(40, 4, 30, 0, 6, RING, PLAN)


def roster_of(cohort: Cohort, counter: int) -> Roster:
    return Roster.numbered(cohort.roster.publics, server=cohort.aggregator.public, label="ward", counter=counter)


def machines(cohort: Cohort, roster: Roster, label: str) -> tuple[Server, list[Client]]:
    """Fresh clients, and a server that draws the same session name and key as ever."""
    clients = [cohort.client(i, label=label, roster=roster) for i in range(PARAMETERS.clients)]
    return Server(**cohort.place() | {"roster": roster}, entropy=stream("repeating")), clients


def far_apart(graph: Graph, count: int) -> list[int]:
    """Clients of which nobody has two as neighbours."""
    chosen: list[int] = []
    for client in range(graph.parameters.clients):
        around = {client, *graph.neighbours(client)}
        if all(around.isdisjoint((other, *graph.neighbours(other))) for other in chosen):
            chosen.append(client)
    return chosen[:count]


def sum_beside_phantoms(cohort: Cohort, first: Roster, second: Roster) -> tuple[NDArray[np.int64], list[int]]:
    """The attack: what the server has in the end, and whose vectors are in it."""
    server, clients = machines(cohort, first, "first")
    phantoms = far_apart(inside(server).graph, 5)
    opening = dict(server.start())
    old = {phantom: clients[phantom].receive(opening[phantom])[0][1] for phantom in phantoms}

    server, clients = machines(cohort, second, "second")
    honest = [client for client in range(PARAMETERS.clients) if client not in phantoms]
    state, outbox = inside(server).state, dict(server.start())
    for phantom in phantoms:
        server.receive(phantom, old[phantom])
    outbox = step(server, clients, outbox, honest)
    for phantom in phantoms:
        state.dealings[phantom] = nothing(PARAMETERS.neighbours)
        state.expected.discard(phantom)
    outbox = step(server, clients, outbox, honest)
    for client in honest:
        server.receive(client, clients[client].receive(outbox[client])[0][1])
    state.listed = to_bitmap(range(PARAMETERS.clients), PARAMETERS.clients)
    outbox = dict(inside(server).send(client, messages.Dealers(state.session, state.listed, ())) for client in honest)
    state.step, state.expected = "mask", set(honest)
    for client in honest:
        server.receive(client, clients[client].receive(outbox[client])[0][1])
    state.listed = to_bitmap(range(PARAMETERS.clients), PARAMETERS.clients)
    outbox = dict(inside(server).send(client, messages.Survivors(state.session, state.listed)) for client in honest)
    state.step, state.expected = "agree", set(honest)
    outbox = step(server, clients, outbox, honest)
    answers = {client: clients[client].receive(outbox[client])[0][1] for client in honest}
    seeds = [read(server, client, answers[client]).self_key for client in honest]
    total = inside(server).sum
    assert total is not None
    add_masks(total, minus=[self_stream(seed, state.transcript) for seed in seeds])
    reduce(total)
    return total.lift(), honest


def step(server: Server, clients: list[Client], outbox: dict[int, bytes], honest: list[int]) -> dict[int, bytes]:
    """Every honest client answers; the messages that open the next step."""
    current, following = server.step, []
    for client in honest:
        following = list(server.receive(client, clients[client].receive(outbox[client])[0][1])) or following
    return dict(following if server.step != current else server.end_step())


def read(server: Server, client: int, data: bytes) -> messages.Unmask:
    return messages.decode(inside(server).channel(client).open(memoryview(data)), messages.Unmask)


def test_a_repeated_session_under_the_next_counter_gives_nothing() -> None:
    """The old advertisements are signed for another run."""
    cohort = Cohort(PARAMETERS)
    with pytest.raises(RemoteProtocolError, match="bad_signature"):
        sum_beside_phantoms(cohort, roster_of(cohort, 1), roster_of(cohort, 2))


def test_a_repeated_session_under_a_repeated_counter_gives_no_sum_over_fewer_than_promised() -> None:
    """To clients that forget counters, five stand in; a list needs as many names more as may be unproven."""
    cohort = Cohort(PARAMETERS)
    total, honest = sum_beside_phantoms(cohort, roster_of(cohort, 1), roster_of(cohort, 1))
    assert PARAMETERS.min_survivors <= len(honest) < PARAMETERS.min_listed
    assert np.array_equal(total, cohort.sum_over(tuple(honest)))


@pytest.mark.parametrize("run", [b"", b"monday"])
def test_a_sparse_graph_accepts_no_roster_whose_run_name_a_party_could_choose(run: bytes) -> None:
    cohort = Cohort(PARAMETERS)
    roster = Roster(cohort.roster.publics, server=cohort.aggregator.public, run=run)
    with pytest.raises(LocalProtocolError, match="Roster.numbered"):
        cohort.client(0, roster=roster)
    with pytest.raises(LocalProtocolError, match="Roster.numbered"):
        Server(PARAMETERS, roster=roster, identity=cohort.aggregator)
    with pytest.raises(LocalProtocolError, match="Roster.numbered"):
        cohort.client(0, roster=roster.of_round(3))
    for fixed in (roster_of(cohort, 0), roster_of(cohort, 0).of_round(3)):
        assert machines(cohort, fixed, "numbered")
