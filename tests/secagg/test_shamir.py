"""Sharing: any t values give the secret back, fewer say nothing, and high degrees are seen."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg.scalars import ORDER, checks, combine, split

scalars = st.integers(0, ORDER - 1)


@st.composite
def sharings(draw):
    holders = draw(st.integers(1, 255))
    threshold = draw(st.integers(1, holders))
    seed = draw(st.binary(max_size=4))
    polynomial = [int.from_bytes(hashlib.sha512(seed + bytes([i])).digest(), "big") % ORDER for i in range(threshold)]
    return polynomial, holders, draw(st.permutations(range(1, holders + 1)))[:threshold]


@given(sharings())
def test_any_threshold_values_give_the_secret_back(case) -> None:
    polynomial, holders, chosen = case
    values = split([polynomial], holders)[:, 0]
    assert combine(chosen, [values[point - 1] for point in chosen]) == polynomial[0]


@given(sharings(), st.integers(0, 256))
def test_any_threshold_values_give_the_value_at_every_point(case, at: int) -> None:
    """Also at one of these points."""
    polynomial, holders, chosen = case
    values = split([polynomial], holders)[:, 0]
    expected = sum(coefficient * at**power for power, coefficient in enumerate(polynomial)) % ORDER
    assert combine(chosen, [values[point - 1] for point in chosen], at) == expected


@given(st.lists(scalars, min_size=3, max_size=3), st.integers(1, 255))
def test_a_value_is_the_polynomials(polynomial: list[int], holders: int) -> None:
    other = polynomial[::-1]
    values = split([polynomial, other], holders)
    assert values.shape == (holders, 2)
    for x in (1, holders):
        assert values[x - 1, 0] == (polynomial[0] + polynomial[1] * x + polynomial[2] * x * x) % ORDER
        assert values[x - 1, 1] == (other[0] + other[1] * x + other[2] * x * x) % ORDER


@given(scalars, scalars, scalars, st.integers(1, 255))
def test_fewer_values_than_the_threshold_fit_every_secret(secret: int, other: int, slope: int, point: int) -> None:
    """For t = 2: to whatever secret there is exactly one slope that gives the same share."""
    share = split([[secret, slope]], point)[-1, 0]
    fitting = (share - other) * pow(point, -1, ORDER) % ORDER
    assert split([[other, fitting]], point)[-1, 0] == share


@given(sharings(), st.data())
def test_checks_vanish_on_low_degrees_and_see_one_wrong_value(case, data) -> None:
    polynomial, holders, _ = case
    spare = holders + 1 - len(polynomial)
    mask = [int.from_bytes(hashlib.sha512(b"mask" + bytes([i])).digest(), "big") % ORDER for i in range(spare)]
    weights = checks(holders, mask)
    values = [polynomial[0], *split([polynomial], holders)[:, 0]]
    assert sum(w * v for w, v in zip(weights, values, strict=True)) % ORDER == 0
    wrong = data.draw(st.integers(0, holders))
    values[wrong] += data.draw(st.integers(1, ORDER - 1))
    assert sum(w * v for w, v in zip(weights, values, strict=True)) % ORDER != 0


@pytest.mark.parametrize(("polynomials", "holders"), [([[1]], 0), ([[1]], 256), ([], 3), ([[]], 3)])
def test_what_cannot_be_shared_is_refused(polynomials, holders: int) -> None:
    with pytest.raises(ValueError, match="1 to 255 holders and a threshold of at least 1"):
        split(polynomials, holders)
