"""What is known to be wrong in other implementations of masking, tried against this one.

Read in the source of Flower 1.41: pair seeds of at most 28 bits, and clients that answer for a peer listed both alive
and dead. Also: a server that keeps all vectors until the end.
"""

import tracemalloc

import numpy as np

from privstats.encoding import Ring
from privstats.secagg.prg import add_masks
from tests.secagg.interactive.cohorts import cohort_of, play_until
from tests.secagg.interactive.inside import inside


def test_pair_seeds_carry_256_bits_and_all_of_them_matter() -> None:
    cohort = cohort_of(24, 20, 2)
    play_until(cohort, "mask")
    seeds = [
        seed
        for client in cohort.clients
        for _, seed in inside(client).secrets().pair_seeds(set(range(24)) - {client.index}, inside(client).state)
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
