"""The channel: what one end seals the other opens, and nobody else, nowhere else, not even its own sender."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg.channel import Channel
from privstats.secagg.messages import HEADER_BYTES, VERSION, Agree, Refusal, encode

SESSION = b"s" * 32


def ends(secret: bytes = b"k" * 32, session: bytes = SESSION, client: int = 3) -> tuple[Channel, Channel]:
    return tuple(Channel(secret, session=session, client=client, at_client=at_client) for at_client in (True, False))


def message() -> bytearray:
    return encode(Agree(SESSION, 3, bytes(32), bytes(64)))


def test_each_end_opens_what_the_other_sealed() -> None:
    at_client, at_server = ends()
    assert at_server.open(memoryview(at_client.seal(message()))) == message()
    assert at_client.open(memoryview(at_server.seal(message()))) == message()


def test_neither_end_opens_what_it_sealed_itself() -> None:
    for end in ends():
        with pytest.raises(Refusal, match="bad_tag"):
            end.open(memoryview(end.seal(message())))


@pytest.mark.parametrize("other", [{"secret": b"K" * 32}, {"client": 4}])
def test_another_secret_or_client_is_another_channel(other: dict) -> None:
    sealed = ends()[0].seal(message())
    with pytest.raises(Refusal, match="bad_tag"):
        ends(**other)[1].open(memoryview(sealed))


def test_another_session_is_named_before_the_tag_is_looked_at() -> None:
    with pytest.raises(Refusal, match="wrong_session"):
        ends(session=b"S" * 32)[1].open(memoryview(ends()[0].seal(message())))


@given(st.data())
def test_any_damage_shows(data) -> None:
    sealed = bytearray(ends()[0].seal(message()))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Refusal, match="bad_tag|wrong_session"):
        ends()[1].open(memoryview(sealed))


def test_what_is_too_short_to_carry_a_tag_is_malformed() -> None:
    with pytest.raises(Refusal, match="malformed"):
        ends()[1].open(memoryview(bytes((VERSION,)) + bytes(HEADER_BYTES)))
