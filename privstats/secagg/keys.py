"""Identities, and the derivation of keys from shared secrets.

Ed25519 for signatures, X25519 for key agreement, HKDF-SHA256 for derivation; each derived key has its own label and is
used for one purpose. No state, no messages: the protocol machines call these functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privstats.errors import LocalProtocolError
from privstats.files.signing import public_pem, read_private, relock_private, write_private
from privstats.secagg.wire import PROTOCOL

__all__ = [
    "RECORDED",
    "Entropy",
    "Identity",
    "agree",
    "derive",
    "draw",
    "hkdf",
    "public_of",
    "require_identity",
    "verify",
]

Entropy: TypeAlias = Callable[[int], bytes]

RECORDED = (
    "keys are agreed on by X25519 alone: whoever records every message and breaks X25519 later, as a large quantum "
    "computer would, reads each party's sums, with no noise but what that party itself added"
)
"""What no protocol here promises, for the person who reviews a plan; ``tests/secagg/test_recorded.py`` does it."""


def draw(entropy: Entropy, size: int) -> bytes:
    """``size`` bytes of ``entropy``.

    Raises:
        LocalProtocolError: it gave another number of bytes, so a key would be shorter than required.
    """
    drawn = entropy(size)
    if len(drawn) != size:
        raise LocalProtocolError(f"the entropy source was asked for {size} bytes and gave {len(drawn)}")
    return drawn


class Identity:
    """The long-term Ed25519 signing key of a client or of the server; the repr does not show it.

    Raises:
        LocalProtocolError: ``private`` is not 32 bytes.

    Example:
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> ulm.save("ulm.pem", passphrase="correct horse battery staple")
        >>> ps.secagg.Identity.load("ulm.pem", passphrase="correct horse battery staple").public == ulm.public
        True
    """

    def __init__(self, private: bytes | bytearray) -> None:
        if not isinstance(private, bytes | bytearray) or len(private) != 32:
            raise LocalProtocolError(
                "an identity is made of 32 private bytes: Identity.generate(os.urandom) draws them"
            )
        self._key = Ed25519PrivateKey.from_private_bytes(private)

    @classmethod
    def generate(cls, entropy: Entropy) -> Identity:
        """A fresh identity from 32 bytes of ``entropy``."""
        return cls(draw(entropy, 32))

    @classmethod
    def load(cls, path: str | os.PathLike[str], passphrase: str | None = None) -> Identity:
        """The identity in a file that :meth:`save` wrote.

        Args:
            path: the file, which only its owner may read or write (mode 0600 or less).
            passphrase: decrypts the file, if it is encrypted.

        Raises:
            LocalProtocolError: the file cannot be read, others can read it, it holds something else, or the passphrase
                is missing, wrong or too much.
        """
        key = read_private(path, passphrase, LocalProtocolError)
        return cls(key.private_bytes_raw())

    def save(self, path: str | os.PathLike[str], passphrase: str | None = None) -> None:
        """Write the identity to a new file atomically: PKCS #8 in PEM, mode 0600.

        Args:
            path: the new file; an existing one is never replaced, because an overwritten identity is lost.
            passphrase: encrypts the file, so that a stolen copy costs half a second and 128 MiB per guess at it (scrypt
                with n = 2^17, r = 8, p = 1): useless without it where it is not guessed, as six random words are not.

        Raises:
            LocalProtocolError: the passphrase is not a text, or empty.
            PrivstatsError: the file exists already, or cannot be written.
        """
        write_private(path, self._key, passphrase, LocalProtocolError)

    @staticmethod
    def relock(path: str | os.PathLike[str], passphrase: str | None = None, new: str | None = None) -> None:
        """Write the identity in a file again, in its place, locked as :meth:`save` locks files today.

        Files of privstats up to 0.2 are locked with 2,048 rounds of PBKDF2; they are read, and stay so until this call.
        Copies of the old file stay as weak as they were.

        Args:
            path: the file.
            passphrase: unlocks it; None for a file that is not locked.
            new: locks it; the same passphrase where None.

        Raises:
            LocalProtocolError: as for :meth:`load` and :meth:`save`, or neither passphrase is given.
            PrivstatsError: the file cannot be written; it stays as it was.

        Example:
            >>> ulm = ps.secagg.Identity.generate(os.urandom)
            >>> ulm.save("ulm.pem")
            >>> ps.secagg.Identity.relock("ulm.pem", new="correct horse battery staple")
            >>> ps.secagg.Identity.load("ulm.pem", "correct horse battery staple").public == ulm.public
            True
        """
        relock_private(path, passphrase, new, LocalProtocolError)

    @property
    def public(self) -> bytes:
        """The 32-byte public key that goes on the roster; ``public.hex()`` is how rosters and plans write it."""
        return self._key.public_key().public_bytes_raw()

    @property
    def public_pem(self) -> str:
        """The public key for other programs: SubjectPublicKeyInfo in PEM."""
        return public_pem(self.public)

    def sign(self, statement: bytes) -> bytes:
        """The 64-byte signature of ``statement``."""
        return self._key.sign(statement)

    def __repr__(self) -> str:
        return "Identity(<Ed25519 private key>)"


def require_identity(identity: object) -> Identity:
    """The identity itself.

    Raises:
        LocalProtocolError: it is not an ``Identity`` but, for example, a path or bare bytes.
    """
    if not isinstance(identity, Identity):
        raise LocalProtocolError(
            f"identity must be an Identity, got {type(identity).__name__}: read its file with Identity.load(path)"
        )
    return identity


def verify(public: bytes, signature: bytes, statement: bytes) -> bool:
    """Whether ``signature`` is ``public``'s over ``statement``; False for an invalid key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def derive(secret: bytes | bytearray, label: str, *, salt: bytes = b"", size: int = 32) -> bytes:
    """A key for the purpose that ``label`` names."""
    return hkdf(secret, salt, (PROTOCOL + label).encode(), size)


def hkdf(secret: bytes | bytearray, salt: bytes, info: bytes, size: int) -> bytes:
    """HKDF-SHA256 (RFC 5869), extract and expand."""
    return HKDF(SHA256(), size, salt, info).derive(secret)


def public_of(private: bytes | bytearray) -> bytes:
    """The X25519 public key of 32 private bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    """The X25519 shared secret.

    Raises:
        ValueError: ``public`` is a point of low order, so the secret would be zero.
    """
    return private.exchange(X25519PublicKey.from_public_bytes(public))
