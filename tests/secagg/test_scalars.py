"""Scalars and key pairs agree with X25519 and Ed25519 as ``cryptography`` has them, also where these take none."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg.keys import public_of
from privstats.secagg.scalars import ORDER, canonical, challenge, exchange, fits, key_pair, point_of, proves, scalar_of
from tests.secagg import edwards

BASE = (9).to_bytes(32, "little")
small = st.integers(1, 300) | st.integers(2**124, 2**130)
some = st.integers(1, ORDER - 1) | small | small.map(lambda number: ORDER - number)
seeds = st.binary(min_size=32, max_size=32)


def multiple(scalar: int) -> edwards.Point:
    """``scalar`` times the base point, by doubling and adding."""
    total, point = (0, 1), edwards.decoded((4 * pow(5, -1, edwards.P) % edwards.P).to_bytes(32, "little"))
    while scalar:
        total, point = edwards.add(total, point) if scalar & 1 else total, edwards.add(point, point)
        scalar >>= 1
    return total


@given(seeds, st.integers(0, 1))
def test_a_key_pair_is_one_of_ed25519_and_of_x25519(seed: bytes, sign: int) -> None:
    pair = key_pair(seed, sign)
    ours = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    assert pair.point[:31] == ours[:31]
    assert pair.point[31] == (ours[31] & 127 | sign << 7)
    assert fits(pair.scalar, public_of(pair.private))
    assert point_of(public_of(pair.private))[:31] == pair.point[:31]


@pytest.mark.parametrize("seed", [b"a" * 32, b"b" * 32])
@pytest.mark.parametrize("sign", [0, 1])
def test_its_point_is_the_scalar_times_the_base_point(seed: bytes, sign: int) -> None:
    pair = key_pair(seed, sign)
    assert edwards.encoded(multiple(pair.scalar)) == pair.point


def test_nonces_are_uniform_where_clamped_scalars_are_not() -> None:
    """A clamped scalar is one of s and ORDER - s, by its residue modulo 8: half of all would never blind."""
    kept = [key_pair(os.urandom(32), number & 1).scalar * 3 % 8 > 3 for number in range(400)]
    assert 140 < sum(kept) < 260


@given(some, some)
def test_every_scalar_exchanges(one: int, two: int) -> None:
    assert exchange(one, exchange(two, BASE)) == exchange(two, exchange(one, BASE)) == exchange(one * two, BASE)
    assert exchange(one, BASE) == exchange(ORDER - one, BASE)


@given(some, some)
def test_a_scalar_fits_its_own_key_alone(one: int, two: int) -> None:
    public = exchange(one, BASE)
    assert fits(one, public)
    assert fits(ORDER - one, public)
    assert fits(two, public) == (two in (one, ORDER - one))
    assert (canonical(one) == canonical(two)) == (two in (one, ORDER - one))


@pytest.mark.parametrize("scalar", [0, ORDER])
def test_zero_has_no_key(scalar: int) -> None:
    assert not fits(scalar, BASE)
    with pytest.raises(ValueError, match="zero scalar"):
        exchange(scalar, BASE)


def test_a_scalar_that_no_private_key_of_x25519_stands_for_is_multiplied_all_the_same() -> None:
    """X25519 takes multiples of 8 in [2^254, 2^255), and none of them is 8 or -8 modulo the order."""
    numbers = [sign * 8 % ORDER + times * ORDER for sign in (1, -1) for times in range(9)]
    assert not any(number % 8 == 0 and 2**254 <= number < 2**255 for number in numbers)
    assert exchange(8, BASE) == point_as_x25519(multiple(8))


def point_as_x25519(point: edwards.Point) -> bytes:
    return ((1 + point[1]) * pow(1 - point[1], -1, edwards.P) % edwards.P).to_bytes(32, "little")


@given(seeds, seeds, st.integers(0, 1), st.binary(max_size=40), st.data())
def test_a_proof_fits_its_own_statement_alone(seed: bytes, nonce_seed: bytes, sign: int, message: bytes, data) -> None:
    key, nonce = key_pair(seed), key_pair(nonce_seed, sign)
    response = (nonce.scalar + challenge(nonce.point, key.point, message) * key.scalar) % ORDER
    assert proves(nonce.point, response, key.point, message)
    assert not proves(nonce.point, (response + data.draw(st.integers(1, ORDER - 1))) % ORDER, key.point, message)
    assert not proves(nonce.point, response, key.point, message + b"!")
    other = key_pair(bytes(byte ^ 1 for byte in seed))
    assert not proves(nonce.point, response, other.point, message)


@pytest.mark.parametrize("number", [ORDER, 2**255, 2**256 - 1])
def test_a_number_has_one_form(number: int) -> None:
    assert scalar_of((ORDER - 1).to_bytes(32, "little")) == ORDER - 1
    with pytest.raises(ValueError, match="not below the order"):
        scalar_of(number.to_bytes(32, "little"))
