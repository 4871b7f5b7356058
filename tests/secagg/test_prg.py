"""Masks: the fast keystream is AES-CTR to the byte, and adding then subtracting changes nothing."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.secagg.prg import TILE, add_masks, keystream

SEEDS = [hashlib.sha256(bytes([i])).digest() for i in range(5)]


@pytest.mark.parametrize("segments", [((1, 1),), ((TILE + 17, 32), (3, 64)), ((2 * TILE, 20), (TILE + 1, 33))])
def test_a_mask_is_the_reference_keystream_lane_by_lane_and_tile_by_tile(segments) -> None:
    vector = Ring(segments).zeros()
    add_masks(vector, plus=SEEDS[:1])
    for number, lane in enumerate(vector.lanes):
        size = lane.dtype.itemsize
        stream = b"".join(
            keystream(SEEDS[0], number, tile, min(TILE, len(lane) - start) * size)
            for tile, start in enumerate(range(0, len(lane), TILE))
        )
        assert np.array_equal(lane, np.frombuffer(stream, lane.dtype.newbyteorder("<")))


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 64)), min_size=1, max_size=4),
    st.lists(st.sampled_from(SEEDS)),
    st.lists(st.sampled_from(SEEDS)),
)
def test_masks_added_at_one_end_and_subtracted_at_the_other_cancel(segments, plus, minus) -> None:
    ring = Ring(tuple(segments))
    values = np.arange(ring.size) % 2 - 1
    vector = ring.encode(values)
    add_masks(vector, plus=plus, minus=minus)
    received = ring.unpack(vector.pack())
    add_masks(received, plus=minus, minus=plus)
    assert received.pack() == ring.encode(values).pack()


def test_different_seeds_lanes_and_tiles_give_different_streams() -> None:
    streams = {keystream(seed, lane, tile, 32) for seed in SEEDS for lane in range(3) for tile in range(3)}
    assert len(streams) == 45


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_nothing_but_the_time(threads: int) -> None:
    ring = Ring(((5 * TILE + 3, 32), (3, 64), (TILE, 50)))
    alone, together = ring.zeros(), ring.zeros()
    add_masks(alone, plus=SEEDS[:3], minus=SEEDS[3:])
    add_masks(together, plus=SEEDS[:3], minus=SEEDS[3:], threads=threads)
    assert alone.pack() == together.pack()
