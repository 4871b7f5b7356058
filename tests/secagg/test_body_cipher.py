"""The cipher of bodies is AES-256-GCM, over pieces as over their whole; damage and other keys open nothing."""

import itertools
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg.body_cipher import NONCE, UnopenedError, open_into, seal_into

KEY, TAG = bytes(range(32)), 16


def sealed(content: bytes, *cuts: int) -> bytes:
    """The body of this content, sealed in the pieces between these cuts."""
    out, ends = bytearray(len(content) + TAG), (0, *cuts, len(content))
    pieces = [memoryview(content)[start:end] for start, end in itertools.pairwise(ends)]
    seal_into(memoryview(out), KEY, pieces)
    return bytes(out)


@pytest.mark.parametrize("cuts", [(), (0,), (1, 40), (999,)])
def test_a_body_is_one_message_of_aes_gcm_whatever_its_pieces_are(cuts: tuple[int, ...]) -> None:
    content, opened = os.urandom(1000), bytearray(1000)
    body = sealed(content, *cuts)
    assert body == AESGCM(KEY).encrypt(NONCE, content, None)
    open_into(opened, KEY, body)
    assert opened == content


@pytest.mark.parametrize("place", [0, 31, 63, 79])
def test_a_body_with_one_flipped_bit_does_not_open(place: int) -> None:
    body = bytearray(sealed(bytes(64)))
    body[place] ^= 1
    with pytest.raises(UnopenedError):
        open_into(bytearray(64), KEY, bytes(body))


@pytest.mark.parametrize("size", [0, 15, 63, 81])
def test_another_key_and_another_length_open_nothing(size: int) -> None:
    body = sealed(bytes(64))
    with pytest.raises(UnopenedError):
        open_into(bytearray(64), bytes(32), body)
    with pytest.raises(UnopenedError):
        open_into(bytearray(64), KEY, (body + bytes(1))[:size])
