"""Whoever records all traffic and knows plan, roster and public keys must not be able to compute the sum.

The attack is the server's own arithmetic on what was recorded. Under version 1 it gave the exact sum, because the
unmask messages travelled in the clear; the control shows that it still does for whoever holds the session's key.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from privstats.secagg import Parameters, Roster
from privstats.secagg import messages as wire
from privstats.secagg.channel import Channel
from privstats.secagg.graph import Graph
from privstats.secagg.keys import agree
from privstats.secagg.state import ServerState
from privstats.secagg.statements import context_of, transcript_of
from privstats.secagg.steps import STEPS
from privstats.secagg.sums import add_packed
from privstats.secagg.transcript import MerkleTree, advert_leaf
from privstats.secagg.unmasking import unmask
from tests.secagg.cohorts import Cohort, cohort_of

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
