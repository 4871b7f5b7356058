"""Whoever records all traffic and knows plan, roster and public keys must not be able to compute the sum.

The attack is the server's own arithmetic on what was recorded. Under version 1 it gave the exact sum, because the
unmask messages travelled in the clear; the control shows that it still does for whoever holds the session's key.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from privstats.secagg import Parameters, Roster
from privstats.secagg import messages as wire
from privstats.secagg.channel import Channel
from privstats.secagg.graph import Graph
from privstats.secagg.keys import agree
from privstats.secagg.material import ClientSecrets
from privstats.secagg.state import ServerState
from privstats.secagg.statements import context_of, transcript_of
from privstats.secagg.steps import STEPS
from privstats.secagg.sums import add_packed
from privstats.secagg.transcript import MerkleTree, advert_leaf
from privstats.secagg.unmasking import unmask
from tests.secagg.cohorts import Cohort

Traffic = list[tuple[int, bytes]]
Reader = Callable[[int, bytes, type], wire.Wire]


def recorded(cohort: Cohort) -> Traffic:
    """Everything that both sides sent in a session from which client 5 vanishes before masking."""
    traffic, outbox, gone = [], list(cohort.server.start()), set()
    for step in STEPS:
        gone |= {5} if step == "mask" else set()
        traffic += outbox
        following: list[tuple[int, bytes]] = []
        for client, message in outbox:
            if client not in gone:
                ((_, answer),) = cohort.clients[client].receive(message)
                traffic.append((client, answer))
                following = list(cohort.server.receive(client, answer)) or following
        outbox = following if cohort.server.step != step else list(cohort.server.end_step())
    return traffic


def in_the_clear(_: int, data: bytes, kind: type) -> wire.Wire:
    """What a message says to whoever holds no key."""
    untagged = kind in (wire.Open, wire.Advertise)
    return wire.decode(memoryview(data if untagged else data[: -wire.TAG_BYTES]), kind)


def sum_of(traffic: Traffic, parameters: Parameters, roster: Roster, read: Reader) -> NDArray[np.int64]:
    """The attack: the sum, from recorded messages alone."""

    def all_of(kind: type) -> dict[int, wire.Wire]:
        tag = kind.__struct_config__.tag
        return {client: read(client, data, kind) for client, data in traffic if data[2] == tag}

    opening, adverts = all_of(wire.Open)[0], all_of(wire.Advertise)
    graph = Graph(parameters, roster)
    context = context_of(graph, opening.session, opening.server_key)
    tree = MerkleTree({client: advert_leaf(advert) for client, advert in adverts.items()}, parameters.clients)
    uploads, total = all_of(wire.Mask), parameters.ring.zeros()
    for upload in uploads.values():
        add_packed(total, upload.vector)
    state = ServerState(bytearray(), opening.session, adverts=adverts, transcript=transcript_of(context, tree.root))
    state.sharers = {client for client, data in traffic if data[2] == wire.Share.__struct_config__.tag}
    state.survivors, state.answers = set(uploads), all_of(wire.Unmask)
    unmask(total, state, graph)
    return total.lift()


def test_a_recorder_of_all_traffic_cannot_compute_the_sum(cohort: Cohort) -> None:
    traffic = recorded(cohort)
    with pytest.raises(wire.Refusal, match="malformed"):
        sum_of(traffic, cohort.parameters, cohort.roster, in_the_clear)


def test_the_attack_works_for_whoever_holds_the_servers_session_key(cohort: Cohort) -> None:
    """The control: nothing but that key stands between a recording and the sum, so the server wipes it at the end."""
    secret = bytes(cohort.server._state.secret)
    traffic = recorded(cohort)
    adverts = {client: in_the_clear(client, data, wire.Advertise) for client, data in traffic if data[2] == 1}

    def with_the_key(client: int, data: bytes, kind: type) -> wire.Wire:
        if kind in (wire.Open, wire.Advertise):
            return in_the_clear(client, data, kind)
        shared = agree(X25519PrivateKey.from_private_bytes(secret), adverts[client].box_key)
        channel = Channel(shared, session=adverts[client].session, client=client)
        return wire.decode(channel.open(memoryview(data)), kind)

    total = sum_of(traffic, cohort.parameters, cohort.roster, with_the_key)
    assert np.array_equal(total, cohort.sum_over((0, 1, 2, 3, 4)))
    assert cohort.server._state.secret == bytearray()
    assert not hasattr(cohort.server, "_private")


def test_no_seed_and_no_share_is_anywhere_in_the_traffic(cohort: Cohort) -> None:
    """Every seed, mask key and share, searched for in everything that was sent."""
    material = [ClientSecrets(bytes(client._state.root)) for client in cohort.clients]
    shares = [each.shares(threshold=cohort.parameters.threshold, holders=5) for each in material]
    secrets = [secret for each in material for secret in (each.seed, each._mask_key)]
    secrets += [half for each in shares for row in each for half in (row[:32].tobytes(), row[32:].tobytes())]
    traffic = b"".join(data for _, data in recorded(cohort))
    assert len(secrets) == 12 + 60
    assert not any(secret in traffic for secret in secrets)


@pytest.mark.parametrize("kind", [wire.Adverts, wire.Share, wire.Deliver, wire.Survivors, wire.Agree, wire.Agreement])
def test_every_sealed_message_but_the_masked_vector_is_unreadable(cohort: Cohort, kind: type) -> None:
    tag = kind.__struct_config__.tag
    messages = [(client, data) for client, data in recorded(cohort) if data[2] == tag]
    assert messages
    for client, data in messages:
        with pytest.raises(wire.Refusal, match="malformed"):
            in_the_clear(client, data, kind)
