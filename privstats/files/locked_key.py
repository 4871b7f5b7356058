"""A private key locked with a passphrase: PKCS #8 in PEM, under AES-256-CBC and a key that scrypt stretches.

The form is RFC 7914's (section 7: PBES2 with scrypt), which ``cryptography`` reads and does not write: what it writes
by itself, and what versions of this library up to 0.2 wrote, takes 2,048 rounds of PBKDF2 and no memory per guess. The
program ``openssl`` knows the form, and refuses this cost: its limit for scrypt is 32 MiB.
"""

from __future__ import annotations

import base64
import binascii
import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.padding import PKCS7

COST = 1 << 17
"""scrypt's n, with r = 8 and p = 1: 128 MiB and about half a second per guess, OWASP's least for scrypt (2024)."""

_BLOCKS, _LANES = 8, 1
_SALT_BYTES, _KEY_BYTES, _BLOCK_BITS = 16, 32, 128
_BEGIN, _END = "-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----END ENCRYPTED PRIVATE KEY-----"
_LINE = 64
_INTEGER, _OCTETS, _NAME, _SEQUENCE = 0x02, 0x04, 0x06, 0x30
_PBES2, _SCRYPT, _AES_256_CBC = (
    bytes.fromhex(name) for name in ("2a864886f70d01050d", "2b06010401da47040b", "60864801650304012a")
)


def locked_pem(key: bytes, passphrase: bytes) -> bytes:
    """Return an unencrypted key of PKCS #8 in DER, locked.

    Example:
        >>> from cryptography.hazmat.primitives import serialization
        >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        >>> from privstats.files.locked_key import locked_pem
        >>> key, form = Ed25519PrivateKey.generate(), (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8)
        >>> pem = locked_pem(key.private_bytes(*form, serialization.NoEncryption()), b"battery staple")
        >>> serialization.load_pem_private_key(pem, b"battery staple").private_bytes_raw() == key.private_bytes_raw()
        True
    """
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
    """Return whether a locked key is stretched by scrypt at this cost or a higher one; False for other keys."""
    try:
        inside = pem.decode("ascii").partition(_BEGIN)[2].partition(_END)[0]
        document = base64.b64decode(inside, validate=False)
    except (UnicodeDecodeError, binascii.Error):
        return False
    _, named, costs = document.partition(_name(_SCRYPT))
    return bool(named) and _cost_in(costs) >= COST


def _cost_in(costs: bytes) -> int:
    """scrypt's n behind its name: in a sequence of short fields the second one, behind the salt."""
    try:
        salt = costs[3]
        size = costs[5 + salt]
        return int.from_bytes(costs[6 + salt : 6 + salt + size], "big")
    except IndexError:
        return 0


def _field(kind: int, content: bytes) -> bytes:
    """DER: the kind, the length in one byte or with its own length before it, the content."""
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
