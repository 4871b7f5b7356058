"""ML-KEM-768 (FIPS 203) from ``cryptography``, and how its secret is combined with that of X25519.

Secrets of both go into one derivation together with the ciphertext, so keys hold while one of the two does. This is the
one place that encapsulates, and so the one place whose randomness tests replace. No protocol: machines call these
functions.

A ciphertext that was changed decapsulates to another secret and raises nothing (implicit rejection), so it shows where
something under the derived key does not open.
"""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey

from privstats.errors import LocalProtocolError

SEED_BYTES = 64
"""d || z of FIPS 203, algorithm 16."""
PUBLIC_BYTES = 1184
CIPHERTEXT_BYTES = 1088
SECRET_BYTES = 32


def require_support() -> None:
    """Refuse to begin where this machine's OpenSSL has no ML-KEM: no session falls back to X25519 alone.

    Raises:
        LocalProtocolError: it has none.
    """
    private_key(bytes(SEED_BYTES))


def private_key(seed: bytes) -> MLKEM768PrivateKey:
    """The key pair of 64 bytes, d || z; raises as :func:`require_support`."""
    try:
        return MLKEM768PrivateKey.from_seed_bytes(seed)
    except UnsupportedAlgorithm:
        raise _unsupported() from None


def public_of(private: MLKEM768PrivateKey) -> bytes:
    """The 1,184 bytes of the encapsulation key."""
    return private.public_key().public_bytes_raw()


def encapsulate(public: bytes) -> tuple[bytes, bytes]:
    """A fresh secret of 32 bytes, and the 1,088 bytes that give it to the key's owner.

    Raises:
        ValueError: ``public`` is no encapsulation key (FIPS 203, 7.2): its length, or a number not below 3329.

    Example:
        >>> from privstats.secagg import kem
        >>> key = kem.private_key(bytes(64))
        >>> secret, ciphertext = kem.encapsulate(kem.public_of(key))
        >>> kem.decapsulate(key, ciphertext) == secret
        True
    """
    return parsed(public).encapsulate()


def parsed(public: bytes) -> MLKEM768PublicKey:
    """The encapsulation key; raises ``ValueError`` as :func:`encapsulate`, and as :func:`require_support`."""
    try:
        return MLKEM768PublicKey.from_public_bytes(public)
    except UnsupportedAlgorithm:
        raise _unsupported() from None


def decapsulate(private: MLKEM768PrivateKey, ciphertext: bytes) -> bytes:
    """The secret in a ciphertext for this key; another one, that nobody knows, if it was made for another."""
    return private.decapsulate(ciphertext)


def combined(shared: bytes, secret: bytes, ciphertext: bytes) -> bytes:
    """X25519's secret, ML-KEM's and its ciphertext: the input of one key derivation, whose salt names both keys."""
    return shared + secret + ciphertext


def _unsupported() -> LocalProtocolError:
    return LocalProtocolError(
        "key_agreement='mlkem768-x25519' needs ML-KEM, which this machine's cryptography lacks: install the wheel of "
        "cryptography 48 or later, or build it with OpenSSL 3.5"
    )
