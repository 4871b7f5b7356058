"""What a client alone knows, all of it derived from one 32-byte root: keys, self-mask seed, share coefficients.

Deriving rather than storing keeps the wipe to one buffer and makes a resumed client repeat itself to the byte, so no
key meets two different messages. Lives inside the client; never serialised except as the root, sealed.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg import shamir
from privstats.secagg.field import Bytes
from privstats.secagg.keys import agree, derive
from privstats.secagg.prg import reference_keystream

__all__ = ["ClientSecrets", "box_cipher", "pair_seed", "self_stream"]


class ClientSecrets:
    """Secrets of one client in one session. Its repr shows nothing of them."""

    def __init__(self, root: bytes | bytearray) -> None:
        self._mask_key = derive(root, "mask-key")
        self._coefficients = derive(root, "coefficients")
        self.seed = derive(root, "self-mask-seed")
        self.box_private = X25519PrivateKey.from_private_bytes(derive(root, "box-key"))
        self.mask_private = X25519PrivateKey.from_private_bytes(self._mask_key)

    def shares(self, *, threshold: int, holders: int) -> Bytes:
        """Shares of seed and mask key together, ``(holders, 64)``: the first half is the seed's."""
        secret = self.seed + self._mask_key
        randomness = reference_keystream(self._coefficients, 0, 0, (threshold - 1) * len(secret))
        return shamir.split(secret, randomness, threshold=threshold, holders=holders)

    def __repr__(self) -> str:
        return "ClientSecrets(<derived from a private root>)"


def box_cipher(shared: bytes, *, transcript: bytes, sender: int, receiver: int) -> AESGCM:
    """The cipher of the one box that ``sender`` seals for ``receiver``; its nonce is zero because it is used once."""
    return AESGCM(derive(shared, f"box/{sender}/{receiver}", salt=transcript))


def pair_seed(private: X25519PrivateKey, public: bytes, *, transcript: bytes, pair: tuple[int, int]) -> bytes:
    """The mask seed that two clients share."""
    return derive(agree(private, public), f"mask/{min(pair)}/{max(pair)}", salt=transcript)


def self_stream(seed: bytes, *, transcript: bytes) -> bytes:
    """The key of a client's self-mask."""
    return derive(seed, "self-mask", salt=transcript)
