"""A server that repeats its session name and key, and shows an advertisement of a client that is long gone.

The old signature is valid. Without a proof of taking part *now*, the phantom would count as a survivor and stand in
for an honest one.
"""

import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg import Client, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import Cohort, cohort_of, nothing, stream
from tests.secagg.interactive.inside import inside

PHANTOM = 5


def repeated(cohort: Cohort, label: str, run: bytes = b"") -> tuple[Server, list[Client]]:
    """The cohort's clients afresh, and a server that draws the same session name and key as ever."""
    roster = Roster(cohort.roster.publics, server=cohort.aggregator.public, run=run)
    clients = [cohort.client(i, label=label, roster=roster) for i in range(cohort.parameters.clients)]
    return Server(**cohort.place() | {"roster": roster}, entropy=stream("repeating server")), clients


def advertised(server: Server, clients: list[Client], phantom: bytes) -> dict[int, bytes]:
    """Everybody but the phantom's client advertises; the phantom's old message takes its place."""
    outbox = dict(server.start())
    for index, client in enumerate(clients):
        message = phantom if index == PHANTOM else client.receive(outbox[index])[0][1]
        server.receive(index, message)
    return dict(server.end_step())


def test_a_phantom_is_not_counted_among_the_survivors() -> None:
    cohort = cohort_of(min_survivors=6, colluders=0)
    server, clients = repeated(cohort, "first")
    old = clients[PHANTOM].receive(dict(server.start())[PHANTOM])[0][1]

    server, clients = repeated(cohort, "second")
    outbox = advertised(server, clients, old)  # the honest server accepts it too: its signature is good
    state = inside(server).state
    state.dealings[PHANTOM] = nothing(5)  # nobody knows the old box key any more
    state.expected.discard(PHANTOM)
    for index in range(PHANTOM):
        server.receive(index, clients[index].receive(outbox[index])[0][1])
    outbox = dict(server.end_step())
    for index in range(PHANTOM):
        clients[index].receive(outbox[index])
        assert [fault.code for fault in clients[index].faults] == ["bad_box"]
        clients[index].receive(
            inside(server).send(index, messages.Dealers(state.session, to_bitmap(range(6), 6), ()))[1]
        )
    everybody = messages.Survivors(state.session, to_bitmap(range(6), 6))
    for index in range(PHANTOM):
        with pytest.raises(RemoteProtocolError, match="unproven_survivors.*clients .5. did not prove"):
            clients[index].receive(inside(server).send(index, everybody)[1])


def test_an_advertisement_of_another_run_is_refused_by_everyone() -> None:
    cohort = cohort_of(min_survivors=6, colluders=0)
    server, clients = repeated(cohort, "first", run=b"monday")
    old = clients[PHANTOM].receive(dict(server.start())[PHANTOM])[0][1]
    server, clients = repeated(cohort, "second", run=b"tuesday")
    with pytest.raises(RemoteProtocolError, match="bad_signature"):
        advertised(server, clients, old)
