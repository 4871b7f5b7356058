"""Masks on packed vectors are masks on vectors, packed: for every width, tile by tile, on any number of threads."""

import hashlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.secagg.prg import TILE, add_masks, add_packed
from privstats.secagg.upload.masking_scheme import add_masks_packed, masked_tiles

SEEDS = [hashlib.sha256(bytes([i])).digest() for i in range(5)]
LARGE = Ring(((TILE + 17, 32), (3, 64), (2 * TILE + 1, 20), (TILE, 33)))
segments = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 64)), min_size=1, max_size=4)


def values(ring: Ring) -> np.ndarray:
    return np.arange(ring.size) % 7 - 3


def check(ring: Ring, seeds: list[bytes], threads: int = 1) -> None:
    vector, expected = ring.encode(values(ring)), ring.encode(values(ring))
    add_masks(expected, minus=seeds)
    body = b"".join(bytes(piece) for piece in masked_tiles(vector, minus=seeds, threads=threads))
    assert body == expected.pack()
    assert vector.pack() == ring.encode(values(ring)).pack()
    packed = bytearray(body)
    add_masks_packed(ring, memoryview(packed), plus=seeds, threads=threads)
    assert bytes(packed) == vector.pack()


@given(segments.map(tuple).map(Ring), st.lists(st.sampled_from(SEEDS)))
def test_small_rings(ring: Ring, seeds: list[bytes]) -> None:
    check(ring, seeds)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_lanes_of_many_tiles_and_threads(threads: int) -> None:
    check(LARGE, SEEDS, threads)


def test_packed_sums_wrap_at_the_width_of_their_entries() -> None:
    ring = Ring(((TILE + 5, 13),))
    packed, total = bytearray(ring.wire_bytes), ring.zeros()
    for _ in range(3):
        add_masks_packed(ring, memoryview(packed), plus=SEEDS[:2])
        add_masks(total, plus=SEEDS[:2])
    assert bytes(packed) == total.pack()


@given(segments.map(tuple).map(Ring), st.integers(0, 2**32))
@example(LARGE, 0)
def test_packed_vectors_added_together_are_their_sum(ring: Ring, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = [ring.encode(rng.integers(-(2**62), 2**62, ring.size)) for _ in range(4)]
    total, expected = ring.encode(values(ring)), ring.encode(values(ring))
    add_packed(total, *(memoryview(each.pack()) for each in vectors))
    for each in vectors:
        expected.add(each)
    assert total.pack() == expected.pack()
