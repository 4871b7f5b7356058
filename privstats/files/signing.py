"""Parse Ed25519 keys in all their forms: raw bytes, hex, PEM and key objects."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from privstats.errors import PrivstatsError
from privstats.files.text import is_plain_text

KEY_BYTES = 32
"""The size of a raw key, private or public."""

_PRIME = 2**255 - 19
_EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_LOW_ORDER = (0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH)  # the y of all points of order 4; 1; 2; 8; 8
PUBLIC_MARK = "-----BEGIN PUBLIC KEY-----"
"""The first line of a public key's PEM."""


@runtime_checkable
class Signs(Protocol):
    """An object that signs: an ``Identity``, or a private key."""

    def sign(self, statement: bytes, /) -> bytes:
        """Return the 64-byte Ed25519 signature of ``statement``."""


@runtime_checkable
class Named(Protocol):
    """An object with a public key: an ``Identity``."""

    @property
    def public(self) -> bytes:
        """The 32-byte Ed25519 public key."""


Signer: TypeAlias = Signs | Ed25519PrivateKey | bytes
"""A signer: an ``Identity``, a private key, or its 32 bytes."""
Verifier: TypeAlias = Named | Ed25519PublicKey | bytes | str
"""The key whose signature counts: a public key, its 32 bytes, its hex, its PEM, or the ``Identity`` itself."""


def signing_key(key: Signer, field: str, error: type[PrivstatsError]) -> Signs:
    """Return the object that signs with ``key``.

    Args:
        key: an ``Identity``, an Ed25519 private key, or its 32 bytes.
        error: raised for anything else, without the value.

    Example:
        >>> from privstats.files.signing import signing_key
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> len(signing_key(ulm, "signed_by", ps.ReleaseError).sign(b"a release"))
        64
    """
    if isinstance(key, Ed25519PrivateKey) or (isinstance(key, Signs) and isinstance(key, Named)):
        return key
    if isinstance(key, bytes | bytearray) and len(key) == KEY_BYTES:
        return Ed25519PrivateKey.from_private_bytes(key)
    raise error(f"{field} must be an Ed25519 private key or its {KEY_BYTES} bytes, got {_got(key)}; give the Identity")


def verify(public: bytes, signature: bytes, statement: bytes) -> bool:
    """Return whether ``signature`` is ``public``'s over ``statement``; False for an invalid key.

    Example:
        >>> from privstats.files.signing import verify
        >>> key = ps.secagg.Identity.generate(os.urandom)
        >>> verify(key.public, key.sign(b"the plan"), b"the plan"), verify(key.public, bytes(64), b"the plan")
        (True, False)
    """
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key(key: Verifier, field: str, error: type[PrivstatsError]) -> bytes:
    """Return a public key in any of its forms as 32 raw bytes.

    Args:
        key: an ``Identity``, an Ed25519 public key, its 32 bytes, hex, or PEM.
        error: raised for anything else, and for a key of low order.

    Example:
        >>> from privstats.files.signing import public_key
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> public_key(ulm.public.hex(), "signed_by", ps.ReleaseError) == public_key(ulm, "signed_by", ps.ReleaseError)
        True
        >>> public_key("ulm", "signed_by", ps.ReleaseError)
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: signed_by must be an Ed25519 public key or its 32 bytes, in hex or as PEM,
        got str; give identity.public
    """
    raw = _public_bytes(key)
    if raw is None:
        raise error(
            f"{field} must be an Ed25519 public key or its {KEY_BYTES} bytes, in hex or as PEM, got {_got(key)}; give "
            "identity.public"
        )
    return require_order(raw, field, error)


def require_order(public: bytes, field: str, error: type[PrivstatsError]) -> bytes:
    """Return the key, or refuse one of low order, for which any party can sign.

    Example:
        >>> from privstats.files.signing import require_order
        >>> require_order(bytes(32), "server", ps.DataError)
        Traceback (most recent call last):
            ...
        privstats.errors.DataError: server is a point of low order, for which any party can sign; ask its owner for
        another key
    """
    if has_low_order(public):
        raise error(f"{field} is a point of low order, for which any party can sign; ask its owner for another key")
    return public


def has_low_order(public: bytes) -> bool:
    """Return whether a public key is a point of order 1, 2, 4 or 8.

    Source: the 14 encodings of Chalkias, Garillot and Nikolaenko, "Taming the many EdDSAs" (2020), table 1.

    Example:
        >>> from privstats.files.signing import has_low_order
        >>> has_low_order(bytes(32)), has_low_order(ps.secagg.Identity.generate(os.urandom).public)
        (True, False)
    """
    return (int.from_bytes(public, "little") & (1 << 255) - 1) % _PRIME in _LOW_ORDER


def public_pem(public: bytes) -> str:
    """Return the PEM of 32 public bytes: SubjectPublicKeyInfo (RFC 8410), as ``openssl pkey -pubin`` reads it.

    Example:
        >>> from privstats.files.signing import public_pem
        >>> public_pem(ps.secagg.Identity.generate(os.urandom).public).splitlines()[0]
        '-----BEGIN PUBLIC KEY-----'
    """
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return Ed25519PublicKey.from_public_bytes(public).public_bytes(serialization.Encoding.PEM, form).decode()


def _public_bytes(key: Any) -> bytes | None:
    if isinstance(key, Ed25519PublicKey):
        return key.public_bytes_raw()
    if isinstance(key, Named):
        key = key.public
    if isinstance(key, bytes | bytearray) and len(key) == KEY_BYTES:
        return bytes(key)
    return public_text(key)


def public_text(key: Any) -> bytes | None:
    """Return the public key in a PEM or hex text, or None.

    Example:
        >>> from privstats.files.signing import public_text
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> public_text(ulm.public_pem) == public_text(ulm.public.hex()) == ulm.public, public_text("ulm")
        (True, None)
    """
    try:
        text = key.decode("ascii") if isinstance(key, bytes | bytearray) else key
        if not isinstance(text, str) or not is_plain_text(text):
            return None
        if PUBLIC_MARK not in text:
            raw = bytes.fromhex(text)
            return raw if len(raw) == KEY_BYTES else None
        loaded = serialization.load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return None
    return loaded.public_bytes_raw() if isinstance(loaded, Ed25519PublicKey) else None


def _got(key: Any) -> str:
    """Describe a value that is no key, never by its contents."""
    return f"{len(key)} bytes" if isinstance(key, bytes | bytearray) else type(key).__name__
