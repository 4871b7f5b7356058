"""Identities, the roster, and every key that is derived from a shared secret.

Ed25519 signs, X25519 agrees, HKDF-SHA256 derives; each derived key has its own label and is used for one purpose.
No state, no messages: the protocol machines call these functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privstats.errors import LocalProtocolError

__all__ = ["Entropy", "Identity", "Roster", "agree", "derive", "draw", "hkdf", "public_of", "verify"]

_RUN_BYTES = 32

Entropy: TypeAlias = Callable[[int], bytes]


def draw(entropy: Entropy, size: int) -> bytes:
    """``size`` bytes of ``entropy``.

    Raises:
        LocalProtocolError: it gave another number of bytes, which would make a key shorter than it claims to be.
    """
    drawn = entropy(size)
    if len(drawn) != size:
        raise LocalProtocolError(f"the entropy source was asked for {size} bytes and gave {len(drawn)}")
    return drawn


class Identity:
    """A client's long-term Ed25519 signing key. Its repr shows nothing of it."""

    def __init__(self, private: bytes | bytearray) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(private)

    @classmethod
    def generate(cls, entropy: Entropy) -> Identity:
        """A fresh identity from 32 bytes of ``entropy``."""
        return cls(draw(entropy, 32))

    @property
    def public(self) -> bytes:
        """The 32-byte public key that goes on the roster."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, statement: bytes) -> bytes:
        """The 64-byte signature of ``statement``."""
        return self._key.sign(statement)

    def __repr__(self) -> str:
        return "Identity(<Ed25519 private key>)"


@dataclass(frozen=True)
class Roster:
    """The public identities that the parties agreed on outside the protocol; a client's index is its place here.

    Args:
        publics: Ed25519 public keys, 32 bytes each.
        run: up to 32 bytes that name this aggregation, agreed like the keys and used once. It goes into every
            signature, so nothing signed in another run counts here. Needed for the sparse graph's promise against a
            server that repeats its session name and key; in the complete graph every client checks that by itself.

    Raises:
        LocalProtocolError: a key that is not 32 bytes, or that appears twice; a run name that is too long.
    """

    publics: tuple[bytes, ...]
    run: bytes = b""

    def __post_init__(self) -> None:
        if not isinstance(self.run, bytes) or len(self.run) > _RUN_BYTES:
            raise LocalProtocolError(f"a run is named by at most {_RUN_BYTES} bytes, for example by 16 random ones")
        if any(len(public) != 32 for public in self.publics):
            raise LocalProtocolError("every public key on a roster must be 32 bytes")
        if len(set(self.publics)) != len(self.publics):
            raise LocalProtocolError("a roster must not list one public key twice: it would let one party vote twice")

    def __len__(self) -> int:
        return len(self.publics)

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that stand for the roster, its order and its run; how many keys there are is in the parameters."""
        return hashlib.sha256(b"privstats/secagg/roster" + b"".join(self.publics) + self.run).digest()


def verify(public: bytes, signature: bytes, statement: bytes) -> bool:
    """Whether ``signature`` is ``public``'s over ``statement``; an impossible key verifies nothing."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def derive(secret: bytes | bytearray, label: str, *, salt: bytes = b"", size: int = 32) -> bytes:
    """A key for the purpose that ``label`` names."""
    return hkdf(secret, salt, b"privstats/secagg/" + label.encode(), size)


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
