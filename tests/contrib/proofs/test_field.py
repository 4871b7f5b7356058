"""The field against Python's integers, at the edges of every limb and at random."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.proofs import field
from privstats.contrib.proofs.field import P
from privstats.secagg.prg import ctr_keystream

EDGES = [0, 1, 2, P - 1, P - 2, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 29) - 1, (1 << 60) - 1, 1 << 60]
EDGES += [(1 << 60) + 1, (1 << 21) - 1, 1 << 21, (1 << 41) - 1, 1 << 41, P // 2, P // 2 + 1]
ELEMENTS = st.one_of(st.sampled_from(EDGES), st.integers(0, P - 1))


def array(values) -> np.ndarray:
    return np.array(values, np.uint64)


def numbers(values) -> list[int]:
    return [int(each) for each in np.asarray(values).ravel()]


def test_every_pair_of_edges_adds_subtracts_and_multiplies_as_integers_do() -> None:
    left, right = zip(*product(EDGES, EDGES), strict=True)
    a, b = array(left), array(right)
    assert numbers(field.add(a, b)) == [(x + y) % P for x, y in zip(left, right, strict=True)]
    assert numbers(field.subtract(a, b)) == [(x - y) % P for x, y in zip(left, right, strict=True)]
    assert numbers(field.mul(a, b)) == [x * y % P for x, y in zip(left, right, strict=True)]
    assert numbers(field.negative(a)) == [-x % P for x in left]


@given(st.lists(st.tuples(ELEMENTS, ELEMENTS), min_size=1, max_size=40))
def test_random_pairs_and_their_sums_agree_with_integers(pairs) -> None:
    left, right = zip(*pairs, strict=True)
    a, b = array(left), array(right)
    assert numbers(field.mul(a, b)) == [x * y % P for x, y in pairs]
    assert int(field.dot(a, b)) == sum(x * y for x, y in pairs) % P
    assert int(field.total(a)) == sum(left) % P
    cut = len(left) // 2
    starts = np.array([0, cut] if cut else [0])
    assert numbers(field.grouped(a, starts)) == [
        sum(part) % P for part in ([left[:cut], left[cut:]] if cut else [left])
    ]


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (2, 2048, 1), (2, 2049, 3), (1, 5000, 2)])
def test_matrices_multiply_exactly_also_where_every_limb_is_full(shape) -> None:
    r, k, c = shape
    rng = np.random.default_rng(0)
    full = array(np.full((r, k), P - 1)), array(np.full((k, c), P - 1))
    drawn = (rng.integers(0, P, size, np.uint64) for size in ((r, k), (k, c)))
    for a, b in (full, tuple(drawn)):
        want = [
            sum(int(x) * int(y) for x, y in zip(a[i], b[:, j], strict=True)) % P for i, j in product(range(r), range(c))
        ]
        assert numbers(field.matmul(a, b)) == want


def test_signed_numbers_are_elements_and_come_back() -> None:
    values = np.array([0, 1, -1, 2**60 - 1, -(2**60) + 1, 12345, -98765], np.int64)
    assert numbers(field.elements(values)) == [int(v) % P for v in values]
    assert field.lift(field.elements(values)).tolist() == values.tolist()
    assert int(field.element(-3)) == P - 3
    assert numbers(field.powers_of_two(63)) == [pow(2, k, P) for k in range(63)]


def test_words_that_are_no_elements_are_refused() -> None:
    assert field.checked(array([0, P - 1])).tolist() == [0, P - 1]
    for word in (P, P + 1, 2**64 - 1):
        with pytest.raises(ValueError, match="one of these is not"):
            field.checked(array([0, word]))
    assert int(field.add(array([P]), array([P]))[0]) == P  # what add does with such words, which is why


def test_a_stream_is_the_keystream_without_its_lowest_bits() -> None:
    key = bytes(range(32))
    raw = np.frombuffer(ctr_keystream(key, bytes(16), 80), "<u8")
    assert numbers(field.stream(key, 10)) == [int(word) >> 3 for word in raw]
    assert field.stream(key, 7).tolist() == field.stream(key, 10)[:7].tolist()
    mean = field.stream(key, 20_000).astype(np.float64).mean() / P
    assert abs(mean - 0.5) < 5 / np.sqrt(12 * 20_000)


def test_a_word_that_is_p_is_replaced_by_the_next_one_that_is_not() -> None:
    words, further = array([5, P, 7, P, P]), array([P, 11, 12, P, 13, 14])
    assert numbers(field.without_p(words, further)) == [5, 11, 7, 12, 13]
