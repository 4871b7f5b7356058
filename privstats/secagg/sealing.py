"""Sealing of a machine's state: encrypted and authenticated under the caller's key, bound to its place.

The bound values (role, parameters, roster, index) must match when it is opened, so a state cannot be resumed elsewhere.
Sealing does not prevent the reuse of an old copy: a store of states must replace them, as ``engines.journal`` does.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.errors import LocalProtocolError
from privstats.secagg.keys import Entropy, draw
from privstats.secagg.wire import prefix

__all__ = ["seal_state", "unseal_state"]

_NONCE_BYTES = 12

S = TypeVar("S")


def seal_state(state: object, key: bytes, *, role: str, place: bytes, entropy: Entropy) -> bytes:
    """``nonce || AES-256-GCM(state)``; raises ``LocalProtocolError`` for a key that is not 32 bytes."""
    nonce = draw(entropy, _NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, msgspec.msgpack.encode(state), _bound(role, place))


def unseal_state(sealed: bytes, key: bytes, kind: type[S], *, role: str, place: bytes) -> S:
    """The state that :func:`seal_state` sealed.

    Raises:
        LocalProtocolError: another key, place, version, or damage; the error does not reveal which.
    """
    nonce, box = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return msgspec.msgpack.decode(_cipher(key).decrypt(nonce, box, _bound(role, place)), type=kind)
    except (InvalidTag, ValueError, msgspec.DecodeError):
        raise LocalProtocolError(
            f"the {role}'s saved state does not open: it is damaged, or was saved under another key, plan or roster"
        ) from None


def _cipher(key: bytes) -> AESGCM:
    if len(key) != 32:
        raise LocalProtocolError(f"a state is sealed under a key of 32 bytes, got {len(key)}")
    return AESGCM(key)


def _bound(role: str, place: bytes) -> bytes:
    return prefix(f"state/{role}") + place
