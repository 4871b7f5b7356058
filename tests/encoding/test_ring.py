"""The ring wraps as integers modulo 2**b, lifts to the centre, and knows its wire size to the byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.encoding import Ring

rings = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 64)), min_size=1, max_size=4).map(
    lambda segments: Ring(tuple(segments))
)


def _vector(data, ring):
    values = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=ring.size, max_size=ring.size))
    return values, ring.encode(np.array(values, np.int64))


def _centred(value, bits):
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _widths(ring):
    return [bits for size, bits in ring.segments for _ in range(size)]


@given(st.data(), rings)
def test_sums_and_differences_are_those_of_integers_modulo_two_to_the_b(data, ring):
    (left, first), (right, second) = _vector(data, ring), _vector(data, ring)
    first.add(second)
    widths = _widths(ring)
    assert first.lift().tolist() == [_centred(a + b, w) for a, b, w in zip(left, right, widths, strict=True)]
    first.subtract(second)
    first.subtract(second)
    assert first.lift().tolist() == [_centred(a - b, w) for a, b, w in zip(left, right, widths, strict=True)]


@given(st.data(), rings)
def test_packed_vectors_come_back_and_have_the_promised_size(data, ring):
    _, vector = _vector(data, ring)
    wire = vector.pack()
    assert len(wire) == ring.wire_bytes == sum(-(-size * bits // 8) for size, bits in ring.segments)
    assert np.array_equal(ring.unpack(wire).lift(), vector.lift())
    assert ring.unpack(memoryview(wire)).pack() == wire


@given(st.data(), rings)
def test_lanes_are_no_wider_than_they_must_be(data, ring):
    _, vector = _vector(data, ring)
    assert [lane.dtype for lane in vector.lanes] == [np.uint32 if b <= 32 else np.uint64 for _, b in ring.segments]
    assert all(int(lane.max()) < 2**bits for lane, (_, bits) in zip(vector.lanes, ring.segments, strict=True))


@given(st.data(), rings)
def test_zero_is_neutral_and_encoding_copies(data, ring):
    values, vector = _vector(data, ring)
    before = vector.lift()
    vector.add(ring.zeros())
    assert np.array_equal(vector.lift(), before)
    source = np.array(values, np.int64)
    ring.encode(source).subtract(vector)
    assert source.tolist() == values


def test_vectors_of_different_rings_do_not_add():
    with pytest.raises(ValueError, match="different rings"):
        Ring(((2, 8),)).zeros().add(Ring(((2, 9),)).zeros())


@pytest.mark.parametrize("segments", [((0, 8),), ((1, 0),), ((1, 65),)])
def test_impossible_segments_are_refused(segments):
    with pytest.raises(ValueError, match="ring segment"):
        Ring(segments)


@pytest.mark.parametrize("values", [np.zeros(3, np.int64), np.zeros(2, np.int32), np.zeros((2, 1), np.int64)])
def test_values_of_another_shape_or_type_are_refused(values):
    with pytest.raises(ValueError, match="encode needs int64"):
        Ring(((2, 8),)).encode(values)


@pytest.mark.parametrize("size", [1, 3])
def test_wire_bytes_of_another_length_are_refused(size):
    with pytest.raises(ValueError, match="2 bytes"):
        Ring(((2, 8),)).unpack(bytes(size))


def test_a_vector_is_packed_into_the_middle_of_a_message():
    ring = Ring(((3, 13), (2, 40)))
    vector = ring.encode(np.array([1, -2, 3, -4, 5], np.int64))
    message = bytearray(b"head") + bytearray(ring.wire_bytes)
    vector.pack_into(memoryview(message)[4:])
    assert bytes(message) == b"head" + vector.pack()
    with pytest.raises(ValueError, match="a packed vector needs .* bytes, the buffer has 3"):
        vector.pack_into(bytearray(3))
