"""Encapsulate with ML-KEM-768 (FIPS 203), and combine its secret with that of X25519.

Both secrets and the ciphertext go into one derivation, so the keys are secret while one of the two schemes is secure. A
changed ciphertext decapsulates to another secret (implicit rejection); then the message does not open.
"""

from __future__ import annotations

from functools import cache

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey

from privstats.errors import LocalProtocolError

SEED_BYTES = 64
"""d || z of FIPS 203, algorithm 16."""
PUBLIC_BYTES = 1184
CIPHERTEXT_BYTES = 1088
SECRET_BYTES = 32


@cache
def require_support() -> None:
    """Raise ``LocalProtocolError`` without ML-KEM in OpenSSL: no session falls back to X25519 alone."""
    private_key(bytes(SEED_BYTES))


def private_key(seed: bytes) -> MLKEM768PrivateKey:
    """Return the key pair of a 64-byte seed, d || z."""
    try:
        return MLKEM768PrivateKey.from_seed_bytes(seed)
    except UnsupportedAlgorithm:
        raise _unsupported() from None


def public_of(private: MLKEM768PrivateKey) -> bytes:
    """Return the 1,184-byte encapsulation key."""
    return private.public_key().public_bytes_raw()


def encapsulate(public: bytes) -> tuple[bytes, bytes]:
    """Return a fresh 32-byte secret, and its 1,088-byte ciphertext.

    Raises:
        ValueError: ``public`` has a wrong length, or a number not below 3329 (FIPS 203, 7.2).

    Example:
        >>> from privstats.secagg import kem
        >>> key = kem.private_key(bytes(64))
        >>> secret, ciphertext = kem.encapsulate(kem.public_of(key))
        >>> kem.decapsulate(key, ciphertext) == secret
        True
    """
    return parsed(public).encapsulate()


def parsed(public: bytes) -> MLKEM768PublicKey:
    """Parse an encapsulation key; raises as :func:`encapsulate`."""
    try:
        return MLKEM768PublicKey.from_public_bytes(public)
    except UnsupportedAlgorithm:
        raise _unsupported() from None


def decapsulate(private: MLKEM768PrivateKey, ciphertext: bytes) -> bytes:
    """Return a ciphertext's secret; a ciphertext for another key yields a random one."""
    return private.decapsulate(ciphertext)


def combined(shared: bytes, secret: bytes, ciphertext: bytes) -> bytes:
    """Concatenate both secrets and the ciphertext, for one key derivation.

    A box's salt covers both X25519 public keys; the channel's salt is the session's name alone.
    """
    return shared + secret + ciphertext


def _unsupported() -> LocalProtocolError:
    return LocalProtocolError(
        "a session needs ML-KEM, which this machine's cryptography lacks: install the wheel of cryptography 48 or "
        "later, or build it with OpenSSL 3.5"
    )
