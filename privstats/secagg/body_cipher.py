"""Seal the body of one report by AES-256-GCM, under a key that seals nothing else.

The leader's box has the key; HPKE seals that box (``xwing``).
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE = bytes(12)
"""Constant, as each key belongs to one run, sender and vector and seals one body."""


class UnopenedError(Exception):
    """Error for a box or body that does not open; it carries no reason."""


def seal_into(out: memoryview, key: bytes, content: Iterable[memoryview]) -> None:
    """Write the ciphertext of all pieces, then the tag, to ``out``, which has their exact size."""
    encryptor = Cipher(algorithms.AES256(key), modes.GCM(NONCE)).encryptor()
    place = 0
    for piece in content:
        place += encryptor.update_into(piece, out[place:])
    encryptor.finalize()
    out[place:] = encryptor.tag


def open_into(out: bytearray, key: bytes, ciphertext: bytes | memoryview) -> None:
    """Decrypt ``ciphertext`` into ``out``, which is shorter by the tag.

    Raises:
        UnopenedError: another key, or damage; ``out`` is then meaningless.
    """
    try:
        AESGCM(key).decrypt_into(NONCE, ciphertext, None, out)
    except (InvalidTag, ValueError):
        raise UnopenedError from None
