"""The channel: what one end seals the other opens, and nobody else, nowhere else, not even its own sender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.secagg.interactive.client_secrets import Channel
from privstats.secagg.interactive.messages import VERSION, Agree, Mask, Unmask, encode
from privstats.secagg.wire import HEADER_BYTES, TAG_BYTES, Refusal

SESSION = b"s" * 32


def ends(secret: bytes = b"k" * 32, session: bytes = SESSION, client: int = 3) -> tuple[Channel, Channel]:
    return Channel(secret, session=session, client=client), Channel(secret, session=session, client=client)


def message() -> bytearray:
    return encode(Agree(SESSION, 3, bytes(32), bytes(64)))


def test_each_end_opens_what_the_other_sealed() -> None:
    at_client, at_server = ends()
    assert at_server.open(memoryview(at_client.seal(message()))) == message()
    assert at_client.open(memoryview(at_server.seal(message()))) == message()


@pytest.mark.parametrize("kind", range(2, 10))
def test_every_type_of_message_has_a_key_of_its_own(kind: int) -> None:
    """So has every direction, because a type has one: nothing opens as another step's message, or reflected."""
    sealed = bytearray(ends()[0].seal(message()))
    retyped = sealed[:2] + bytes([kind]) + sealed[3:]
    keystream = bytes(a ^ b for a, b in zip(sealed[HEADER_BYTES:], message()[HEADER_BYTES:], strict=False))
    other = encoded_as(kind)
    its_own = bytes(a ^ b for a, b in zip(ends()[0].seal(other)[HEADER_BYTES:], other[HEADER_BYTES:], strict=False))
    if kind == Agree.__struct_config__.tag:
        assert its_own == keystream
        return
    assert its_own[:32] != keystream[:32]
    with pytest.raises(Refusal, match="bad_tag"):
        ends()[1].open(memoryview(bytes(retyped)))


def encoded_as(kind: int) -> bytearray:
    other = message()
    other[2] = kind
    return other


def test_what_is_sealed_is_unreadable_but_for_the_header_and_the_masked_vector() -> None:
    secret, vector = b"the secret share of a self-mask " * 2, b"a masked vector"
    sealed = ends()[0].seal(encode(Unmask(SESSION, 3, bytes(32), secret[:32], (1,), secret[:32])))
    assert sealed[:HEADER_BYTES] == encode(Unmask(SESSION, 3, bytes(32), bytes(32), (), b""))[:HEADER_BYTES]
    assert secret[:8] not in sealed
    masked = encode(Mask(SESSION, 3, bytes(32), memoryview(vector)))
    assert ends()[0].seal(bytearray(masked))[:-TAG_BYTES] == masked


def test_a_masked_vector_is_authenticated() -> None:
    sealed = bytearray(ends()[0].seal(encode(Mask(SESSION, 3, bytes(32), memoryview(b"masked")))))
    sealed[-TAG_BYTES - 1] ^= 1
    with pytest.raises(Refusal, match="bad_tag"):
        ends()[1].open(memoryview(sealed))


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
