"""Ed25519 keys in all their forms: raw bytes, hex, PEM, key objects, and the file that holds a private key.

The module parses a key or refuses it in one sentence; it is independent of what is signed and of who is a party. The
envelope of files and the identities of the protocol use it.
"""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Any, Protocol, TypeAlias, runtime_checkable

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write, read_bounded, write_new
from privstats.system import others_can_read

KEY_BYTES = 32
"""The size of a raw key, private or public."""

_MOST_BYTES = 1 << 14
_PRIME = 2**255 - 19
_EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_LOW_ORDER = (0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH)  # the y of all points of order 4; 1; 2; 8; 8
_PUBLIC, _PRIVATE = "-----BEGIN PUBLIC KEY-----", "PRIVATE KEY-----"
_LOCKED = b"BEGIN ENCRYPTED "
_PEM = serialization.Encoding.PEM


@runtime_checkable
class Signs(Protocol):
    """An object that signs: an ``Identity``, or a private key."""

    def sign(self, statement: bytes, /) -> bytes:
        """Return the 64-byte Ed25519 signature of ``statement``."""
        ...


@runtime_checkable
class Named(Protocol):
    """An object that has a public key: an ``Identity``."""

    @property
    def public(self) -> bytes:
        """The 32-byte Ed25519 public key."""
        ...


Signer: TypeAlias = Signs | Ed25519PrivateKey | bytes
"""A signer: an ``Identity``, a private key, or its 32 bytes."""
Verifier: TypeAlias = Named | Ed25519PublicKey | bytes | str
"""The key whose signature counts: a public key, its 32 bytes, its hex, its PEM, or the ``Identity`` itself."""


