"""Whoever records all traffic and knows plan, roster and public keys must not be able to compute the sum.

The attack is the server's own arithmetic on what was recorded. Under version 1 it gave the exact sum, because the
unmask messages travelled in the clear; the control shows that it still does for whoever holds the session's key.
"""

from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from privstats.secagg import Parameters, Roster, kem, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import Channel, ClientSecrets
from privstats.secagg.interactive.dealing import Public, challenges_of, part
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import advert_leaf, context_of, transcript_of
from privstats.secagg.interactive.state import STEPS, ServerState
from privstats.secagg.interactive.unmasking import unmask
from privstats.secagg.keys import agree, derive
from privstats.secagg.prg import add_packed
from privstats.secagg.scalars import to_bytes
from privstats.secagg.transcript import MerkleTree
from tests.secagg.interactive.cohorts import Cohort
from tests.secagg.interactive.inside import inside

Traffic = list[tuple[int, bytes]]
Reader = Callable[[int, bytes, type], messages.Wire]


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


def in_the_clear(_: int, data: bytes, kind: type) -> messages.Wire:
    """What a message says to whoever holds no key."""
    untagged = kind in (messages.Open, messages.Advertise)
    return messages.decode(memoryview(data if untagged else data[: -wire.TAG_BYTES]), kind)


def sum_of(traffic: Traffic, parameters: Parameters, roster: Roster, read: Reader) -> NDArray[np.int64]:
    """The attack: the sum, from recorded messages alone."""

    def all_of(kind: type) -> dict[int, messages.Wire]:
        tag = kind.__struct_config__.tag
        return {client: read(client, data, kind) for client, data in traffic if data[2] == tag}

    opening, adverts = all_of(messages.Open)[0], all_of(messages.Advertise)
    graph = Graph(parameters, roster)
    context = context_of(graph, opening.session, opening.server_key, opening.kem_key)
    tree = MerkleTree({client: advert_leaf(advert) for client, advert in adverts.items()}, parameters.clients)
    uploads, total = all_of(messages.Mask), parameters.ring.zeros()
    for upload in uploads.values():
        add_packed(total, upload.vector)
    state = ServerState(bytearray(), opening.session, adverts=adverts, transcript=transcript_of(context, tree.root))
    checked = all_of(messages.Check)
    state.dealers = set(checked)
    for client, check in checked.items():
        above = [other for other in graph.neighbours(client) if other > client and other in checked]
        links = (part(check.links, place, wire.HASH_BYTES) for place in range(len(above)))
        state.links[client] = dict(zip(above, links, strict=True))
    for client, share in all_of(messages.Share).items():
        challenges = challenges_of(state.transcript, client, share.proofs[: wire.HASH_BYTES] + share.commitments)
        pair = b"".join(map(to_bytes, challenges))
        state.dealings[client] = Public(share.commitments, share.responses, pair, share.proofs)
    state.survivors, state.answers = set(uploads), all_of(messages.Unmask)
    unmask(total, state, graph)
    return total.lift()


def test_a_recorder_of_all_traffic_cannot_compute_the_sum(cohort: Cohort) -> None:
    traffic = recorded(cohort)
    with pytest.raises(wire.Refusal, match="malformed"):
        sum_of(traffic, cohort.parameters, cohort.roster, in_the_clear)


def test_the_attack_works_for_whoever_holds_the_servers_session_key(cohort: Cohort) -> None:
    """The control: nothing but that key stands between a recording and the sum, so the server wipes it at the end."""
    secret = bytes(inside(cohort.server).state.secret)
    private = X25519PrivateKey.from_private_bytes(derive(secret, "server-key"))
    encapsulated = kem.private_key(derive(secret, "server-kem", size=kem.SEED_BYTES))
    traffic, tag = recorded(cohort), messages.Advertise.__struct_config__.tag
    adverts = {client: in_the_clear(client, data, messages.Advertise) for client, data in traffic if data[2] == tag}

    def with_the_key(client: int, data: bytes, kind: type) -> messages.Wire:
        if kind in (messages.Open, messages.Advertise):
            return in_the_clear(client, data, kind)
        shared, ciphertext = agree(private, adverts[client].box_key), adverts[client].ciphertext
        both = kem.combined(shared, kem.decapsulate(encapsulated, ciphertext), ciphertext)
        channel = Channel(both, session=adverts[client].session, client=client)
        return messages.decode(channel.open(memoryview(data)), kind)

    total = sum_of(traffic, cohort.parameters, cohort.roster, with_the_key)
    assert np.array_equal(total, cohort.sum_over((0, 1, 2, 3, 4)))
    assert inside(cohort.server).state.secret == bytearray()
    assert not hasattr(cohort.server, "_private")


def test_no_key_and_no_share_is_anywhere_in_the_traffic(cohort: Cohort) -> None:
    """Every self-mask key and share, searched for in everything that was sent."""
    graph = inside(cohort.server).graph
    material = [
        ClientSecrets(bytes(inside(client).state.root), graph, index) for index, client in enumerate(cohort.clients)
    ]
    traffic = b"".join(data for _, data in recorded(cohort))
    transcript, secrets = inside(cohort.clients[0]).state.transcript, []
    for client, each in enumerate(material):
        holders = graph.neighbours(client)
        shares = each.deal(transcript, client, holders, cohort.parameters.threshold).shares
        secrets += [part(shares, place, messages.SECRET_BYTES) for place in range(2 * len(holders))]
        secrets.append(each.revealed(transcript))
    assert len(secrets) == 6 + 60
    assert not any(secret in traffic for secret in secrets)


@pytest.mark.parametrize(
    "kind",
    [
        messages.Adverts,
        messages.Share,
        messages.Deliver,
        messages.Check,
        messages.Survivors,
        messages.Agree,
        messages.Agreement,
    ],
)
def test_every_sealed_message_but_the_masked_vector_is_unreadable(cohort: Cohort, kind: type) -> None:
    tag = kind.__struct_config__.tag
    heard = [(client, data) for client, data in recorded(cohort) if data[2] == tag]
    assert heard
    for client, data in heard:
        with pytest.raises(wire.Refusal, match="malformed"):
            in_the_clear(client, data, kind)
