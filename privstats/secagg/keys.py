"""Hold identities and derive keys from shared secrets.

Each derived key has its own label and one purpose. A machine's state is sealed under the caller's key, and bound to
role, parameters, roster and index. Sealing does not prevent the use of an old copy, so a store must overwrite it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privstats import domains
from privstats.errors import LocalProtocolError
from privstats.files.decoding import from_msgpack
from privstats.files.signing import public_pem
from privstats.secagg.wire import prefix

Entropy: TypeAlias = Callable[[int], bytes]
"""Returns the requested number of random bytes."""


def draw(entropy: Entropy, size: int) -> bytes:
    """Draw ``size`` bytes; any other length raises ``LocalProtocolError``, as a key would be too short."""
    result = entropy(size)
    if len(result) != size:
        raise LocalProtocolError(f"entropy({size}) must return {size} bytes, got {len(result)}: give os.urandom")
    return result


class Identity:
    """The long-term Ed25519 signing key of one party; the repr does not show it.

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
            raise LocalProtocolError("an identity needs 32 private bytes: Identity.generate(os.urandom) samples them")
        self._key = Ed25519PrivateKey.from_private_bytes(private)

    @classmethod
    def generate(cls, entropy: Entropy) -> Identity:
        """Return a fresh identity from 32 bytes of ``entropy``."""
        return cls(draw(entropy, 32))

    @classmethod
    def derived(cls, secret: bytes, purpose: bytes) -> Identity:
        """Return the identity that HKDF-SHA256 derives from a secret, without salt, for one purpose."""
        return cls(hkdf(secret, b"", purpose, 32))

    @classmethod
    def load(cls, path: str | os.PathLike[str], passphrase: str | None = None) -> Identity:
        """Load an identity from a file that :meth:`save` wrote.

        Args:
            path: the file; only its owner may have access (mode 0600 or less).

        Raises:
            LocalProtocolError: the file cannot be read, others can read it, it holds something else, or the passphrase
                is missing, wrong or surplus.
        """
        from privstats.files.locked_key import read_private

        key = read_private(path, passphrase, LocalProtocolError)
        return cls(key.private_bytes_raw())

    def save(self, path: str | os.PathLike[str], passphrase: str | None = None) -> None:
        """Write the identity to a new file atomically: PKCS #8 in PEM, mode 0600.

        Args:
            path: the new file; an existing one is never replaced, because its identity would be lost.
            passphrase: encrypts the file; each guess costs half a second and 128 MiB (scrypt: n=2^17, r=8, p=1).

        Raises:
            LocalProtocolError: the passphrase is not a text, or empty.
            PrivstatsError: the file exists, or cannot be written.
        """
        from privstats.files.locked_key import write_private

        write_private(path, self._key, passphrase, LocalProtocolError)

    @staticmethod
    def relock(path: str | os.PathLike[str], passphrase: str | None = None, new: str | None = None) -> None:
        """Rewrite an identity's file under the lock that :meth:`save` uses today.

        Files of privstats up to 0.2 use 2,048 rounds of PBKDF2. Copies of the old file stay as weak as they were.

        Args:
            passphrase: unlocks the file; None if not locked.
            new: locks it; None for the same passphrase.

        Raises:
            LocalProtocolError: as for :meth:`load` and :meth:`save`, or no passphrase.
            PrivstatsError: the file cannot be written, and is unchanged.

        Example:
            >>> ulm = ps.secagg.Identity.generate(os.urandom)
            >>> ulm.save("ulm.pem")
            >>> ps.secagg.Identity.relock("ulm.pem", new="correct horse battery staple")
            >>> ps.secagg.Identity.load("ulm.pem", "correct horse battery staple").public == ulm.public
            True
        """
        from privstats.files.locked_key import relock_private

        relock_private(path, passphrase, new, LocalProtocolError)

    @property
    def public(self) -> bytes:
        """The 32-byte public key; rosters and plans write its hex."""
        return self._key.public_key().public_bytes_raw()

    @property
    def public_pem(self) -> str:
        """The public key for other programs: SubjectPublicKeyInfo in PEM."""
        return public_pem(self.public)

    def sign(self, statement: bytes) -> bytes:
        """Return the 64-byte signature of ``statement``."""
        return self._key.sign(statement)

    def __repr__(self) -> str:
        return "Identity(<Ed25519 private key>)"


def require_identity(identity: object) -> Identity:
    """Return the identity, or raise ``LocalProtocolError``."""
    if not isinstance(identity, Identity):
        raise LocalProtocolError(
            f"identity must be an Identity, got {type(identity).__name__}: read its file with Identity.load(path)"
        )
    return identity


def derive(secret: bytes | bytearray, label: str, *, salt: bytes = b"", size: int = 32) -> bytes:
    """Derive a key for the purpose that ``label`` names."""
    return hkdf(secret, salt, domains.SECAGG + label.encode(), size)


def hkdf(secret: bytes | bytearray, salt: bytes, info: bytes, size: int) -> bytes:
    """Derive a key by HKDF-SHA256 (RFC 5869), extract and expand."""
    return HKDF(SHA256(), size, salt, info).derive(secret)


def public_of(private: bytes | bytearray) -> bytes:
    """Return the X25519 public key of 32 private bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    """Return the X25519 shared secret.

    Raises:
        ValueError: ``public`` is of low order, so the secret would be zero.
    """
    return private.exchange(X25519PublicKey.from_public_bytes(public))


_NONCE_BYTES = 12

S = TypeVar("S")


def seal_state(state: object, key: bytes, *, role: str, place: bytes, entropy: Entropy) -> bytes:
    """Return ``nonce || AES-256-GCM(state)``; ``key`` has 32 bytes."""
    nonce = draw(entropy, _NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, msgspec.msgpack.encode(state), _bound(role, place))


def unseal_state(sealed: bytes, key: bytes, kind: type[S], *, role: str, place: bytes) -> S:
    """Open a state that :func:`seal_state` sealed.

    Raises:
        LocalProtocolError: another key, place or version, or damage; not stated which.
    """
    nonce, box = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return from_msgpack(_cipher(key).decrypt(nonce, box, _bound(role, place)), kind)
    except (InvalidTag, ValueError, msgspec.DecodeError):
        raise LocalProtocolError(
            f"the {role}'s saved state does not open: it is damaged, or was saved under another key, plan or roster, "
            "or by a version of privstats that agrees on keys otherwise; if so, end the session with that version"
        ) from None


def _cipher(key: bytes) -> AESGCM:
    if len(key) != 32:
        raise LocalProtocolError(f"a state is sealed under a key of 32 bytes, got {len(key)}")
    return AESGCM(key)


def _bound(role: str, place: bytes) -> bytes:
    return prefix(f"state/{role}") + place
