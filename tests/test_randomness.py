"""The generator is AES-256-CTR, bit for bit, and its streams never meet."""

import copy
import os
import pickle
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.errors import DataError, RandomnessError
from privstats.randomness import SEED_BYTES, Generator, checked, secure, seeded
from tests.drawing import named
from tests.forks import in_a_fork
from tests.threads import join

NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
BLOCK_0 = "e568f68194cf76d6174d4cc04310a854"  # AES-256(NIST_KEY, counter 0), from an independent implementation


def _aes(block: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(NIST_KEY), modes.ECB()).encryptor().update(block)


def test_the_stream_is_aes_of_the_counter():
    assert Generator(NIST_KEY).bytes(32) == _aes(bytes(16)) + _aes((1).to_bytes(16, "big"))


def test_the_stream_of_a_published_key_is_frozen():
    assert Generator(NIST_KEY).bytes(16).hex() == BLOCK_0


@given(sizes=st.lists(st.integers(0, 5000), max_size=8))
def test_reading_in_pieces_gives_the_same_stream(sizes):
    whole = seeded(7).bytes(sum(sizes))
    parts = seeded(7)
    assert b"".join(parts.bytes(n) for n in sizes) == whole


def test_reads_longer_than_a_tile_continue_the_stream():
    n = (1 << 17) + 12345
    parts = seeded(3)
    assert seeded(3).bytes(n) == parts.bytes(1000) + parts.bytes(n - 1000)


def test_words_are_little_endian():
    words = seeded(1).uint64(3)
    assert words.dtype == np.uint64
    assert [int(word) for word in words] == [
        int.from_bytes(seeded(1).bytes(24)[8 * i : 8 * i + 8], "little") for i in range(3)
    ]


def test_spawning_is_reproducible_and_gives_another_stream():
    parent, twin = seeded(1), seeded(1)
    assert parent.spawn().bytes(64) == twin.spawn().bytes(64)
    assert parent.spawn().bytes(64) != seeded(1).bytes(64)
    assert parent.bytes(8) == (twin.spawn(), twin.bytes(8))[1]


def test_substreams_are_random_access_and_disjoint():
    rng = seeded(5)
    first = rng.substream_bytes(0, 48)
    assert first == _substream(5, 0, 48)
    assert first[:32] == rng.substream_bytes(0, 32)
    assert len({rng.substream_bytes(i, 32) for i in range(100)} | {seeded(5).bytes(32)}) == 101


def _substream(seed: int, index: int, n: int) -> bytes:
    return seeded(seed).substream_bytes(index, n)


@pytest.mark.parametrize("index", [-1, (1 << 64) - 1])
def test_a_substream_index_out_of_range_is_refused(index):
    with pytest.raises(ValueError, match="substream index"):
        seeded(0).substream_bytes(index, 8)


@pytest.mark.parametrize("seed", [b"", bytes(31), bytes(33), bytearray(32), 7])
def test_a_seed_of_another_size_is_refused(seed):
    with pytest.raises(ValueError, match="32 bytes"):
        Generator(seed)


def test_secure_generators_differ():
    assert secure().bytes(SEED_BYTES) != secure().bytes(SEED_BYTES)


def test_the_seed_does_not_show_in_the_repr():
    assert NIST_KEY.hex() not in repr(Generator(NIST_KEY))
    assert repr(NIST_KEY) not in repr(Generator(NIST_KEY))


@pytest.mark.parametrize(
    "use",
    [
        lambda rng: rng.bytes(8),
        lambda rng: rng.uint64(1),
        lambda rng: rng.spawn(),
        lambda rng: rng.substream_bytes(0, 8),
    ],
)
def test_two_children_of_a_fork_do_not_draw_the_same_noise(use):
    rng = secure()
    told = [in_a_fork(lambda: use(rng)) for _ in range(2)]
    assert all(each.startswith("RandomnessError: this generator was made before a fork") for each in told)
    use(rng)  # the process that made it goes on
    assert in_a_fork(lambda: len(secure().bytes(8))) == "8"


@pytest.mark.ci
def test_threads_that_share_a_generator_draw_in_turn_and_never_the_same():
    rng, drawn, faults = secure(), [], []

    def draw():
        try:
            drawn.extend(rng.bytes(1 << 18) for _ in range(30))
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    join(*threads)
    assert not faults
    blocks = np.concatenate([np.frombuffer(piece, "<u8")[::2] for piece in drawn])
    assert len(np.unique(blocks)) == len(blocks)


def test_only_seeded_generators_and_their_children_are_reproducible():
    assert seeded(1).reproducible
    assert seeded(1).spawn().reproducible
    assert not secure().reproducible
    assert not secure().spawn().reproducible
    assert not Generator(NIST_KEY).reproducible


def test_a_reproducible_generator_is_used_only_where_it_is_asked_for():
    rng = seeded(1)
    assert checked(rng, allow_reproducible=True) is rng
    with pytest.raises(RandomnessError, match="anyone who knows its seed can remove the noise"):
        checked(rng, allow_reproducible=False)
    own = secure()
    assert checked(own, allow_reproducible=False) is own
    assert not checked(None, allow_reproducible=True).reproducible


def test_a_generator_whose_output_can_be_predicted_is_refused():
    with pytest.raises(DataError, match="got numpy"):
        checked(np.random.default_rng(0), allow_reproducible=True)


def test_a_generator_of_another_process_is_refused_in_words(monkeypatch):
    rng = secure()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RandomnessError, match=r"made before a fork.*call privstats.randomness.secure\(\)"):
        rng.bytes(1)


def test_what_tests_draw_follows_from_their_name_and_is_not_drawn_twice():
    with named("one"):
        first, second = secure().bytes(8), secure().bytes(8)
    with named("another"):
        other = secure().bytes(8)
        with named("one"):
            assert secure().bytes(8) == first
        assert secure().bytes(8) not in {first, second, other}
    assert len({first, second, other}) == 3


@pytest.mark.parametrize("make", [secure, lambda: seeded(3)], ids=["secure", "seeded"])
@pytest.mark.parametrize(
    "double",
    [copy.copy, copy.deepcopy, *(partial(pickle.dumps, protocol=version) for version in range(6))],
    ids=["copy", "deepcopy", *(f"pickle {version}" for version in range(6))],
)
def test_a_generator_is_neither_copied_nor_pickled(make, double):
    """Two with one stream draw one noise twice, and the difference of what it covers is exact."""
    with pytest.raises(RandomnessError, match=r"a copy of a generator would draw the same noise and keys.*spawn\(\)"):
        double(make())
    with pytest.raises(RandomnessError, match="a copy of a generator"):
        double({"rng": [make()]}) if double is not copy.copy else double(make())
