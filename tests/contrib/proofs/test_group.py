"""The prime group against Python's integers: sums, wire bytes, factors, and words that are no elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.proofs.field import P, Prime
from privstats.encoding import Ring

primes = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40).map(lambda k: 1 << k)), min_size=1, max_size=4).map(
    lambda parts: Prime(tuple(parts))
)


def drawn(data, prime):
    values = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=prime.size, max_size=prime.size))
    return values, prime.encode(np.array(values, np.int64))


def factors(prime):
    return [factor for size, factor in prime.parts for _ in range(size)]


def lifted(values, prime):
    """The nearest number to zero modulo p of each in field steps, in whole wire steps."""
    pairs = zip(values, factors(prime), strict=True)
    return [((value * factor + P // 2) % P - P // 2) // factor for value, factor in pairs]


@given(st.data(), primes)
def test_sums_and_differences_are_those_of_integers_in_wire_steps(data, prime):
    (left, first), (right, second) = drawn(data, prime), drawn(data, prime)
    first.add(second)
    assert first.lift().tolist() == lifted([a + b for a, b in zip(left, right, strict=True)], prime)
    first.subtract(second)
    first.subtract(second)
    assert first.lift().tolist() == lifted([a - b for a, b in zip(left, right, strict=True)], prime)


@given(st.data(), primes)
def test_packed_vectors_come_back_as_little_endian_words(data, prime):
    values, vector = drawn(data, prime)
    words = [value * factor % P for value, factor in zip(values, factors(prime), strict=True)]
    wire = vector.pack()
    assert wire == b"".join(word.to_bytes(8, "little") for word in words)
    assert len(wire) == prime.wire_bytes == 8 * sum(size for size, _ in prime.segments)
    assert prime.unpack(memoryview(wire)).pack() == wire
    room = np.empty(prime.wire_bytes, np.uint8)
    vector.pack_into(room)
    assert room.tobytes() == wire


def test_a_sum_of_small_numbers_is_read_in_whole_grid_steps_and_what_is_between_two_falls_down():
    prime = Prime(((2, 4096), (1, 1)))
    total = prime.encode(np.array([5, -5, 7]))
    total.add(prime.unpack(np.array([4095, 4095, 0], "<u8").tobytes()))  # a liar's, by less than a grid step
    assert total.lift().tolist() == [5, -5, 7]
    total.subtract(prime.unpack(np.array([4096, 4096, 0], "<u8").tobytes()))
    assert total.lift().tolist() == [4, -6, 7]


@pytest.mark.parametrize("word", [P, P + 1, 2**64 - 1])
def test_words_that_are_no_elements_are_refused_where_they_enter(word):
    prime = Prime(((2, 1),))
    with pytest.raises(ValueError, match="below 2\\*\\*61 - 1"):
        prime.unpack(np.array([0, word], np.uint64).astype("<u8").tobytes())
    with pytest.raises(ValueError, match="has 16 bytes, got 8"):
        prime.unpack(bytes(8))


def test_what_is_no_group_of_this_kind_and_what_is_of_another_is_refused():
    for part in ((0, 1), (1, 0), (1, 1 << 60)):
        with pytest.raises(ValueError, match="factor"):
            Prime((part,))
    prime = Prime(((2, 4),))
    with pytest.raises(ValueError, match="encode needs int64"):
        prime.encode(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="different rings"):
        prime.zeros().add(Ring(((2, 61),)).zeros())
    with pytest.raises(ValueError, match="different rings"):
        prime.zeros().add(Prime(((2, 2),)).zeros())


def test_adding_leaves_the_other_and_copies_nothing_of_it():
    prime = Prime(((2, 4), (1, 1)))
    words = np.array([1, 2, 3], np.uint64)
    vector, other = prime.zeros(), prime.of(words)
    vector.add(other)
    vector.add(other)
    assert words.tolist() == [1, 2, 3]
    assert np.concatenate(vector.lanes).tolist() == [2, 4, 6]
