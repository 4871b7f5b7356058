"""Secrets of one client, all derived from one 32-byte root: keys, coefficients, blinds.

Because they are derived and not stored, a wipe overwrites one buffer, and a resumed client repeats its messages byte
for byte, so no key encrypts two different messages. Only the root is ever serialised, sealed.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg.interactive.dealing import Dealing, Secret, deal
from privstats.secagg.interactive.messages import Advertise
from privstats.secagg.interactive.signed_statements import box_context
from privstats.secagg.keys import agree, derive, public_of
from privstats.secagg.prg import reference_keystream
from privstats.secagg.scalars import WIDE_BYTES, KeyPair, canonical, key_pair, uniform
from privstats.secagg.wire import Refusal

__all__ = ["ClientSecrets", "pair_seed", "self_stream"]

_NONCE = bytes(12)  # every box key seals one box


class ClientSecrets:
    """Secrets of one client in one session; the repr shows none of them."""

    def __init__(self, root: bytes | bytearray) -> None:
        self._root = root
        box_key = derive(root, "box-key")
        self._mask_key, self._self_key = key_pair(derive(root, "mask-key")), key_pair(derive(root, "self-key"))
        self._box_private = X25519PrivateKey.from_private_bytes(box_key)
        self._mask_private = X25519PrivateKey.from_private_bytes(self._mask_key.private)
        self._shared: dict[bytes, bytes] = {}
        self.self_key = canonical(self._self_key.scalar)
        self.box_public, self.mask_public = public_of(box_key), public_of(self._mask_key.private)
        self.self_public = public_of(self._self_key.private)

    def deal(self, transcript: bytes, owner: int, holders: Sequence[int], threshold: int) -> Dealing:
        """Shares of both keys for the neighbours, and their proof; the same whenever the transcript is the same.

        The blinds of the shares depend on the transcript, so that no blind ever serves two challenges, even in a client
        that was copied and asked twice.
        """
        both = (
            self._secret(self._self_key, "self", transcript, threshold),
            self._secret(self._mask_key, "mask", transcript, threshold),
        )
        return deal(both, transcript, owner, holders)

    def _secret(self, key: KeyPair, name: str, transcript: bytes, threshold: int) -> Secret:
        sign = derive(self._root, f"{name}-nonce-sign", salt=transcript)[0] & 1
        return Secret(
            key,
            key_pair(derive(self._root, f"{name}-nonce", salt=transcript), sign),
            _drawn(derive(self._root, f"{name}-coefficients"), threshold - 1),
            _drawn(derive(self._root, f"{name}-blinds", salt=transcript), threshold - 1),
        )

    def shared_with(self, public: bytes) -> bytes:
        """The secret that the box key shares with ``public``; raises ``Refusal`` for a point of low order."""
        if public not in self._shared:
            try:
                self._shared[public] = agree(self._box_private, public)
            except ValueError:
                raise Refusal("bad_key", "a public key is a point of low order") from None
        return self._shared[public]

    def seal_box(self, shares: bytes, sender: int, receiver: Advertise, transcript: bytes) -> bytes:
        """The box for ``receiver``: its two shares, bound to session, sender, receiver and step."""
        context = box_context(receiver.session, sender, receiver.sender)
        return self._box(receiver.box_key, sender, receiver.sender, transcript).encrypt(_NONCE, shares, context)

    def open_box(self, box: bytes, receiver: int, sender: Advertise, transcript: bytes) -> bytes:
        """The shares in ``sender``'s box; raises ``InvalidTag``."""
        context = box_context(sender.session, sender.sender, receiver)
        return self._box(sender.box_key, sender.sender, receiver, transcript).decrypt(_NONCE, box, context)

    def _box(self, public: bytes, sender: int, receiver: int, transcript: bytes) -> AESGCM:
        return AESGCM(derive(self.shared_with(public), f"box/{sender}/{receiver}", salt=transcript))

    def pair_seed(self, me: int, other: Advertise, transcript: bytes) -> bytes:
        """The mask seed shared with ``other``; raises ``Refusal`` for a point of low order."""
        try:
            return pair_seed(agree(self._mask_private, other.mask_key), transcript, (me, other.sender))
        except ValueError:
            raise Refusal("bad_key", f"client {other.sender}'s mask key is a point of low order") from None

    def self_stream(self, transcript: bytes) -> bytes:
        """The key of this client's self-mask."""
        return self_stream(self.self_key, transcript)

    def __repr__(self) -> str:
        return "ClientSecrets(<derived from a private root>)"


def pair_seed(shared: bytes, transcript: bytes, pair: tuple[int, int]) -> bytes:
    """The mask seed of two clients from the secret that their mask keys share."""
    return derive(shared, f"mask/{min(pair)}/{max(pair)}", salt=transcript)


def self_stream(self_key: bytes, transcript: bytes) -> bytes:
    """The key of a self-mask."""
    return derive(self_key, "self-mask", salt=transcript)


def _drawn(key: bytes, number: int) -> list[int]:
    return uniform(reference_keystream(key, 0, 0, WIDE_BYTES * number))