def signing_key(key: Signer, field: str, error: type[PrivstatsError]) -> Signs:
    """Return the object that signs with ``key``.

    Args:
        key: an ``Identity``, an Ed25519 private key, or its 32 bytes.
        field: what the caller calls it, for the sentence.
        error: the class of error raised for anything else; the message never contains the value.

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
    """Return the 32 raw bytes of a public key in any of its forms.

    Args:
        key: an ``Identity``, an Ed25519 public key, its 32 bytes, its 64 hexadecimal digits, or its PEM.
        field: what the caller calls it, for the sentence.
        error: the class of error raised for anything else, and for a key of low order.

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

    Raises:
        PrivstatsError: the given kind, where it has low order.

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
    """Return whether a public key is a point of order 1, 2, 4 or 8, in any of its forms: any party can sign for those.

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
    return Ed25519PublicKey.from_public_bytes(public).public_bytes(_PEM, form).decode()


def read_public(path: str | os.PathLike[str], error: type[PrivstatsError]) -> bytes:
    """Return the 32 bytes of the public key in a file: its PEM or its hex.

    Raises:
        PrivstatsError: the given kind, where the file cannot be read, or holds something else.

    Example:
        >>> from privstats.files.signing import read_public
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> _ = open("ulm.pub", "w").write(ulm.public_pem)
        >>> read_public("ulm.pub", ps.DataError) == ulm.public
        True
    """
    data = _read(path, error, "privstats identity new")
    if _PRIVATE.encode() in data:
        raise error(
            f"{path} holds a private key: keep it, and give what `privstats identity show {quote(str(path))}` prints"
        )
    raw = _public_text(data)
    if raw is None:
        raise error(f"{path} holds no Ed25519 public key; ask its owner for what `privstats identity show` prints")
    return require_order(raw, f"the key in {path}", error)


def write_private(
    path: str | os.PathLike[str], key: Ed25519PrivateKey, passphrase: str | None, error: type[PrivstatsError]
) -> None:
    """Write a private key to a *new* file that only its owner can read: PKCS #8 in PEM, mode 0600.

    A passphrase is stretched by scrypt with n = 2^17, r = 8, p = 1 (``locked_key``).

    Raises:
        PrivstatsError: the passphrase is no text or empty; there is a file already; or it cannot be written.

    Example:
        >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        >>> from privstats.files.signing import read_private, write_private
        >>> key = Ed25519PrivateKey.generate()
        >>> write_private("ulm.pem", key, None, ps.DataError)
        >>> read_private("ulm.pem", None, ps.DataError).public_key() == key.public_key()
        True
    """
    write_new(path, _in_pem(key, passphrase, error))


def relock_private(
    path: str | os.PathLike[str], passphrase: str | None, new: str | None, error: type[PrivstatsError]
) -> None:
    """Write the private key of a file again, in its place: locked as files are today, under the same words or new ones.

    The file holds the old bytes or the new ones at any moment. Copies of the old file stay as they were, and so may
    blocks on the disk: after a weak passphrase, or a copy that may be in other hands, take a new identity.

    Args:
        path: the file.
        passphrase: unlocks it; None for a file that is not locked.
        new: locks it; the same passphrase where None.
        error: the class of error to raise.

    Raises:
        PrivstatsError: as for :func:`read_private` and :func:`write_private`; the file stays as it was. A file that is
            not locked needs a new passphrase.

    Example:
        >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        >>> from privstats.files.signing import read_private, relock_private, write_private
        >>> key = Ed25519PrivateKey.generate()
        >>> write_private("ulm.pem", key, None, ps.DataError)
        >>> relock_private("ulm.pem", None, "correct horse battery staple", ps.DataError)
        >>> read_private("ulm.pem", "correct horse battery staple", ps.DataError).public_key() == key.public_key()
        True
    """
    key, words = read_private(path, passphrase, error), passphrase if new is None else new
    if words is None:
        raise error(f"{path} is not locked: give the passphrase to lock it with")
    atomic_write(Path(path).resolve(), _in_pem(key, words, error))  # a link stays one


def _in_pem(key: Ed25519PrivateKey, passphrase: str | None, error: type[PrivstatsError]) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    if passphrase is None:
        return key.private_bytes(_PEM, form, serialization.NoEncryption())
    words = _passphrase(passphrase, error)
    from privstats.files.locked_key import locked_pem

    return locked_pem(key.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption()), words)


def is_weakly_locked(path: str | os.PathLike[str], error: type[PrivstatsError]) -> bool:
    """Return whether the private key in a file is locked at a lower cost per guess than files are today.

    Raises:
        PrivstatsError: the given kind, where the file cannot be read.

    Example:
        >>> from privstats.files.signing import is_weakly_locked
        >>> ps.secagg.Identity.generate(os.urandom).save("locked.pem", passphrase="correct horse battery staple")
        >>> is_weakly_locked("locked.pem", ps.DataError)
        False
    """
    from privstats.files.locked_key import is_stretched

    return bool(is_locked(path, error)) and not is_stretched(_read(path, error, "Identity.save"))


def is_locked(path: str | os.PathLike[str], error: type[PrivstatsError]) -> bool | None:
    """Return whether the private key in a file is locked with a passphrase; None where no private key is in it.

    Raises:
        PrivstatsError: the given kind, where the file cannot be read.

    Example:
        >>> from privstats.files.signing import is_locked
        >>> ps.secagg.Identity.generate(os.urandom).save("open.pem")
        >>> ps.secagg.Identity.generate(os.urandom).save("locked.pem", passphrase="correct horse battery staple")
        >>> is_locked("open.pem", ps.DataError), is_locked("locked.pem", ps.DataError)
        (False, True)
    """
    data = _read(path, error, "Identity.save")
    return _LOCKED in data if _PRIVATE.encode() in data else None


def read_private(
    path: str | os.PathLike[str], passphrase: str | None, error: type[PrivstatsError]
) -> Ed25519PrivateKey:
    """Return the private key of a file that :func:`write_private`, or ``openssl genpkey -algorithm ed25519``, wrote.

    Raises:
        PrivstatsError: the given kind, where others can read the file, it is no private key of this kind, or the
            passphrase is missing, wrong or too much.

    Example:
        >>> from privstats.files.signing import read_private
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> ulm.save("ulm.pem")
        >>> read_private("ulm.pem", None, ps.DataError).public_key().public_bytes_raw() == ulm.public
        True
    """
    secret = None if passphrase is None else _passphrase(passphrase, error)
    data = _read(path, error, "Identity.save")
    if _PRIVATE.encode() not in data:
        what = "a public key" if _PUBLIC.encode() in data else "no private key"
        raise error(f"{path} holds {what}; give the file that Identity.save or `privstats identity new` wrote")
    if others_can_read(Path(path)):
        raise error(f"others can read the private key in {path}: let only its owner, chmod 600 {quote(str(path))}")
    try:
        key = serialization.load_pem_private_key(data, secret)
    except TypeError:  # cryptography's word for a passphrase too few or too many
        if secret is None:
            raise error(f"{path} is locked: give its passphrase") from None
        raise error(f"{path} is not locked: leave the passphrase out") from None
    except (ValueError, UnsupportedAlgorithm):
        why = "it is damaged" if secret is None else "the passphrase is wrong, or it is damaged"
        raise error(f"{path} cannot be read as a private key: {why}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise error(f"{path} holds a private key of another kind; identities are Ed25519")
    return key


def _read(path: str | os.PathLike[str], error: type[PrivstatsError], writer: str) -> bytes:
    if not isinstance(path, str | os.PathLike):
        raise error(f"a key is kept in a file, got {type(path).__name__}; give its path")
    data = read_bounded(path, error, writer)
    if len(data) > _MOST_BYTES:
        raise error(f"{path} has {len(data)} bytes, which no key has; give a file written by {writer}")
    return data


def _passphrase(passphrase: str, error: type[PrivstatsError]) -> bytes:
    if not isinstance(passphrase, str) or not passphrase:
        raise error("a passphrase must be a text that is not empty; leave it out for a file without one")
    return passphrase.encode()


def _public_bytes(key: Any) -> bytes | None:
    if isinstance(key, Ed25519PublicKey):
        return key.public_bytes_raw()
    if isinstance(key, Named):
        key = key.public
    if isinstance(key, bytes | bytearray) and len(key) == KEY_BYTES:
        return bytes(key)
    return _public_text(key)


def _public_text(key: Any) -> bytes | None:
    """Return the key in a text, or in its bytes: PEM or hex; None where there is none."""
    try:
        text = key.decode("ascii") if isinstance(key, bytes | bytearray) else key
        if not isinstance(text, str):
            return None
        if _PUBLIC not in text:
            raw = bytes.fromhex(text)
            return raw if len(raw) == KEY_BYTES else None
        loaded = serialization.load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return None
    return loaded.public_bytes_raw() if isinstance(loaded, Ed25519PublicKey) else None


def _got(key: Any) -> str:
    """Return a value that is not a key, described by kind and length, never by its contents."""
    return f"{len(key)} bytes" if isinstance(key, bytes | bytearray) else type(key).__name__
