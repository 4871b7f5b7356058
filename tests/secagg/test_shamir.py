"""Sharing: any t shares give the secret back, fewer say nothing, and the field is the AES field."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg import shamir
from privstats.secagg.field import MUL


def multiply(a: int, b: int) -> int:
    """Carry-less product modulo x^8 + x^4 + x^3 + x + 1, one bit at a time."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= 0x11B << (bit - 8)
    return product


def test_the_product_table_is_the_schoolbook_product() -> None:
    assert all(MUL[a, b] == multiply(a, b) for a in range(256) for b in range(256))


@st.composite
def sharings(draw):
    holders = draw(st.integers(1, 255))
    threshold = draw(st.integers(1, holders))
    secret = draw(st.binary(min_size=1, max_size=64))
    seed = draw(st.integers(0, 2**32))
    chosen = draw(st.permutations(range(holders)))[:threshold]
    return secret, threshold, holders, np.random.default_rng(seed).bytes((threshold - 1) * len(secret)), chosen


@given(sharings())
def test_any_threshold_shares_give_the_secret_back(case) -> None:
    secret, threshold, holders, randomness, chosen = case
    shares = shamir.split(secret, randomness, threshold=threshold, holders=holders)
    xs = np.array(chosen, np.uint8) + np.uint8(1)
    assert shamir.combine(xs, shares[chosen]).tobytes() == secret


def test_fewer_shares_than_the_threshold_are_independent_of_the_secret() -> None:
    """For t = 2, one share takes every value exactly once over the coefficients, whatever the secret."""
    for secret, point in itertools.product((0, 1, 77, 255), (1, 2, 255)):
        seen = {
            int(shamir.split(bytes([secret]), bytes([c]), threshold=2, holders=255)[point - 1, 0]) for c in range(256)
        }
        assert len(seen) == 256


def test_a_batch_combines_like_its_rows() -> None:
    rng = np.random.default_rng(1)
    xs = np.stack([rng.permutation(np.arange(1, 256, dtype=np.uint8))[:9] for _ in range(5)])
    shares = rng.integers(0, 256, (5, 9, 32), dtype=np.uint8)
    rows = [shamir.combine(x, share) for x, share in zip(xs, shares, strict=True)]
    assert np.array_equal(shamir.combine(xs, shares), rows)


@pytest.mark.parametrize(
    ("threshold", "holders", "randomness"), [(0, 3, 0), (2, 0, 4), (2, 256, 4), (2, 3, 3), (2, 3, 5)]
)
def test_sharing_refuses_what_the_field_cannot_carry(threshold: int, holders: int, randomness: int) -> None:
    with pytest.raises(ValueError, match="sharing needs"):
        shamir.split(b"four", bytes(randomness), threshold=threshold, holders=holders)
