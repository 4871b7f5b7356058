"""What is known to be wrong in other implementations of masking, tried against this one.

Read in the source of Flower 1.41: pair seeds of at most 28 bits, clients that answer for a peer listed both alive and
dead, and an abort on the first dropout before masking. Also: a server that keeps all vectors until the end.
"""

from __future__ import annotations

import tracemalloc

import numpy as np

from privstats.encoding import Ring
from privstats.engines.loopback import run
from privstats.secagg.interactive import messages
from privstats.secagg.prg import add_masks
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until, read
from tests.secagg.interactive.inside import inside


def test_pair_seeds_carry_256_bits_and_all_of_them_matter() -> None:
    cohort = cohort_of(24, 20, 2)
    play_until(cohort, "mask")
    seeds = [
        inside(client).secrets().pair_seed(client.index, advert, inside(client).state.transcript)
        for client in cohort.clients
        for advert in inside(client).state.adverts.values()
    ]
    assert len(set(seeds)) == 24 * 23 // 2
    bits = np.unpackbits(np.array([list(seed) for seed in set(seeds)], np.uint8), axis=1)
    assert bits.shape[1] == 256
    assert bits.mean(axis=0).min() > 0.3
    assert bits.mean(axis=0).max() < 0.7
    ring, streams = Ring(((4, 64),)), set()
    for bit in range(256):
        vector = ring.zeros()
        add_masks(vector, plus=[bytes(b ^ (1 << bit % 8 if bit // 8 == i else 0) for i, b in enumerate(seeds[0]))])
        streams.add(vector.pack())
    assert len(streams) == 256


def test_nobody_can_be_listed_both_alive_and_dead(cohort: Cohort) -> None:
    """The survivor list is a bitmap: a client is on it or not, and shares of the other kind never leave."""
    outbox = play_until(cohort, "unmask", {"mask": {5}})
    held = dict(inside(cohort.clients[0]).state.held)
    answer = read(cohort, 0, cohort.clients[0].receive(outbox[0])[0][1], messages.Unmask)
    for place, owner in enumerate(answer.owners):
        share = answer.shares[32 * place :][:32]
        assert share == (held[owner][32:] if owner == 5 else held[owner][:32])


def test_a_dropout_before_masking_costs_one_client_and_not_the_session(cohort: Cohort) -> None:
    outcome = run(cohort.server, cohort.clients, dropouts={"share": {2}})
    assert outcome.survivors == (0, 1, 3, 4, 5)
    assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))


def test_the_servers_memory_does_not_grow_with_the_number_of_vectors() -> None:
    """Beyond the upload in its hands, it holds one sum: less than two vectors, however many arrive."""
    ring = Ring(((400_000, 32),))
    cohort = cohort_of(10, 10, 0, ring=ring)
    outbox = play_until(cohort, "mask")
    uploads = [cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()]
    tracemalloc.start()
    for client, upload in enumerate(uploads):
        cohort.server.receive(client, upload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * ring.wire_bytes
