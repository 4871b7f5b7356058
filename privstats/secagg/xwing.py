"""HPKE in base mode with X-Wing, one message per box: X25519 and ML-KEM-768 together, HKDF-SHA256, AES-256-GCM.

``cryptography`` implements it (KEM 0x647a, draft-connolly-cfrg-xwing-kem-10) with random ephemeral keys, so two boxes
of equal content differ.
"""

from __future__ import annotations

from hashlib import shake_256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from privstats.secagg import kem
from privstats.secagg.body_cipher import UnopenedError
from privstats.secagg.keys import public_of as x25519_of

KEY_BYTES = kem.PUBLIC_BYTES + 32
ENC_BYTES = kem.CIPHERTEXT_BYTES + 32
_SUITE = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)


def private_of(seed: bytes | bytearray) -> hpke.MLKEM768X25519PrivateKey:
    """Expand 32 secret bytes into the private key; ``LocalProtocolError`` without ML-KEM."""
    post_quantum, classical = _halves(seed)
    return hpke.MLKEM768X25519PrivateKey(post_quantum, X25519PrivateKey.from_private_bytes(classical))


def public_of(seed: bytes | bytearray) -> bytes:
    """Return the public key: 1,184 bytes of ML-KEM-768, 32 of X25519."""
    post_quantum, classical = _halves(seed)
    return post_quantum.public_key().public_bytes_raw() + x25519_of(classical)


def _halves(seed: bytes | bytearray) -> tuple[MLKEM768PrivateKey, bytes]:
    """Expand the seed by SHAKE256: 64 bytes for ML-KEM-768, 32 for X25519."""
    expanded = shake_256(seed).digest(kem.SEED_BYTES + 32)
    return kem.private_key(expanded[: kem.SEED_BYTES]), expanded[kem.SEED_BYTES :]


def parsed(public: bytes) -> hpke.MLKEM768X25519PublicKey:
    """Parse a public key of ``KEY_BYTES``; ``ValueError`` for an invalid ML-KEM half."""
    post_quantum, classical = kem.parsed(public[: kem.PUBLIC_BYTES]), public[kem.PUBLIC_BYTES :]
    return hpke.MLKEM768X25519PublicKey(post_quantum, X25519PublicKey.from_public_bytes(classical))


def seal(public: bytes, content: bytes, info: bytes) -> bytes:
    """Return ``enc || ciphertext || tag`` for the owner of ``public``: another box each time.

    Raises:
        ValueError: the X25519 half of ``public`` is of low order, or the other is no ML-KEM key.
    """
    return _SUITE.encrypt(content, parsed(public), info)


def open_box(private: hpke.MLKEM768X25519PrivateKey, box: bytes | memoryview, info: bytes) -> bytes:
    """Return the content that :func:`seal` sealed to the owner of ``private``.

    Raises:
        UnopenedError: another key or ``info``, damage, too few bytes, or an encapsulated key of low order.
    """
    try:
        return _SUITE.decrypt(box, private, info)
    except InvalidTag:
        raise UnopenedError from None
