"""Read and write key files: a public key, and a private one, which a passphrase may lock.

A locked key is PKCS #8 in PEM, under AES-256-CBC and a scrypt-stretched key (RFC 7914, section 7). ``openssl`` refuses
such a key, because its scrypt limit is 32 MiB.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from shlex import quote

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.padding import PKCS7

from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write, read_bounded, write_new
from privstats.files.signing import PUBLIC_MARK, public_text, require_order
from privstats.files.text import is_plain_text
from privstats.printable.command_line import command_line
from privstats.system import others_can_read

COST = 1 << 17
"""scrypt's n, with r = 8 and p = 1: 128 MiB and about half a second per guess, OWASP's least for scrypt (2024)."""

_BLOCKS, _LANES = 8, 1
_SALT_BYTES, _KEY_BYTES, _BLOCK_BITS = 16, 32, 128
_BEGIN, _END = "-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----END ENCRYPTED PRIVATE KEY-----"
_LINE = 64
_MOST_BYTES = 1 << 14
_PRIVATE_MARK, _LOCKED_MARK = b"PRIVATE KEY-----", b"BEGIN ENCRYPTED "
_INTEGER, _OCTETS, _NAME, _SEQUENCE = 0x02, 0x04, 0x06, 0x30
_PBES2, _SCRYPT, _AES_256_CBC = (
    bytes.fromhex(name) for name in ("2a864886f70d01050d", "2b06010401da47040b", "60864801650304012a")
)


def locked_pem(key: bytes, passphrase: bytes) -> bytes:
    """Lock an unencrypted PKCS #8 key in DER."""
    salt, start = os.urandom(_SALT_BYTES), os.urandom(_BLOCK_BITS // 8)
    stretched = Scrypt(salt, _KEY_BYTES, COST, _BLOCKS, _LANES).derive(passphrase)
    padder, cipher = PKCS7(_BLOCK_BITS).padder(), Cipher(algorithms.AES(stretched), modes.CBC(start)).encryptor()
    sealed = cipher.update(padder.update(key) + padder.finalize()) + cipher.finalize()
    costs = _sequence(_octets(salt), *map(_integer, (COST, _BLOCKS, _LANES)))
    scheme = _sequence(_sequence(_name(_SCRYPT), costs), _sequence(_name(_AES_256_CBC), _octets(start)))
    document = _sequence(_sequence(_name(_PBES2), scheme), _octets(sealed))
    text = base64.b64encode(document).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([_BEGIN, *lines, _END, ""]).encode()


def is_stretched(pem: bytes) -> bool:
    """Return whether a locked key is stretched by scrypt at ``COST`` or more."""
    try:
        inside = pem.decode("ascii").partition(_BEGIN)[2].partition(_END)[0]
        document = base64.b64decode(inside, validate=False)
    except (UnicodeDecodeError, binascii.Error):
        return False
    _, named, costs = document.partition(_name(_SCRYPT))
    return bool(named) and _cost_in(costs) >= COST


def _cost_in(costs: bytes) -> int:
    """Return scrypt's n, the field after the salt."""
    try:
        salt = costs[3]
        size = costs[5 + salt]
        return int.from_bytes(costs[6 + salt : 6 + salt + size], "big")
    except IndexError:
        return 0


def _field(kind: int, content: bytes) -> bytes:
    size = len(content)
    if size < 1 << 7:
        return bytes([kind, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([kind, 1 << 7 | len(length)]) + length + content


def _sequence(*fields: bytes) -> bytes:
    return _field(_SEQUENCE, b"".join(fields))


def _name(identifier: bytes) -> bytes:
    return _field(_NAME, identifier)


def _octets(content: bytes) -> bytes:
    return _field(_OCTETS, content)


def _integer(value: int) -> bytes:
    return _field(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def read_public(path: str | os.PathLike[str], error: type[PrivstatsError]) -> bytes:
    """Return a file's public key, in PEM or hex, as 32 bytes."""
    data = _read(path, error, "privstats identity new")
    if _PRIVATE_MARK in data:
        raise error(
            f"{path} holds a private key: keep it, and give what `{command_line('identity', 'show', path)}` prints"
        )
    _require_plain(path, data, error, "privstats identity new")
    raw = public_text(data)
    if raw is None:
        raise error(f"{path} holds no Ed25519 public key; ask its owner for what `privstats identity show` prints")
    return require_order(raw, f"the key in {path}", error)


def write_private(
    path: str | os.PathLike[str], key: Ed25519PrivateKey, passphrase: str | None, error: type[PrivstatsError]
) -> None:
    """Write a private key to a *new* file that only its owner can read: PKCS #8 in PEM, mode 0600.

    A passphrase is stretched by scrypt with n = 2^17, r = 8, p = 1.

    Example:
        >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        >>> from privstats.files.locked_key import read_private, write_private
        >>> key = Ed25519PrivateKey.generate()
        >>> write_private("ulm.pem", key, None, ps.DataError)
        >>> read_private("ulm.pem", None, ps.DataError).public_key() == key.public_key()
        True
    """
    write_new(path, _in_pem(key, passphrase, error))


def relock_private(
    path: str | os.PathLike[str], passphrase: str | None, new: str | None, error: type[PrivstatsError]
) -> None:
    """Lock a file's private key again in its place, at the cost per guess of new files.

    The file is replaced atomically. Copies of the old file stay, and so may blocks on the disk: after a weak passphrase
    or a leaked copy, a new identity is needed.

    Args:
        passphrase: unlocks it; None for a file that is not locked.
        new: locks it; None: the same passphrase, which must then exist.
    """
    key, words = read_private(path, passphrase, error), passphrase if new is None else new
    if words is None:
        raise error(f"{path} is not locked: give the passphrase to lock it with")
    atomic_write(Path(path).resolve(), _in_pem(key, words, error))  # resolved, so that a link stays a link


def _in_pem(key: Ed25519PrivateKey, passphrase: str | None, error: type[PrivstatsError]) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    if passphrase is None:
        return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    words = _passphrase(passphrase, error)
    return locked_pem(key.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption()), words)


def is_weakly_locked(path: str | os.PathLike[str], error: type[PrivstatsError]) -> bool:
    """Return whether a file's private key is locked at a lower cost per guess than new files."""
    return bool(is_locked(path, error)) and not is_stretched(_read(path, error, "Identity.save"))


def is_locked(path: str | os.PathLike[str], error: type[PrivstatsError]) -> bool | None:
    """Return whether a file's private key is locked with a passphrase; None without a private key."""
    data = _read(path, error, "Identity.save")
    return _LOCKED_MARK in data if _PRIVATE_MARK in data else None


def read_private(
    path: str | os.PathLike[str], passphrase: str | None, error: type[PrivstatsError]
) -> Ed25519PrivateKey:
    """Return the private key of a file from :func:`write_private` or ``openssl genpkey -algorithm ed25519``.

    Raises:
        PrivstatsError: the given kind, where others can read the file, it is no such key, or the passphrase is missing,
            wrong or surplus.
    """
    secret = None if passphrase is None else _passphrase(passphrase, error)
    data = _read(path, error, "Identity.save")
    if _PRIVATE_MARK not in data:
        what = "a public key" if PUBLIC_MARK.encode() in data else "no private key"
        raise error(f"{path} holds {what}; give the file that Identity.save or `privstats identity new` wrote")
    _require_plain(path, data, error, "Identity.save")
    if others_can_read(Path(path)):
        raise error(f"others can read the private key in {path}: let only its owner, chmod 600 {quote(str(path))}")
    try:
        key = serialization.load_pem_private_key(data, secret)
    except TypeError:  # cryptography's error for a missing or surplus passphrase
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


def _require_plain(path: str | os.PathLike[str], data: bytes, error: type[PrivstatsError], writer: str) -> None:
    if not is_plain_text(data):
        raise error(
            f"{path} holds a character that no key's text has, as a null character or a byte-order mark; give the file "
            f"as {writer} wrote it"
        )


def _passphrase(passphrase: str, error: type[PrivstatsError]) -> bytes:
    if not isinstance(passphrase, str) or not passphrase:
        raise error("a passphrase must be a text that is not empty; leave it out for a file without one")
    return passphrase.encode()
