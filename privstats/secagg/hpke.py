"""HPKE, RFC 9180 in base mode, one message per key: X25519, HKDF-SHA256, AES-256-GCM.

The ephemeral key is passed in, so that a restarted sender repeats identical messages.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg.keys import agree

ENC_BYTES = 32
OVERHEAD = ENC_BYTES + 16
"""The overhead of a box over its content in bytes: the encapsulated key and the tag."""

AES_128_GCM, AES_256_GCM = 1, 2
_KEY_BYTES = {AES_128_GCM: 16, AES_256_GCM: 32}
_KEM = b"KEM" + (0x0020).to_bytes(2, "big")
NONCE_BYTES = 12


class UnopenedError(Exception):
    """Error for a box that does not open; it carries no reason."""


@dataclass(frozen=True, repr=False)
class Schedule:
    """The key schedule's key and first nonce."""

    key: bytes
    nonce: bytes


def seal(public: bytes, ephemeral: bytes, content: bytes | bytearray | memoryview, info: bytes) -> bytes:
    """Return ``enc || ciphertext || tag`` for the owner of ``public``.

    Args:
        public: the receiver's X25519 key, 32 bytes; ``ValueError`` if of low order.
        ephemeral: this box's own raw private key, 32 secret bytes (no DeriveKeyPair).
        info: context that the receiver must know to open the box.
    """
    enc, keys = towards(public, ephemeral, info)
    return enc + AESGCM(keys.key).encrypt(keys.nonce, content, None)


def seal_into(out: memoryview, enc: bytes, keys: Schedule, content: Iterable[memoryview]) -> None:
    """Write a sealed box of all pieces to ``out``, which has its exact size.

    ``enc`` and ``keys`` are the results of :func:`towards`.
    """
    encryptor = Cipher(algorithms.AES256(keys.key), modes.GCM(keys.nonce)).encryptor()
    place = len(enc)
    out[:place] = enc
    for piece in content:
        place += encryptor.update_into(piece, out[place:])
    encryptor.finalize()
    out[place:] = encryptor.tag


def towards(public: bytes, ephemeral: bytes, info: bytes) -> tuple[bytes, Schedule]:
    """Return the encapsulated key and its key schedule for one message."""
    private = X25519PrivateKey.from_private_bytes(ephemeral)
    enc = private.public_key().public_bytes_raw()
    return enc, schedule(encapsulate(agree(private, public), enc, public), info)


def open_box(private: X25519PrivateKey, box: bytes | memoryview, info: bytes) -> bytes:
    """Open a box that :func:`seal` sealed to the owner of ``private``.

    Raises:
        UnopenedError: another key or ``info``, damage, too few bytes, or an encapsulated key of low order.
    """
    content = bytearray(max(0, len(box) - OVERHEAD))
    open_into(content, opening(private, box, info), box[ENC_BYTES:])
    return bytes(content)


def open_into(out: bytearray, keys: Schedule, ciphertext: bytes | memoryview) -> None:
    """Decrypt ``ciphertext`` into ``out``, which is shorter by the tag.

    Raises:
        UnopenedError: other keys, or damage; ``out`` is then meaningless.
    """
    try:
        AESGCM(keys.key).decrypt_into(keys.nonce, ciphertext, None, out)
    except (InvalidTag, ValueError):
        raise UnopenedError from None


def opening(private: X25519PrivateKey, box: bytes | memoryview, info: bytes) -> Schedule:
    """Derive the key schedule that opens only this box; raises as :func:`open_box`."""
    enc = bytes(box[:ENC_BYTES])
    try:
        return schedule(encapsulate(agree(private, enc), enc, private.public_key().public_bytes_raw()), info)
    except ValueError:
        raise UnopenedError from None


def encapsulate(exchanged: bytes, enc: bytes, public: bytes) -> bytes:
    """Return the KEM's shared secret, RFC 9180, 4.1: ``ExtractAndExpand(dh, enc || pkRm)``."""
    prk = _extract(_KEM, b"", b"eae_prk", exchanged)
    return _expand(_KEM, prk, b"shared_secret", enc + public, 32)


def schedule(shared: bytes, info: bytes, aead: int = AES_256_GCM) -> Schedule:
    """Return key and first nonce, RFC 9180, 5.1, base mode; ``aead`` is the registry's number."""
    suite = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x0020, 0x0001, aead))
    context = b"\0" + _extract(suite, b"", b"psk_id_hash", b"") + _extract(suite, b"", b"info_hash", info)
    secret = _extract(suite, shared, b"secret", b"")
    key = _expand(suite, secret, b"key", context, _KEY_BYTES[aead])
    return Schedule(key, _expand(suite, secret, b"base_nonce", context, NONCE_BYTES))


def _extract(suite: bytes, salt: bytes, label: bytes, content: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + content, "sha256")


def _expand(suite: bytes, prk: bytes, label: bytes, info: bytes, size: int) -> bytes:
    # One block suffices: no output here is longer than a hash.
    labelled = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(prk, labelled + b"\1", "sha256")[:size]
