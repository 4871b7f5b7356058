"""Packing loses nothing, takes exactly ceil(size b / 8) bytes, and is the format that its module describes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.files.packing import TILE, entries_of, pack, packed_bytes, unpack


@given(st.integers(1, 64), st.integers(1, 70), st.integers(0, 2**32))
def test_every_width_and_size_comes_back(bits, size, seed):
    lane = np.random.default_rng(seed).integers(0, 2**64, size, np.uint64)
    if bits <= 32:
        lane = lane.astype(np.uint32)
    back = unpack(pack(lane, bits), size, bits)
    assert back.dtype == lane.dtype
    assert np.array_equal(back, lane & lane.dtype.type(2**bits - 1))


@pytest.mark.parametrize("bits", [3, 13, 32, 37, 64])
def test_longer_vectors_are_their_tiles_one_after_another(bits):
    words = np.random.default_rng(0).integers(0, 2**64, TILE + 1003, np.uint64)
    lane = words.astype(np.uint32 if bits <= 32 else np.uint64)
    wire = pack(lane, bits)
    assert wire == pack(lane[:TILE], bits) + pack(lane[TILE:], bits)
    for read in (unpack, entries_of):
        assert np.array_equal(read(wire, len(lane), bits), lane & lane.dtype.type(2**bits - 1))


@pytest.mark.parametrize("bits", [7, 16, 32, 33, 64])
def test_bytes_that_are_too_few_are_refused_and_not_repeated(bits):
    wire = pack(np.ones(5, np.uint32 if bits <= 32 else np.uint64), bits)
    for read in (unpack, entries_of):
        with pytest.raises(ValueError, match="buffer is smaller than requested size"):
            read(wire[: bits // 8 or -1], 5, bits)


@given(st.integers(1, 64), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_the_bytes_are_the_documented_format(bits, values):
    """The format once more, in Python's integers, from the words of the module docstring."""
    expected, done = b"", 0
    for width in (8, 4, 2, 1):
        if bits // 8 & width:
            pieces = [(value >> 8 * done) % 2 ** (8 * width) for value in values]
            expected += b"".join(piece.to_bytes(width, "little") for piece in pieces)
            done += width
    if rest := bits % 8:
        top = [(value >> 8 * done) % 2**rest for value in values]
        full = len(values) // 8
        words = [sum(t << rest * i for i, t in enumerate(top[8 * g : 8 * g + 8])) for g in range(full + 1)]
        groups = [word.to_bytes(rest, "little") for word in words[:full]]
        expected += b"".join(bytes(group[plane] for group in groups) for plane in range(rest))
        expected += words[full].to_bytes(packed_bytes(len(values) % 8, rest), "little")
    lane = np.array(values, np.uint64)
    assert pack(lane.astype(np.uint32) if bits <= 32 else lane, bits) == expected
